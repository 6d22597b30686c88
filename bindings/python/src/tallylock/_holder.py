"""Who holds a lock, and what is told when it is stolen."""

import logging
import struct
from dataclasses import dataclass, field
from datetime import timedelta

from tallylock._once import remaining
from tallylock._outcomes import bytes_at

_HOLDER = struct.Struct("<q?Q")
_FENCE = struct.Struct("<Q")
_logger = logging.getLogger("tallylock")


@dataclass(frozen=True)
class Holder:
    """Who holds a lock.

    Attributes:
        token: the owner value, of tallylock or of another library. Who knows it can release and steal the lock, so it
            is not shown: keep it out of logs.
        label: who it is, as the token says; None if it doesn't, or is of another library.
        remaining: how long the lock lasts yet, by the server's clock; None if it never ends.
        fence: the last fence that was granted for the lock: the holder's, unless the token is of another library. None
            if none was granted, or it was lost.
    """

    token: bytes = field(repr=False)
    label: str | None
    remaining: timedelta | None
    fence: int | None


def unpack_holder(packed: bytes) -> Holder | None:
    """Return the holder of a lock."""
    if not packed:
        return None
    remaining_us, has_fence, fence = _HOLDER.unpack_from(packed)
    token, at = bytes_at(packed, _HOLDER.size)
    label, _ = bytes_at(packed, at)
    return Holder(token, label.decode() or None, remaining(remaining_us), fence if has_fence else None)


def logged_fence(packed: bytes) -> int | None:
    """Return the fence of a lock that was stolen, and log who lost it and why."""
    if not packed:
        return None
    message, _ = bytes_at(packed, _FENCE.size)
    _logger.warning("%s", message.decode())
    fence: int = _FENCE.unpack_from(packed)[0]
    return fence
