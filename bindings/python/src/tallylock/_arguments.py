"""What callers give, in the form that the native library takes. It decides what is out of bounds."""

import struct
from datetime import timedelta
from operator import index
from typing import Literal

from tallylock._direct import LEAST, MOST, Borrowed
from tallylock.errors import InvalidArgumentError

_COUNTER = struct.Struct("<Qq?")
_LOCK = struct.Struct("<Qqqq")
_MICROSECOND = timedelta(microseconds=1)
_LARGEST_FENCE = 2**64 - 1


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


def is_fixed(key: bytes | None, expiry: Literal["sliding", "fixed"]) -> bool:
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


def packed_lock(client_id: int, ttl_us: int, interval_us: int, max_hold_us: int, key: bytes) -> Borrowed:
    """Return what a lock's handle stands for, as the native library takes it."""
    return Borrowed(_LOCK.pack(client_id, ttl_us, interval_us, max_hold_us) + key)


def renewal_microseconds(key: bytes, renewal: timedelta | Literal[False] | None) -> int:
    """Return after how long a lease is renewed: 0 for the shared default, -1 for not at all.

    InvalidArgumentError if 0 or less was given, which the native library would take for one of these.
    """
    if renewal is None:
        return 0
    if renewal is False:
        return -1
    interval_us = microseconds(renewal)
    if interval_us <= 0:
        raise _refused(key, f"a lease is renewed after 1 ms at least, not {renewal}")
    return interval_us


def hold_microseconds(key: bytes, max_hold: timedelta | None) -> int:
    """Return for how long a lease is renewed at most: 0 for as long as it is held.

    InvalidArgumentError if 0 was given, which the native library would take for that.
    """
    if max_hold is None:
        return 0
    max_hold_us = microseconds(max_hold)
    if max_hold_us == 0:
        raise _refused(key, "a lease is held for 1 ms at least, not for 0 ms")
    return max_hold_us


def whole_amount(key: bytes, amount: int) -> int:
    """Return an amount; TypeError if it is no whole number, InvalidArgumentError if it has more than 64 bits."""
    amount = index(amount)
    if not LEAST <= amount <= MOST:
        raise amount_refused(key, amount)
    return amount


def whole_fence(key: bytes, fence: int) -> int:
    """Return a fence; TypeError if it is no whole number, InvalidArgumentError if it is negative or over 64 bits."""
    fence = index(fence)
    if not 0 <= fence <= _LARGEST_FENCE:
        raise _refused(key, f"a fence is a whole number of 64 bits without a sign, not {fence}")
    return fence


def remembered_microseconds(key: bytes, remember: timedelta | None) -> int:
    """Return for how long an idempotency key is remembered, 0 for the shared default.

    InvalidArgumentError if 0 was given, which the native library would take for none.
    """
    if remember is None:
        return 0
    remember_us = microseconds(remember)
    if remember_us == 0:
        raise _refused(key, "an idempotency key is remembered for 1 ms to 10 years, not for 0 ms")
    return remember_us


def amount_refused(key: bytes, amount: int) -> InvalidArgumentError:
    """Return the error for an amount that the native library can't be given."""
    return _refused(key, f"an amount is a whole number of 64 bits, not {amount}")


def foreign_entry_refused() -> InvalidArgumentError:
    """Return the error for an entry of a batch that another client's counter made."""
    return _refused(None, "an entry is of a counter of the client that adds it, not of another client's")


def negative_within_refused() -> InvalidArgumentError:
    """Return the error for a look at what ends within less than no time."""
    return _refused(None, "the time within which counters end is not negative")


def _refused(key: bytes | None, detail: str) -> InvalidArgumentError:
    # In the words of the core, which can't be given such an argument.
    name = None if key is None else key.decode(errors="replace")
    about = "" if name is None else f', key "{name}"'
    message = f"invalid_argument{about}: {detail}; correct the argument; nothing was sent"
    return InvalidArgumentError(message, code="invalid_argument", key=name)
