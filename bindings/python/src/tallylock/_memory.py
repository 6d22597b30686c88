"""The test face of `memory://`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tallylock import _ffi
from tallylock._arguments import Binary, content, from_microseconds, microseconds, optional_microseconds
from tallylock.errors import translating

if TYPE_CHECKING:
    from tallylock._session import Session


@dataclass(frozen=True)
class MemoryKey:
    """A key of the server in memory.

    Attributes:
        key: the key.
        value: its text, or None for a key of another type.
        ttl: its remaining time, or None for a key without a TTL.
    """

    key: bytes
    value: bytes | None
    ttl: timedelta | None


class Memory:
    """The server in memory behind a client of `memory://`, for tests: looks into it, changes it, and lets time pass.

    Its clock stands still but for `advance`, and jumps to the next deadline when all callers wait. Every method raises
    ClosedError if the client is closed.
    """

    __slots__ = ("_client_id", "_session")

    def __init__(self, session: "Session") -> None:
        """Make the test face; `client.memory` does this."""
        self._session = session
        self._client_id = session.client_id

    def advance(self, duration: timedelta) -> None:
        """Let `duration` pass, rounded up to whole milliseconds.

        InvalidArgumentError if it is negative or over 10 years.
        """
        with translating():
            _ffi.memory_advance(self._client_id, microseconds(duration))

    def keys(self) -> list[MemoryKey]:
        """Return every live key, ordered by its bytes."""
        with translating():
            found = _ffi.memory_keys(self._client_id)
        return [
            MemoryKey(each.key, each.value, None if each.ttl_us is None else from_microseconds(each.ttl_us))
            for each in found
        ]

    def put(self, key: str | Binary, value: str | Binary, ttl: timedelta | None = None) -> None:
        """Put a text there as another program would, without a TTL if none is given.

        InvalidArgumentError if `ttl` is not from 1 ms to 10 years.
        """
        with translating():
            _ffi.memory_put(self._client_id, content(key), content(value), optional_microseconds(ttl))

    def put_other_type(self, key: str | Binary, ttl: timedelta | None = None) -> None:
        """Put a key of another type there as another program would, without a TTL if none is given.

        InvalidArgumentError if `ttl` is not from 1 ms to 10 years.
        """
        with translating():
            _ffi.memory_put_other_type(self._client_id, content(key), optional_microseconds(ttl))

    def remove(self, key: str | Binary) -> None:
        """Remove a key as another program would."""
        with translating():
            _ffi.memory_remove(self._client_id, content(key))

    def lose_next_reply(self) -> None:
        """Execute the next call, but lose its reply."""
        with translating():
            _ffi.memory_lose_next_reply(self._client_id)

    def forget_scripts(self) -> None:
        """Forget which scripts were sent, as a server does when it restarts."""
        with translating():
            _ffi.memory_forget_scripts(self._client_id)
