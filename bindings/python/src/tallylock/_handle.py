"""What the handles of both faces on a counter have in common."""

from datetime import timedelta
from typing import Literal

from tallylock._arguments import Binary, content, is_fixed, microseconds
from tallylock._batch import Entry, packed_add, packed_add_once, packed_handle
from tallylock._ffi import check_counter
from tallylock.errors import translating


class CounterHandle:
    """What a handle on a counter stands for."""

    __slots__ = ("_client_id", "_entries", "_fixed", "_key", "_ttl_us")

    def __init__(self, client_id: int, key: str | Binary, ttl: timedelta, expiry: Literal["sliding", "fixed"]) -> None:
        """Check what the handle is made with."""
        self._client_id = client_id
        self._key = content(key)
        self._ttl_us = microseconds(ttl)
        self._fixed = is_fixed(self._key, expiry)
        with translating():
            check_counter(self._key, self._ttl_us)
        self._entries = packed_handle(self._ttl_us, self._key, fixed=self._fixed)

    def entry(
        self, amount: int, *, idempotency_key: str | Binary | None = None, remember: timedelta | None = None
    ) -> Entry:
        """Return an add for `client.add_many`; nothing is sent.

        Args:
            amount: any whole number of 64 bits.
            idempotency_key: 1 to 512 bytes, under which the add counts once; text is sent in UTF-8.
            remember: for how long the key is known, as of `add`.

        Raises:
            InvalidArgumentError: if `amount` doesn't fit into 64 bits. For the others `add_many` raises it.

        """
        if idempotency_key is None:
            check_no_remember(remember)
            return Entry(self._client_id, self._entries + packed_add(self._key, amount))
        remember_us = None if remember is None else microseconds(remember)
        add = packed_add_once(self._key, amount, content(idempotency_key, self._key), remember_us)
        return Entry(self._client_id, self._entries + add)


def check_no_remember(remember: timedelta | None) -> None:
    """Raise TypeError if an add without an idempotency key is told how long to remember it."""
    if remember is not None:
        message = "remember is for how long an idempotency key is known, and there is none"
        raise TypeError(message)
