"""Counters, blocking."""

from datetime import timedelta
from typing import Literal

from tallylock._arguments import Binary, amount_refused, content, is_fixed, microseconds, packed_counter
from tallylock._ffi import CallError, check_counter, counter_drain, counter_finish, counter_read, packed_counter_add
from tallylock._session import Session
from tallylock.errors import translated, translating


class Counter:
    """A counter of whole numbers of 64 bits, whose every write sets or keeps a TTL.

    Each verb raises WrongTypeError if the key holds another type, NotAnIntegerError if it holds another text, and what
    any call may: CallTimeoutError, UnavailableError, ForbiddenError, UnsupportedError, ClosedError. Those that write
    also raise OutcomeUnknownError if the reply was lost (they are not repeated), ReadOnlyError and OutOfMemoryError.
    """

    __slots__ = ("_client_id", "_key", "_packed", "_session", "_ttl_us")

    def __init__(
        self, session: Session, key: str | Binary, ttl: timedelta, expiry: Literal["sliding", "fixed"]
    ) -> None:
        """Make a handle; `client.counter` does this."""
        self._session = session
        self._client_id = session.client_id
        self._key = content(key)
        self._ttl_us = microseconds(ttl)
        fixed = is_fixed(self._key, expiry)
        with translating():
            check_counter(self._key, self._ttl_us)
        self._packed = packed_counter(session.client_id, self._ttl_us, self._key, fixed=fixed)

    def add(self, amount: int) -> int:
        """Add `amount`, any whole number of 64 bits, and return the total.

        Raises CounterOverflowError if the total wouldn't fit into 64 bits, InvalidArgumentError if `amount` doesn't.
        """
        try:
            return packed_counter_add(self._packed, amount)
        except CallError as error:
            raise translated(error) from None
        except ValueError:
            raise amount_refused(self._key, amount) from None

    def read(self) -> int | None:
        """Return the total, or None if there is no such counter."""
        try:
            return counter_read(self._client_id, self._key, self._ttl_us)
        except CallError as error:
            raise translated(error) from None

    def drain(self) -> int | None:
        """Take what the counter holds and leave 0, with its remaining time untouched.

        Returns the amount taken, or None if there is no such counter. One that had lost its TTL is given the handle's,
        and counted in `client.healed`.
        """
        try:
            return counter_drain(self._client_id, self._key, self._ttl_us)
        except CallError as error:
            raise translated(error) from None

    def finish(self) -> int | None:
        """Delete the counter and return what it held, or None if there is no such counter."""
        try:
            return counter_finish(self._client_id, self._key, self._ttl_us)
        except CallError as error:
            raise translated(error) from None
