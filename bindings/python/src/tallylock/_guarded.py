"""Guarded values, blocking."""

from datetime import timedelta

from tallylock._arguments import Binary, content, microseconds, whole_fence
from tallylock._ffi import CallError, check_value, guarded_delete, guarded_set
from tallylock._session import Session
from tallylock.errors import translated, translating


class Guarded:
    """A text of any bytes that only the holder of a lock writes, in the name of its fence.

    Once a holder with a higher fence was here, an earlier one is refused with FencedOffError. The guard is that of
    fenced drains and claims at the same key. It is kept for 7 days after its last use, also when the text is deleted or
    ends; once it is forgotten, a holder from before passes. `client.value` reads the text.

    Each verb raises FencedOffError; WrongTypeError if the key holds another type; InvalidArgumentError if a fence is
    negative or has more than 64 bits; and what any call that writes may: CallTimeoutError, UnavailableError,
    ForbiddenError, ReadOnlyError, OutOfMemoryError, UnsupportedError, ClosedError, and OutcomeUnknownError if the reply
    was lost. It is not repeated then: the fence keeps other holders out, but not what the same holder wrote in between.
    A holder who writes one after the other may repeat it.
    """

    __slots__ = ("_client_id", "_key", "_session")

    def __init__(self, session: Session, key: str | Binary) -> None:
        """Make a handle; `client.guarded` does this."""
        self._session = session
        self._client_id = session.client_id
        self._key = content(key)
        with translating():
            check_value(self._key)

    def set(self, value: str | Binary, *, fence: int, ttl: timedelta) -> None:
        """Write the value and set its TTL, whether there is one or not.

        Args:
            value: the new value; text is sent in UTF-8.
            fence: the `fence` of the lease under which this is done.
            ttl: how long it lives: 1 ms to 10 years, rounded up to whole milliseconds, else InvalidArgumentError.

        """
        new, number = content(value, self._key), whole_fence(self._key, fence)
        try:
            guarded_set(self._client_id, self._key, new, number, microseconds(ttl))
        except CallError as error:
            raise translated(error) from None

    def delete(self, *, fence: int) -> bool:
        """Delete the value, for the holder of a lease with this `fence`; return whether there was one."""
        try:
            return guarded_delete(self._client_id, self._key, whole_fence(self._key, fence))
        except CallError as error:
            raise translated(error) from None
