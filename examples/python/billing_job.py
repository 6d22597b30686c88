"""A billing job: drains the sessions' counters under a lock and invoices what they held, batch by batch.

Any number of these may run at once: the lock lets one of them write at a time, and the ledger refuses a holder that was
overtaken without noticing. SIGTERM asks for one last pass over all sessions; then the job ends.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import FrameType

import redis
import tallylock
from ledger import Batch, FencedOff, Ledger
from sessions import counter_keys, plain_client, session_of

SESSION_TTL = timedelta(minutes=15)
LOCK = "billing:invoices"
LOCK_TTL = timedelta(seconds=10)
# Others hold the lock for one batch at a time, which takes milliseconds.
PATIENCE = timedelta(seconds=30)
# What must be left of the lease when the ledger is written to.
MARGIN = timedelta(seconds=2)


class BillingJob:
    """One job, with its own connection to the server and its own to the ledger."""

    def __init__(self, name: str, client: tallylock.Client, server: redis.Redis, ledger: Ledger) -> None:
        self.name = name
        self.batches = 0
        self.seconds = 0
        self.last_pass_asked = False
        self._client = client
        self._server = server
        self._ledger = ledger
        self._lock = client.lock(LOCK, ttl=LOCK_TTL)

    def ask_for_last_pass(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM and SIGINT: between drain and invoice is no place to stop."""
        self.last_pass_asked = True

    def run(self, batch_size: int, pause: timedelta) -> None:
        """Bill all sessions again and again, until the pass that began after the last was asked for."""
        last = False
        while not last:
            last = self.last_pass_asked
            # With no session there is still a batch: sessions that were ended wait in a file.
            for keys in slices(list(counter_keys(self._server)), batch_size) or [[]]:
                self.bill(keys)
                time.sleep(pause.total_seconds())  # another job's turn

    def bill(self, keys: Sequence[str]) -> None:
        """Drain these counters and invoice what they held; if that fails, put it back."""
        with self._lock.acquire(wait=PATIENCE) as lease:
            drained: dict[str, int] = {}
            healed_before = self._client.healed
            try:
                for key in keys:
                    if seconds := self._counter(key).drain():
                        drained[key] = seconds
                lease.ensure(MARGIN)
                batch = Batch(
                    job=self.name,
                    fence=lease.fence,
                    while_adding=not self.last_pass_asked,
                    healed=self._client.healed - healed_before,
                    drained={session_of(key): seconds for key, seconds in drained.items()},
                )
                self.seconds += self._ledger.write(batch)
            except Exception:
                # Not reached if the process is killed just here: then what it has drained is lost.
                self._put_back(drained)
                raise
            self.batches += 1

    def _counter(self, key: str) -> tallylock.Counter:
        return self._client.counter(key, ttl=SESSION_TTL)

    def _put_back(self, drained: dict[str, int]) -> None:
        total = sum(drained.values())
        print(f"{self.name}: putting {total} seconds back into {len(drained)} counters", file=sys.stderr)
        for key, seconds in drained.items():
            try:
                self._counter(key).add(seconds)
            except tallylock.TallylockError as error:
                # The others can still be put back; this one is for people to look at.
                print(f"{self.name}: putting {seconds} seconds back into {key} failed: {error}", file=sys.stderr)


def slices(keys: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return `keys` in slices of at most `size`."""
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Bill the sessions' pending seconds until SIGTERM.")
    parser.add_argument("name", help="what to call this job in the ledger")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    parser.add_argument("--ledger", type=Path, required=True, help="the SQLite database of the invoices")
    parser.add_argument("--finished", type=Path, required=True, help="the file to which ended sessions are appended")
    parser.add_argument("--batch-size", type=int, default=100, help="counters drained under one lease (default 100)")
    parser.add_argument("--pause-ms", type=int, default=20, help="time between two batches (default 20)")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    with (
        tallylock.connect(arguments.url, owner=arguments.name) as client,
        plain_client(arguments.url) as server,
        Ledger(arguments.ledger, arguments.finished) as ledger,
    ):
        job = BillingJob(arguments.name, client, server, ledger)
        signal.signal(signal.SIGTERM, job.ask_for_last_pass)
        signal.signal(signal.SIGINT, job.ask_for_last_pass)
        try:
            job.run(arguments.batch_size, timedelta(milliseconds=arguments.pause_ms))
        except (tallylock.TallylockError, FencedOff) as error:
            sys.exit(f"{job.name}: {error}")
        print(f"{job.name}: invoiced {job.seconds:,} seconds in {job.batches} batches")


if __name__ == "__main__":
    main()
