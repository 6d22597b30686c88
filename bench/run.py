"""Measures tallylock beside other clients: blocks of calls of all contestants in turn, against one server.

Called by run.sh, which builds the contestants and has a server started.
"""

import argparse
import gzip
import json
import os
import sys
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import redis
from contestants import CONTESTANTS, FLOORS, WASM, Contestant
from placing import placed_together
from report import Circumstances, Report
from runner import ContestantError, Runner


def main() -> None:
    """Reads the command line, measures and prints; ends with a message if something does not run."""
    parser = argparse.ArgumentParser(prog="bench/run.sh", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--rounds", type=int, default=100, help="blocks of each contestant (default: %(default)s)")
    parser.add_argument("--block", type=float, default=0.1, metavar="SECONDS", help="length of a block (default: 0.1)")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only contestants with this in their name (and peers)"
    )
    arguments = parser.parse_args()

    url = os.environ["TALLYLOCK_REDIS_URL"]
    parts = urlsplit(url)
    if parts.scheme != "redis" or parts.port is None or parts.password or parts.path.strip("/"):
        sys.exit("bench: TALLYLOCK_REDIS_URL must be redis://HOST:PORT, since the floor speaks to nothing else")
    server = redis.Redis.from_url(url)
    try:
        report = measure(server, url, _chosen(arguments.only), arguments.rounds, arguments.block)
    except (ContestantError, redis.RedisError) as error:
        sys.exit(f"bench: {error}")
    if WASM.exists():
        report.wasm_bytes = len(gzip.compress(WASM.read_bytes(), compresslevel=9, mtime=0))
    print(json.dumps(report.as_json(), indent=2) if arguments.json else report.as_table())


def measure(server: redis.Redis, url: str, contestants: list[Contestant], rounds: int, block_seconds: float) -> Report:
    """Runs one block of each contestant a round; raises ContestantError if one of them fails."""
    with ExitStack() as stack:
        placing = stack.enter_context(placed_together(server))
        runners = []
        sizes = {}
        for number, contestant in enumerate(contestants):
            _say(f"warming up: {contestant.name}")
            # Keys of one length: the server's share is the same for all.
            runner = stack.enter_context(Runner(contestant, url, f"session:bench-{number:02}:billable", server))
            sizes[contestant.name] = runner.warm_up(block_seconds)
            runners.append(runner)

        report = Report(contestants, Circumstances.of(server, placing, rounds, block_seconds))
        started = last_said = time.monotonic()
        for number in range(rounds):
            for runner in _order(runners, number):
                report.add(runner.contestant, runner.run(sizes[runner.contestant.name]))
            if (now := time.monotonic()) - last_said > 15:
                last_said = now
                left = (now - started) / (number + 1) * (rounds - number - 1)
                _say(f"round {number + 1} of {rounds}, {left:.0f} s left")
        return report


def _order(runners: list[Runner], number: int) -> list[Runner]:
    """Another one first each round, and every second round backwards, so that nobody always follows the same."""
    shift = number % len(runners)
    turned = runners[shift:] + runners[:shift]
    return turned[::-1] if number % 2 else turned


def _chosen(text: str) -> list[Contestant]:
    asked = [contestant for contestant in CONTESTANTS if text in contestant.name]
    beside = {contestant.peer for contestant in asked}
    beside |= {FLOORS[contestant.work].name for contestant in asked if contestant.work in FLOORS}
    return [contestant for contestant in CONTESTANTS if contestant in asked or contestant.name in beside]


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr)


if __name__ == "__main__":
    main()
