"""Which CPU the server and the clients run on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis


@contextmanager
def placed_together(server: redis.Redis) -> Iterator[str]:
    """Keeps the server and this process with its children on one CPU while the body runs.

    One call at a time leaves no work for a second one, and to wake that takes a virtual machine several times as long
    as what a client does: two CPUs would show the machine and not the clients. Gives a sentence that says what was
    done: nothing is, where there is one CPU only, where the system has no such call, or where the server is on another
    machine.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield "not pinned: this system has no call for it"
        return
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        yield "not pinned: there is one CPU only"
        return
    tasks = _tasks(server)
    if not tasks:
        yield "not pinned: the server is not a process of this machine that could be"
        return

    # The first one has the interrupts as a rule.
    cpu = available[-1]
    before = {task: os.sched_getaffinity(task) for task in tasks}
    for task in tasks:
        os.sched_setaffinity(task, {cpu})
    os.sched_setaffinity(0, {cpu})
    try:
        yield f"clients and server pinned to CPU {cpu}"
    finally:
        os.sched_setaffinity(0, available)
        for task, cpus in before.items():
            os.sched_setaffinity(task, cpus)


def _tasks(server: redis.Redis) -> list[int]:
    """The threads of the server, if its process is here and ours to pin."""
    process = Path("/proc") / str(server.info("server")["process_id"])
    try:
        # Another machine's process number may be somebody else's here.
        if b"-server" not in (process / "cmdline").read_bytes() or process.stat().st_uid != os.getuid():
            return []
        return [int(task.name) for task in (process / "task").iterdir()]
    except OSError:
        return []
