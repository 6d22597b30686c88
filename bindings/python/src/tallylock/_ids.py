"""Numbers that name calls, leases and updates, unique in this process and in its children."""

import itertools
import struct
from collections import deque
from collections.abc import Callable
from functools import partial

from tallylock._ffi import packed_leases_free

# Nothing can come between two threads inside of an iterator of the standard library.
next_ticket: Callable[[], int] = partial(next, itertools.count(1))
# The native library gives ids below this to leases, updates and meters whose ids nobody chose.
next_lease: Callable[[], int] = partial(next, itertools.count(2**63))
next_update: Callable[[], int] = partial(next, itertools.count(2**63))
next_meter: Callable[[], int] = partial(next, itertools.count(2**63))

# A call for each lease that is forgotten would cost a third of acquiring and releasing it.
_BATCH = 64
_forgotten: deque[int] = deque()


def forget_lease(lease_id: int) -> None:
    """Free a lease's id in the native library, with the next others."""
    _forgotten.append(lease_id)
    if len(_forgotten) >= _BATCH:
        free_forgotten()


def free_forgotten() -> None:
    """Free the ids of all leases that were forgotten."""
    ids = []
    try:
        while True:
            ids.append(_forgotten.popleft())
    except IndexError:
        packed_leases_free(struct.pack(f"<{len(ids)}Q", *ids))
