"""The file of sessions that were ended: each of its lines is read into one transaction, and into no second one."""

import csv
import sqlite3
from pathlib import Path
from typing import ClassVar


class FinishedSessions:
    """What the services append to a file when they end a session: the session, and the seconds that were left."""

    SCHEMA: ClassVar[str] = """
    CREATE TABLE IF NOT EXISTS consumed (
        file TEXT PRIMARY KEY,
        bytes INTEGER NOT NULL
    )
    """

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        """Read `file`, and note in the database of `connection` how far."""
        self._connection = connection
        self._file = file

    def consume(self) -> list[tuple[str, int]]:
        """Return the sessions that no invoice has yet, and note them as consumed in the caller's transaction.

        The file only grows. A line without its newline is still being written, and is left for the next time.
        """
        if not self._file.exists():
            return []
        row = self._connection.execute("SELECT bytes FROM consumed WHERE file = ?", (self._file.name,)).fetchone()
        start = row[0] if row else 0
        with self._file.open("rb") as file:
            file.seek(start)
            fresh = file.read()
        complete = fresh[: fresh.rfind(b"\n") + 1]
        self._connection.execute(
            "INSERT INTO consumed (file, bytes) VALUES (?, ?) ON CONFLICT (file) DO UPDATE SET bytes = excluded.bytes",
            (self._file.name, start + len(complete)),
        )
        return [(session, int(seconds)) for session, seconds in csv.reader(complete.decode().splitlines())]
