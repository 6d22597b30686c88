"""Counters for asyncio."""

from datetime import timedelta
from typing import Literal, cast

from tallylock import _ffi
from tallylock._arguments import Binary, amount_refused, content, is_fixed, microseconds
from tallylock.aio._calls import Calls
from tallylock.errors import TallylockError, translating


class Counter:
    """A counter of whole numbers of 64 bits, whose every write sets or keeps a TTL.

    The verbs raise what those of `tallylock.Counter` do. Cancelling the task gives the call up; whether an add, a drain
    or a finish that was under way was applied is not known then.
    """

    __slots__ = ("_calls", "_fixed", "_key", "_ttl_us")

    def __init__(self, calls: Calls, key: str | Binary, ttl: timedelta, expiry: Literal["sliding", "fixed"]) -> None:
        """Make a handle; `client.counter` does this."""
        self._calls = calls
        self._key = content(key)
        self._ttl_us = microseconds(ttl)
        self._fixed = is_fixed(self._key, expiry)
        with translating():
            _ffi.check_counter(self._key, self._ttl_us)

    async def add(self, amount: int) -> int:
        """Add `amount`, any whole number of 64 bits, and return the total.

        Raises CounterOverflowError if the total wouldn't fit into 64 bits, InvalidArgumentError if `amount` doesn't.
        """
        try:
            total = await self._calls.call(_ffi.submit_counter_add, self._key, self._ttl_us, self._fixed, amount)
        except ValueError as error:
            if isinstance(error, TallylockError):
                raise
            raise amount_refused(self._key, amount) from None
        return cast("int", total)

    async def read(self) -> int | None:
        """Return the total, or None if there is no such counter."""
        return cast("int | None", await self._calls.call(_ffi.submit_counter_read, self._key, self._ttl_us))

    async def drain(self) -> int | None:
        """Take what the counter holds and leave 0, with its remaining time untouched.

        Returns the amount taken, or None if there is no such counter. One that had lost its TTL is given the handle's,
        and counted in `client.healed`.
        """
        return cast("int | None", await self._calls.call(_ffi.submit_counter_drain, self._key, self._ttl_us))

    async def finish(self) -> int | None:
        """Delete the counter and return what it held, or None if there is no such counter."""
        return cast("int | None", await self._calls.call(_ffi.submit_counter_finish, self._key, self._ttl_us))
