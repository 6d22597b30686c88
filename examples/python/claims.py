"""Billing in two steps: a biller may die at any point and be started again, and each second is on one invoice.

usage: claims.py [URL]     memory:// if no URL is given

The order is what does it: the claim's id is in the database before there is a claim, and the invoice is there before
the claim is committed. Two billers of one session at once do each other no harm.
"""

import sqlite3
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

import tallylock

# For SQLite and PostgreSQL.
SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS billing_runs (
        session TEXT PRIMARY KEY,
        claim TEXT NOT NULL UNIQUE
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS claimed_invoices (
        claim TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        seconds BIGINT NOT NULL
    )
    """,
)


class Rows(Protocol):
    """What a statement has found."""

    def fetchone(self) -> tuple[Any, ...] | None: ...


class Database(Protocol):
    """A connection of sqlite3 or psycopg."""

    def execute(self, statement: str, parameters: Sequence[object] = (), /) -> Rows: ...
    def commit(self) -> None: ...


class Invoices:
    """The invoices, and the run that each session's billing is in."""

    def __init__(self, database: Database, placeholder: str = "?") -> None:
        """Make the tables if need be; a parameter is written `?` for sqlite3, `%s` for psycopg."""
        self._database = database
        self._placeholder = placeholder
        for table in SCHEMA:
            self._execute(table)
        self._database.commit()

    def begin(self, session: str) -> str:
        """Return the claim id of the run that this session is in, of a new one if it is in none."""
        found = None
        # Another biller may end the run just before it is read.
        while found is None:
            self._execute(
                "INSERT INTO billing_runs (session, claim) VALUES (?, ?) ON CONFLICT (session) DO NOTHING",
                session,
                str(uuid.uuid4()),
            )
            found = self._execute("SELECT claim FROM billing_runs WHERE session = ?", session).fetchone()
            self._database.commit()
        return str(found[0])

    def seconds(self, claim_id: str) -> int | None:
        """Return what is invoiced for a claim, or None if there is no invoice."""
        found = self._execute("SELECT seconds FROM claimed_invoices WHERE claim = ?", claim_id).fetchone()
        return None if found is None else int(found[0])

    def write(self, claim_id: str, session: str, seconds: int) -> None:
        """Write the invoice for a claim, unless it is written."""
        self._execute(
            "INSERT INTO claimed_invoices (claim, session, seconds) VALUES (?, ?, ?) ON CONFLICT (claim) DO NOTHING",
            claim_id,
            session,
            seconds,
        )
        self._database.commit()

    def end(self, claim_id: str) -> None:
        """End a run: the session's next one has another claim."""
        self._execute("DELETE FROM billing_runs WHERE claim = ?", claim_id)
        self._database.commit()

    def total(self, session: str) -> int:
        """Return all seconds that were invoiced for a session."""
        found = self._execute("SELECT SUM(seconds) FROM claimed_invoices WHERE session = ?", session).fetchone()
        return 0 if found is None or found[0] is None else int(found[0])

    def _execute(self, statement: str, *parameters: object) -> Rows:
        return self._database.execute(statement.replace("?", self._placeholder), parameters)


def bill(pending: tallylock.Counter, session: str, invoices: Invoices) -> int | None:
    """Bill what is pending, or end the run in which an earlier biller died; return the seconds, None for nothing."""
    claim_id = invoices.begin(session)
    invoiced = invoices.seconds(claim_id)
    if invoiced is not None:
        # The biller died after the invoice. A claim that was committed over a day ago is forgotten: that is a conflict.
        with suppress(tallylock.ConflictError):
            pending.commit(claim_id, invoiced)
        invoices.end(claim_id)
        return invoiced
    claim = pending.claim(claim_id)
    if claim is None:
        # The id stays for the next time: a copy of this claim that comes late is then found again.
        return None
    if claim.state == "aborted":
        # By somebody's hand: the seconds are pending again.
        invoices.end(claim_id)
        return None
    invoices.write(claim_id, session, claim.amount)
    pending.commit(claim_id, claim.amount)
    invoices.end(claim_id)
    return claim.amount


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "memory://"
    with tallylock.connect(url) as client:
        pending = client.counter("session:42:billableSecondsPending", ttl=timedelta(minutes=15))
        pending.add(30, idempotency_key="evt-1")
        pending.add(30, idempotency_key="evt-1")  # sent again by a service that saw no reply: counts once
        invoices = Invoices(sqlite3.connect(":memory:"))
        print(f"invoice: {bill(pending, '42', invoices)} seconds")


if __name__ == "__main__":
    main()
