"""The pattern of examples/python/claims.py: its biller is killed at each of its steps, and the invoices balance."""

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

import tallylock
from examples import example
from mortal import Executioner, KilledError, Mortal

SESSION = "42"
KEY = "session:42:billableSecondsPending"


claims = example("claims")


def killed_at(place: int, pending: tallylock.Counter, file: Path) -> bool:
    """Bill, and kill at this place; return whether there was so much to do."""
    executioner, database = Executioner(place), sqlite3.connect(file)
    try:
        claims.bill(Mortal(pending, executioner), SESSION, claims.Invoices(Mortal(database, executioner)))
    except KilledError:
        return True
    finally:
        # What was not committed is gone, as with the process.
        database.close()
    return False


@pytest.mark.parametrize("pause", [timedelta(), timedelta(hours=25)], ids=["at once", "a day later"])
@pytest.mark.parametrize("adds_meanwhile", [True, False], ids=["adds meanwhile", "nothing new"])
def test_a_biller_that_is_killed_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, pause: timedelta, *, adds_meanwhile: bool
) -> None:
    place = 0
    while True:
        client = tallylock.connect("memory://")
        assert client.memory is not None
        pending = client.counter(KEY, ttl=timedelta(days=30))
        pending.add(30)
        file = tmp_path / f"{place}.db"
        was_killed = killed_at(place, pending, file)
        added = 30
        if adds_meanwhile:
            pending.add(5)
            added += 5
        client.memory.advance(pause)
        database = sqlite3.connect(file)
        invoices = claims.Invoices(database)
        # The first time ends what was left, the second takes what came meanwhile.
        claims.bill(pending, SESSION, invoices)
        claims.bill(pending, SESSION, invoices)
        assert (invoices.total(SESSION), pending.read()) == (added, 0), f"killed at {place}"
        assert pending.claims() == []
        database.close()
        if not was_killed:
            break
        place += 1
    # Both sides of each statement and of each verb.
    assert place > 20


def test_a_claim_that_was_aborted_by_hand_is_billed_with_the_next(tmp_path: Path) -> None:
    client = tallylock.connect("memory://")
    pending = client.counter(KEY, ttl=timedelta(minutes=15))
    pending.add(30)
    database = sqlite3.connect(tmp_path / "invoices.db")
    invoices = claims.Invoices(database)
    claim_id = invoices.begin(SESSION)
    pending.claim(claim_id)
    pending.abort(claim_id)
    assert claims.bill(pending, SESSION, invoices) is None
    assert claims.bill(pending, SESSION, invoices) == 30
    assert invoices.total(SESSION) == 30
    database.close()


def test_nothing_to_bill_keeps_the_claim_for_the_next_time(tmp_path: Path) -> None:
    client = tallylock.connect("memory://")
    pending = client.counter(KEY, ttl=timedelta(minutes=15))
    database = sqlite3.connect(tmp_path / "invoices.db")
    invoices = claims.Invoices(database)
    assert claims.bill(pending, SESSION, invoices) is None
    pending.add(30)
    # A copy of that claim comes only now.
    pending.claim(invoices.begin(SESSION))
    assert claims.bill(pending, SESSION, invoices) == 30
    assert (invoices.total(SESSION), pending.read()) == (30, 0)
    database.close()


def test_two_billers_at_once_bill_once(tmp_path: Path) -> None:
    client = tallylock.connect("memory://")
    pending = client.counter(KEY, ttl=timedelta(minutes=15))
    pending.add(30)
    databases = [sqlite3.connect(tmp_path / "invoices.db") for _ in range(2)]
    first, second = (claims.Invoices(database) for database in databases)

    class Overtaken:
        """A counter whose claim lets another biller bill first."""

        def claim(self, claim_id: str) -> tallylock.Claim | None:
            claims.bill(pending, SESSION, second)
            return pending.claim(claim_id)

        commit = staticmethod(pending.commit)

    assert claims.bill(Overtaken(), SESSION, first) == 30
    assert (first.total(SESSION), pending.read()) == (30, 0)
    assert claims.bill(pending, SESSION, second) is None
    for database in databases:
        database.close()
