"""What the sweepers of both faces have in common: what they are told, what they hand out, and what they report."""

import logging
import struct
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from tallylock import _ffi
from tallylock._arguments import Binary, content, microseconds, optional_microseconds, whole_amount
from tallylock._outcomes import bytes_at, error_at
from tallylock.errors import TallylockError, translating

_LOGGER = logging.getLogger("tallylock.sweeper")
_AMOUNT = struct.Struct("<q?")
_TOTALS = struct.Struct("<QQQ16sQ16sQQ")
_TO_BILL = 0


class RefusedError(Exception):
    """To be raised by a sweeper's callback that won't bill a claim: its units go back into the counter."""


class ToBill(NamedTuple):
    """A claim that is to be billed."""

    key: bytes
    claim_id: str
    amount: int


class SweepFailure(NamedTuple):
    """Something that a pass could not bill.

    Attributes:
        key: the counter's key, or that of something else that matches the pattern.
        claim_id: the claim that is open yet, and that the next pass hands out again; None if nothing was claimed.
        error: what the callback raised; or a TallylockError: why the key can't be billed, or the claim not be ended.
    """

    key: bytes
    claim_id: str | None
    error: Exception


@dataclass(frozen=True)
class SweepReport:
    """What a pass of a sweeper has done.

    Attributes:
        offered: how many claims the callback was given.
        resumed: those of them that earlier passes had left open.
        committed: how many it billed.
        committed_units: what they had taken from their counters.
        aborted: how many it refused.
        aborted_units: what these gave back.
        left_open: how many are open yet; the next pass hands them out again.
        unusable: how many keys match the pattern and can't be billed; of the first 1,000 `failures` says why.
        failures: what could not be billed, and why.
        error: what ended the pass before its end, such as LostError; None if nothing did.
    """

    offered: int
    resumed: int
    committed: int
    committed_units: int
    aborted: int
    aborted_units: int
    left_open: int
    unusable: int
    failures: tuple[SweepFailure, ...] = ()
    error: TallylockError | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing failed."""
        return not self.failures and self.error is None


class SweepPlan:
    """What a sweeper was told."""

    __slots__ = ("arguments",)

    def __init__(  # noqa: PLR0913 - each has a name where it is given
        self,
        pattern: str | Binary,
        *,
        ttl: timedelta,
        lock: str | Binary,
        lock_ttl: timedelta,
        within: timedelta | None,
        at_least: int | None,
        wait: timedelta | None,
    ) -> None:
        """Check what the sweeper is told."""
        self.arguments = _ffi.SweepArguments(
            pattern=content(pattern),
            within_us=optional_microseconds(within),
            at_least=None if at_least is None else whole_amount(content(pattern), at_least),
            ttl_us=microseconds(ttl),
            lock=content(lock),
            lock_ttl_us=microseconds(lock_ttl),
            wait_us=0 if wait is None else microseconds(wait),
        )
        with translating():
            _ffi.check_sweeper(self.arguments)


class PassResult:
    """What a pass that is under way has come to so far."""

    __slots__ = ("_failures", "error")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._failures: list[SweepFailure] = []
        self.error: TallylockError | None = None

    def met(self, packed: bytes) -> ToBill | None:
        """Return what is to be billed; note what can't be, and return None."""
        key, at = bytes_at(packed, 1)
        if packed[0] != _TO_BILL:
            error, _ = error_at(packed, at)
            self._failures.append(SweepFailure(key, None, error))
            return None
        claim_id, at = bytes_at(packed, at)
        amount, _ = _AMOUNT.unpack_from(packed, at)
        return ToBill(key, claim_id.decode(), amount)

    def failed(self, claim: ToBill, error: Exception) -> None:
        """Note a claim that could not be billed."""
        self._failures.append(SweepFailure(claim.key, claim.claim_id, error))

    def report(self, totals: bytes) -> SweepReport:
        """Return the report of the pass."""
        offered, resumed, committed, billed, aborted, returned, left_open, unusable = _TOTALS.unpack(totals)
        return SweepReport(
            offered=offered,
            resumed=resumed,
            committed=committed,
            committed_units=_units(billed),
            aborted=aborted,
            aborted_units=_units(returned),
            left_open=left_open,
            unusable=unusable,
            failures=tuple(self._failures),
            error=self.error,
        )


def never_begun(error: TallylockError) -> SweepReport:
    """Return the report of a pass that could not begin."""
    return SweepReport(0, 0, 0, 0, 0, 0, 0, 0, error=error)


def log(report: SweepReport) -> None:
    """Log what a pass could not bill, for a caller who looks at no report."""
    for failure in report.failures:
        if failure.claim_id is None:
            _LOGGER.error("%r can't be billed", failure.key, exc_info=failure.error)
        else:
            _LOGGER.error("the claim %s on %r is open yet", failure.claim_id, failure.key, exc_info=failure.error)
    if report.error is not None:
        _LOGGER.error("the pass ended before its end", exc_info=report.error)


def _units(packed: bytes) -> int:
    return int.from_bytes(packed, "little", signed=True)
