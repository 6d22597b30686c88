"""A sweeping process is killed (SIGKILL) at each of its steps, and started again: the invoices balance."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import tallylock
from servers import Server

AMOUNTS = (30, 5)
TTL = timedelta(minutes=15)
PROCESS = """
import asyncio, os, signal, sqlite3, sys
from datetime import timedelta
import tallylock, tallylock.aio
from tallylock.aio import _calls

url, file, left, face = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
database = sqlite3.connect(file)

def step():
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

def bill(key, claim_id, amount):
    step()
    database.execute("INSERT INTO invoices VALUES (?, ?) ON CONFLICT (claim) DO NOTHING", (claim_id, amount))
    step()
    database.commit()
    step()

OPTIONS = dict(ttl=timedelta(minutes=15), within=timedelta(hours=1), lock="sweeper", lock_ttl=timedelta(minutes=1))
PATTERN = "session:*:pending"

def blocking():
    # Its every request to the server is a step: before it, and after it.
    from tallylock import _sweeper
    awaited = _sweeper.awaited
    def stepping(*arguments):
        step()
        outcome = awaited(*arguments)
        step()
        return outcome
    _sweeper.awaited = stepping
    return tallylock.connect(url).sweeper(PATTERN, **OPTIONS).sweep(bill)

async def asyncio_():
    client = await tallylock.aio.connect(url)
    sweeper, call = client.sweeper(PATTERN, **OPTIONS), _calls.Calls.call
    async def stepping(*arguments):
        step()
        outcome = await call(*arguments)
        step()
        return outcome
    _calls.Calls.call = stepping
    return await sweeper.sweep(bill)

report = blocking() if face == "blocking" else asyncio.run(asyncio_())
assert report.is_clean, report
"""


@contextlib.contextmanager
def invoices(file: Path) -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE IF NOT EXISTS invoices (claim TEXT PRIMARY KEY, units BIGINT NOT NULL)")
    database.commit()
    yield database
    database.close()


def again(client: tallylock.Client, database: sqlite3.Connection) -> tallylock.SweepReport:
    """Sweep in this process."""

    def bill(_key: bytes, claim_id: str, amount: int) -> None:
        database.execute("INSERT INTO invoices VALUES (?, ?) ON CONFLICT (claim) DO NOTHING", (claim_id, amount))
        database.commit()

    within, lock_ttl = timedelta(hours=1), timedelta(minutes=1)
    return client.sweeper("session:*:pending", ttl=TTL, within=within, lock="sweeper", lock_ttl=lock_ttl).sweep(bill)


def swept(server: Server, file: Path, face: str, left: int) -> int:
    """Sweep in a process that dies after so many steps; return how it ended."""
    process = subprocess.run(  # noqa: S603 - this very Python
        [sys.executable, "-c", PROCESS, server.url, file, str(left), face], capture_output=True, text=True, check=False
    )
    assert process.returncode in (0, -9), process.stderr
    return process.returncode


@pytest.mark.parametrize(
    ("face", "adds_meanwhile"),
    [("blocking", True), ("asyncio", False)],
    ids=["blocking, adds meanwhile", "asyncio, expires meanwhile"],
)
def test_a_sweeper_that_is_killed_at_any_step_loses_and_doubles_nothing(
    server: Server, tmp_path: Path, face: str, *, adds_meanwhile: bool
) -> None:
    place, was_killed = 0, True
    while was_killed:
        server.plain.flushdb()
        file = tmp_path / f"{place}.db"
        with tallylock.connect(server.url) as client, invoices(file) as database:
            counters = [client.counter(f"session:{session}:pending", ttl=TTL) for session in range(len(AMOUNTS))]
            for counter, amount in zip(counters, AMOUNTS, strict=True):
                counter.add(amount)
            added = sum(AMOUNTS)
            was_killed = swept(server, file, face, place) != 0
            # The lock of the dead ends with its TTL.
            server.plain.delete("sweeper")
            for session, counter in enumerate(counters):
                if adds_meanwhile:
                    counter.add(5)
                    added += 5
                elif counter.read() == 0:
                    server.plain.delete(f"session:{session}:pending")
            assert again(client, database).is_clean
            (billed,) = database.execute("SELECT sum(units) FROM invoices").fetchone()
            assert billed == added, f"killed at {place}"
            assert not any(counter.read() for counter in counters)
            assert not any(counter.claims() for counter in counters)
            assert all(server.plain.pttl(key) > 0 for key in server.plain.keys())
        place += 1
    # Before and after the lock, each claim, each commit, the look's end and the release; three times in each callback.
    assert place == 2 + 2 * (2 + 3 + 2) + 2 + 2 + 1
