"""The results of calls in the background: packed records of the native library, unpacked.

`[ticket u64][kind u8][payload]`, little-endian; the kinds are told in the completion module of the native library.
"""

import struct
from collections.abc import Iterator

from tallylock.errors import TallylockError, make_error

# What a call in the background ends with; an error is returned, to be raised where the call is awaited.
Outcome = int | bytes | bool | None | TallylockError

_HEAD = struct.Struct("<QB")
_INTEGER = struct.Struct("<q")
_LEASE = struct.Struct("<Q")
_LENGTH = struct.Struct("<I")


def unpack(records: bytes) -> Iterator[tuple[int, Outcome]]:
    """Yield the ticket and the outcome of each record."""
    at = 0
    while at < len(records):
        ticket, kind = _HEAD.unpack_from(records, at)
        outcome, at = _payload(kind, records, at + _HEAD.size)
        yield ticket, outcome


def bytes_at(records: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes that follow their length, and where they end."""
    (length,) = _LENGTH.unpack_from(records, at)
    start = at + _LENGTH.size
    return records[start : start + length], start + length


def error_at(records: bytes, at: int) -> tuple[TallylockError, int]:
    """Return an error, and where it ends."""
    texts = []
    for _ in range(5):
        text, at = bytes_at(records, at)
        texts.append(text.decode())
    code, reason, key, message, applied = texts
    return make_error(message, code, key or None, reason or None, applied), at


def _payload(kind: int, records: bytes, at: int) -> tuple[Outcome, int]:
    match kind:
        case 0:
            return None, at
        case 1:
            return _INTEGER.unpack_from(records, at)[0], at + _INTEGER.size
        case 2:
            return bytes_at(records, at)
        case 3:
            return records[at] != 0, at + 1
        case 4 | 6:
            return _LEASE.unpack_from(records, at)[0], at + _LEASE.size
        case 5:
            return error_at(records, at)
        case _:
            message = f"the native library is of another version: it gave a record of kind {kind}"
            raise RuntimeError(message)
