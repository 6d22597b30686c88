"""A billing job: claims what the sessions' counters hold under a lock, invoices it, and commits, batch by batch.

It may be killed at any instruction: what it left unfinished is in the ledger, and the next holder of the lock goes on
there. Any number may run at once: the lock lets one of them bill at a time, and a holder that was overtaken without
noticing is refused by the counters and by the ledger.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import tallylock
from fencing import FencedOff
from ledger import Grant, Ledger, Run
from sessions import counter_key, sessions_to_bill

SESSION_TTL = timedelta(minutes=15)
LOCK = "billing:invoices"
# A holder that is killed keeps the others waiting for so long. A batch takes a small part of it.
LOCK_TTL = timedelta(seconds=1)
PATIENCE = timedelta(seconds=30)


class BillingJob:
    """One job, with its own connection to the server and its own to the ledger."""

    def __init__(self, name: str, client: tallylock.Client, ledger: Ledger, *, while_adding: bool) -> None:
        self.name = name
        self.batches = 0
        self.seconds = 0
        self._client = client
        self._ledger = ledger
        self._lock = client.lock(LOCK, ttl=LOCK_TTL)
        self._while_adding = while_adding

    def bill_all(self, batch_size: int, pause: timedelta) -> bool:
        """Make one pass over all sessions that have something to bill; return whether there were any.

        What came while an unfinished claim was there is billed in the next pass.
        """
        found = sessions_to_bill(self._client)
        # With no session there is still a batch: sessions that were ended wait in a file, runs in the ledger.
        for sessions in slices(found, batch_size) or [[]]:
            while not self.bill_unless_overtaken(sessions):
                pass
            time.sleep(pause.total_seconds())  # another job's turn
        return bool(found)

    def bill_unless_overtaken(self, sessions: Sequence[str]) -> bool:
        """Bill these sessions; return whether this job held the lock to the end. If not, nothing is lost by it."""
        try:
            self.bill(sessions)
        except tallylock.LostError:
            self._ledger.note_overtaken(self.name, "lease")
        except tallylock.FencedOffError:
            self._ledger.note_overtaken(self.name, "counter")
        except FencedOff:
            self._ledger.note_overtaken(self.name, "ledger")
        else:
            return True
        return False

    def bill(self, sessions: Sequence[str]) -> None:
        """Invoice what these sessions' counters hold, and what a holder before has left unfinished."""
        with self._lock.acquire(wait=PATIENCE) as lease:
            healed_before = self._client.healed
            runs = self._ledger.begin(Grant(self.name, lease.fence, self._while_adding), sessions)
            claimed = {run: self._claim(run, lease.fence) for run in runs if run.invoiced is None}
            # The claims took their time. Should more be needed, the ledger refuses: it has seen the next fence.
            lease.extend()
            self.seconds += self._ledger.invoice(
                lease.fence,
                {run: seconds for run, seconds in claimed.items() if seconds},
                self._client.healed - healed_before,
            )
            billed = {run: run.invoiced or claimed[run] for run in runs}
            for run, seconds in billed.items():
                if seconds:
                    self._counter(run).commit(run.claim, seconds)
            self._ledger.end(
                lease.fence,
                committed=[run for run, seconds in billed.items() if seconds],
                empty=[run for run, seconds in billed.items() if not seconds],
            )
            self.batches += 1

    def _claim(self, run: Run, fence: int) -> int:
        claim = self._counter(run).claim(run.claim, fence=fence)
        return 0 if claim is None else claim.amount

    def _counter(self, run: Run) -> tallylock.Counter:
        return self._client.counter(counter_key(run.session), ttl=SESSION_TTL)


def slices(sessions: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return `sessions` in slices of at most `size`."""
    return [sessions[start : start + size] for start in range(0, len(sessions), size)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Bill the sessions' pending seconds, until it is killed.")
    parser.add_argument("name", help="what to call this job in the ledger")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    parser.add_argument("--ledger", type=Path, required=True, help="the SQLite database of the invoices")
    parser.add_argument("--finished", type=Path, required=True, help="the file to which ended sessions are appended")
    parser.add_argument("--batch-size", type=int, default=100, help="sessions billed under one lease (default 100)")
    parser.add_argument("--pause-ms", type=int, default=20, help="time between two batches (default 20)")
    parser.add_argument("--to-end", action="store_true", help="end when there is nothing more to bill")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    with (
        tallylock.connect(arguments.url, owner=arguments.name) as client,
        Ledger.open(arguments.ledger, arguments.finished) as ledger,
    ):
        job = BillingJob(arguments.name, client, ledger, while_adding=not arguments.to_end)
        pause = timedelta(milliseconds=arguments.pause_ms)
        try:
            while job.bill_all(arguments.batch_size, pause) or not arguments.to_end:
                pass
        except tallylock.TallylockError as error:
            sys.exit(f"{job.name}: {error}")
        print(f"{job.name}: invoiced {job.seconds:,} seconds in {job.batches} batches at the end")


if __name__ == "__main__":
    main()
