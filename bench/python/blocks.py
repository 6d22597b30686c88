"""The protocol of a contestant: it says `ready`, then answers each line `block N` with the nanoseconds of N calls."""

import sys
import time
from collections.abc import Callable


def answer_blocks(call: Callable[[], object]) -> None:
    """Runs the blocks that standard input asks for until it ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        calls = int(line.removeprefix("block "))
        started = time.perf_counter_ns()
        for _ in range(calls):
            call()
        print(time.perf_counter_ns() - started, flush=True)
