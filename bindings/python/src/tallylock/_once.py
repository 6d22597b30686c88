"""What counts once: the results of adds with an idempotency key and of claims, unpacked.

Their bytes are told in the claim module of the native library.
"""

import struct
from datetime import timedelta
from typing import Literal, NamedTuple

from tallylock._arguments import from_microseconds
from tallylock._outcomes import bytes_at

ClaimState = Literal["open", "committed", "aborted"]

_ADDED = struct.Struct("<?q")
_CLAIM = struct.Struct("<Bq")
_OPEN_CLAIM = struct.Struct("<qq")
_STATES: tuple[ClaimState, ...] = ("open", "committed", "aborted")


class Added(NamedTuple):
    """What an add that counts once gives.

    Attributes:
        total: what the counter holds now.
        applied: whether this call added; False if it was added under this idempotency key before.
    """

    total: int
    applied: bool


class Claim(NamedTuple):
    """What a counter gave for a claim, and what has become of it.

    Attributes:
        amount: what was taken.
        state: `open`, to be committed or aborted; `committed`, billed; or `aborted`, given back.
    """

    amount: int
    state: ClaimState


class OpenClaim(NamedTuple):
    """A claim that was neither committed nor aborted yet.

    Attributes:
        id: its id, as bytes.
        amount: what was taken.
        remaining: for how long it is still kept, or None if it has lost its TTL.
    """

    id: bytes
    amount: int
    remaining: timedelta | None

    @property
    def id_text(self) -> str:
        """The id as text; UnicodeDecodeError if it is no UTF-8."""
        return self.id.decode()


def unpack_added(packed: bytes) -> Added:
    """Return what an add gave."""
    applied, total = _ADDED.unpack(packed)
    return Added(total, applied)


def unpack_claim(packed: bytes) -> Claim | None:
    """Return what a claim gave."""
    if not packed:
        return None
    state, amount = _CLAIM.unpack(packed)
    return Claim(amount, _STATES[state])


def unpack_claims(packed: bytes) -> list[OpenClaim]:
    """Return the open claims of a counter."""
    claims, at = [], 0
    while at < len(packed):
        claim_id, at = bytes_at(packed, at)
        amount, remaining_us = _OPEN_CLAIM.unpack_from(packed, at)
        at += _OPEN_CLAIM.size
        claims.append(OpenClaim(claim_id, amount, remaining(remaining_us)))
    return claims


def remaining(remaining_us: int) -> timedelta | None:
    """Return a remaining time, None for what has none."""
    return None if remaining_us < 0 else from_microseconds(remaining_us)
