"""Counters for asyncio."""

from datetime import timedelta
from typing import Literal, cast, overload

from tallylock import _ffi
from tallylock._arguments import Binary, content, remembered_microseconds, whole_amount, whole_fence
from tallylock._handle import CounterHandle, check_no_remember
from tallylock._once import Added, Claim, OpenClaim, unpack_added, unpack_claim, unpack_claims
from tallylock.aio._calls import Calls


class Counter(CounterHandle):
    """A counter of whole numbers of 64 bits, whose every write sets or keeps a TTL.

    The verbs raise what those of `tallylock.Counter` do. Cancelling the task gives the call up; whether a call that
    writes and was under way was applied is not known then.
    """

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls, key: str | Binary, ttl: timedelta, expiry: Literal["sliding", "fixed"]) -> None:
        """Make a handle; `client.counter` does this."""
        super().__init__(calls.session.client_id, key, ttl, expiry)
        self._calls = calls

    @overload
    async def add(self, amount: int) -> int: ...

    @overload
    async def add(self, amount: int, *, idempotency_key: str | Binary, remember: timedelta | None = None) -> Added: ...

    async def add(
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
        call, whole = self._calls.call, whole_amount(self._key, amount)
        if idempotency_key is None:
            check_no_remember(remember)
            total = await call(_ffi.submit_counter_add, self._key, self._ttl_us, self._fixed, whole)
            return cast("int", total)
        once, remember_us = content(idempotency_key, self._key), remembered_microseconds(self._key, remember)
        added = await call(_ffi.submit_counter_add_once, self._key, self._ttl_us, self._fixed, whole, once, remember_us)
        return unpack_added(cast("bytes", added))

    async def read(self) -> int | None:
        """Return the total, or None if there is no such counter."""
        return cast("int | None", await self._calls.call(_ffi.submit_counter_read, self._key, self._ttl_us))

    async def drain(self, *, fence: int | None = None) -> int | None:
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
        if fence is None:
            return cast("int | None", await self._calls.call(_ffi.submit_counter_drain, self._key, self._ttl_us))
        of_lease = whole_fence(self._key, fence)
        drained = await self._calls.call(_ffi.submit_counter_drain_fenced, self._key, self._ttl_us, of_lease)
        return cast("int | None", drained)

    async def finish(self) -> int | None:
        """Delete the counter and return what it held, or None if there is no such counter."""
        return cast("int | None", await self._calls.call(_ffi.submit_counter_finish, self._key, self._ttl_us))

    async def claim(self, claim_id: str | Binary, *, fence: int | None = None) -> Claim | None:
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
        claimed = await self._calls.call(_ffi.submit_counter_claim, self._key, self._ttl_us, name, of_lease)
        return unpack_claim(cast("bytes", claimed))

    async def commit(self, claim_id: str | Binary, amount: int) -> None:
        """End a claim as billed with this amount; again is harmless.

        Raises ConflictError if the claim took another amount, was aborted or is not there, InvalidArgumentError if one
        of the arguments is out of bounds.
        """
        name, billed = content(claim_id, self._key), whole_amount(self._key, amount)
        await self._calls.call(_ffi.submit_counter_commit, self._key, self._ttl_us, name, billed)

    async def abort(self, claim_id: str | Binary, *, fence: int | None = None) -> int:
        """End a claim as not billed, give the counter its amount back, and return that; again is harmless.

        A counter that is gone is made anew with the handle's TTL. Raises ConflictError if the claim was committed or is
        not there, CounterOverflowError if the counter can't take the amount, FencedOffError if the holder of a newer
        lease than that of `fence` was here, who may have billed the claim: the claim then stays open.
        """
        name, of_lease = content(claim_id, self._key), None if fence is None else whole_fence(self._key, fence)
        return cast("int", await self._calls.call(_ffi.submit_counter_abort, self._key, self._ttl_us, name, of_lease))

    async def claims(self) -> list[OpenClaim]:
        """Return the open claims of this counter, in the order of their ids.

        Goes through all keys of the server: for billing jobs that start and for people, not for each call.
        """
        claims = await self._calls.call(_ffi.submit_counter_claims, self._key, self._ttl_us)
        return unpack_claims(cast("bytes", claims))
