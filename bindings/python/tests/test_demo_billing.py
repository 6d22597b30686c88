"""The demo's billing job is killed, or overtaken, at each of its steps, and the invoices balance."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tallylock
from examples import example
from mortal import Executioner, Interrupter, KilledError, Mortal

billing_job, fencing, ledger = example("billing_job"), example("fencing"), example("ledger")
sessions = example("sessions")

TTL = timedelta(minutes=15)
PENDING = {"N1": 60, "N2": 120, "N3": 180}
ENDED = 30
# What comes after the kill.
LATER = {"N2": 5, "N4": 7}


class World:
    """A server, a ledger, a file of ended sessions, and jobs."""

    def __init__(self, folder: Path) -> None:
        self.client = tallylock.connect("memory://")
        assert self.client.memory is not None
        self.memory = self.client.memory
        self._database = folder / "invoices.db"
        self._finished = folder / "finished.csv"
        self._database.unlink(missing_ok=True)
        self._finished.write_text(f"N0,{ENDED}\nN0,1")  # the second line is being written
        self.added = ENDED

    def add(self, pending: dict[str, int]) -> None:
        for session, seconds in pending.items():
            self.client.counter(sessions.counter_key(session), ttl=TTL).add(seconds)
            self.added += seconds

    @contextmanager
    def job(self, name: str, executioner: Executioner | None = None) -> Iterator[Any]:
        client: Any = self.client
        # Whoever waits for another's transaction is told so at once: here they are one thread.
        with closing(sqlite3.connect(self._database, timeout=0, isolation_level=None)) as database:
            # No machine is killed here, only programs: what the system has is safe.
            database.execute("PRAGMA synchronous = OFF")
            books = ledger.Ledger(database, self._finished)
            books.make_tables()
            if executioner is not None:
                client = Mortal(client, executioner, "counter", "lock", "acquire")
                books = ledger.Ledger(Mortal(database, executioner), self._finished)
            yield billing_job.BillingJob(name, client, books, while_adding=True)

    def bill(self) -> None:
        with self.job("another job") as job:
            while job.bill_all(2, timedelta()):
                pass

    def check(self, place: str) -> None:
        with closing(sqlite3.connect(self._database)) as database:
            (billed,) = database.execute("SELECT sum(seconds) FROM invoices").fetchone()
            (left,) = database.execute("SELECT count(*) FROM runs WHERE unfinished").fetchone()
        assert (billed, left) == (self.added, 0), place
        for session in PENDING | LATER:
            counter = self.client.counter(sessions.counter_key(session), ttl=TTL)
            assert (counter.read() or 0, counter.claims()) == (0, []), place


def at_each_place(folder: Path, happen: Callable[[World, int], bool]) -> int:
    """Let it happen at each place, with what comes after; return how many there are."""
    place = 0
    while True:
        world = World(folder)
        world.add(PENDING)
        was_reached = happen(world, place)
        world.add(LATER)
        world.bill()
        world.check(f"place {place}")
        world.client.close()
        if not was_reached:
            return place
        place += 1


def test_a_job_that_is_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    def kill(world: World, place: int) -> bool:
        executioner = Executioner(place)
        with suppress(KilledError), world.job("job", executioner) as job:
            job.bill(list(PENDING))
        return executioner.was_reached

    # Both sides of each statement and of each verb.
    assert at_each_place(tmp_path, kill) > 60


@pytest.mark.parametrize("meanwhile", [{}, {"N1": 11}], ids=["nothing new", "adds meanwhile"])
def test_a_holder_that_is_overtaken_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, meanwhile: dict[str, int]
) -> None:
    told_by = set()

    def overtake(world: World, place: int) -> bool:
        def another_goes_on() -> None:
            world.memory.advance(billing_job.LOCK_TTL * 2)
            world.add(meanwhile)
            # The one that is held up in a transaction keeps others from theirs.
            with suppress(sqlite3.OperationalError):
                world.bill()

        interrupter = Interrupter(place, another_goes_on)
        with world.job("job", interrupter) as job:
            try:
                job.bill(list(PENDING))
            except (tallylock.LostError, tallylock.FencedOffError, fencing.FencedOff) as error:
                told_by.add(type(error))
        return interrupter.was_reached

    assert at_each_place(tmp_path, overtake) > 60
    # By its own clock, by the counters' guards, and by the ledger.
    assert told_by == {tallylock.LostError, tallylock.FencedOffError, fencing.FencedOff}


def test_a_job_tries_again_with_what_it_could_not_bill_when_it_was_overtaken(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add(PENDING)
    interrupter = Interrupter(30, lambda: world.memory.advance(billing_job.LOCK_TTL * 2))
    with world.job("job", interrupter) as job:
        job.bill_all(10, timedelta())
    world.check("in the first pass")


def test_a_wrong_line_of_an_ended_session_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add(PENDING)
    (tmp_path / "finished.csv").write_text("N0,30\nN0,many\n")
    with pytest.raises(ValueError, match="many"):
        world.bill()
    (tmp_path / "finished.csv").write_text("N0,30\n")
    world.bill()
    world.client.counter(sessions.counter_key("N4"), ttl=TTL).add(1)
    world.added += 1
    world.bill()
    world.check("after the line was mended")
