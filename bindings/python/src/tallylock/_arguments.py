"""What callers give, in the form that the native library takes. It decides what is out of bounds."""

import struct
from datetime import timedelta
from typing import Literal

from tallylock._direct import LEAST, MOST, Borrowed
from tallylock.errors import InvalidArgumentError

_COUNTER = struct.Struct("<Qq?")
_LOCK = struct.Struct("<Qq")
_MICROSECOND = timedelta(microseconds=1)


Binary = bytes | bytearray | memoryview


def content(given: str | Binary, key: bytes | None = None) -> bytes:
    """Return a key, or the value of `key`, as bytes: text in UTF-8.

    TypeError if it is neither text nor bytes: a number would become so many zeros.
    InvalidArgumentError if it is a text with half of a surrogate pair, which has no UTF-8.
    """
    if isinstance(given, Binary):
        return bytes(given)
    if not isinstance(given, str):
        message = f"a key or a value is str or bytes, not {type(given).__name__}"
        raise TypeError(message)
    try:
        return given.encode()
    except UnicodeEncodeError as error:
        detail = f"a text has no half of a surrogate pair, as at character {error.start}"
        raise _refused(key or given.encode(errors="replace"), detail) from None


def is_fixed(key: bytes, expiry: Literal["sliding", "fixed"]) -> bool:
    """Return whether a counter's expiry is fixed; InvalidArgumentError if it is neither of the two words."""
    if expiry not in ("sliding", "fixed"):
        raise _refused(key, f'expiry is "sliding" or "fixed", not {expiry!r}')
    return expiry == "fixed"


def microseconds(duration: timedelta) -> int:
    """Return a duration in microseconds; one that doesn't fit into 64 bits is out of bounds all the same."""
    return min(max(duration // _MICROSECOND, LEAST), MOST)


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
    return _refused(key, f"an amount is a whole number of 64 bits, not {amount}")


def _refused(key: bytes, detail: str) -> InvalidArgumentError:
    # In the words of the core, which can't be given such an argument.
    name = key.decode(errors="replace")
    message = f'invalid_argument, key "{name}": {detail}; correct the argument; nothing was sent'
    return InvalidArgumentError(message, code="invalid_argument", key=name)
