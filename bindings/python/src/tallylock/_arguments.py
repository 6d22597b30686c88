"""What callers give, in the form that the native library takes. It decides what is out of bounds."""

from datetime import timedelta

from tallylock.errors import InvalidArgumentError

_LEAST, _MOST = -(2**63), 2**63 - 1
_MICROSECOND = timedelta(microseconds=1)


def key_bytes(key: str | bytes) -> bytes:
    """Return a key, or a value, as bytes: text in UTF-8."""
    return key.encode() if isinstance(key, str) else bytes(key)


def microseconds(duration: timedelta) -> int:
    """Return a duration in microseconds; one that doesn't fit into 64 bits is out of bounds all the same."""
    return min(max(duration // _MICROSECOND, _LEAST), _MOST)


def optional_microseconds(duration: timedelta | None) -> int | None:
    """Return a duration in microseconds, or None if there is none."""
    return None if duration is None else microseconds(duration)


def from_microseconds(duration: int) -> timedelta:
    """Return so many microseconds as a duration."""
    return timedelta(microseconds=duration)


def amount_refused(key: bytes, amount: int) -> InvalidArgumentError:
    """Return the error for an amount that the native library can't be given."""
    name = key.decode(errors="replace")
    message = (
        f'invalid_argument, key "{name}": an amount is a whole number of 64 bits, not {amount}; '
        "correct the argument; nothing was sent"
    )
    return InvalidArgumentError(message, code="invalid_argument", key=name)
