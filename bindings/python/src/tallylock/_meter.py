"""Meters: adds that are summed in memory and brought to the server now and then.

Their bytes are told in the meter module of the native library.
"""

import os
import struct
import sys
import weakref
from datetime import timedelta
from operator import index
from types import TracebackType
from typing import Literal, NamedTuple, cast

from tallylock import _ffi
from tallylock._arguments import Binary, amount_refused, content, is_fixed, microseconds, optional_microseconds
from tallylock._direct import LEAST, MOST
from tallylock._ids import next_meter
from tallylock._outcomes import bytes_at, error_at
from tallylock._session import Session
from tallylock._waiting import awaited
from tallylock.errors import ClosedError, TallylockError, translated, translating

_FLUSHED = struct.Struct("<4Q")
_AMOUNT = struct.Struct("<q")


class Flushed(NamedTuple):
    """What a flush has come to.

    Attributes:
        settled: how many sums are on the server now that were not, as far as was known, before.
        units: how many units these are, by their absolute values.
        waiting: how many sums that were there when the flush began still wait for the server.
        refused: how many sums the server refused for good, to be taken by `take_refused`.
    """

    settled: int
    units: int
    waiting: int
    refused: int


class Refused(NamedTuple):
    """A sum that is not sent any more.

    Attributes:
        key: the counter's key, as bytes.
        amount: the sum of the adds.
        error: why: an OutcomeUnknownError if all of it may have been counted, or nothing; for any other, nothing was.
    """

    key: bytes
    amount: int
    error: TallylockError

    @property
    def key_text(self) -> str:
        """The key as text; UnicodeDecodeError if it is no UTF-8."""
        return self.key.decode()


class MeterState:
    """What the meters of both faces have in common; freed with this object at the latest."""

    __slots__ = ("__weakref__", "_finalizer", "_meter_id")

    def __init__(self) -> None:
        """Choose an id, which is freed however the opening ends."""
        self._meter_id = next_meter()
        self._finalizer = weakref.finalize(self, _ffi.meter_free, self._meter_id)
        # When the interpreter ends the process does too.
        self._finalizer.atexit = False

    def add(self, key: str | Binary, amount: int) -> None:
        """Add `amount` to what is held for a counter; nothing is sent, and if it raises, nothing is counted.

        Args:
            key: the counter's key, used as given; text is sent in UTF-8.
            amount: any whole number of 64 bits.

        Raises:
            InvalidArgumentError: if one of them is wrong.
            CounterOverflowError: if the sum wouldn't fit into 64 bits.
            BusyError: if the meter holds as many sums as it may.
            UnavailableError: if the journal can't be written to.
            ClosedError: if the meter or its client is closed, or in a child made by `fork`.

        """
        name = content(key)
        try:
            _ffi.meter_add(self._meter_id, name, amount)
        except _ffi.CallError as error:
            raise translated(error) from None
        except ValueError:
            raise amount_refused(name, amount) from None

    def take_refused(self) -> list[Refused]:
        """Take the sums that the server refuses however often they are sent: they are the caller's from now on.

        Until they are taken they count to `max_counters`. Raises UnavailableError if it can't be written to the journal
        that they were taken, which they are not then, and ClosedError in a child made by `fork`.
        """
        with translating():
            packed = _ffi.meter_take_refused(self._meter_id)
        taken, at = [], 0
        while at < len(packed):
            key, at = bytes_at(packed, at)
            (amount,) = _AMOUNT.unpack_from(packed, at)
            error, at = error_at(packed, at + _AMOUNT.size)
            taken.append(Refused(key, amount, error))
        return taken

    def _free(self) -> None:
        """Free the id in the native library, without a flush: for one that could not be opened."""
        self._finalizer()

    @property
    def trouble(self) -> TallylockError | None:
        """Why the last flush, in the background or not, left something waiting; None if it did not."""
        with translating():
            packed = _ffi.meter_trouble(self._meter_id)
        return error_at(packed, 0)[0] if packed else None


class Meter(MeterState):
    """Sums adds in memory and brings the sums to the server now and then, each once.

    A context manager: closed at the exit. Threads may share one. It belongs to the process that made it: in a child
    made by `fork` its verbs raise ClosedError.
    """

    __slots__ = ("_client_id", "_session")

    def __init__(self, session: Session, settings: object) -> None:
        """Make a meter; `client.meter` does this."""
        super().__init__()
        self._session = session
        self._client_id = session.client_id
        try:
            with translating():
                awaited(self._client_id, _ffi.submit_meter_open, self._meter_id, settings)
        except BaseException:
            self._free()
            raise

    def flush(self) -> Flushed:
        """Bring all that was added until now to the server, and return how much that was.

        If the wait is interrupted, by Ctrl-C say, the flush goes on in the background.

        Raises:
            TallylockError: with the code of the reason, if something still waits; the next flush sends it again, and
                nothing is counted twice.
            ClosedError: if the meter or its client is closed, or in a child made by `fork`.

        """
        with translating():
            flushed = awaited(self._client_id, _ffi.submit_meter_flush, self._meter_id)
        return unpack_flushed(flushed)

    def close(self) -> Flushed:
        """Let nothing more in, and flush once; again is harmless.

        Returns:
            What the flush has come to. With a journal, what still waits stays there for the next meter.

        Raises:
            TallylockError: without a journal, with the code of the reason, if something is not on the server; closing
                again flushes again.

        """
        try:
            with translating():
                flushed = awaited(self._client_id, _ffi.submit_meter_close, self._meter_id)
        except ClosedError:
            return closed_without_client(self._meter_id)
        return unpack_flushed(flushed)

    def __enter__(self) -> "Meter":
        """Return the meter."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the meter, also after an error of the block, which is never hidden by one of the closing."""
        try:
            self.close()
        except TallylockError as unflushed:
            if error is None:
                raise
            note_unflushed(error, unflushed)


def meter_settings(  # noqa: PLR0913 - what a meter can be told
    *,
    ttl: timedelta,
    expiry: Literal["sliding", "fixed"],
    interval: timedelta | None,
    max_units: int | None,
    max_counters: int | None,
    remember: timedelta | None,
    journal: str | os.PathLike[str] | None,
) -> object:
    """Return what a meter is made with, as the native library takes it."""
    return _ffi.MeterSettings(
        ttl_us=microseconds(ttl),
        fixed=is_fixed(None, expiry),
        interval_us=optional_microseconds(interval),
        max_units=_bounded(max_units),
        max_counters=_bounded(max_counters),
        remember_us=optional_microseconds(remember),
        journal=None if journal is None else os.fsencode(journal),
    )


def unpack_flushed(packed: object) -> Flushed:
    """Return what a flush has come to."""
    return Flushed(*_FLUSHED.unpack(cast("bytes", packed)))


def closed_without_client(meter_id: int) -> Flushed:
    """Close a meter whose client is closed, so that nothing can be sent: the error says how much is lost."""
    with translating():
        return unpack_flushed(_ffi.meter_close(meter_id))


def note_unflushed(error: BaseException, unflushed: TallylockError) -> None:
    """Tell with an error of a block that the meter could not be flushed after it."""
    if sys.version_info >= (3, 11):
        error.add_note(f"the meter was not flushed: {unflushed}")


def _bounded(number: int | None) -> int | None:
    # More than 64 bits are out of bounds, or no bound, all the same.
    return None if number is None else min(max(index(number), LEAST), MOST)
