"""Locks for asyncio."""

import asyncio
from datetime import timedelta

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds
from tallylock._ids import next_lease
from tallylock.aio._calls import Calls
from tallylock.aio._lease import Lease
from tallylock.errors import translating


class Lock:
    """A lock that one owner has at a time. Each acquire has an owner of its own, also among those of one handle."""

    __slots__ = ("_calls", "_key", "_ttl_us")

    def __init__(self, calls: Calls, key: str | Binary, ttl: timedelta) -> None:
        """Make a handle; `client.lock` does this."""
        self._calls = calls
        self._key = content(key)
        self._ttl_us = microseconds(ttl)
        with translating():
            _ffi.check_lock(self._key, self._ttl_us)

    async def acquire(self, *, wait: timedelta | None = None) -> Lease:
        """Take the lock.

        Args:
            wait: how long to wait for it if another holds it, up to 10 years; not at all if not given. Cancelling the
                task ends the wait and leaves no lock behind.

        Returns:
            The lease, to be released. A context manager: released at the exit.

        Raises:
            BusyError: if another held it until the wait was over.
            CallTimeoutError, UnavailableError, ForbiddenError, ReadOnlyError, OutOfMemoryError, UnsupportedError,
                ClosedError: as any call that writes.
            WrongTypeError: if the key holds another type.
            InvalidArgumentError: if the wait is negative or too long.

        """
        lease_id = next_lease()
        wait_us = 0 if wait is None else microseconds(wait)
        try:
            await self._calls.call(_ffi.submit_lock_acquire_as, lease_id, self._key, self._ttl_us, wait_us)
        except asyncio.CancelledError:
            # It may have been granted in the same turn of the loop.
            _ffi.lease_abandon(lease_id)
            raise
        return Lease(self._calls, lease_id, self._ttl_us)
