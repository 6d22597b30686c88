"""Looking through the server's counters, for asyncio."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import cast

from tallylock import _ffi
from tallylock._arguments import Binary
from tallylock._scan import CounterFound, ScanState
from tallylock.aio._calls import Calls


class Scan(ScanState, AsyncIterator[CounterFound]):
    """The counters that match a pattern, in no order; at no time is more than a page of some hundreds in memory.

    A counter may be found twice, and one that comes or goes meanwhile may be missed: that is what SCAN gives. After an
    error the iteration can go on. It is one task's at a time.
    """

    __slots__ = ("_calls",)

    def __init__(
        self, calls: Calls, pattern: str | Binary, cursor: str | None, within: timedelta | None = None
    ) -> None:
        """Make a scan; `client.scan` and `client.expiring` do this."""
        super().__init__(pattern, cursor, within)
        self._calls = calls

    async def __anext__(self) -> CounterFound:
        """Return the next counter; asks the server at the end of each page."""
        while True:
            found = next(self._page, None)
            if found is not None:
                return found
            if self._is_over:
                self._end()
                raise StopAsyncIteration
            page = await self._calls.call(_ffi.submit_client_scan, self._pattern, self._next, self._within_us)
            self._turn(cast("bytes", page))
