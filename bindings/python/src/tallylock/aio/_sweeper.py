"""The sweeper for asyncio."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import cast

from tallylock import _ffi
from tallylock._lease import note_unreleased
from tallylock._sweep import PassResult, RefusedError, SweepPlan, SweepReport, ToBill, log, never_begun
from tallylock.aio._calls import Calls
from tallylock.errors import BusyError, ClosedError, TallylockError, translating

# A counter's key, the claim's id, and how much it took.
Bill = Callable[[bytes, str, int], Awaitable[object] | object]


class Sweeper:
    """Bills counters before they end, or once they hold much: in passes, of which one at a time is made under its lock.

    The callback, a coroutine function or a plain one, is as that of `tallylock.Sweeper`: it may be given the same claim
    again, and bills it once.
    """

    __slots__ = ("_calls", "_plan")

    def __init__(self, calls: Calls, plan: SweepPlan) -> None:
        """Make a sweeper; `client.sweeper` does this."""
        self._calls = calls
        self._plan = plan

    async def sweep(self, bill: Bill) -> SweepReport:
        """Make one pass.

        Args:
            bill: is called with each claim, one at a time. If the task is cancelled in it, the claim stays open and the
                lock is released.

        Returns:
            What was done; what failed is in it and is not raised.

        Raises:
            BusyError: if another sweeper is at work until the wait for the lock is over.
            What acquiring a lock may.

        """
        return await self._pass(bill, asyncio.Event())

    async def run(
        self,
        bill: Bill,
        *,
        every: timedelta,
        stop: asyncio.Event | None = None,
        on_report: Callable[[SweepReport], object] = log,
    ) -> None:
        """Make passes until `stop` is set. What is in the callback's hand then is finished, and the lock released.

        Args:
            bill: as of `sweep`.
            every: the pause between two passes.
            stop: to be set by another task; if not given, only an exception or cancelling ends it.
            on_report: is given the report of each pass, also of one that could not begin; what it raises ends the
                running. If not given, failures are logged as errors of `tallylock.sweeper`. A pass that finds another
                sweeper at work has none.

        Raises:
            ClosedError: if the client is closed.

        """
        stop = asyncio.Event() if stop is None else stop
        while not stop.is_set():
            report = await self._reported(bill, stop)
            if report is not None:
                on_report(report)
            await _wait(stop, every)

    async def _reported(self, bill: Bill, stop: asyncio.Event) -> SweepReport | None:
        try:
            return await self._pass(bill, stop)
        except BusyError:
            return None
        except ClosedError:
            raise
        except TallylockError as error:
            return never_begun(error)

    async def _pass(self, bill: Bill, stop: asyncio.Event) -> SweepReport:
        sweep_id, result = _ffi.sweep_id(), PassResult()
        try:
            await self._calls.call(_ffi.submit_sweep_begin, sweep_id, self._plan.arguments)
            try:
                await self._hand_out(sweep_id, bill, stop, result)
            except BaseException as error:
                try:
                    await self._end(sweep_id)
                except TallylockError as unreleased:
                    note_unreleased(error, unreleased)
                raise
            try:
                await self._end(sweep_id)
            except TallylockError as error:
                result.error = result.error or error
            with translating():
                return result.report(_ffi.sweep_totals(sweep_id))
        finally:
            _ffi.sweep_abandon(sweep_id)

    async def _hand_out(self, sweep_id: int, bill: Bill, stop: asyncio.Event, result: PassResult) -> None:
        while not stop.is_set():
            try:
                packed = cast("bytes", await self._calls.call(_ffi.submit_sweep_next, sweep_id))
            except TallylockError as error:
                result.error = error
                return
            if not packed:
                return
            claim = result.met(packed)
            if claim is None:
                continue
            try:
                await self._settle(sweep_id, bill, claim)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told in the report
                result.failed(claim, error)

    async def _settle(self, sweep_id: int, bill: Bill, claim: ToBill) -> None:
        try:
            billed = bill(*claim)
            if inspect.isawaitable(billed):
                await billed
        except RefusedError:
            settle = _ffi.submit_sweep_abort
        else:
            settle = _ffi.submit_sweep_commit
        await self._calls.call(settle, sweep_id)

    async def _end(self, sweep_id: int) -> None:
        await self._calls.call(_ffi.submit_sweep_end, sweep_id)


async def _wait(stop: asyncio.Event, longest: timedelta) -> None:
    waiting = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([waiting], timeout=longest.total_seconds())
    finally:
        waiting.cancel()
