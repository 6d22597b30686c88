"""Which CPU the server and the clients run on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis


@contextmanager
def placed_apart(server: redis.Redis) -> Iterator[str]:
    """Keeps the server on one CPU and this process with its children on another while the body runs.

    Gives a sentence that says what was done: nothing is, where there is one CPU only, where the system has no such
    call, or where the server is on another machine.
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

    clients, servers = available[0], available[-1]
    before = {task: os.sched_getaffinity(task) for task in tasks}
    for task in tasks:
        os.sched_setaffinity(task, {servers})
    os.sched_setaffinity(0, {clients})
    try:
        yield f"clients pinned to CPU {clients}, the server to CPU {servers}"
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
