"""Locks, blocking."""

from datetime import timedelta

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds, packed_lock
from tallylock._ids import next_lease
from tallylock._lease import Lease
from tallylock._session import Session
from tallylock._waiting import awaited
from tallylock.errors import translated, translating


class Lock:
    """A lock that one owner has at a time. Each acquire has an owner of its own, also among those of one handle."""

    __slots__ = ("_key", "_packed", "_session", "_ttl_us")

    def __init__(self, session: Session, key: str | Binary, ttl: timedelta) -> None:
        """Make a handle; `client.lock` does this."""
        self._session = session
        self._key = content(key)
        self._ttl_us = microseconds(ttl)
        with translating():
            _ffi.check_lock(self._key, self._ttl_us)
        self._packed = packed_lock(session.client_id, self._ttl_us, self._key)

    def acquire(self, *, wait: timedelta | None = None) -> Lease:
        """Take the lock.

        Args:
            wait: how long to wait for it if another holds it, up to 10 years; not at all if not given. Ctrl-C ends the
                wait and leaves no lock behind.

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
                    microseconds(wait),
                )
            else:
                _ffi.packed_lock_acquire(self._packed, lease_id)
            return lease  # noqa: TRY300 - an interruption just before it is one of the acquire
        except _ffi.CallError as error:
            raise translated(error) from None
        except BaseException:
            # Interrupted, perhaps when it was granted already.
            _ffi.lease_abandon(lease_id)
            raise
