"""Locks for asyncio."""

import weakref
from datetime import timedelta
from typing import Literal, cast

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds
from tallylock._holder import Holder, logged_fence, unpack_holder
from tallylock._ids import next_lease
from tallylock._lock import LockHandle
from tallylock._loss import OnLost
from tallylock.aio._calls import Calls
from tallylock.aio._lease import Lease


class Lock(LockHandle):
    """A lock that one owner has at a time.

    A handle is for one holder at a time: while a lease that it acquired is ours, it acquires no other. Tasks that are
    to wait for each other take a handle each, which costs nothing.
    """

    __slots__ = ("_calls",)

    def __init__(
        self,
        calls: Calls,
        key: str | Binary,
        ttl: timedelta,
        renewal: timedelta | Literal[False] | None = None,
        max_hold: timedelta | None = None,
    ) -> None:
        """Make a handle; `client.lock` does this."""
        super().__init__(key, ttl, renewal, max_hold)
        self._calls = calls

    async def acquire(
        self,
        *,
        wait: timedelta | None = None,
        on_lost: OnLost | None = None,
        cancel_on_loss: bool = False,
    ) -> Lease:
        """Take the lock.

        Args:
            wait: how long to wait for it if another holds it, up to 10 years; not at all if not given. Cancelling the
                task ends the wait and leaves no lock behind.
            on_lost: called with the LostError when the lease is lost, in the event loop. What it raises is logged.
            cancel_on_loss: cancel the task in the `async with` block of the lease when that is lost; the block then
                ends with LostError.

        Returns:
            The lease, to be released. A context manager: released at the exit.

        Raises:
            BusyError: if another held it until the wait was over.
            AlreadyHeldError: at once, if this handle holds it.
            CallTimeoutError, UnavailableError, ForbiddenError, ReadOnlyError, OutOfMemoryError, UnsupportedError,
                ClosedError: as any call that writes.
            WrongTypeError: if the key holds another type.
            InvalidArgumentError: if the wait is negative or too long.

        """
        self._check_free()
        lease_id = next_lease()
        wait_us = 0 if wait is None else microseconds(wait)
        try:
            await self._calls.call(
                _ffi.submit_lock_acquire_as,
                lease_id,
                self._key,
                self._ttl_us,
                self._interval_us,
                self._max_hold_us,
                wait_us,
            )
            return self._held(lease_id, on_lost, cancel_on_loss=cancel_on_loss)
        except BaseException:
            # It may have been granted in the same turn of the loop.
            _ffi.lease_abandon(lease_id)
            raise

    async def adopt(self, token: str, *, on_lost: OnLost | None = None, cancel_on_loss: bool = False) -> Lease:
        """Take over a lease that another process or task gave away by `transfer`, with its fence.

        Args:
            token: what `transfer` returned.
            on_lost: as of acquire.
            cancel_on_loss: as of acquire.

        Returns:
            The lease, for this lock's TTL from now, to be released.

        Raises:
            LostError: if the lock is no longer held by this token.
            AlreadyHeldError: if this handle holds it.
            InvalidArgumentError: if it is no token.
            CallTimeoutError, UnavailableError, OutcomeUnknownError, ForbiddenError, ReadOnlyError, UnsupportedError,
                ClosedError: as any call that writes.

        """
        self._check_free()
        lease_id = next_lease()
        try:
            await self._calls.call(
                _ffi.submit_lock_adopt,
                lease_id,
                self._key,
                self._ttl_us,
                self._interval_us,
                self._max_hold_us,
                content(token, self._key),
            )
            return self._held(lease_id, on_lost, cancel_on_loss=cancel_on_loss)
        except BaseException:
            # It is still whose it was, and renewed by nobody.
            _ffi.lease_free(lease_id)
            raise

    def _held(self, lease_id: int, on_lost: OnLost | None, *, cancel_on_loss: bool) -> Lease:
        lease = Lease(self._calls, lease_id, self._ttl_us, on_lost, cancel_on_loss=cancel_on_loss)
        self._current = weakref.ref(lease)
        return lease

    async def inspect(self) -> Holder | None:
        """Return who holds the lock, a holder of another library too, or None if nobody does. Changes nothing.

        Raises WrongTypeError if the key holds another type, and what any call that reads may.
        """
        packed = await self._calls.call(_ffi.submit_lock_inspect, self._key, self._ttl_us)
        return unpack_holder(cast("bytes", packed))

    async def steal(self, expected_token: str | Binary, *, reason: str) -> int | None:
        """Take the lock away from the holder of a token and wake those who wait. For operators: the holder isn't asked.

        The fence is counted up, so that the next holder's is larger than that of the one who loses the lock. With the
        fence that is returned, a guarded write or a fenced drain shuts that one out before there is a next one.

        Args:
            expected_token: the `token` that `inspect` gave; if another holds the lock by now, nothing is changed.
            reason: why, for people. It goes to the logger `tallylock` as a warning, with the holder's label; and
                `client.stolen` counts.

        Returns:
            The fence of the lock now, or None if the token holds it no more.

        Raises:
            InvalidArgumentError: if the reason says nothing.
            OutcomeUnknownError: if the reply was lost: inspect the lock again.
            WrongTypeError, NotAnIntegerError: if the lock or its fence holds something else.
            CallTimeoutError, UnavailableError, ForbiddenError, ReadOnlyError, OutOfMemoryError, UnsupportedError,
                ClosedError: as any call that writes.

        """
        expected, why = content(expected_token, self._key), content(reason, self._key)
        packed = await self._calls.call(_ffi.submit_lock_steal, self._key, self._ttl_us, expected, why)
        return logged_fence(cast("bytes", packed))
