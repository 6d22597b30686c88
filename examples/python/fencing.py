"""The fence check in SQL: one UPDATE lets the holder of a lock go on, and refuses one who was overtaken.

usage: fencing.py [URL]     memory:// if no URL is given

It is made in the transaction of what it guards. Two transactions that make it at once wait for each other, since both
change the same row: whichever comes second sees the fence of the first.
"""

import sqlite3
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import tallylock

# For SQLite and PostgreSQL. A fence has 51 bits today: INTEGER would be too small where that means 32.
SCHEMA = """
CREATE TABLE IF NOT EXISTS fences (
    guarded TEXT PRIMARY KEY,
    fence BIGINT NOT NULL
)
"""


class FencedOff(Exception):
    """A later holder of the lock has already written here: this one comes too late."""


class Changed(Protocol):
    """How many rows a statement has changed."""

    @property
    def rowcount(self) -> int: ...


class Database(Protocol):
    """A connection of sqlite3 or psycopg."""

    def execute(self, statement: str, parameters: Sequence[object] = (), /) -> Changed: ...


class Fence:
    """The highest fence that was seen at something in a database that only holders of one lock write."""

    def __init__(self, database: Database, guarded: str, placeholder: str = "?") -> None:
        """Guard what is called `guarded`; a parameter is written `?` for sqlite3, `%s` for psycopg."""
        self._database = database
        self._guarded = guarded
        self._placeholder = placeholder

    def make(self) -> None:
        """Make table and row if need be; the caller commits."""
        self._execute(SCHEMA)
        self._execute(
            "INSERT INTO fences (guarded, fence) VALUES (?, 0) ON CONFLICT (guarded) DO NOTHING", self._guarded
        )

    def pass_through(self, fence: int) -> None:
        """Let the holder of this fence go on with the transaction; FencedOff if a higher one was here."""
        statement = "UPDATE fences SET fence = ? WHERE guarded = ? AND fence <= ?"
        if self._execute(statement, fence, self._guarded, fence).rowcount != 1:
            raise FencedOff(f"fence {fence} comes too late: a later holder has been at {self._guarded}")

    def _execute(self, statement: str, *parameters: object) -> Changed:
        return self._database.execute(statement.replace("?", self._placeholder), parameters)


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "memory://"
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE invoices (text TEXT NOT NULL)")
    guard = Fence(database, "invoices")
    guard.make()
    database.commit()
    with tallylock.connect(url) as client:
        # Two handles, as in two processes: one that holds its lock would be told so.
        ours, theirs = (client.lock("invoice:42", ttl=timedelta(seconds=30)) for _ in range(2))
        hanging = theirs.acquire()
        holder = ours.inspect()
        assert holder is not None
        ours.steal(holder.token, reason="it hangs")
        with ours.acquire() as lease, database:  # commits at its end
            guard.pass_through(lease.fence)
            database.execute("INSERT INTO invoices (text) VALUES (?)", (f"under the fence {lease.fence}",))
        try:
            with database:
                guard.pass_through(hanging.fence)
                database.execute("INSERT INTO invoices (text) VALUES (?)", ("written too late",))
        except FencedOff as refused:
            print(f"refused: {refused}")
    for (text,) in database.execute("SELECT text FROM invoices"):
        print(f"invoice: {text}")


if __name__ == "__main__":
    main()
