"""Leases, blocking."""

import sys
from datetime import timedelta
from functools import partial
from types import TracebackType

from tallylock import _ffi
from tallylock._arguments import from_microseconds, microseconds
from tallylock._ffi import CallError, lease_release
from tallylock._ids import forget_lease
from tallylock._loss import Loss, OnLost, call_back, watch
from tallylock._session import Session
from tallylock.errors import TallylockError, translated, translating


class LeaseState:
    """What is known of a lease without asking the server."""

    __slots__ = ("__weakref__", "_is_let_go", "_lease_id", "_session", "_ttl_us")

    def __init__(self, session: Session, lease_id: int, ttl_us: int) -> None:
        """Take over the id of a lease in the native library."""
        self._session = session
        self._ttl_us = ttl_us
        self._is_let_go = False
        self._lease_id = lease_id

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier lease of this lock.

        The guarantees say under which conditions. LostError in a child made by `fork`.
        """
        with translating():
            return _ffi.lease_fence(self._lease_id)

    @property
    def is_valid(self) -> bool:
        """Whether the lease is still ours by our clock."""
        with translating():
            return _ffi.lease_is_valid(self._lease_id)

    def remaining(self) -> timedelta:
        """Return how long the lease is still ours by our clock; zero if it is not."""
        with translating():
            return from_microseconds(_ffi.lease_remaining_us(self._lease_id))

    def ensure(self, margin: timedelta) -> None:
        """Make sure that the lease is ours for at least `margin` more by our clock; asks no server.

        Raises LostError if not, InvalidArgumentError if `margin` is negative or over 10 years.
        """
        with translating():
            _ffi.lease_ensure(self._lease_id, microseconds(margin))

    def check_not_held(self) -> None:
        """Make sure that its lock's handle may acquire another. AlreadyHeldError if this one is still ours."""
        if not self._is_let_go:
            with translating():
                _ffi.lock_check_free(self._lease_id)

    def __del__(self) -> None:
        """Have the id freed; what was not released is renewed no more and ends with its TTL."""
        # One whose making was interrupted has none.
        if (lease_id := getattr(self, "_lease_id", None)) is None:
            return
        if self._is_let_go:
            forget_lease(lease_id)
        else:
            _ffi.lease_free(lease_id)


class Lease(LeaseState):
    """The time-limited right to a lock. A context manager: released at the exit.

    It is renewed in the background until it is released, unless the lock says otherwise. It belongs to the process that
    acquired it: in a child made by `fork` it is lost, and nothing is sent. One that is forgotten is not released but
    ends with its TTL.
    """

    __slots__ = ()

    @property
    def lost(self) -> Loss:
        """The loss of the lease, to be looked at and waited for as a threading.Event.

        It is set no later than at the lease's deadline, also when the server is silent; its `error` is the LostError.
        """
        return Loss(self, self._lease_id)

    def call_at_loss(self, on_lost: OnLost) -> None:
        """Have `on_lost` called at the loss, on a thread of its own; `acquire` does this."""
        watch(self._lease_id, partial(call_back, on_lost))

    def verify(self, margin: timedelta) -> None:
        """Make sure, by asking the server, that the lease is ours for at least `margin` more.

        Raises LostError if not, InvalidArgumentError if `margin` is negative or over 10 years, and what any call that
        reads may.
        """
        with translating():
            _ffi.lease_verify(self._lease_id, microseconds(margin))

    def transfer(self) -> str:
        """Give the lease away: whoever has the text that this returns can adopt it, while it lasts.

        It is not renewed any more, and a release does nothing. The text is the right to release: keep it out of logs.
        Raises LostError if it is no longer ours, ClosedError.
        """
        with translating():
            token = _ffi.lease_transfer(self._lease_id)
        self._is_let_go = True
        return token.decode()

    def extend(self, ttl: timedelta | None = None) -> None:
        """Give the lease another `ttl` from now: the lock's if not given. It is renewed to that from then on.

        Raises LostError if it is no longer ours, InvalidArgumentError if `ttl` is out of bounds, and what any call that
        writes may; after those the lease is what it was.
        """
        with translating():
            _ffi.lease_extend(self._lease_id, self._ttl_us if ttl is None else microseconds(ttl))

    def release(self) -> None:
        """Give the lock back; again is harmless. After an error that is not LostError it can be repeated.

        Raises LostError if it was no longer ours, and what any call that writes may.
        """
        try:
            lease_release(self._lease_id)
        except CallError as error:
            raise translated(error) from None
        self._is_let_go = True

    def __enter__(self) -> "Lease":
        """Return the lease."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lease; an error of the block is never hidden by one of the release."""
        try:
            self.release()
        except TallylockError as unreleased:
            if error is None:
                raise
            note_unreleased(error, unreleased)


def note_unreleased(error: BaseException, unreleased: TallylockError) -> None:
    """Tell with an error of a block that the lease could not be released after it."""
    if sys.version_info >= (3, 11):
        error.add_note(f"the lease was not released: {unreleased}")
