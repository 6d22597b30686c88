"""The sweeper, blocking."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import cast

from tallylock import _ffi
from tallylock._lease import note_unreleased
from tallylock._session import Session
from tallylock._sweep import PassResult, RefusedError, SweepPlan, SweepReport, ToBill, log, never_begun
from tallylock._waiting import awaited
from tallylock.errors import BusyError, ClosedError, TallylockError, translating

# A counter's key, the claim's id, and how much it took.
Bill = Callable[[bytes, str, int], object]


class Sweeper:
    """Bills counters before they end, or once they hold much: in passes, of which one at a time is made under its lock.

    The callback is given a counter's key, the id of the claim and how much it took. What it does:

    - returns: the claim is committed;
    - raises RefusedError: it is aborted, its units are in the counter again;
    - raises another Exception: it stays open, is told in the report, and is handed out again by the next pass, to
      whoever makes it. So is the claim of a process that died.

    So it may be given the same claim again, and bills it once: by a row whose key is the claim's id
    (`INSERT ... ON CONFLICT DO NOTHING`). It is done before the lock's TTL is over.
    """

    __slots__ = ("_plan", "_session")

    def __init__(self, session: Session, plan: SweepPlan) -> None:
        """Make a sweeper; `client.sweeper` does this."""
        self._session = session
        self._plan = plan

    def sweep(self, bill: Bill) -> SweepReport:
        """Make one pass.

        Args:
            bill: is called with each claim, one at a time on this thread. What it raises beside Exceptions, such as
                KeyboardInterrupt, ends the pass: the claim stays open, the lock is released.

        Returns:
            What was done; what failed is in it and is not raised.

        Raises:
            BusyError: if another sweeper is at work until the wait for the lock is over.
            What acquiring a lock may.

        """
        return self._pass(bill, threading.Event())

    def run(
        self,
        bill: Bill,
        *,
        every: timedelta,
        stop: threading.Event | None = None,
        on_report: Callable[[SweepReport], object] = log,
    ) -> None:
        """Make passes until `stop` is set. What is in the callback's hand then is finished, and the lock released.

        Args:
            bill: as of `sweep`.
            every: the pause between two passes.
            stop: to be set by another thread or a signal handler; if not given, only an exception ends it.
            on_report: is given the report of each pass, also of one that could not begin; what it raises ends the
                running. If not given, failures are logged as errors of `tallylock.sweeper`. A pass that finds another
                sweeper at work has none.

        Raises:
            ClosedError: if the client is closed.

        """
        stop = threading.Event() if stop is None else stop
        while not stop.is_set():
            try:
                report = self._pass(bill, stop)
            except BusyError:
                report = None
            except ClosedError:
                raise
            except TallylockError as error:
                report = never_begun(error)
            if report is not None:
                on_report(report)
            stop.wait(every.total_seconds())

    def _pass(self, bill: Bill, stop: threading.Event) -> SweepReport:
        sweep_id, result = _ffi.sweep_id(), PassResult()
        try:
            with translating():
                awaited(self._session.client_id, _ffi.submit_sweep_begin, sweep_id, self._plan.arguments)
            try:
                self._hand_out(sweep_id, bill, stop, result)
            except BaseException as error:
                try:
                    self._end(sweep_id)
                except TallylockError as unreleased:
                    note_unreleased(error, unreleased)
                raise
            try:
                self._end(sweep_id)
            except TallylockError as error:
                result.error = result.error or error
            with translating():
                return result.report(_ffi.sweep_totals(sweep_id))
        finally:
            _ffi.sweep_abandon(sweep_id)

    def _hand_out(self, sweep_id: int, bill: Bill, stop: threading.Event, result: PassResult) -> None:
        client_id = self._session.client_id
        while not stop.is_set():
            try:
                with translating():
                    packed = cast("bytes", awaited(client_id, _ffi.submit_sweep_next, sweep_id))
            except TallylockError as error:
                result.error = error
                return
            if not packed:
                return
            claim = result.met(packed)
            if claim is None:
                continue
            try:
                self._settle(sweep_id, bill, claim)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told in the report
                result.failed(claim, error)

    def _settle(self, sweep_id: int, bill: Bill, claim: ToBill) -> None:
        try:
            bill(*claim)
        except RefusedError:
            settle = _ffi.submit_sweep_abort
        else:
            settle = _ffi.submit_sweep_commit
        with translating():
            awaited(self._session.client_id, settle, sweep_id)

    def _end(self, sweep_id: int) -> None:
        with translating():
            awaited(self._session.client_id, _ffi.submit_sweep_end, sweep_id)
