"""What can go wrong: one class for each code, the same codes as in every language."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast

from tallylock import _ffi


class TallylockError(Exception):
    """A call failed.

    Attributes:
        code: the word for the kind of error, the same in every language; there may be new ones, which have no class of
            their own and come as a plain TallylockError.
        key: the key that the call was about, as text, shortened if very long; None if it was about none.
        reason: why a lease was lost (`expired`, `taken_over`, `unreachable`, `forked`), for the code `lost` only.
        applied: `maybe` if the call may have changed something, `no` if it has not.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        key: str | None = None,
        reason: str | None = None,
        applied: Literal["no", "maybe"] = "no",
    ) -> None:
        """Make an error; the library does this."""
        super().__init__(message)
        self.code = code
        self.key = key
        self.reason = reason
        self.applied = applied

    def __reduce__(self) -> tuple[object, ...]:
        """Let the error cross to another process, as those of multiprocessing and Celery do."""
        known = {"code": self.code, "key": self.key, "reason": self.reason, "applied": self.applied}
        return _restore, (type(self), str(self), known)


class BusyError(TallylockError):
    """Another held the lock until the wait was over."""


class LostError(TallylockError):
    """The lease is no longer ours; `reason` says why."""


class AlreadyHeldError(TallylockError):
    """The handle holds the lock already."""


class FencedOffError(TallylockError):
    """A newer holder has been here."""


class ConflictError(TallylockError):
    """Another value was given under the same name, or a key kept changing until the deadline."""


class InvalidArgumentError(TallylockError, ValueError):
    """The call itself is wrong; nothing was sent."""


class WrongTypeError(TallylockError):
    """The key holds something that is not a string."""


class NotAnIntegerError(TallylockError):
    """The key holds a text that is not a whole number of 64 bits."""


class CounterOverflowError(TallylockError):
    """The sum does not fit into 64 bits."""


class CallTimeoutError(TallylockError, TimeoutError):
    """The deadline passed and nothing was applied."""


class UnavailableError(TallylockError, ConnectionError):
    """The server can't be reached or is not ready; nothing was applied."""


class OutcomeUnknownError(TallylockError):
    """The reply was lost: the call may have been applied."""


class ReadOnlyError(TallylockError):
    """The server is a replica that takes no writes."""


class ForbiddenError(TallylockError, PermissionError):
    """The account may not do this, or its password is wrong."""


class OutOfMemoryError(TallylockError):
    """The server is at its memory limit."""


class UnsupportedError(TallylockError):
    """The server or the transport can't do this."""


class CallCancelledError(TallylockError):
    """The call was cancelled."""


class ClosedError(TallylockError):
    """The client is closed, or the lease was freed."""


_CLASSES: dict[str, type[TallylockError]] = {
    "busy": BusyError,
    "lost": LostError,
    "already_held": AlreadyHeldError,
    "fenced_off": FencedOffError,
    "conflict": ConflictError,
    "invalid_argument": InvalidArgumentError,
    "wrong_type": WrongTypeError,
    "not_an_integer": NotAnIntegerError,
    "overflow": CounterOverflowError,
    "timeout": CallTimeoutError,
    "unavailable": UnavailableError,
    "outcome_unknown": OutcomeUnknownError,
    "read_only": ReadOnlyError,
    "forbidden": ForbiddenError,
    "out_of_memory": OutOfMemoryError,
    "unsupported": UnsupportedError,
    "cancelled": CallCancelledError,
    "closed": ClosedError,
}


def make_error(message: str, code: str, key: str | None, reason: str | None, applied: str) -> TallylockError:
    """Return the error of the class that belongs to `code`."""
    kind = _CLASSES.get(code, TallylockError)
    # A word that is not `no` is no promise that nothing was changed.
    known: Literal["no", "maybe"] = "no" if applied == "no" else "maybe"
    return kind(message, code=code, key=key, reason=reason, applied=known)


def translated(error: Exception) -> TallylockError:
    """Return the error that stands for a CallError of the native library."""
    failure = cast("_ffi.Failure", error)
    return make_error(failure.detail, failure.code, failure.key, failure.reason, failure.applied)


@contextmanager
def translating() -> Iterator[None]:
    """Raise what a CallError of the native library stands for, where the last nanosecond doesn't matter."""
    try:
        yield
    except _ffi.CallError as error:
        raise translated(error) from None


def _restore(kind: type[TallylockError], message: str, known: dict[str, Any]) -> TallylockError:
    return kind(message, **known)
