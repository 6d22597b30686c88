"""A contestant's process, asked for one block of calls after another."""

import subprocess
from types import TracebackType

import redis
from contestants import ADDS_OF_A_BATCH, COUNTERS_OF_A_BATCH, ROOT, ROUND_TRIP, Contestant, Work

WARM_UP_SECONDS = 3.0


class ContestantError(Exception):
    """A contestant ended, said something else than its protocol allows, or did not do what it was asked."""


class Runner:
    """One contestant, running on a key of its own.

    What it has done is looked up on the server, so that no contestant is fast by doing less.
    """

    def __init__(self, contestant: Contestant, url: str, key: str, server: redis.Redis) -> None:
        """Starts the process and waits until it is connected; raises ContestantError if it does not get so far."""
        self.contestant = contestant
        self._key = key
        is_batch = contestant.work is Work.BATCH
        self._counters = [f"{key}:{number:02}" for number in range(COUNTERS_OF_A_BATCH)] if is_batch else [key]
        self._server = server
        self._added = 0
        server.delete(*self._counters)
        self._process = subprocess.Popen(
            (*contestant.command, url, key), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if (line := self._read()) != "ready":
            self._process.kill()
            raise self._error(f"says {line!r} instead of being ready")

    def run(self, calls: int) -> float:
        """Runs one block of calls and returns the microseconds that one of them took."""
        before = self._commands_seen()
        self._ask(f"block {calls}\n")
        line = self._read()
        if not line.isdecimal():
            raise self._error(f"says {line!r} instead of nanoseconds")
        self._check(calls, self._commands_seen() - before)
        return int(line) / calls / 1000

    def warm_up(self, block_seconds: float) -> int:
        """Runs blocks until the compilers have had time; returns how many calls fill a block of this length."""
        calls, spent = (1 if self.contestant.work is Work.BATCH else 50), 0.0
        while True:
            seconds = self.run(calls) * calls / 1_000_000
            spent += seconds
            wanted = max(1, round(calls * block_seconds / seconds))
            if spent > WARM_UP_SECONDS:
                return wanted
            # Step by step: the first calls say little about later ones.
            calls = min(wanted, calls * 4)

    def _check(self, calls: int, commands: int) -> None:
        if self.contestant.work is Work.ADD:
            self._added += calls
            self._check_counters()
        elif self.contestant.work is Work.BATCH:
            self._added += calls * ADDS_OF_A_BATCH
            self._check_counters()
        elif self._server.exists(self._key):
            raise self._error(f"did not release {self._key}")
        elif self.contestant is not ROUND_TRIP and commands < 2 * calls:
            raise self._error(f"sent {commands} commands for {calls} times acquire and release")

    def _check_counters(self) -> None:
        total = sum(int(text or 0) for text in self._server.mget(self._counters))
        if total != self._added or any(self._server.pttl(key) <= 0 for key in self._counters):
            raise self._error(f"was to add {self._added} to {self._key} with a TTL, but left {total}")

    def _commands_seen(self) -> int:
        statistics = self._server.info("commandstats")
        return sum(statistics.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("set", "eval", "evalsha"))

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._error(f"ended with code {self._process.wait()}") from None

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._error(f"ended with code {self._process.wait()}")
        return line.strip()

    def _error(self, what: str) -> ContestantError:
        return ContestantError(f"{self.contestant.name} {what}")

    def __enter__(self) -> "Runner":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process: at the end of its input by itself, otherwise at once."""
        try:
            # Closes its input, and takes in what it may still say.
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._server.delete(*self._counters)
