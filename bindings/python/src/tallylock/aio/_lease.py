"""Leases for asyncio."""

import asyncio
from datetime import timedelta
from types import TracebackType

from tallylock import _ffi
from tallylock._arguments import microseconds
from tallylock._lease import LeaseState, note_unreleased
from tallylock._loss import OnLost
from tallylock.aio._calls import Calls
from tallylock.aio._loss import Cancellation, Loss, Watch
from tallylock.errors import TallylockError


class Lease(LeaseState):
    """The time-limited right to a lock. A context manager: released at the exit.

    It is renewed in the background for as long as it is held, also while the event loop is blocked. It belongs to the
    process that acquired it. One that is forgotten is not released but ends with its TTL.
    """

    __slots__ = ("_calls", "_cancels_on_loss", "_watch")

    def __init__(
        self,
        calls: Calls,
        lease_id: int,
        ttl_us: int,
        on_lost: OnLost | None = None,
        *,
        cancel_on_loss: bool = False,
    ) -> None:
        """Take over the id of a lease in the native library."""
        super().__init__(calls.session, lease_id, ttl_us)
        self._calls = calls
        self._cancels_on_loss = cancel_on_loss
        self._watch = None if on_lost is None else Watch(calls, lease_id, on_lost)

    @property
    def lost(self) -> Loss:
        """The loss of the lease, to be looked at and waited for as an asyncio.Event.

        It is set no later than at the lease's deadline, also when the server is silent or the event loop was blocked;
        its `error` is the LostError.
        """
        return Loss(self, self._lease_id, self._watched)

    async def verify(self, margin: timedelta) -> None:
        """Make sure, by asking the server, that the lease is ours for at least `margin` more.

        Raises LostError if not, InvalidArgumentError if `margin` is negative or over 10 years, and what any call that
        reads may.
        """
        await self._calls.call(_ffi.submit_lease_verify, self._lease_id, microseconds(margin))

    async def transfer(self) -> str:
        """Give the lease away: whoever has the text that this returns can adopt it, while it lasts.

        It is not renewed any more, and a release does nothing. The text is the right to release: keep it out of logs.
        Raises LostError if it is no longer ours, ClosedError.
        """
        token = await self._calls.call(_ffi.submit_lease_transfer, self._lease_id)
        assert isinstance(token, bytes)  # noqa: S101 - a transfer ends with no other outcome
        self._is_let_go = True
        return token.decode()

    async def extend(self, ttl: timedelta | None = None) -> None:
        """Give the lease another `ttl` from now: the lock's if not given. It is renewed to that from then on.

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
        self._is_let_go = True

    async def __aenter__(self) -> "Lease":
        """Return the lease; LostError if it is lost and the task would have to be cancelled."""
        if self._cancels_on_loss:
            if (lost := self.lost.error) is not None:
                raise lost
            self._watched().cancellation = Cancellation()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lease; an error of the block is never hidden by one of the release."""
        was_ended_by_loss = self._end_cancellation() and isinstance(error, asyncio.CancelledError)
        try:
            await self.release()
        except TallylockError as unreleased:
            if was_ended_by_loss:
                raise (self.lost.error or unreleased) from None
            if error is None:
                raise
            note_unreleased(error, unreleased)

    def _watched(self) -> Watch:
        if self._watch is None:
            self._watch = Watch(self._calls, self._lease_id, None)
        return self._watch

    def _end_cancellation(self) -> bool:
        cancellation = None if self._watch is None else self._watch.cancellation
        return cancellation is not None and cancellation.end()
