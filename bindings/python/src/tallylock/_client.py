"""The blocking client."""

import os
from collections.abc import Iterable
from datetime import timedelta
from types import TracebackType
from typing import Literal

from tallylock._arguments import Binary
from tallylock._batch import Entry, packed_entries, unpack_results
from tallylock._counter import Counter
from tallylock._ffi import client_add_many
from tallylock._guarded import Guarded
from tallylock._lock import Lock
from tallylock._memory import Memory
from tallylock._meter import Meter, meter_settings
from tallylock._metrics import Metrics
from tallylock._once import Added
from tallylock._scan import Scan
from tallylock._session import Session, connected
from tallylock._sweep import SweepPlan
from tallylock._sweeper import Sweeper
from tallylock._value import Value
from tallylock.errors import TallylockError, translating


def connect(
    url: str,
    *,
    timeout: timedelta | None = None,
    owner: str | Literal[False] | None = None,
    avoid_scripts: bool = False,
) -> "Client":
    """Connect to a Redis or Valkey server.

    Args:
        url: `redis://`, `valkey://`, `rediss://` or `valkeys://` with `user:password@host:port/database`,
            `unix:///path`, or `memory://` for a server in this process.
        timeout: how long one call may take, repeats included; the default that all languages share if not given.
        owner: what people see in the value of this client's locks: host and process id if not given, this text (1 to
            64 visible ASCII characters), or nothing at all with False.
        avoid_scripts: go by WATCH, MULTI and EXEC from the first call on. A client finds out by itself that a server or
            an account forbids scripts, from its first refusal; this is for where such a refusal is logged as an attack.

    Returns:
        The client. It may be shared by threads, and used in children made by `fork`.

    Raises:
        InvalidArgumentError: if an argument is wrong; nothing was sent.
        UnavailableError: if the server can't be reached, or is silent until the time-out.
        ForbiddenError: if it wants another user or password.

    """
    return Client(connected(url, timeout, owner, avoid_scripts=avoid_scripts))


