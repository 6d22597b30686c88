"""Real servers and the fault proxy, started for a test and gone with it."""

import json
import re
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
_PROXY = ROOT / "target" / "debug" / "tallylock-fault-proxy"


class Server:
    """A server on a free loopback port that keeps nothing on disk. A context manager."""

    def __init__(self, kind: str, *arguments: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tallylock-")
        binary = SERVERS / f"{kind}-server"
        assert binary.exists(), f"no test server at {binary}: run `make setup`"
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self._folder.name)
        self._process = subprocess.Popen(  # noqa: S603 - a binary of our own setup
            [binary, "--port", str(self.port), *options, *arguments],
            stdout=subprocess.DEVNULL,
        )
        # Its types can't tell what it gives with decode_responses off.
        self.plain: Any = redis.Redis(port=self.port)
        self._await_answer()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.plain.ping()
            except redis.AuthenticationError:
                return
            except redis.ConnectionError:
                time.sleep(0.02)
            else:
                return
        message = f"{self._process.args!r} did not start"
        raise RuntimeError(message)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.plain.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


class FaultProxy:
    """A proxy in front of a server that makes faults happen at an exact request. A context manager."""

    def __init__(self, port: int) -> None:
        assert _PROXY.exists(), f"no fault proxy at {_PROXY}: run `cargo build -p tallylock-testkit`"
        self._process = subprocess.Popen(  # noqa: S603 - a binary of our own setup
            [_PROXY, f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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


def database_of(url: str) -> tuple[str, int]:
    """Return host and port of a URL."""
    found = re.fullmatch(r"\w+://([^:/]+):(\d+)", url)
    assert found is not None, url
    return found[1], int(found[2])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
