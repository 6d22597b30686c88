"""What both faces' clients have in common: an id in the native library, and its end."""

import weakref
from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from tallylock import _ffi
from tallylock._arguments import optional_microseconds
from tallylock._ids import free_forgotten
from tallylock._memory import Memory
from tallylock._metrics import Metrics, unpack_metrics
from tallylock.errors import translating


class Session:
    """A client's id in the native library, closed with this object at the latest."""

    __slots__ = ("__weakref__", "_finalizer", "client_id")

    def __init__(self, client_id: int) -> None:
        """Take over the id."""
        self.client_id = client_id
        self._finalizer = weakref.finalize(self, _ffi.close, client_id)
        # When the interpreter ends the process does too.
        self._finalizer.atexit = False

    def close(self) -> None:
        """Close the client; again is harmless. Its connections end with the last call under way."""
        free_forgotten()
        self._finalizer()

    def healed(self) -> int:
        """Return how many counters a drain of this client gave their TTL back."""
        with translating():
            return _ffi.client_healed(self.client_id)

    def stolen(self) -> int:
        """Return how many locks this client has stolen."""
        with translating():
            return _ffi.client_stolen(self.client_id)

    def metrics(self) -> Metrics:
        """Return what this client has counted."""
        # Those that nobody has any more are to be counted as such.
        free_forgotten()
        with translating():
            return unpack_metrics(_ffi.client_metrics(self.client_id))

    def memory(self) -> Memory | None:
        """Return the test face if the server is in memory."""
        with translating():
            return Memory(self) if _ffi.client_has_memory(self.client_id) else None


def connected(
    url: str, timeout: timedelta | None, owner: str | Literal[False] | None, *, avoid_scripts: bool
) -> Session:
    """Connect on this thread."""
    with translating():
        return Session(_ffi.connect(url, *_options(timeout, owner), avoid_scripts))


def opened(url: str, timeout: timedelta | None, owner: str | Literal[False] | None, *, avoid_scripts: bool) -> Session:
    """Check what a client is opened with, without connecting."""
    with translating():
        return Session(_ffi.open_client(url, *_options(timeout, owner), avoid_scripts))


def redlock_arguments(  # noqa: PLR0913 - named ones
    urls: Iterable[str],
    *,
    timeout: timedelta | None,
    node_timeout: timedelta | None,
    rejoin: bool,
    owner: str | Literal[False] | None,
    avoid_scripts: bool,
) -> _ffi.RedlockArguments:
    """Return what a client of several servers is opened with, in the order of the native library."""
    return (list(urls), optional_microseconds(node_timeout), rejoin, *_options(timeout, owner), avoid_scripts)


def _options(timeout: timedelta | None, owner: str | Literal[False] | None) -> tuple[int | None, str | None, bool]:
    return optional_microseconds(timeout), None if owner is False else owner, owner is False