class Client:
    """A connection to a server, or several where threads use it at once. A context manager: closed at the exit."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        """Make a client; `connect` does this."""
        self._session = session

    def counter(
        self,
        key: str | Binary,
        *,
        ttl: timedelta,
        expiry: Literal["sliding", "fixed"] = "sliding",
    ) -> Counter:
        """Return a handle on a counter; nothing is sent.

        Args:
            key: its key, used as given; text is sent in UTF-8.
            ttl: how long it lives after an add: 1 ms to 10 years, rounded up to whole milliseconds.
            expiry: `sliding`, each add sets the TTL; or `fixed`, an add sets it only where there is none.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        return Counter(self._session, key, ttl, expiry)

    def value(self, key: str | Binary) -> Value:
        """Return a handle on a value; nothing is sent. InvalidArgumentError if it can't be a key."""
        return Value(self._session, key)

    def guarded(self, key: str | Binary) -> Guarded:
        """Return a handle on a value that only holders of a lock write; nothing is sent.

        InvalidArgumentError if it can't be a key.
        """
        return Guarded(self._session, key)

    def lock(
        self,
        key: str | Binary,
        *,
        ttl: timedelta,
        renewal: timedelta | Literal[False] | None = None,
        max_hold: timedelta | None = None,
    ) -> Lock:
        """Return a handle on a lock; nothing is sent.

        Args:
            key: its key, used as given; text is sent in UTF-8.
            ttl: how long a lease lasts that isn't renewed: 3 ms to 10 years, rounded up to whole milliseconds.
            renewal: after how long it is renewed while held: a third of `ttl` if not given, at most half of it; or
                not at all with False.
            max_hold: it isn't renewed once it was held for so long, so that a holder that hangs loses it.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        return Lock(self._session, key, ttl, renewal, max_hold)

    def meter(  # noqa: PLR0913 - named ones, all but one with a default
        self,
        *,
        ttl: timedelta,
        expiry: Literal["sliding", "fixed"] = "sliding",
        interval: timedelta | None = None,
        max_units: int | None = None,
        max_counters: int | None = None,
        remember: timedelta | None = None,
        journal: str | os.PathLike[str] | None = None,
    ) -> Meter:
        """Make a meter, which sums adds in memory and brings the sums to the server now and then.

        What is not given is the default that all languages share.

        Args:
            ttl: how long a counter lives after a flush: 1 ms to 10 years.
            expiry: `sliding`, each flush sets the TTL; or `fixed`, a flush sets it only where there is none.
            interval: how often is flushed.
            max_units: how many units, by their absolute values, are flushed at once.
            max_counters: how many sums are held at most, those included that wait for the server or were refused.
            remember: how long the server remembers what was flushed.
            journal: a directory, made if it is not there, in which each add is written before it returns; a meter
                made with the same one later counts what this one did not come to.

        Raises:
            InvalidArgumentError: if one of them is wrong, `remember` is too short for the client's time-out, or a file
                of the journal is damaged.
            BusyError: if another meter uses the journal.
            UnavailableError: if the server or the journal's directory can't be reached.
            UnsupportedError: if the journal was written by a later version.

        """
        settings = meter_settings(
            ttl=ttl,
            expiry=expiry,
            interval=interval,
            max_units=max_units,
            max_counters=max_counters,
            remember=remember,
            journal=journal,
        )
        return Meter(self._session, settings)

    def add_many(self, entries: Iterable[Entry]) -> list[Added | TallylockError]:
        """Add many amounts in one round trip, each atomic by itself.

        Args:
            entries: up to 10,000, made by `entry` of this client's counters.

        Returns:
            For each entry, in their order, `Added` or, not raised, the error: a bad entry neither stops nor hides the
            others. OutcomeUnknownError stands where the reply to a plain add was lost; those with an idempotency key
            are repeated.

        Raises:
            InvalidArgumentError: if there are more, or one is of another client or malformed; nothing was sent.
            ClosedError: if the client is closed.

        """
        packed, count = packed_entries(entries, self._session.client_id)
        with translating():
            return unpack_results(client_add_many(self._session.client_id, packed), count)

    def scan(self, pattern: str | Binary, *, cursor: str | None = None) -> Scan:
        """Return the counters whose keys match a pattern, streamed a page at a time.

        Args:
            pattern: as of SCAN: `*`, `?`, `[a-z]`; text is sent in UTF-8.
            cursor: the `cursor` of an earlier scan with this pattern, to go on there.

        Raises:
            InvalidArgumentError, while it is read: if the cursor is none. ForbiddenError: if the account may not SCAN.
                And what any call that reads may.

        """
        return Scan(self._session, pattern, cursor)

    def expiring(self, pattern: str | Binary, *, within: timedelta, cursor: str | None = None) -> Scan:
        """Return, as `scan` does, only the counters that hold something and end soon or have lost their TTL.

        Args:
            pattern: as of SCAN: `*`, `?`, `[a-z]`; text is sent in UTF-8.
            within: how soon; not negative, else InvalidArgumentError.
            cursor: the `cursor` of an earlier look with this pattern, to go on there.

        """
        return Scan(self._session, pattern, cursor, within)

    def sweeper(  # noqa: PLR0913 - each has a name where it is given
        self,
        pattern: str | Binary,
        *,
        ttl: timedelta,
        lock: str | Binary,
        lock_ttl: timedelta,
        within: timedelta | None = None,
        at_least: int | None = None,
        wait: timedelta | None = None,
    ) -> Sweeper:
        """Return a sweeper, which bills counters before they end or once they hold much; nothing is sent.

        Args:
            pattern: of the counters' keys, as of SCAN: `*`, `?`, `[a-z]`. It should match counters and nothing else.
            ttl: for a counter that has lost its TTL, or is gone when a claim on it is refused: 1 ms to 10 years.
            lock: the key of the lock that lets one sweeper work at a time; text, of at most 473 bytes in UTF-8. It is a
                part of the claims' ids, so another lock doesn't find what was left open under this one. Billers that
                drain or claim these counters with a fence use this lock too.
            lock_ttl: how long the lock lasts without being extended, which is done between two claims: longer than the
                callback takes for one.
            within: bills those that hold something and end within this time or have lost their TTL.
            at_least: bills those that hold at least so much, 1 or more. One of the two is given, or both.
            wait: how long to wait for the lock while another sweeper is at work; not at all if not given.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        plan = SweepPlan(pattern, ttl=ttl, lock=lock, lock_ttl=lock_ttl, within=within, at_least=at_least, wait=wait)
        return Sweeper(self._session, plan)

    @property
    def healed(self) -> int:
        """How many counters had lost their TTL and were given it back by a drain of this client."""
        return self._session.healed()

    @property
    def stolen(self) -> int:
        """How many locks this client has stolen."""
        return self._session.stolen()

    def metrics(self) -> Metrics:
        """Return what was counted of this client's locks and counters in this process; nothing is sent.

        Raises:
            ClosedError: if the client is closed.

        """
        return self._session.metrics()

    @property
    def memory(self) -> Memory | None:
        """The test face of a client of `memory://`; None for any other."""
        return self._session.memory()

    def close(self) -> None:
        """Close the client, touching no data.

        Every later call raises ClosedError, and so does an acquire that another thread waits for, which leaves no lock
        behind. Other calls of other threads run to their end.
        """
        self._session.close()

    def __enter__(self) -> "Client":
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()
