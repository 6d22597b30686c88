"""Looking through the server's counters, a page at a time."""

import struct
from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from tallylock._arguments import Binary, content, microseconds, negative_within_refused
from tallylock._ffi import CallError, client_scan
from tallylock._once import remaining
from tallylock._outcomes import bytes_at
from tallylock._session import Session
from tallylock.errors import translated

_COUNTER = struct.Struct("<qq")
# In place of a time: all counters, whenever they end.
_ALL = -1


class CounterFound(NamedTuple):
    """A counter that a scan has found.

    Attributes:
        key: its key.
        total: what it held then.
        remaining: how long it had to live then, or None if it has lost its TTL.
    """

    key: bytes
    total: int
    remaining: timedelta | None


class ScanState:
    """Where a scan stands: the page that is being read, and what comes after it."""

    __slots__ = ("_here", "_is_over", "_next", "_page", "_pattern", "_within_us")

    def __init__(self, pattern: str | Binary, cursor: str | None, within: timedelta | None) -> None:
        """Begin at `cursor`; with `within`, only what ends within that time or has lost its TTL."""
        self._pattern = content(pattern)
        self._within_us = _ALL if within is None else microseconds(within)
        if within is not None and self._within_us < 0:
            raise negative_within_refused()
        # An empty cursor is the beginning of all.
        self._here = self._next = b"" if cursor is None else content(cursor)
        self._is_over = False
        self._page: Iterator[CounterFound] = iter(())

    @property
    def cursor(self) -> str | None:
        """Where to go on later: at the page that is being read. None at the beginning and at the end."""
        return self._here.decode() or None

    def _turn(self, page: bytes) -> None:
        after, at = bytes_at(page, 0)
        self._here, self._next, self._is_over = self._next, after, not after
        self._page = _counters(page, at)

    def _end(self) -> None:
        self._here = b""


class Scan(ScanState, Iterator[CounterFound]):
    """The counters that match a pattern, in no order; at no time is more than a page of some hundreds in memory.

    A counter may be found twice, and one that comes or goes meanwhile may be missed: that is what SCAN gives. After an
    error the iteration can go on.
    """

    __slots__ = ("_session",)

    def __init__(
        self, session: Session, pattern: str | Binary, cursor: str | None, within: timedelta | None = None
    ) -> None:
        """Make a scan; `client.scan` and `client.expiring` do this."""
        super().__init__(pattern, cursor, within)
        self._session = session

    def __next__(self) -> CounterFound:
        """Return the next counter; asks the server at the end of each page."""
        while True:
            found = next(self._page, None)
            if found is not None:
                return found
            if self._is_over:
                self._end()
                raise StopIteration
            try:
                page = client_scan(self._session.client_id, self._pattern, self._next, self._within_us)
            except CallError as error:
                raise translated(error) from None
            self._turn(page)


def _counters(page: bytes, at: int) -> Iterator[CounterFound]:
    while at < len(page):
        key, at = bytes_at(page, at)
        total, remaining_us = _COUNTER.unpack_from(page, at)
        at += _COUNTER.size
        yield CounterFound(key, total, remaining(remaining_us))
