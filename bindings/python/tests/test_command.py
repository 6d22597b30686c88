"""The command that comes with the wheel."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import tallylock
from servers import Server

COMMAND = Path(sys.executable).with_name("tallylock")
KEY = "session:42:billableSecondsPending"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(COMMAND), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - it is ours


def test_it_is_the_command(server: Server) -> None:
    with tallylock.connect(server.url) as client:
        client.counter(KEY, ttl=timedelta(minutes=15)).add(30)
    shown = run("counter", "show", server.url, KEY, "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["total"] == "30"


def test_its_exit_code_is_the_process_s() -> None:
    refused = run("counter", "show", "redis://127.0.0.1:1", KEY)
    assert refused.returncode == 69
    assert len(refused.stderr.splitlines()) == 1
    assert run("no-such-command").returncode == 64
    assert run("--help").returncode == 0
