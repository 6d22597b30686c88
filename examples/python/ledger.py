"""The invoices, in SQLite: each batch is one transaction, and a batch from an older grant than the last is refused."""

import csv
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

SCHEMA = """
BEGIN IMMEDIATE;
-- One row for each time a job held the lock, in the order of writing.
CREATE TABLE IF NOT EXISTS grants (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    fence INTEGER NOT NULL UNIQUE,
    job TEXT NOT NULL,
    while_adding INTEGER NOT NULL,
    healed INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS invoices (
    session TEXT NOT NULL,
    seconds INTEGER NOT NULL CHECK (seconds > 0),
    origin TEXT NOT NULL CHECK (origin IN ('drained', 'finished')),
    fence INTEGER NOT NULL REFERENCES grants (fence)
);
-- How many bytes of a file of ended sessions are invoiced already.
CREATE TABLE IF NOT EXISTS consumed (
    file TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
);
COMMIT;
"""


class FencedOff(Exception):
    """A later holder of the lock has already written here: this batch comes too late."""


@dataclass(frozen=True)
class Batch:
    """What one job drained while it held the lock once, and how many counters it found without a TTL."""

    job: str
    fence: int
    while_adding: bool
    healed: int
    drained: Mapping[str, int]


class Ledger:
    """The invoices of one demo, shared by all billing jobs."""

    def __init__(self, database: Path, finished: Path) -> None:
        """Open the invoices in `database`; sessions that were ended are found in the file `finished`."""
        self._finished = finished
        self._connection = sqlite3.connect(database, timeout=10, isolation_level=None)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.executescript(SCHEMA)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def write(self, batch: Batch) -> int:
        """Invoice a batch, and the sessions ended since the last one; return the seconds invoiced.

        All of it is written or nothing: FencedOff, sqlite3.Error or ValueError (a line that is no ended session) mean
        that the ledger is as before.
        """
        with self._transaction():
            self._refuse_if_late(batch.fence)
            self._connection.execute(
                "INSERT INTO grants (fence, job, while_adding, healed) VALUES (?, ?, ?, ?)",
                (batch.fence, batch.job, batch.while_adding, batch.healed),
            )
            ended = self._consume_finished()
            self._invoice(batch.drained.items(), "drained", batch.fence)
            self._invoice(ended, "finished", batch.fence)
        return sum(batch.drained.values()) + sum(seconds for _, seconds in ended)

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

    def _refuse_if_late(self, fence: int) -> None:
        (newest,) = self._connection.execute("SELECT coalesce(max(fence), 0) FROM grants").fetchone()
        if fence <= newest:
            raise FencedOff(f"fence {fence} is not above {newest}, the last that wrote to the ledger")

    def _consume_finished(self) -> list[tuple[str, int]]:
        """Return the ended sessions that no invoice has yet, and note them as consumed in the same transaction.

        The file only grows. A line without its newline is still being written, and is left for the next batch.
        """
        if not self._finished.exists():
            return []
        row = self._connection.execute("SELECT bytes FROM consumed WHERE file = ?", (self._finished.name,)).fetchone()
        start = row[0] if row else 0
        with self._finished.open("rb") as file:
            file.seek(start)
            fresh = file.read()
        complete = fresh[: fresh.rfind(b"\n") + 1]
        self._connection.execute(
            "INSERT INTO consumed (file, bytes) VALUES (?, ?) ON CONFLICT (file) DO UPDATE SET bytes = excluded.bytes",
            (self._finished.name, start + len(complete)),
        )
        return [(session, int(seconds)) for session, seconds in csv.reader(complete.decode().splitlines())]

    def _invoice(self, amounts: Iterable[tuple[str, int]], origin: str, fence: int) -> None:
        self._connection.executemany(
            "INSERT INTO invoices (session, seconds, origin, fence) VALUES (?, ?, ?, ?)",
            [(session, seconds, origin, fence) for session, seconds in amounts],
        )
