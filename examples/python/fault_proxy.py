"""The proxy that loses replies: a program in front of the server, told by lines on its standard input."""

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

REDIS_PORT = 6379


class FaultProxy:
    """A proxy in front of a server. A context manager."""

    def __init__(self, binary: Path, url: str) -> None:
        """Start the proxy in front of the server of a URL; ValueError if it can't read what goes there."""
        parts = urlsplit(url)
        if parts.scheme not in ("redis", "valkey") or not parts.hostname:
            raise ValueError(f"the proxy can't read what goes to {parts.scheme}://: give the demo a redis:// server")
        server = f"{parts.hostname}:{parts.port or REDIS_PORT}"
        # It ends with its standard input, so with this program.
        self._process = subprocess.Popen(
            [binary, server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        account, at, _ = parts.netloc.rpartition("@")
        self.url = parts._replace(netloc=f"{account}{at}{self._answer()['listen']}").geturl()

    def lose(self, nth: int) -> None:
        """Lose the reply to the nth request from now on, and cut its connection."""
        self._do(f"lose {nth}")

    def lost(self) -> int:
        """Return how many replies were lost."""
        return int(self._do("stats")["stats"]["lost"])

    def _do(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if not answer["ok"]:
            raise RuntimeError(f"the fault proxy refuses: {answer['error']}")
        return answer

    def __enter__(self) -> "FaultProxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=10)
