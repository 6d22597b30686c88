"""The programs of the demo: started, killed, held up and started again; none of them outlives this one."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

PR_SET_PDEATHSIG = 1
ENDINGS = (signal.SIGINT, signal.SIGTERM)


class Program:
    """One program; it is the same after it was killed and started again."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        """Start it."""
        self.name = name
        self.kills = 0
        self._start(command)

    def restart(self, command: Sequence[str]) -> None:
        """Start it again after it was killed."""
        assert not self.is_running, f"{self.name} is running"
        self._start(command)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What it ended with; None as long as it runs."""
        return self._process.poll()

    def kill(self) -> bool:
        """Kill it by SIGKILL; return False if it had ended by itself."""
        if not self.is_running:
            return False
        self._process.kill()
        self.kills += self._process.wait() == -signal.SIGKILL
        return True

    def hold_up(self) -> None:
        """Let it not run on until `go_on`, as a machine does that swaps or migrates."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run on; nothing happens to one that is not held up or has ended."""
        self._process.send_signal(signal.SIGCONT)

    def wait(self) -> int:
        """Return its exit code once it has ended."""
        return self._process.wait()

    def _start(self, command: Sequence[str]) -> None:
        parent = os.getpid()

        def prepare() -> None:
            end_with_parent()
            if os.getppid() != parent:
                # It has ended before it could be said.
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

        with undisturbed():
            # A session of its own: a Ctrl-C in the terminal is for this program, which then ends all.
            self._process = subprocess.Popen(command, start_new_session=True, preexec_fn=prepare)


class Programs:
    """All programs that were started. A context manager: those that still run at the exit are killed."""

    def __init__(self) -> None:
        self._all: list[Program] = []

    def start(self, name: str, command: Sequence[str]) -> Program:
        """Start a program."""
        with undisturbed():
            program = Program(name, command)
            self._all.append(program)
        return program

    def __enter__(self) -> "Programs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for program in self._all:
            program.kill()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals that end this program wait: one between a start and its record would leave a program behind."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends, be it by SIGKILL. Linux alone can do so."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
