"""How many handles there are in the native library."""

import gc

from tallylock import _ffi, _ids


def leases_count() -> int:
    """Return how many leases of this process are not forgotten."""
    gc.collect()
    _ids.free_forgotten()
    return _ffi.leases_count()
