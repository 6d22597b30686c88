"""The demo's report calls a run right only if it is."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

import tallylock
from examples import EXAMPLES, example
from servers import Server

billing_job, ledger, sessions, plan = map(example, ("billing_job", "ledger", "sessions", "plan"))

TTL = timedelta(minutes=15)
KEY = sessions.counter_key("N1")
ENDED, CLAIMED = 30, 60
SWEPT = range(plan.SWEPT_ASKED)


@dataclass
class Run:
    """What a run has left."""

    server: Server
    database: Path
    chaos: dict[str, int]
    expected: int = ENDED + CLAIMED + len(SWEPT)

    def change(self, statement: str) -> None:
        with closing(sqlite3.connect(self.database)) as database, database:
            database.execute(statement)

    def report(self) -> tuple[int, list[str]]:
        chaos, refused = self.database.with_name("chaos.json"), self.database.with_name("refused.csv")
        chaos.write_text(json.dumps(self.chaos))
        refused.write_text("line,flight,reason\n7,UA 1,no air time\n")
        files = ("--ledger", self.database, "--chaos", chaos, refused)
        done = subprocess.run(  # noqa: S603 - a program of our own
            [
                sys.executable,
                EXAMPLES / "report.py",
                "--url",
                self.server.url,
                "--expected-seconds",
                str(self.expected),
                *files,
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()


@pytest.fixture
def run(server: Server, tmp_path: Path) -> Run:
    """Return a run that is right, and just so."""
    database, finished = tmp_path / "invoices.db", tmp_path / "finished.csv"
    finished.write_text(f"N0,{ENDED}\n")
    with tallylock.connect(server.url) as client, ledger.Ledger.open(database, finished) as books:
        client.counter(KEY, ttl=TTL).add(CLAIMED)
        for name in ("job-1", "job-2"):
            billing_job.BillingJob(name, client, books, while_adding=False).bill_all(10, timedelta())
        for number in SWEPT:
            books.invoice_swept(f"claim-{number}", f"G{number}", 1)
            books.invoice_swept(f"claim-{number}", f"G{number}", 1)
    chaos = {
        "seed": 1,
        "hold_ups": 0,
        "job_kills": plan.JOB_KILLS_ASKED,
        "adder_kills": plan.ADDER_KILLS_ASKED,
        "sweeper_kills": 0,
        "lost_replies": plan.LOST_REPLIES_ASKED,
    }
    return Run(server, database, chaos)


def test_what_is_right_is_called_right(run: Run) -> None:
    code, lines = run.report()
    assert lines[-1] == "billed 110 of 110 seconds; 0 keys without a TTL"
    assert code == 0


def expect_more(run: Run) -> None:
    run.expected += 1


def bill_a_second_more(run: Run) -> None:
    run.change("UPDATE invoices SET seconds = seconds + 1 WHERE origin = 'claimed'")


def take_a_ttl(run: Run) -> None:
    assert run.server.plain.persist(KEY)


def take_the_ttl_of_a_side_key(run: Run) -> None:
    (claim,) = run.server.plain.keys(f"{KEY}*claim:*")
    assert run.server.plain.persist(claim)


def heal_a_counter(run: Run) -> None:
    run.change("UPDATE grants SET healed = 1 WHERE number = 1")


def leave_a_claim_open(run: Run) -> None:
    with tallylock.connect(run.server.url) as client:
        client.counter(KEY, ttl=TTL).add(1)
        client.counter(KEY, ttl=TTL).claim("of nobody")


def mix_the_fences_up(run: Run) -> None:
    run.change("UPDATE grants SET number = 3 - number + 10")


def sweep_less(run: Run) -> None:
    run.change("DELETE FROM invoices WHERE claim = 'claim-0'")
    run.expected -= 1


def do_less(what: str) -> Callable[[Run], None]:
    def less(run: Run) -> None:
        run.chaos[what] -= 1

    less.__name__ = f"fewer {what}"
    return less


WRONG = (
    expect_more,
    bill_a_second_more,
    take_a_ttl,
    take_the_ttl_of_a_side_key,
    heal_a_counter,
    leave_a_claim_open,
    mix_the_fences_up,
    sweep_less,
    *(do_less(what) for what in ("job_kills", "adder_kills", "lost_replies")),
)


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
def test_what_is_wrong_is_called_wrong(run: Run, spoil: Callable[[Run], None]) -> None:
    spoil(run)
    code, lines = run.report()
    assert code == 1
    # Even then it ends with what was billed.
    assert lines[-1].startswith("billed ")
