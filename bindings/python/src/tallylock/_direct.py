"""The hottest calls, made without the generated glue: what it builds for each costs as much as the call itself.

The functions are those that the glue calls, with the types that it has given them; on import it has verified that the
library and itself are of one build.
"""

import ctypes
from collections.abc import Callable
from operator import index

from tallylock._native import tallylock_ffi as _glue

_Status: type[ctypes.Structure] = _glue._UniffiRustCallStatus
_ForeignBytes: Callable[[int, object], ctypes.Structure] = _glue._UniffiForeignBytes
_counter_add = _glue._UniffiLib.uniffi_tallylock_ffi_fn_func_packed_counter_add
_lock_acquire = _glue._UniffiLib.uniffi_tallylock_ffi_fn_func_packed_lock_acquire
_lease_release = _glue._UniffiLib.uniffi_tallylock_ffi_fn_func_lease_release
LEAST, MOST = -(2**63), 2**63 - 1


class _Key(ctypes.Structure):
    """The glue's form of borrowed bytes, which takes half as long to make of a key that is another at each call."""

    _fields_ = (("len", ctypes.c_int32), ("data", ctypes.c_char_p))


# By its name the library gives a function that is not shared with the glue.
_meter_add = _glue._UniffiLib["uniffi_tallylock_ffi_fn_func_meter_add"]
_meter_add.argtypes = (ctypes.c_uint64, _Key, ctypes.c_int64, ctypes.POINTER(_Status))
_meter_add.restype = None


class Borrowed:
    """Bytes as the native library borrows them, kept for as long as this."""

    __slots__ = ("_bytes", "foreign")

    def __init__(self, content: bytes) -> None:
        """Keep `content`, which is not empty."""
        self._bytes = content
        start = ctypes.cast(ctypes.c_char_p(content), ctypes.POINTER(ctypes.c_char))
        self.foreign = _ForeignBytes(len(content), start)


def packed_counter_add(counter: Borrowed, amount: int) -> int:
    """Add to a packed counter; TypeError if `amount` is no whole number, ValueError if it has more than 64 bits."""
    amount = index(amount)
    # It would be cut off without a word.
    if not LEAST <= amount <= MOST:
        raise ValueError(amount)
    status = _Status()
    total: int = _counter_add(counter.foreign, amount, ctypes.byref(status))
    if status.code:
        _raise(status)
    return total


def meter_add(meter_id: int, key: bytes, amount: int) -> None:
    """Add to a meter; TypeError if `amount` is no whole number, ValueError if it has more than 64 bits."""
    amount = index(amount)
    if not LEAST <= amount <= MOST:
        raise ValueError(amount)
    status = _Status()
    _meter_add(meter_id, _Key(len(key), key), amount, ctypes.byref(status))
    if status.code:
        _raise(status)


def packed_lock_acquire(lock: Borrowed, lease_id: int) -> None:
    """Take a packed lock under this id of a lease."""
    status = _Status()
    _lock_acquire(lock.foreign, lease_id, ctypes.byref(status))
    if status.code:
        _raise(status)


def lease_release(lease_id: int) -> None:
    """Release a lease."""
    status = _Status()
    _lease_release(lease_id, ctypes.byref(status))
    if status.code:
        _raise(status)


def _raise(status: ctypes.Structure) -> None:
    _glue._uniffi_check_call_status(_glue._UniffiFfiConverterTypeCallError, status)
