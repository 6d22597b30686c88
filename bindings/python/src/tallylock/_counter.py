"""Counters, blocking."""

from datetime import timedelta
from typing import Literal, cast, overload

from tallylock._arguments import (
    Binary,
    amount_refused,
    content,
    packed_counter,
    remembered_microseconds,
    whole_amount,
    whole_fence,
)
from tallylock._ffi import (
    CallError,
    counter_abort,
    counter_add_once,
    counter_claim,
    counter_commit,
    counter_drain,
    counter_drain_fenced,
    counter_finish,
    counter_read,
    packed_counter_add,
    submit_counter_claims,
)
from tallylock._handle import CounterHandle, check_no_remember
from tallylock._once import Added, Claim, OpenClaim, unpack_added, unpack_claim, unpack_claims
from tallylock._session import Session
from tallylock._waiting import awaited
from tallylock.errors import translated, translating


class Counter(CounterHandle):
    """A counter of whole numbers of 64 bits, whose every write sets or keeps a TTL.

    Each verb raises WrongTypeError if the key holds another type, NotAnIntegerError if it holds another text, and what
    any call may: CallTimeoutError, UnavailableError, ForbiddenError, UnsupportedError, ClosedError. Those that write
    also raise ReadOnlyError and OutOfMemoryError, and OutcomeUnknownError if the reply was lost: a plain add, a drain
    and a finish are not repeated, the others until the client's time-out.
    """

    __slots__ = ("_packed", "_session")

    def __init__(
        self, session: Session, key: str | Binary, ttl: timedelta, expiry: Literal["sliding", "fixed"]
    ) -> None:
        """Make a handle; `client.counter` does this."""
        super().__init__(session.client_id, key, ttl, expiry)
        self._session = session
        self._packed = packed_counter(session.client_id, self._ttl_us, self._key, fixed=self._fixed)

    @overload
    def add(self, amount: int) -> int: ...

    @overload
    def add(self, amount: int, *, idempotency_key: str | Binary, remember: timedelta | None = None) -> Added: ...

    def add(
        self, amount: int, *, idempotency_key: str | Binary | None = None, remember: timedelta | None = None
    ) -> int | Added:
        """Add `amount`, and return the total; with an idempotency key, unless it was added under that key before.

        Args:
            amount: any whole number of 64 bits.
            idempotency_key: 1 to 512 bytes, unique among those of the counter; text is sent in UTF-8.
            remember: for how long the key is known, 1 ms to 10 years; if not given, the default of all languages.

        Returns:
            The total; with an idempotency key `Added`, which also says whether this call added.

        Raises:
            CounterOverflowError: if the total wouldn't fit into 64 bits.
            ConflictError: if another amount was added under the key.
            InvalidArgumentError: if one of the arguments is out of bounds.

        """
        if idempotency_key is not None:
            return self._add_once(
                amount, content(idempotency_key, self._key), remembered_microseconds(self._key, remember)
            )
        check_no_remember(remember)
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

    def drain(self, *, fence: int | None = None) -> int | None:
        """Take what the counter holds and leave 0, with its remaining time untouched.

        Args:
            fence: the `fence` of the lease under which this is done, if any.

        Returns:
            The amount taken, or None if there is no such counter. One that had lost its TTL is given the handle's, and
            counted in `client.healed`.

        Raises:
            FencedOffError: if the holder of a newer lease was here; nothing was taken.
            InvalidArgumentError: if `fence` is negative or has more than 64 bits.

        """
        try:
            if fence is None:
                return counter_drain(self._client_id, self._key, self._ttl_us)
            return counter_drain_fenced(self._client_id, self._key, self._ttl_us, whole_fence(self._key, fence))
        except CallError as error:
            raise translated(error) from None

    def finish(self) -> int | None:
        """Delete the counter and return what it held, or None if there is no such counter."""
        try:
            return counter_finish(self._client_id, self._key, self._ttl_us)
        except CallError as error:
            raise translated(error) from None

    def claim(self, claim_id: str | Binary, *, fence: int | None = None) -> Claim | None:
        """Take what the counter holds and leave 0, for the claim of this id, to be committed once it is billed.

        Asked again with the same id, it takes nothing more and says what was taken and what has become of it. An open
        claim is kept for 7 days, an ended one for 24 hours.

        Args:
            claim_id: 1 to 512 bytes, unique among those of the counter; text is sent in UTF-8.
            fence: the `fence` of the lease under which this is done, if any.

        Returns:
            What was taken, or None, with nothing written, if there was nothing to take.

        Raises:
            FencedOffError: if the holder of a newer lease was here; nothing was taken.
            InvalidArgumentError: if one of the arguments is out of bounds.

        """
        name, of_lease = content(claim_id, self._key), None if fence is None else whole_fence(self._key, fence)
        with translating():
            return unpack_claim(counter_claim(self._client_id, self._key, self._ttl_us, name, of_lease))

    def commit(self, claim_id: str | Binary, amount: int) -> None:
        """End a claim as billed with this amount; again is harmless.

        Raises ConflictError if the claim took another amount, was aborted or is not there, InvalidArgumentError if one
        of the arguments is out of bounds.
        """
        name, billed = content(claim_id, self._key), whole_amount(self._key, amount)
        with translating():
            counter_commit(self._client_id, self._key, self._ttl_us, name, billed)

    def abort(self, claim_id: str | Binary, *, fence: int | None = None) -> int:
        """End a claim as not billed, give the counter its amount back, and return that; again is harmless.

        A counter that is gone is made anew with the handle's TTL. Raises ConflictError if the claim was committed or is
        not there, CounterOverflowError if the counter can't take the amount, FencedOffError if the holder of a newer
        lease than that of `fence` was here, who may have billed the claim: the claim then stays open.
        """
        name, of_lease = content(claim_id, self._key), None if fence is None else whole_fence(self._key, fence)
        with translating():
            return counter_abort(self._client_id, self._key, self._ttl_us, name, of_lease)

    def claims(self) -> list[OpenClaim]:
        """Return the open claims of this counter, in the order of their ids.

        Goes through all keys of the server: for billing jobs that start and for people, not for each call. Ctrl-C ends
        it.
        """
        with translating():
            claims = awaited(self._client_id, submit_counter_claims, self._key, self._ttl_us)
        return unpack_claims(cast("bytes", claims))

    def _add_once(self, amount: int, idempotency_key: bytes, remember_us: int) -> Added:
        whole = whole_amount(self._key, amount)
        with translating():
            return unpack_added(
                counter_add_once(
                    self._client_id, self._key, self._ttl_us, self._fixed, whole, idempotency_key, remember_us
                )
            )
