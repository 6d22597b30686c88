"""The invoices, in SQLite: a claim's id is in here before there is a claim, its invoice before the claim is committed.

Each step is one transaction, and is refused to a holder of the lock who was overtaken.
"""

import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fencing import Fence
from finished import FinishedSessions

SCHEMA = (
    # One row for each time a job held the lock, in the order of writing.
    """
    CREATE TABLE IF NOT EXISTS grants (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        fence INTEGER NOT NULL UNIQUE,
        job TEXT NOT NULL,
        while_adding INTEGER NOT NULL,
        resumed INTEGER NOT NULL,
        healed INTEGER NOT NULL DEFAULT 0
    )
    """,
    # The claim that a session's next invoice is for. Who finds it unfinished can't know how far another came with it.
    """
    CREATE TABLE IF NOT EXISTS runs (
        session TEXT PRIMARY KEY,
        claim TEXT NOT NULL UNIQUE,
        unfinished INTEGER NOT NULL
    )
    """,
    # A session that was ended has no claim. One that was swept has the sweeper's, and no grant of the jobs' lock.
    """
    CREATE TABLE IF NOT EXISTS invoices (
        claim TEXT UNIQUE,
        session TEXT NOT NULL,
        seconds INTEGER NOT NULL CHECK (seconds > 0),
        origin TEXT NOT NULL CHECK (origin IN ('claimed', 'finished', 'swept')),
        fence INTEGER REFERENCES grants (fence)
    )
    """,
    # Holders who were too late, and who told them so.
    "CREATE TABLE IF NOT EXISTS overtaken (job TEXT NOT NULL, told_by TEXT NOT NULL)",
)


@dataclass(frozen=True)
class Grant:
    """What one job does while it holds the lock once."""

    job: str
    fence: int
    while_adding: bool


@dataclass(frozen=True)
class Run:
    """The way of one session to its next invoice; `invoiced` are the seconds on it if it is written."""

    session: str
    claim: str
    invoiced: int | None


class Ledger:
    """The invoices of one demo, shared by all billing jobs.

    Each method does all that it says or nothing: FencedOff, sqlite3.Error or ValueError (a line that is no ended
    session) mean that the ledger is as before.
    """

    def __init__(self, connection: sqlite3.Connection, finished: Path) -> None:
        """Write the invoices over `connection`; sessions that were ended are found in the file `finished`."""
        self._connection = connection
        self._fence = Fence(connection, "invoices")
        self._finished = FinishedSessions(connection, finished)

    @classmethod
    @contextmanager
    def open(cls, database: Path, finished: Path) -> Iterator["Ledger"]:
        """Open the ledger in the file `database`, and make its tables if need be."""
        # No isolation level: transactions begin and end below, and nowhere else.
        connection = sqlite3.connect(database, timeout=10, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            ledger = cls(connection, finished)
            ledger.make_tables()
            yield ledger
        finally:
            connection.close()

    def make_tables(self) -> None:
        """Make the tables that are not there."""
        with self._transaction():
            for table in (*SCHEMA, FinishedSessions.SCHEMA):
                self._connection.execute(table)
            self._fence.make()

    def begin(self, grant: Grant, sessions: Iterable[str]) -> list[Run]:
        """Note the grant, and a claim's id for each session; return these runs and all that others left unfinished."""
        with self._transaction():
            self._fence.pass_through(grant.fence)
            (left,) = self._connection.execute("SELECT count(*) FROM runs WHERE unfinished").fetchone()
            self._connection.execute(
                "INSERT INTO grants (fence, job, while_adding, resumed) VALUES (?, ?, ?, ?)",
                (grant.fence, grant.job, grant.while_adding, left),
            )
            self._connection.executemany(
                """
                INSERT INTO runs (session, claim, unfinished) VALUES (?, ?, true)
                ON CONFLICT (session) DO UPDATE SET unfinished = true
                """,
                [(session, str(uuid.uuid4())) for session in sessions],
            )
            runs = self._connection.execute(
                """
                SELECT runs.session, claim, seconds FROM runs LEFT JOIN invoices USING (claim)
                WHERE unfinished ORDER BY runs.session
                """
            ).fetchall()
        return [Run(*run) for run in runs]

    def invoice(self, fence: int, claimed: Mapping[Run, int], healed: int) -> int:
        """Invoice what was claimed and the sessions ended since the last time; return the seconds invoiced.

        `healed` counters were found without a TTL.
        """
        with self._transaction():
            self._fence.pass_through(fence)
            ended = self._finished.consume()
            self._connection.executemany(
                "INSERT INTO invoices (claim, session, seconds, origin, fence) VALUES (?, ?, ?, 'claimed', ?)",
                [(run.claim, run.session, seconds, fence) for run, seconds in claimed.items()],
            )
            self._connection.executemany(
                "INSERT INTO invoices (session, seconds, origin, fence) VALUES (?, ?, 'finished', ?)",
                [(session, seconds, fence) for session, seconds in ended],
            )
            self._connection.execute("UPDATE grants SET healed = ? WHERE fence = ?", (healed, fence))
        return sum(claimed.values()) + sum(seconds for _, seconds in ended)

    def end(self, fence: int, committed: Iterable[Run], empty: Iterable[Run]) -> None:
        """End the runs whose claims are committed; those that found nothing keep their claim's id for the next time."""
        with self._transaction():
            self._fence.pass_through(fence)
            self._connection.executemany("DELETE FROM runs WHERE claim = ?", [(run.claim,) for run in committed])
            self._connection.executemany(
                "UPDATE runs SET unfinished = false WHERE claim = ?", [(run.claim,) for run in empty]
            )

    def invoice_swept(self, claim: str, session: str, seconds: int) -> None:
        """Invoice what a sweeper has claimed, unless that is done."""
        with self._transaction():
            self._connection.execute(
                """
                INSERT INTO invoices (claim, session, seconds, origin) VALUES (?, ?, ?, 'swept')
                ON CONFLICT (claim) DO NOTHING
                """,
                (claim, session, seconds),
            )

    def note_overtaken(self, job: str, told_by: str) -> None:
        """Note that a job went on after it had lost the lock, and who stopped it."""
        with self._transaction():
            self._connection.execute("INSERT INTO overtaken (job, told_by) VALUES (?, ?)", (job, told_by))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE takes SQLite's write lock before the first read: what is read stays true until the commit.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
