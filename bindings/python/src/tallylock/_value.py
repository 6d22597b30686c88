"""Values, blocking."""

from collections.abc import Callable
from datetime import timedelta

from tallylock._arguments import Binary, content, microseconds
from tallylock._ffi import (
    CallError,
    check_value,
    update_begin_as,
    update_free,
    update_offer,
    update_present,
    value_compare_and_set,
    value_get,
    value_replace_if_present,
    value_touch,
)
from tallylock._ids import next_update
from tallylock._session import Session
from tallylock.errors import translated, translating

# What has become of an offer, in the words of the native library; else the key is gone.
WRITTEN, OVERTAKEN = 1, 2


class Value:
    """A text of any bytes that is changed only where it already is, always together with its TTL.

    Each verb raises WrongTypeError if the key holds another type, and what any call may: CallTimeoutError,
    UnavailableError, ForbiddenError, UnsupportedError, ClosedError. Those that write also raise OutcomeUnknownError if
    the reply was lost (`touch` is repeated instead), ReadOnlyError and OutOfMemoryError; InvalidArgumentError if a TTL
    is not from 1 ms to 10 years.
    """

    __slots__ = ("_client_id", "_key", "_session")

    def __init__(self, session: Session, key: str | Binary) -> None:
        """Make a handle; `client.value` does this."""
        self._session = session
        self._client_id = session.client_id
        self._key = content(key)
        with translating():
            check_value(self._key)

    def get(self) -> bytes | None:
        """Return the value, or None if there is none."""
        try:
            return value_get(self._client_id, self._key)
        except CallError as error:
            raise translated(error) from None

    def replace_if_present(self, value: str | Binary, *, ttl: timedelta) -> bool:
        """Replace the value and set its TTL if it is there; return whether it was."""
        try:
            return value_replace_if_present(self._client_id, self._key, content(value, self._key), microseconds(ttl))
        except CallError as error:
            raise translated(error) from None

    def touch(self, *, ttl: timedelta) -> bool:
        """Set the TTL of the value if it is there; return whether it was."""
        try:
            return value_touch(self._client_id, self._key, microseconds(ttl))
        except CallError as error:
            raise translated(error) from None

    def compare_and_set(self, expected: str | Binary, value: str | Binary, *, ttl: timedelta) -> bool:
        """Replace the value and set its TTL if it is `expected`; return whether it was."""
        old, new = content(expected, self._key), content(value, self._key)
        try:
            return value_compare_and_set(self._client_id, self._key, old, new, microseconds(ttl))
        except CallError as error:
            raise translated(error) from None

    def update(self, change: Callable[[bytes], str | Binary], *, ttl: timedelta) -> bytes | None:
        """Replace the value by what `change` makes of it, and set its TTL.

        Args:
            change: is given the value and returns the new one. It is called again, with what is there then, if another
                wrote meanwhile. Nothing is locked while it runs, and nothing is written if it raises.
            ttl: how long the new value lives: 1 ms to 10 years, rounded up to whole milliseconds.

        Returns:
            What was written, or None if there is no such value, or none any more.

        Raises:
            ConflictError: if others were faster until the client's time-out.

        """
        ttl_us, update_id = microseconds(ttl), next_update()
        try:
            if not update_begin_as(self._client_id, self._key, update_id):
                return None
            while True:
                new = content(change(update_present(update_id)), self._key)
                offered = update_offer(self._client_id, self._key, update_id, new, ttl_us)
                if offered != OVERTAKEN:
                    return new if offered == WRITTEN else None
        except CallError as error:
            raise translated(error) from None
        except BaseException:
            update_free(update_id)
            raise
