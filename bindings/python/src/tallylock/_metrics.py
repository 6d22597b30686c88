"""What a client has counted: numbers that only grow, and a few extremes."""

import struct
from dataclasses import dataclass
from datetime import timedelta

from tallylock._arguments import from_microseconds

_FIGURES = struct.Struct("<21q")


@dataclass(frozen=True)
class Losses:
    """How many leases were lost, by the `reason` of the LostError.

    A lease in a child of `fork` is its parent's, and lost by nobody.

    Attributes:
        expired: their time ran out, or the server had them no more: restarted, evicted, stolen.
        taken_over: another token was in their place.
        unreachable: their time ran out while the server could not be asked for more.
    """

    expired: int
    taken_over: int
    unreachable: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.expired + self.taken_over + self.unreachable


@dataclass(frozen=True)
class Metrics:
    """What a client has counted in this process since it was connected; a child of `fork` begins anew.

    `granted + adopted` leases came to be; of them `released + transferred + abandoned + lost.total` are over, and the
    others are held.

    Attributes:
        granted: acquires that were granted the lock.
        busy: acquires that ended with BusyError.
        cancelled: acquires that their callers gave up.
        failed: acquires that ended with another error.
        attempts: how often these have asked for the lock, each time all servers.
        waited: how long these have taken, all together.
        longest_wait: how long the longest of these took.
        adopted: leases that were taken over by `adopt`.
        released: leases that were released.
        transferred: leases that were given away by `transfer`.
        abandoned: leases that were forgotten without a release, or whose release has an unknown outcome.
        lost: leases that were lost, by reason.
        held: how long leases were held that were released, given away or lost, all together.
        longest_hold: how long the one of these was held that was held the longest.
        renewals: renewals that gave a lease its TTL again. An `extend` is none.
        failed_renewals: renewals that had no success; each is tried again while there is time.
        smallest_margin: the least that was left of a lease when it was renewed; None before the first renewal.
        stolen: locks that were stolen through this client.
        healed: counters that had lost their TTL and were given one by a drain or a claim.
    """

    granted: int
    busy: int
    cancelled: int
    failed: int
    attempts: int
    waited: timedelta
    longest_wait: timedelta
    adopted: int
    released: int
    transferred: int
    abandoned: int
    lost: Losses
    held: timedelta
    longest_hold: timedelta
    renewals: int
    failed_renewals: int
    smallest_margin: timedelta | None
    stolen: int
    healed: int


def unpack_metrics(packed: bytes) -> Metrics:
    """Return what the metrics module of the native library has packed."""
    granted, busy, cancelled, failed, attempts, waited, longest_wait, *figures = _FIGURES.unpack(packed)
    adopted, released, transferred, abandoned, expired, taken_over, unreachable, *figures = figures
    held, longest_hold, renewals, failed_renewals, smallest_margin, stolen, healed = figures
    return Metrics(
        granted=granted,
        busy=busy,
        cancelled=cancelled,
        failed=failed,
        attempts=attempts,
        waited=from_microseconds(waited),
        longest_wait=from_microseconds(longest_wait),
        adopted=adopted,
        released=released,
        transferred=transferred,
        abandoned=abandoned,
        lost=Losses(expired, taken_over, unreachable),
        held=from_microseconds(held),
        longest_hold=from_microseconds(longest_hold),
        renewals=renewals,
        failed_renewals=failed_renewals,
        smallest_margin=None if smallest_margin < 0 else from_microseconds(smallest_margin),
        stolen=stolen,
        healed=healed,
    )
