"""Locks, blocking."""

import weakref
from datetime import timedelta
from typing import Literal

from tallylock import _ffi
from tallylock._arguments import Binary, content, hold_microseconds, microseconds, packed_lock, renewal_microseconds
from tallylock._holder import Holder, logged_fence, unpack_holder
from tallylock._ids import next_lease
from tallylock._lease import Lease, LeaseState
from tallylock._loss import OnLost
from tallylock._session import Session
from tallylock._waiting import awaited
from tallylock.errors import translated, translating


class LockHandle:
    """What a lock was opened for, and the lease that it has."""

    __slots__ = ("_current", "_interval_us", "_key", "_max_hold_us", "_ttl_us")

    def __init__(
        self,
        key: str | Binary,
        ttl: timedelta,
        renewal: timedelta | Literal[False] | None,
        max_hold: timedelta | None,
    ) -> None:
        """Check what a lock was opened for."""
        self._key = content(key)
        self._ttl_us = microseconds(ttl)
        self._interval_us = renewal_microseconds(self._key, renewal)
        self._max_hold_us = hold_microseconds(self._key, max_hold)
        self._current: weakref.ref[LeaseState] | None = None
        with translating():
            _ffi.check_lock(self._key, self._ttl_us, self._interval_us, self._max_hold_us)

    def _check_free(self) -> None:
        if self._current is not None and (lease := self._current()) is not None:
            lease.check_not_held()


class Lock(LockHandle):
    """A lock that one owner has at a time.

    A handle is for one holder at a time: while a lease that it acquired is ours, it acquires no other. Threads that are
    to wait for each other take a handle each, which costs nothing.
    """

    __slots__ = ("_packed", "_session")

    def __init__(
        self,
        session: Session,
        key: str | Binary,
        ttl: timedelta,
        renewal: timedelta | Literal[False] | None = None,
        max_hold: timedelta | None = None,
    ) -> None:
        """Make a handle; `client.lock` does this."""
        super().__init__(key, ttl, renewal, max_hold)
        self._session = session
        self._packed = packed_lock(session.client_id, self._ttl_us, self._interval_us, self._max_hold_us, self._key)

    def acquire(self, *, wait: timedelta | None = None, on_lost: OnLost | None = None) -> Lease:
        """Take the lock.

        Args:
            wait: how long to wait for it if another holds it, up to 10 years; not at all if not given. Ctrl-C ends the
                wait and leaves no lock behind.
            on_lost: called with the LostError when the lease is lost, on a thread of its own. What it raises is logged.

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
        # Made before there is anything to lose: an interruption finds it there, and its id is not freed too early.
        lease = Lease(self._session, lease_id, self._ttl_us)
        try:
            if wait:
                awaited(
                    self._session.client_id,
                    _ffi.submit_lock_acquire_as,
                    lease_id,
                    self._key,
                    self._ttl_us,
                    self._interval_us,
                    self._max_hold_us,
                    microseconds(wait),
                )
            else:
                _ffi.packed_lock_acquire(self._packed, lease_id)
            if on_lost is not None:
                lease.call_at_loss(on_lost)
            self._current = weakref.ref(lease)
            return lease  # noqa: TRY300 - an interruption just before it is one of the acquire
        except _ffi.CallError as error:
            raise translated(error) from None
        except BaseException:
            # Interrupted, perhaps when it was granted already.
            _ffi.lease_abandon(lease_id)
            raise

    def adopt(self, token: str, *, on_lost: OnLost | None = None) -> Lease:
        """Take over a lease that another process or thread gave away by `transfer`, with its fence.

        Args:
            token: what `transfer` returned.
            on_lost: as of acquire.

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
        # As in acquire; but what is not seen by its caller is still whose it was.
        lease = Lease(self._session, lease_id, self._ttl_us)
        with translating():
            _ffi.lock_adopt(
                self._session.client_id,
                lease_id,
                self._key,
                self._ttl_us,
                self._interval_us,
                self._max_hold_us,
                content(token, self._key),
            )
        if on_lost is not None:
            lease.call_at_loss(on_lost)
        self._current = weakref.ref(lease)
        return lease

    def inspect(self) -> Holder | None:
        """Return who holds the lock, a holder of another library too, or None if nobody does. Changes nothing.

        Raises WrongTypeError if the key holds another type, and what any call that reads may.
        """
        with translating():
            return unpack_holder(_ffi.lock_inspect(self._session.client_id, self._key, self._ttl_us))

    def steal(self, expected_token: str | Binary, *, reason: str) -> int | None:
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
        with translating():
            return logged_fence(_ffi.lock_steal(self._session.client_id, self._key, self._ttl_us, expected, why))
