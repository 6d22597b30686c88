"""Many adds in one call: packed entries, and their packed results.

The entries are told in the core's module `counter::packed`, the results in the batch module of the native library.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter

from tallylock._arguments import foreign_entry_refused, whole_amount
from tallylock._once import Added
from tallylock._outcomes import error_at
from tallylock.errors import TallylockError

_HANDLE = struct.Struct("<q?I")
_AMOUNT = struct.Struct("<qB")
_ID = struct.Struct("<I")
_REMEMBERED = struct.Struct("<q")
_RESULT = struct.Struct("<?q")
_PLAIN, _KEYED, _KEYED_FOR_A_TIME = range(3)
_FAILED = 2
_TOTAL_FIRST: Callable[[tuple[object, ...]], tuple[object, ...]] = itemgetter(1, 0)
_new_added: Callable[[tuple[object, ...]], Added] = partial(tuple.__new__, Added)


class Entry:
    """An add for `client.add_many`; `counter.entry` makes it. It can be given again."""

    __slots__ = ("client_id", "packed")

    def __init__(self, client_id: int, packed: bytes) -> None:
        """Make an entry; `counter.entry` does this."""
        self.client_id = client_id
        self.packed = packed


def packed_handle(ttl_us: int, key: bytes, *, fixed: bool) -> bytes:
    """Return what all entries of a counter begin with."""
    return _HANDLE.pack(ttl_us, fixed, len(key)) + key


def packed_add(key: bytes, amount: int) -> bytes:
    """Return what follows for a plain add."""
    try:
        return _AMOUNT.pack(amount, _PLAIN)
    except struct.error:
        # Says whether it is no number or too large a one.
        return _AMOUNT.pack(whole_amount(key, amount), _PLAIN)


def packed_add_once(key: bytes, amount: int, idempotency_key: bytes, remember_us: int | None) -> bytes:
    """Return what follows for an add that counts once."""
    kind = _KEYED if remember_us is None else _KEYED_FOR_A_TIME
    packed = _AMOUNT.pack(whole_amount(key, amount), kind) + _ID.pack(len(idempotency_key)) + idempotency_key
    return packed if remember_us is None else packed + _REMEMBERED.pack(remember_us)


def packed_entries(entries: Iterable[Entry], client_id: int) -> tuple[bytes, int]:
    """Return entries of this client, packed, and how many they are."""
    given = list(entries)
    if any(entry.client_id != client_id for entry in given):
        raise foreign_entry_refused()
    return b"".join([entry.packed for entry in given]), len(given)


def unpack_results(packed: bytes, count: int) -> list[Added | TallylockError]:
    """Return the results of so many entries."""
    # An error is longer than a total, so where the length is that of totals there are no errors. All is done inside of
    # the interpreter then: the constructor of ten thousand named tuples would take as long as the call.
    if len(packed) == count * _RESULT.size:
        return list(map(_new_added, map(_TOTAL_FIRST, _RESULT.iter_unpack(packed))))
    return list(_one_by_one(packed))


def _one_by_one(packed: bytes) -> Iterator[Added | TallylockError]:
    at = 0
    while at < len(packed):
        if packed[at] == _FAILED:
            error, at = error_at(packed, at + 1)
            yield error
        else:
            applied, total = _RESULT.unpack_from(packed, at)
            at += _RESULT.size
            yield Added(total, applied)
