"""Real servers and the fault proxy, started for a test and gone with it."""

import json
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import redis

ROOT = Path(__file__).resolve().parents[3]
SERVERS = ROOT / ".cache" / "servers"
KINDS = ("valkey", "redis")
_PORT_ATTEMPTS = 5
PROXY = ROOT / "target" / "debug" / "tallylock-fault-proxy"


class Server:
    """A server on a free loopback port that keeps nothing on disk. A context manager."""

    def __init__(self, kind: str, *arguments: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tallylock-")
        binary = SERVERS / f"{kind}-server"
        assert binary.exists(), f"no test server at {binary}: run `make setup`"
        options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self._folder.name)
        # Another program may take the port between the look and the start: the server then ends at once.
        for _ in range(_PORT_ATTEMPTS):
            self.port = _free_port()
            self._process = subprocess.Popen(  # noqa: S603 - a binary of our own setup
                [binary, "--port", str(self.port), *options, *arguments],
                stdout=subprocess.DEVNULL,
            )
            # Its types can't tell what it gives with decode_responses off.
            self.plain: Any = redis.Redis(port=self.port)
            if self._answers():
                break
            self._end()
        else:
            message = f"{self._process.args!r} did not start"
            raise RuntimeError(message)
        self.url = f"redis://127.0.0.1:{self.port}"

    def _answers(self) -> bool:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.plain.ping()
            except redis.AuthenticationError:
                return True
            except redis.ConnectionError:
                time.sleep(0.02)
            else:
                return True
        return False

    def signal(self, number: int) -> None:
        """Send the process a signal, such as those that stop its clock and let it go on."""
        self._process.send_signal(number)

    def _end(self) -> None:
        self.plain.close()
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Keep it from doing anything, as if the machine hung, until `go_on`."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()


class FaultProxy:
    """A proxy in front of a server that makes faults happen at an exact request. A context manager."""

    def __init__(self, port: int) -> None:
        assert PROXY.exists(), f"no fault proxy at {PROXY}: run `cargo build -p tallylock-testkit`"
        self._process = subprocess.Popen(  # noqa: S603 - a binary of our own setup
            [PROXY, f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = "redis://" + str(self._read()["listen"])

    def do(self, command: str) -> dict[str, Any]:
        """Give the proxy a command (`tallylock-fault-proxy --help` lists them) and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["ok"], answer
        return answer

    def __enter__(self) -> "FaultProxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # It ends with its standard input.
        self._process.communicate(timeout=10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
