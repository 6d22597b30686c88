"""How the loss of a lease is told to tasks."""

import asyncio
import contextlib
from collections.abc import Callable

from tallylock import _ffi
from tallylock._loss import LossState, OnLost, call_back, watch
from tallylock._outcomes import Outcome
from tallylock.aio._calls import Calls
from tallylock.errors import ClosedError, LostError


class Watch:
    """Waits in the background for the end of one lease, which it does not keep, and tells it in the event loop."""

    __slots__ = ("_ended", "_lease_id", "_loop", "_on_lost", "cancellation")

    def __init__(self, calls: Calls, lease_id: int, on_lost: OnLost | None) -> None:
        """Begin; `on_lost` is called at a loss, and what `cancellation` stands for is done."""
        self.cancellation: Cancellation | None = None
        self._lease_id = lease_id
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._ended = asyncio.Event()
        calls.begin(_ffi.submit_lease_lost, lease_id).add_done_callback(self._told)

    async def wait(self) -> None:
        """Wait until the lease is lost or let go of."""
        await self._ended.wait()

    def _told(self, told: asyncio.Future[Outcome]) -> None:
        outcome = told.result()
        if isinstance(outcome, ClosedError):
            # The client tells nothing any more, and the lease may be ours for a while yet.
            watch(self._lease_id, self._tell_in_loop)
        else:
            self._tell(outcome if isinstance(outcome, LostError) else None)

    def _tell_in_loop(self, lost: LostError | None) -> None:
        # In a loop that was closed nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._tell, lost)

    def _tell(self, lost: LostError | None) -> None:
        self._ended.set()
        if lost is not None and self.cancellation is not None:
            self.cancellation.cancel()
        if self._on_lost is not None:
            call_back(self._on_lost, lost)


class Cancellation:
    """The cancelling of a task by a loss, which is told apart from one by others as asyncio.timeout does."""

    __slots__ = ("_before", "_has_cancelled", "_is_over", "_task")

    def __init__(self) -> None:
        """Be there for the current task."""
        task = asyncio.current_task()
        # Nothing but a task can run a block of `async with` and be cancelled.
        assert task is not None  # noqa: S101
        self._task = task
        # Before Python 3.11 a task does not know how often it was cancelled.
        self._before: int = getattr(task, "cancelling", int)()
        self._has_cancelled = False
        self._is_over = False

    def cancel(self) -> None:
        """Cancel the task, unless it has left the block."""
        if not self._is_over:
            self._has_cancelled = True
            self._task.cancel()

    def end(self) -> bool:
        """Cancel no more; return whether this has cancelled, and nobody else since."""
        self._is_over = True
        if not self._has_cancelled:
            return False
        left: int = getattr(self._task, "uncancel", int)()
        return left <= self._before


class Loss(LossState):
    """The loss of a lease, to be looked at and waited for as an asyncio.Event; `error` says why."""

    __slots__ = ("_watched",)

    def __init__(self, lease: object, lease_id: int, watched: Callable[[], Watch]) -> None:
        """Look at a lease, which is kept for as long as somebody looks."""
        super().__init__(lease, lease_id)
        self._watched = watched

    async def wait(self) -> bool:
        """Wait until the lease is lost, and return True; a release or a transfer ends the wait too, with False."""
        if not self.is_set():
            await self._watched().wait()
        return self.is_set()
