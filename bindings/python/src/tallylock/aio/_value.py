"""Values for asyncio."""

import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import cast

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds
from tallylock._ids import next_update
from tallylock._value import OVERTAKEN, WRITTEN
from tallylock.aio._calls import Calls
from tallylock.errors import translated, translating


class Value:
    """A text of any bytes that is changed only where it already is, always together with its TTL.

    The verbs raise what those of `tallylock.Value` do. Cancelling the task gives the call up; whether a write that was
    under way was applied is not known then.
    """

    __slots__ = ("_calls", "_key")

    def __init__(self, calls: Calls, key: str | Binary) -> None:
        """Make a handle; `client.value` does this."""
        self._calls = calls
        self._key = content(key)
        with translating():
            _ffi.check_value(self._key)

    async def get(self) -> bytes | None:
        """Return the value, or None if there is none."""
        return cast("bytes | None", await self._calls.call(_ffi.submit_value_get, self._key))

    async def replace_if_present(self, value: str | Binary, *, ttl: timedelta) -> bool:
        """Replace the value and set its TTL if it is there; return whether it was."""
        new, ttl_us = content(value, self._key), microseconds(ttl)
        return cast("bool", await self._calls.call(_ffi.submit_value_replace_if_present, self._key, new, ttl_us))

    async def touch(self, *, ttl: timedelta) -> bool:
        """Set the TTL of the value if it is there; return whether it was."""
        return cast("bool", await self._calls.call(_ffi.submit_value_touch, self._key, microseconds(ttl)))

    async def compare_and_set(self, expected: str | Binary, value: str | Binary, *, ttl: timedelta) -> bool:
        """Replace the value and set its TTL if it is `expected`; return whether it was."""
        old, new, ttl_us = content(expected, self._key), content(value, self._key), microseconds(ttl)
        return cast("bool", await self._calls.call(_ffi.submit_value_compare_and_set, self._key, old, new, ttl_us))

    async def update(
        self, change: Callable[[bytes], str | Binary | Awaitable[str | Binary]], *, ttl: timedelta
    ) -> bytes | None:
        """Replace the value by what `change` makes of it, and set its TTL.

        Args:
            change: is given the value and returns the new one; a function or an async function. It is called again,
                with what is there then, if another wrote meanwhile. Nothing is locked while it runs, and nothing is
                written if it raises.
            ttl: how long the new value lives: 1 ms to 10 years, rounded up to whole milliseconds.

        Returns:
            What was written, or None if there is no such value, or none any more.

        Raises:
            ConflictError: if others were faster until the client's time-out.

        """
        ttl_us, update_id = microseconds(ttl), next_update()
        try:
            if not await self._calls.call(_ffi.submit_update_begin_as, update_id, self._key):
                return None
            while True:
                made = change(_ffi.update_present(update_id))
                new = content(await made if inspect.isawaitable(made) else made, self._key)
                offered = await self._calls.call(_ffi.submit_update_offer, self._key, update_id, new, ttl_us)
                if offered != OVERTAKEN:
                    return new if offered == WRITTEN else None
        except _ffi.CallError as error:
            raise translated(error) from None
        except BaseException:
            _ffi.update_free(update_id)
            raise
