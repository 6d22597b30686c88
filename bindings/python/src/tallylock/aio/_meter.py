"""Meters for asyncio."""

from types import TracebackType

from tallylock import _ffi
from tallylock._meter import Flushed, MeterState, closed_without_client, note_unflushed, unpack_flushed
from tallylock.aio._calls import Calls
from tallylock.errors import ClosedError, TallylockError


class Meter(MeterState):
    """Sums adds in memory and brings the sums to the server now and then, each once.

    A context manager: closed at the exit. `add` and `take_refused` ask no server and are not awaited. In a child made
    by `fork` its verbs raise ClosedError.
    """

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        """Make one that is still to be opened."""
        super().__init__()
        self._calls = calls

    @classmethod
    async def opened(cls, calls: Calls, settings: object) -> "Meter":
        """Make a meter; `client.meter` does this. If the task is cancelled meanwhile, there is none."""
        meter = cls(calls)
        try:
            await calls.call(_ffi.submit_meter_open, meter._meter_id, settings)
        except BaseException:
            meter._free()
            raise
        return meter

    async def flush(self) -> Flushed:
        """Bring all that was added until now to the server, and return how much that was.

        If the task is cancelled meanwhile, the flush goes on in the background.

        Raises:
            TallylockError: with the code of the reason, if something still waits; the next flush sends it again, and
                nothing is counted twice.
            ClosedError: if the meter or its client is closed, or in a child made by `fork`.

        """
        return unpack_flushed(await self._calls.call(_ffi.submit_meter_flush, self._meter_id))

    async def close(self) -> Flushed:
        """Let nothing more in, and flush once; again is harmless.

        Returns:
            What the flush has come to. With a journal, what still waits stays there for the next meter.

        Raises:
            TallylockError: without a journal, with the code of the reason, if something is not on the server; closing
                again flushes again.

        """
        try:
            flushed = await self._calls.call(_ffi.submit_meter_close, self._meter_id)
        except ClosedError:
            return closed_without_client(self._meter_id)
        return unpack_flushed(flushed)

    async def __aenter__(self) -> "Meter":
        """Return the meter."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the meter, also after an error of the block, which is never hidden by one of the closing."""
        try:
            await self.close()
        except TallylockError as unflushed:
            if error is None:
                raise
            note_unflushed(error, unflushed)
