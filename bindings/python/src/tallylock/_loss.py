"""How the loss of a lease is told: at the call, and to threads."""

import logging
import math
import threading
from collections.abc import Callable

from tallylock import _ffi
from tallylock.errors import LostError, translated

_log = logging.getLogger("tallylock")
# Signals are handled between two waits of this length.
_SLICE_MILLIS = 50
_FOREVER_MILLIS = 2**63
# So long a thread looks away at the longest once the lease was forgotten.
_WATCH_MILLIS = 1_000

OnLost = Callable[[LostError], object]


class LossState:
    """Whether and why a lease is lost, by our clock at the moment of the call."""

    __slots__ = ("_lease", "_lease_id")

    def __init__(self, lease: object, lease_id: int) -> None:
        """Look at a lease, which is kept for as long as somebody looks."""
        self._lease = lease
        self._lease_id = lease_id

    @property
    def error(self) -> LostError | None:
        """The LostError with the reason; None if the lease is ours, or was released or transferred."""
        try:
            _ffi.lease_wait(self._lease_id, 0)
        except _ffi.CallError as error:
            return _lost(error)
        return None

    def is_set(self) -> bool:
        """Whether the lease is lost."""
        return self.error is not None


class Loss(LossState):
    """The loss of a lease, to be looked at and waited for as a threading.Event; `error` says why."""

    __slots__ = ()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the lease is lost, at most `timeout` seconds, and return whether it is.

        A release or a transfer ends the wait too.
        """
        left = _FOREVER_MILLIS if timeout is None else math.ceil(timeout * 1_000)
        try:
            while _ffi.lease_wait(self._lease_id, max(0, min(left, _SLICE_MILLIS))):
                left -= _SLICE_MILLIS
                if left <= 0:
                    return False
        except _ffi.CallError as error:
            return _lost(error) is not None
        return False


def watch(lease_id: int, tell: Callable[[LostError | None], object]) -> None:
    """Tell how a lease has ended, on a thread of its own: with the error, or with None if it was not lost.

    It does not keep the lease.
    """
    threading.Thread(target=_watch, args=(lease_id, tell), name="tallylock-lost", daemon=True).start()


def call_back(on_lost: OnLost, lost: LostError | None) -> None:
    """Call back if there was a loss. Nobody could be told of what goes wrong in there: it is logged."""
    if lost is None:
        return
    try:
        on_lost(lost)
    except Exception:  # noqa: BLE001 - whatever it is
        _log.exception("the callback for a lost lease failed")


def _watch(lease_id: int, tell: Callable[[LostError | None], object]) -> None:
    lost = None
    try:
        while _ffi.lease_wait(lease_id, _WATCH_MILLIS):
            pass
    except _ffi.CallError as error:
        lost = _lost(error)
    tell(lost)


def _lost(error: Exception) -> LostError | None:
    """Return the loss that a CallError tells; None if the lease was freed, and so let go of."""
    known = translated(error)
    return known if isinstance(known, LostError) else None
