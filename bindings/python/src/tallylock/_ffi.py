"""The functions of the native library, with their types.

The module that holds them is generated and comes with the wheel only, so this is where their types are written down.
Durations are microseconds. A ticket names a call in the background, and is chosen by who submits it.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from tallylock import _direct
from tallylock._direct import Borrowed
from tallylock._native import tallylock_ffi as _native

CallError: type[Exception] = _native.CallError.Failed


class Failure(Protocol):
    """What a CallError says."""

    code: str
    reason: str | None
    key: str | None
    detail: str
    applied: str


class MemoryKey(Protocol):
    """A key of the server in memory."""

    key: bytes
    value: bytes | None
    ttl_us: int | None


# Clients: url, timeout, owner, whether there is no owner.
connect: Callable[[str, int | None, str | None, bool, bool], int] = _native.connect
open_client: Callable[[str, int | None, str | None, bool, bool], int] = _native.open
submit_connect: Callable[[int, int], None] = _native.submit_connect
# Of several servers: urls, node_timeout, rejoin, and then as above.
RedlockArguments: TypeAlias = tuple[list[str], int | None, bool, int | None, str | None, bool, bool]
connect_redlock: Callable[[list[str], int | None, bool, int | None, str | None, bool, bool], int] = (
    _native.connect_redlock
)
open_redlock: Callable[[list[str], int | None, bool, int | None, str | None, bool, bool], int] = _native.open_redlock
close: Callable[[int], None] = _native.close
# The command's arguments, with its name; its exit code.
command_line: Callable[[list[bytes]], int] = _native.command_line

client_healed: Callable[[int], int] = _native.client_healed
client_stolen: Callable[[int], int] = _native.client_stolen
# 21 numbers, in the order that the metrics module of the native library says.
client_metrics: Callable[[int], bytes] = _native.client_metrics
client_has_memory: Callable[[int], bool] = _native.client_has_memory

# Checks of what a handle is made with.
check_counter: Callable[[bytes, int], None] = _native.check_counter
check_value: Callable[[bytes], None] = _native.check_value
check_lock: Callable[[bytes, int, int, int], None] = _native.check_lock

# Counters: client, key, ttl; those that are called most often take a packed handle instead.
packed_counter_add: Callable[[Borrowed, int], int] = _direct.packed_counter_add
counter_read: Callable[[int, bytes, int], int | None] = _native.counter_read
counter_drain: Callable[[int, bytes, int], int | None] = _native.counter_drain
counter_finish: Callable[[int, bytes, int], int | None] = _native.counter_finish
submit_counter_add: Callable[[int, int, bytes, int, bool, int], None] = _native.submit_counter_add
submit_counter_read: Callable[[int, int, bytes, int], None] = _native.submit_counter_read
submit_counter_drain: Callable[[int, int, bytes, int], None] = _native.submit_counter_drain
submit_counter_finish: Callable[[int, int, bytes, int], None] = _native.submit_counter_finish

# What counts once: client, key, ttl, whether the expiry is fixed, amount, id, for how long it is remembered (0 for the
# shared default), fence. The results are packed as the claim module of the native library says.
counter_add_once: Callable[[int, bytes, int, bool, int, bytes, int], bytes] = _native.counter_add_once
counter_drain_fenced: Callable[[int, bytes, int, int], int | None] = _native.counter_drain_fenced
counter_claim: Callable[[int, bytes, int, bytes, int | None], bytes] = _native.counter_claim
counter_commit: Callable[[int, bytes, int, bytes, int], None] = _native.counter_commit
counter_abort: Callable[[int, bytes, int, bytes, int | None], int] = _native.counter_abort
submit_counter_add_once: Callable[[int, int, bytes, int, bool, int, bytes, int], None] = _native.submit_counter_add_once
submit_counter_drain_fenced: Callable[[int, int, bytes, int, int], None] = _native.submit_counter_drain_fenced
submit_counter_claim: Callable[[int, int, bytes, int, bytes, int | None], None] = _native.submit_counter_claim
submit_counter_commit: Callable[[int, int, bytes, int, bytes, int], None] = _native.submit_counter_commit
submit_counter_abort: Callable[[int, int, bytes, int, bytes, int | None], None] = _native.submit_counter_abort
submit_counter_claims: Callable[[int, int, bytes, int], None] = _native.submit_counter_claims

# Many adds: client, packed entries. A page of a scan: client, pattern, cursor (empty for the beginning), within (-1 for
# all counters). Both give packed bytes.
client_add_many: Callable[[int, bytes], bytes] = _native.client_add_many
submit_client_add_many: Callable[[int, int, bytes], None] = _native.submit_client_add_many
client_scan: Callable[[int, bytes, bytes, int], bytes] = _native.client_scan
submit_client_scan: Callable[[int, int, bytes, bytes, int], None] = _native.submit_client_scan

# Values: client, key, expected, value, ttl.
value_get: Callable[[int, bytes], bytes | None] = _native.value_get
value_replace_if_present: Callable[[int, bytes, bytes, int], bool] = _native.value_replace_if_present
value_touch: Callable[[int, bytes, int], bool] = _native.value_touch
value_compare_and_set: Callable[[int, bytes, bytes, bytes, int], bool] = _native.value_compare_and_set
submit_value_get: Callable[[int, int, bytes], None] = _native.submit_value_get
submit_value_replace_if_present: Callable[[int, int, bytes, bytes, int], None] = _native.submit_value_replace_if_present
submit_value_touch: Callable[[int, int, bytes, int], None] = _native.submit_value_touch
submit_value_compare_and_set: Callable[[int, int, bytes, bytes, bytes, int], None] = (
    _native.submit_value_compare_and_set
)

# Guarded values: client, key, value, fence, ttl.
guarded_set: Callable[[int, bytes, bytes, int, int], None] = _native.guarded_set
guarded_delete: Callable[[int, bytes, int], bool] = _native.guarded_delete
submit_guarded_set: Callable[[int, int, bytes, bytes, int, int], None] = _native.submit_guarded_set
submit_guarded_delete: Callable[[int, int, bytes, int], None] = _native.submit_guarded_delete

# Updates: client, key, update, value, ttl; the caller chooses the id of the update, at least 2**63. An offer gives 0 if
# the key is gone, 1 if the value was written, 2 if another was faster.
update_begin_as: Callable[[int, bytes, int], int] = _native.update_begin_as
update_present: Callable[[int], bytes] = _native.update_present
update_offer: Callable[[int, bytes, int, bytes, int], int] = _native.update_offer
update_free: Callable[[int], None] = _native.update_free
submit_update_begin_as: Callable[[int, int, int, bytes], None] = _native.submit_update_begin_as
submit_update_offer: Callable[[int, int, bytes, int, bytes, int], None] = _native.submit_update_offer

# Locks: client, lease, key, ttl, interval of the renewal (0 for the shared default, -1 for none), longest hold (0 for
# none), and the wait or the token; the caller chooses the id of the lease, at least 2**63.
packed_lock_acquire: Callable[[Borrowed, int], None] = _direct.packed_lock_acquire
lock_check_free: Callable[[int], None] = _native.lock_check_free
submit_lock_acquire_as: Callable[[int, int, int, bytes, int, int, int, int], None] = _native.submit_lock_acquire_as
lock_adopt: Callable[[int, int | None, bytes, int, int, int, bytes], int] = _native.lock_adopt
submit_lock_adopt: Callable[[int, int, int | None, bytes, int, int, int, bytes], None] = _native.submit_lock_adopt

# What operators do to locks: client, key, ttl, expected token, reason. The results are packed as the operator module of
# the native library says.
lock_inspect: Callable[[int, bytes, int], bytes] = _native.lock_inspect
lock_steal: Callable[[int, bytes, int, bytes, bytes], bytes] = _native.lock_steal
submit_lock_inspect: Callable[[int, int, bytes, int], None] = _native.submit_lock_inspect
submit_lock_steal: Callable[[int, int, bytes, int, bytes, bytes], None] = _native.submit_lock_steal

# Leases.
lease_fence: Callable[[int], int] = _native.lease_fence
lease_remaining_us: Callable[[int], int] = _native.lease_remaining_us
lease_is_valid: Callable[[int], bool] = _native.lease_is_valid
lease_ensure: Callable[[int, int], None] = _native.lease_ensure
lease_extend: Callable[[int, int], None] = _native.lease_extend
lease_verify: Callable[[int, int], None] = _native.lease_verify
lease_transfer: Callable[[int], bytes] = _native.lease_transfer
lease_wait: Callable[[int, int], bool] = _native.lease_wait
lease_release: Callable[[int], None] = _direct.lease_release
lease_free: Callable[[int], None] = _native.lease_free
packed_leases_free: Callable[[bytes], None] = _native.packed_leases_free
lease_abandon: Callable[[int], None] = _native.lease_abandon
leases_count: Callable[[], int] = _native.leases_count
submit_lease_extend: Callable[[int, int, int, int], None] = _native.submit_lease_extend
submit_lease_release: Callable[[int, int, int], None] = _native.submit_lease_release
submit_lease_verify: Callable[[int, int, int, int], None] = _native.submit_lease_verify
submit_lease_transfer: Callable[[int, int, int], None] = _native.submit_lease_transfer
submit_lease_lost: Callable[[int, int, int], None] = _native.submit_lease_lost

# Sweeps: client, ticket, sweep, what the sweeper was told. What is to be billed, and the totals, are packed as the
# sweeper module of the native library says.
SweepArguments: type[Any] = _native.SweepArguments
sweep_id: Callable[[], int] = _native.sweep_id
check_sweeper: Callable[[object], None] = _native.check_sweeper
submit_sweep_begin: Callable[[int, int, int, object], None] = _native.submit_sweep_begin
submit_sweep_next: Callable[[int, int, int], None] = _native.submit_sweep_next
submit_sweep_commit: Callable[[int, int, int], None] = _native.submit_sweep_commit
submit_sweep_abort: Callable[[int, int, int], None] = _native.submit_sweep_abort
submit_sweep_end: Callable[[int, int, int], None] = _native.submit_sweep_end
sweep_totals: Callable[[int], bytes] = _native.sweep_totals
sweep_abandon: Callable[[int], None] = _native.sweep_abandon

# Meters: what one is made with, by names; client, ticket, the meter's id, which the caller chooses, at least 2**63.
# The results are packed as the meter module of the native library says.
MeterSettings: Callable[..., object] = _native.MeterSettings
submit_meter_open: Callable[[int, int, int | None, object], None] = _native.submit_meter_open
meter_add: Callable[[int, bytes, int], None] = _direct.meter_add
meter_take_refused: Callable[[int], bytes] = _native.meter_take_refused
meter_trouble: Callable[[int], bytes] = _native.meter_trouble
meter_close: Callable[[int], bytes] = _native.meter_close
meter_free: Callable[[int], None] = _native.meter_free
submit_meter_flush: Callable[[int, int, int], None] = _native.submit_meter_flush
submit_meter_close: Callable[[int, int, int], None] = _native.submit_meter_close

# Results of calls in the background, as packed records; there are some until a closed client's last was taken.
completions_socket: Callable[[int], int] = _native.completions_socket
completions_take: Callable[[int], bytes] = _native.completions_take
ticket_wait: Callable[[int, int, int], bytes] = _native.ticket_wait
cancel: Callable[[int, int], None] = _native.cancel

# The test face of memory://.
memory_advance: Callable[[int, int], None] = _native.memory_advance
memory_keys: Callable[[int], list[MemoryKey]] = _native.memory_keys
memory_put: Callable[[int, bytes, bytes, int | None], None] = _native.memory_put
memory_put_other_type: Callable[[int, bytes, int | None], None] = _native.memory_put_other_type
memory_remove: Callable[[int, bytes], None] = _native.memory_remove
memory_lose_next_reply: Callable[[int], None] = _native.memory_lose_next_reply
memory_forget_scripts: Callable[[int], None] = _native.memory_forget_scripts
