"""What callers give, in the form that the native library takes. It decides what is out of bounds."""

import struct
from datetime import timedelta

from tallylock._direct import Borrowed
from tallylock.errors import InvalidArgumentError

_LEAST, _MOST = -(2**63), 2**63 - 1
_COUNTER = struct.Struct("<Qq?")
_LOCK = struct.Struct("<Qq")
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


def packed_counter(client_id: int, ttl_us: int, key: bytes, *, fixed: bool) -> Borrowed:
    """Return what a counter's handle stands for, as the native library takes it."""
    return Borrowed(_COUNTER.pack(client_id, ttl_us, fixed) + key)


def packed_lock(client_id: int, ttl_us: int, key: bytes) -> Borrowed:
    """Return what a lock's handle stands for, as the native library takes it."""
    return Borrowed(_LOCK.pack(client_id, ttl_us) + key)


def amount_refused(key: bytes, amount: int) -> InvalidArgumentError:
    """Return the error for an amount that the native library can't be given."""
    name = key.decode(errors="replace")
    message = (
        f'invalid_argument, key "{name}": an amount is a whole number of 64 bits, not {amount}; '
        "correct the argument; nothing was sent"
    )
    return InvalidArgumentError(message, code="invalid_argument", key=name)
