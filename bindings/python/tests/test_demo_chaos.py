"""The demo's supervisor: what goes wrong is the seed's choice, is done and counted, and nothing outlives the run."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from examples import EXAMPLES, example
from servers import PROXY, Server

plan, programs, timetable, fault_proxy = map(example, ("plan", "programs", "timetable", "fault_proxy"))
FOR_EVER = ("sleep", "1000")
PATIENCE = 20
VICTIMS, BETWEEN = ("a", "b"), (0.1, 0.2)


def choices(seed: int) -> tuple[object, ...]:
    chosen = plan.Plan(seed)
    strikes = list(itertools.islice(chosen.strikes(VICTIMS, BETWEEN), 100))
    losses = list(itertools.islice(chosen.losses(), 100))
    return strikes, losses, chosen.adder_killed_at, chosen.adder_gone_for


def test_a_seed_repeats_every_choice_and_another_none() -> None:
    assert choices(1) == choices(1)
    assert all(one != other for one, other in zip(choices(1), choices(2), strict=True))


def test_a_choice_does_not_hang_on_how_many_others_were_needed() -> None:
    chosen = plan.Plan(1)
    losses = chosen.losses()
    list(itertools.islice(chosen.strikes(VICTIMS, BETWEEN), 7))
    assert list(itertools.islice(losses, 100)) == choices(1)[1]


def test_everybody_is_killed_and_held_up() -> None:
    strikes: Any = choices(1)[0]
    assert {(strike.victim, strike.blow) for strike in strikes} == set(itertools.product(VICTIMS, ("kill", "hold up")))
    assert all(BETWEEN[0] <= strike.after <= BETWEEN[1] for strike in strikes)


def test_what_is_due_is_done_in_its_order_and_delays_do_not_add_up() -> None:
    table, done = timetable.Timetable(), []

    def hesitate(loss: Any) -> None:
        done.append(loss.nth)
        time.sleep(0.02)

    table.each(iter([plan.Loss(0.01, 1), plan.Loss(0.01, 2), plan.Loss(0.01, 3), plan.Loss(1000, 4)]), hesitate)
    table.at(0.025, lambda: done.append("between"))
    table.run_until(lambda: len(done) == 4)
    assert done == [1, 2, "between", 3]


def test_a_program_is_killed_counted_and_started_again() -> None:
    with programs.Programs() as all_of_them:
        program = all_of_them.start("sleeper", FOR_EVER)
        assert program.kill()
        program.restart(FOR_EVER)
        program.hold_up()
        assert program.kill()
        assert program.kills == 2
        program.restart(FOR_EVER)
    assert program.exit_code == -signal.SIGKILL


def test_a_program_that_has_ended_by_itself_is_not_counted_as_killed() -> None:
    with programs.Programs() as all_of_them:
        program = all_of_them.start("failing", ("sh", "-c", "exit 3"))
        assert program.wait() == 3
        assert not program.kill()
        assert (program.kills, program.exit_code) == (0, 3)


def test_no_program_outlives_its_supervisor_even_if_that_is_killed() -> None:
    code = (
        "import subprocess, programs\n"
        f"sleeper = programs.Programs().start('sleeper', {FOR_EVER})\n"
        "print(sleeper._process.pid, flush=True)\n"
        "sleeper.wait()\n"
    )
    with subprocess.Popen(  # noqa: S603 - a program of our own
        [sys.executable, "-c", code], cwd=EXAMPLES, stdout=subprocess.PIPE, text=True
    ) as supervisor:
        assert supervisor.stdout is not None
        sleeper = int(supervisor.stdout.readline())
        assert is_alive(sleeper)
        supervisor.kill()
    deadline = time.monotonic() + PATIENCE
    while is_alive(sleeper):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.01)


def is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    # One that is dead may be there until somebody asks what it ended with.
    return state != "Z"


def test_the_proxy_loses_the_replies_that_it_is_told_to(server: Server) -> None:
    with fault_proxy.FaultProxy(PROXY, f"{server.url}/3") as proxy:
        assert proxy.url.endswith("/3")
        client = redis.Redis.from_url(proxy.url, retry=None)
        client.ping()
        proxy.lose(1)
        with pytest.raises(redis.ConnectionError):
            client.incr("calls")
        assert client.get("calls") == b"1"
        assert proxy.lost() == 1
        client.close()


def test_the_proxy_keeps_the_account(server: Server) -> None:
    with fault_proxy.FaultProxy(PROXY, server.url.replace("redis://", "valkey://user:secret@")) as proxy:
        assert proxy.url.startswith("valkey://user:secret@127.0.0.1:")


@pytest.mark.parametrize("url", ["rediss://:secret@localhost:6379", "unix:///run/secret.sock", "memory://"])
def test_the_proxy_refuses_what_it_cannot_read_and_shows_no_password(url: str) -> None:
    with pytest.raises(ValueError, match="redis://") as refusal:
        fault_proxy.FaultProxy(PROXY, url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_supervisor_that_is_told_to_end_leaves_nothing_behind(server: Server, tmp_path: Path, how: int) -> None:
    # The services are not built here: what stands in for them runs until it is killed.
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("java", "node"):
        (folder / name).write_text("#!/bin/sh\nexec sleep 1000\n")
        (folder / name).chmod(0o755)
    data = tmp_path / "flights.csv"
    data.write_text("month,day\n1,1\n")
    options = ("--url", server.url, "--proxy", PROXY, "--data", data, "--work", tmp_path, "--day-ms", "100000")
    with subprocess.Popen(  # noqa: S603 - a program of our own
        [sys.executable, EXAMPLES / "chaos.py", *options, "--seed", "1"],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
    ) as supervisor:
        started = children(supervisor.pid, at_least=6)
        supervisor.send_signal(how)
        assert supervisor.wait(PATIENCE) == 128 + how
    assert not any(is_alive(child) for child in started)
    assert not (tmp_path / "chaos.json").exists()


def children(process_id: int, at_least: int) -> list[int]:
    deadline = time.monotonic() + PATIENCE
    while True:
        found = Path(f"/proc/{process_id}/task/{process_id}/children").read_text("ascii").split()
        if len(found) >= at_least:
            return [int(child) for child in found]
        # Without a rest: the signal has to come while the last one is being started.
        assert time.monotonic() < deadline, "the programs were not started"
