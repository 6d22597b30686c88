"""The sweeping job: bills sessions that nobody ends and nobody has on a list, before their counters end.

It may be killed at any instruction: what it had claimed is handed out again by the next pass, under the same id.
"""

import argparse
import sys
from datetime import timedelta
from pathlib import Path

import tallylock
from ledger import Ledger
from sessions import GUESTS, session_of

GUEST_TTL = timedelta(seconds=30)
# Billed when so much of that is left: what must be enough for whatever happens to this job.
DUE_WITHIN = timedelta(seconds=25)
LOCK = "billing:sweep"
LOCK_TTL = timedelta(seconds=2)
PATIENCE = timedelta(seconds=10)
BETWEEN_PASSES = timedelta(milliseconds=300)


class SweepingJob:
    """The sweeper of the guests' counters, and the ledger into which it bills."""

    def __init__(self, client: tallylock.Client, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger

    def run(self) -> None:
        """Bill the guests that are about to end, again and again."""
        self._sweeper(DUE_WITHIN).run(self.bill, every=BETWEEN_PASSES, on_report=check)

    def bill_to_end(self) -> None:
        """Bill all guests, until none has anything left."""
        sweeper = self._sweeper(GUEST_TTL)
        while (report := sweeper.sweep(self.bill)).offered or not report.is_clean:
            check(report)

    def bill(self, key: bytes, claim_id: str, seconds: int) -> None:
        """Invoice a claim; it may come again, after this job was killed between the invoice and the commit."""
        self._ledger.invoice_swept(claim_id, session_of(key.decode()), seconds)

    def _sweeper(self, within: timedelta) -> tallylock.Sweeper:
        return self._client.sweeper(GUESTS, ttl=GUEST_TTL, lock=LOCK, lock_ttl=LOCK_TTL, within=within, wait=PATIENCE)


def check(report: tallylock.SweepReport) -> None:
    """Raise what no further pass would mend: one that lost its lock goes on where it was."""
    for error in (*(failure.error for failure in report.failures), report.error):
        if error is not None and not isinstance(error, tallylock.LostError | tallylock.FencedOffError):
            raise error


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Bill what guests have pending before it ends, until it is killed.")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    parser.add_argument("--ledger", type=Path, required=True, help="the SQLite database of the invoices")
    parser.add_argument("--finished", type=Path, required=True, help="the file to which ended sessions are appended")
    parser.add_argument("--to-end", action="store_true", help="bill all guests, and end")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    with (
        tallylock.connect(arguments.url, owner="sweeper") as client,
        Ledger.open(arguments.ledger, arguments.finished) as ledger,
    ):
        job = SweepingJob(client, ledger)
        try:
            if arguments.to_end:
                job.bill_to_end()
            else:
                job.run()
        except tallylock.TallylockError as error:
            sys.exit(f"sweeper: {error}")


if __name__ == "__main__":
    main()
