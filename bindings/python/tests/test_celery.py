"""Billing in Celery (examples/python/celery_billing.py): workers are killed in mid-task, and the invoices balance."""

import contextlib
import importlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tallylock
from servers import ROOT, Server

EXAMPLES = ROOT / "examples" / "python"
TTL = timedelta(minutes=15)
# Before and after each call: begin, seconds, claim, write, commit, end.
STEPS = 12


@pytest.fixture
def environment(server: Server, tmp_path: Path) -> dict[str, str]:
    """Return what the worker and the example are told."""
    (tmp_path / "kills").mkdir()
    return {
        "BROKER_URL": f"{server.url}/1",
        "TALLYLOCK_URL": server.url,
        "INVOICES": str(tmp_path / "invoices.db"),
        "EXAMPLES": str(EXAMPLES),
        "KILLS": str(tmp_path / "kills"),
    }


@pytest.fixture
def example(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the example, which reads its settings when it is imported."""
    for name, setting in environment.items():
        monkeypatch.setenv(name, setting)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("celery_billing", None)
    return importlib.import_module("celery_billing")


@contextlib.contextmanager
def worker(environment: dict[str, str], tmp_path: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker in a process group of its own."""
    command = [sys.executable, "-m", "celery", "--app", "celery_killed", "worker", "--concurrency", "4"]
    with (
        (tmp_path / "worker.log").open("ab") as log,
        subprocess.Popen(  # noqa: S603 - this very Python
            [*command, "--without-gossip", "--without-mingle"],
            cwd=Path(__file__).parent,
            env=os.environ | environment | more,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait(condition: Callable[[], object], tmp_path: Path) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, (tmp_path / "worker.log").read_text()
        time.sleep(0.05)


@pytest.fixture
def client(server: Server) -> Iterator[tallylock.Client]:
    with tallylock.connect(server.url) as client:
        yield client


def fill(client: tallylock.Client, sessions: list[str]) -> dict[str, Any]:
    counters = {s: client.counter(f"session:{s}:billableSecondsPending", ttl=TTL) for s in sessions}
    for counter in counters.values():
        counter.add(30)
    return counters


def billed(environment: dict[str, str]) -> dict[str, int]:
    """Return the seconds that were invoiced for each session."""
    with contextlib.closing(sqlite3.connect(environment["INVOICES"], timeout=30)) as database:
        try:
            found = database.execute("SELECT session, SUM(seconds) FROM claimed_invoices GROUP BY session").fetchall()
        except sqlite3.OperationalError:
            # The worker has made no table yet.
            return {}
    return dict(found)


def are_settled(counters: dict[str, Any]) -> bool:
    """Return whether nothing is pending or claimed."""
    return all((counter.read(), counter.claims()) == (0, []) for counter in counters.values())


def test_a_process_that_is_killed_at_any_step_of_a_task_loses_and_doubles_nothing(
    client: tallylock.Client, environment: dict[str, str], example: ModuleType, tmp_path: Path
) -> None:
    sessions = [f"{step}-killed" for step in range(STEPS)]
    counters = fill(client, sessions)
    kills = tmp_path / "kills"
    with worker(environment, tmp_path):
        for session in sessions:
            example.bill_session.delay(session)
        wait(lambda: {path.name for path in kills.iterdir()} == set(sessions) and are_settled(counters), tmp_path)
    assert billed(environment) == dict.fromkeys(sessions, 30)


@pytest.mark.parametrize("step", [5, 7, 9], ids=["after the claim", "after the invoice", "after the commit"])
def test_a_worker_that_is_killed_as_a_whole_is_followed_by_another(
    client: tallylock.Client, environment: dict[str, str], example: ModuleType, tmp_path: Path, step: int
) -> None:
    session = f"{step}-worker"
    counters = fill(client, [session])
    example.bill_session.delay(session)
    with worker(environment, tmp_path, KILL_ALL="1") as process:
        assert process.wait(timeout=60) == -signal.SIGKILL
    with worker(environment, tmp_path):
        wait(lambda: billed(environment) and are_settled(counters), tmp_path)
    assert billed(environment) == {session: 30}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("unavailable", tallylock.UnavailableError),
        ("timeout", tallylock.CallTimeoutError),
        ("outcome_unknown", tallylock.OutcomeUnknownError),
        ("out_of_memory", tallylock.OutOfMemoryError),
        ("read_only", tallylock.ReadOnlyError),
    ],
)
def test_what_may_pass_is_retried_with_the_same_claim(
    client: tallylock.Client,
    example: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    kind: type[tallylock.TallylockError],
) -> None:
    counter = fill(client, ["42"])["42"]
    bill, claims = example.bill, []

    def failing(pending: Any, session: str, invoices: Any) -> int | None:
        claims.append(invoices.begin(session))
        if len(claims) == 1:
            # Its reply is lost: it took the seconds all the same.
            pending.claim(claims[0])
            raise kind(code, code=code)
        amount: int | None = bill(pending, session, invoices)
        return amount

    monkeypatch.setattr(example, "bill", failing)
    assert example.bill_session.apply(args=["42"]).get() == 30
    assert claims == [claims[0]] * 2
    assert (counter.read(), counter.claims()) == (0, [])


def test_what_is_wrong_for_good_is_not_retried(server: Server, example: ModuleType) -> None:
    server.plain.rpush("session:42:billableSecondsPending", "x")
    with pytest.raises(tallylock.WrongTypeError):
        example.bill_session.apply(args=["42"], throw=True)
