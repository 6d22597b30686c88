"""Numbers that name calls and leases, unique in this process and in its children."""

import itertools
from collections.abc import Callable
from functools import partial

# Next to an iterator of the standard library there is no room for another thread.
next_ticket: Callable[[], int] = partial(next, itertools.count(1))
# The native library gives ids below this to leases whose ids nobody chose.
next_lease: Callable[[], int] = partial(next, itertools.count(2**63))
