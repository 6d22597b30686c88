"""Leases for asyncio."""

from datetime import timedelta
from types import TracebackType

from tallylock import _ffi
from tallylock._arguments import microseconds
from tallylock._lease import LeaseState, note_unreleased
from tallylock.aio._calls import Calls
from tallylock.errors import TallylockError


class Lease(LeaseState):
    """The time-limited right to a lock. A context manager: released at the exit.

    It belongs to the process that acquired it. One that is forgotten is not released but ends with its TTL.
    """

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls, lease_id: int, ttl_us: int) -> None:
        """Take over the id of a lease in the native library."""
        super().__init__(calls.session, lease_id, ttl_us)
        self._calls = calls

    async def extend(self, ttl: timedelta | None = None) -> None:
        """Give the lease another `ttl` from now: the lock's if not given.

        Raises LostError if it is no longer ours, InvalidArgumentError if `ttl` is out of bounds, and what any call that
        writes may; after those the lease is what it was.
        """
        ttl_us = self._ttl_us if ttl is None else microseconds(ttl)
        await self._calls.call(_ffi.submit_lease_extend, self._lease_id, ttl_us)

    async def release(self) -> None:
        """Give the lock back; again is harmless. After an error that is not LostError it can be repeated.

        Raises LostError if it was no longer ours, and what any call that writes may.
        """
        await self._calls.call(_ffi.submit_lease_release, self._lease_id)

    async def __aenter__(self) -> "Lease":
        """Return the lease."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lease; an error of the block is never hidden by one of the release."""
        try:
            await self.release()
        except TallylockError as unreleased:
            if error is None:
                raise
            note_unreleased(error, unreleased)
