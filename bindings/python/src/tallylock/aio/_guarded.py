"""Guarded values for asyncio."""

from datetime import timedelta
from typing import cast

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds, whole_fence
from tallylock.aio._calls import Calls
from tallylock.errors import translating


class Guarded:
    """A text of any bytes that only the holder of a lock writes, in the name of its fence.

    Once a holder with a higher fence was here, an earlier one is refused with FencedOffError. The guard is that of
    fenced drains and claims at the same key. It is kept for 7 days after its last use, also when the text is deleted or
    ends; once it is forgotten, a holder from before passes. `client.value` reads the text.

    The verbs raise what those of `tallylock.Guarded` do. Cancelling the task gives the call up; whether a write that
    was under way was applied is not known then.
    """

    __slots__ = ("_calls", "_key")

    def __init__(self, calls: Calls, key: str | Binary) -> None:
        """Make a handle; `client.guarded` does this."""
        self._calls = calls
        self._key = content(key)
        with translating():
            _ffi.check_value(self._key)

    async def set(self, value: str | Binary, *, fence: int, ttl: timedelta) -> None:
        """Write the value and set its TTL, whether there is one or not.

        Args:
            value: the new value; text is sent in UTF-8.
            fence: the `fence` of the lease under which this is done.
            ttl: how long it lives: 1 ms to 10 years, rounded up to whole milliseconds, else InvalidArgumentError.

        """
        new, number = content(value, self._key), whole_fence(self._key, fence)
        await self._calls.call(_ffi.submit_guarded_set, self._key, new, number, microseconds(ttl))

    async def delete(self, *, fence: int) -> bool:
        """Delete the value, for the holder of a lease with this `fence`; return whether there was one."""
        number = whole_fence(self._key, fence)
        return cast("bool", await self._calls.call(_ffi.submit_guarded_delete, self._key, number))
