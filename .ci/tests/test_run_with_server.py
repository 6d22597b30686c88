"""setup/run-with-server.sh: the server is there for the command, and gone after it whatever became of the command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "setup" / "run-with-server.sh"


def run(command: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TALLYLOCK_REDIS_URL"}
    if url is not None:
        environment["TALLYLOCK_REDIS_URL"] = url
    return subprocess.run(
        ["bash", str(SCRIPT), "bash", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def port_of(url: str) -> int:
    assert url.startswith("redis://127.0.0.1:"), url
    return int(url.rpartition(":")[2])


def ping(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"PING\r\n")
        return connection.recv(16)


def test_gives_the_command_a_server_that_answers() -> None:
    command = 'exec 3<>"/dev/tcp/127.0.0.1/${TALLYLOCK_REDIS_URL##*:}"; printf "PING\\r\\n" >&3; head -n 1 <&3'
    assert run(command).stdout.strip() == "+PONG"


@pytest.mark.parametrize("command", ["exit 0", "exit 7", "kill -KILL $$"])
def test_stops_the_server_and_passes_the_exit_code(command: str) -> None:
    done = run(f'echo "$TALLYLOCK_REDIS_URL"; {command}')
    with pytest.raises(ConnectionRefusedError):
        ping(port_of(done.stdout.strip()))
    assert done.returncode == {"exit 0": 0, "exit 7": 7, "kill -KILL $$": 128 + signal.SIGKILL}[command]


def test_starts_none_where_there_is_one() -> None:
    assert run('echo "$TALLYLOCK_REDIS_URL"', url="redis://elsewhere:1").stdout == "redis://elsewhere:1\n"


def test_stops_the_server_when_it_is_told_to_end() -> None:
    command = ["bash", str(SCRIPT), "bash", "-c", 'echo "$TALLYLOCK_REDIS_URL"; sleep 60 & wait']
    environment = {name: value for name, value in os.environ.items() if name != "TALLYLOCK_REDIS_URL"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        port = port_of(process.stdout.readline().strip())
        assert ping(port) == b"+PONG\r\n"
        # As a terminal does on Ctrl-C, or a service manager on stop: to the whole group.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    with pytest.raises(ConnectionRefusedError):
        ping(port)


def test_server_and_command_end_with_it_even_if_it_is_killed() -> None:
    command = ["bash", str(SCRIPT), "bash", "-c", 'echo "$TALLYLOCK_REDIS_URL"; exec sleep 60']
    environment = {name: value for name, value in os.environ.items() if name != "TALLYLOCK_REDIS_URL"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = port_of(process.stdout.readline().strip())
        process.kill()
        # The command had it open.
        assert process.stdout.read() == ""
    deadline = time.monotonic() + 30
    while is_there(port):
        assert time.monotonic() < deadline, "the server is still there"
        time.sleep(0.01)


def is_there(port: int) -> bool:
    try:
        return ping(port) != b""
    except ConnectionError:
        return False


def test_says_how_it_is_used() -> None:
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr
