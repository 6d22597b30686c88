"""The demo's sweeping job bills what nobody ends, once, also when it is killed in between."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tallylock
from examples import example
from mortal import KilledError

sweeping_job, ledger, sessions = map(example, ("sweeping_job", "ledger", "sessions"))

GUESTS = {"G1": 60, "G2": 120, "G3": 180}


@pytest.fixture
def client() -> Iterator[tallylock.Client]:
    """Return a client with guests, and a session of the billing jobs."""
    with tallylock.connect("memory://") as client:
        for guest, seconds in GUESTS.items():
            guest_counter(client, guest).add(seconds)
        client.counter(sessions.counter_key("N1"), ttl=timedelta(minutes=15)).add(7)
        yield client


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection to a database of its own."""
    with closing(sqlite3.connect(tmp_path / "invoices.db", isolation_level=None)) as database:
        yield database


@pytest.fixture
def books(database: sqlite3.Connection, tmp_path: Path) -> Any:
    """Return the ledger in it."""
    books = ledger.Ledger(database, tmp_path / "finished.csv")
    books.make_tables()
    return books


def guest_counter(client: tallylock.Client, guest: str) -> tallylock.Counter:
    return client.counter(sessions.GUESTS.replace("*", guest), ttl=sweeping_job.GUEST_TTL)


def swept(database: sqlite3.Connection) -> dict[str, int]:
    return dict(database.execute("SELECT session, sum(seconds) FROM invoices WHERE origin = 'swept' GROUP BY session"))


def test_guests_are_billed_and_sessions_left_to_the_jobs(
    client: tallylock.Client, books: Any, database: sqlite3.Connection
) -> None:
    sweeping_job.SweepingJob(client, books).bill_to_end()
    assert swept(database) == GUESTS
    assert sessions.sessions_to_bill(client) == ["N1"]


@pytest.mark.parametrize("is_invoiced", [True, False], ids=["after the invoice", "before it"])
@pytest.mark.parametrize("kill_at", range(len(GUESTS)))
def test_a_sweeper_that_is_killed_with_a_claim_in_its_hand_bills_it_once(
    client: tallylock.Client, books: Any, database: sqlite3.Connection, kill_at: int, *, is_invoiced: bool
) -> None:
    class Mortal(sweeping_job.SweepingJob):  # type: ignore[misc, name-defined]
        """A job that dies with its claim number `kill_at`."""

        left = kill_at

        def bill(self, key: bytes, claim_id: str, seconds: int) -> None:
            self.left -= 1
            if self.left < 0 and not is_invoiced:
                raise KilledError
            super().bill(key, claim_id, seconds)
            if self.left < 0:
                raise KilledError

    with pytest.raises(KilledError):
        Mortal(client, books).bill_to_end()
    later = guest_counter(client, "G1")
    later.add(5)
    sweeping_job.SweepingJob(client, books).bill_to_end()
    assert swept(database) == {**GUESTS, "G1": 65}
    assert all(guest_counter(client, guest).claims() == [] for guest in GUESTS)


def test_what_no_further_pass_would_mend_ends_the_job(client: tallylock.Client, books: Any) -> None:
    client.value(sessions.GUESTS.replace("*", "G4"))
    assert client.memory is not None
    client.memory.put(sessions.GUESTS.replace("*", "G4"), "no number", timedelta(minutes=1))
    with pytest.raises(tallylock.NotAnIntegerError):
        sweeping_job.SweepingJob(client, books).bill_to_end()
