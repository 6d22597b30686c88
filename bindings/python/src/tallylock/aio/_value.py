"""Values for asyncio."""

from datetime import timedelta
from typing import cast

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds
from tallylock.aio._calls import Calls
from tallylock.errors import translating


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
