"""The end of the demo: shows what was billed, and refuses to call it right unless it is.

Exits with 1 if the billed seconds are not those of the data, if any key of the demo lacks a TTL, or if a fence did not
grow from one grant to the next.
"""

import argparse
import csv
import itertools
import sqlite3
import sys
from pathlib import Path

import redis
from sessions import plain_client

KEY_PATTERNS = ("session:*", "billing:*")
NO_TTL = -1
REFUSALS_SHOWN = 3


def main() -> None:
    arguments = parse_arguments()
    with sqlite3.connect(f"file:{arguments.ledger}?mode=ro", uri=True) as ledger:
        show_largest_bills(ledger)
        in_order = show_hand_overs(ledger)
        billed = sum_of(ledger, "SELECT coalesce(sum(seconds), 0) FROM invoices")
        # A drain gives a counter that lacks its TTL a new one: that must not hide it.
        healed = sum_of(ledger, "SELECT coalesce(sum(healed), 0) FROM grants")
    show_refusals(arguments.refused)
    with plain_client(arguments.url) as server:
        keys, without_ttl = count_keys(server)
    print(f"\nKeys left: {keys} of sessions and the lock, {without_ttl} without a TTL; found so by a drain: {healed}")
    immortal = without_ttl + healed
    print(f"\nbilled {billed} of {arguments.expected_seconds} seconds; {immortal} keys without a TTL")
    sys.exit(0 if billed == arguments.expected_seconds and keys and not immortal and in_order else 1)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show what the demo billed, and check it.")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    parser.add_argument("--ledger", type=Path, required=True, help="the SQLite database of the invoices")
    parser.add_argument("--expected-seconds", type=int, required=True, help="what the data holds, summed by other code")
    parser.add_argument("refused", type=Path, nargs="+", help="the files of refused rows, one from each service")
    return parser.parse_args()


def show_largest_bills(ledger: sqlite3.Connection) -> None:
    print("The ten largest bills\n")
    print(f"{'session':10}{'seconds':>10}{'hours':>9}{'invoices':>10}{'last fence':>20}")
    for session, seconds, invoices, fence in ledger.execute(
        """
        SELECT session, sum(seconds) AS total, count(*), max(fence)
        FROM invoices GROUP BY session ORDER BY total DESC, session LIMIT 10
        """
    ):
        print(f"{session:10}{seconds:>10,}{seconds / 3600:>9.1f}{invoices:>10}{fence:>20}")
    sessions, drained, finished, while_adding = ledger.execute(
        """
        SELECT count(DISTINCT session), coalesce(sum(iif(origin = 'drained', seconds, 0)), 0),
               coalesce(sum(iif(origin = 'finished', seconds, 0)), 0), coalesce(sum(iif(while_adding, seconds, 0)), 0)
        FROM invoices JOIN grants USING (fence)
        """
    ).fetchone()
    print(f"\n{sessions:,} sessions: {drained:,} seconds were drained, {finished:,} were left when sessions ended;")
    print(f"{while_adding:,} were invoiced while the services went on adding")


def show_hand_overs(ledger: sqlite3.Connection) -> bool:
    """Print how the lock went from job to job; return whether its fence grew with each grant."""
    grants = ledger.execute("SELECT fence, job FROM grants ORDER BY number").fetchall()
    pairs = list(itertools.pairwise(grants))
    hand_overs = sum(before != after for (_, before), (_, after) in pairs)
    in_order = all(before < after for (before, _), (after, _) in pairs)
    counts = ledger.execute("SELECT job, count(*) FROM grants GROUP BY job ORDER BY job")
    shares = " and ".join(f"{count} to {job}" for job, count in counts)
    print(f"\nThe lock was granted {len(grants)} times ({shares}), with {hand_overs} hand-overs;")
    print("each grant had a larger fence than the one before" if in_order else "BUT THE FENCES ARE OUT OF ORDER")
    return in_order


def sum_of(ledger: sqlite3.Connection, query: str) -> int:
    (total,) = ledger.execute(query).fetchone()
    return int(total)


def show_refusals(files: list[Path]) -> None:
    refusals = [row for file in files for row in read_rows(file)]
    print(f"\nRefused rows: {len(refusals)}, all listed in {' and '.join(map(str, files))}; the first ones:")
    for row in sorted(refusals, key=lambda row: int(row["line"]))[:REFUSALS_SHOWN]:
        print(f"  line {row['line']:>5}, flight {row['flight']}: {row['reason']}")


def read_rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():  # a service that did not start has refused nothing
        return []
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def count_keys(server: redis.Redis) -> tuple[int, int]:
    """Return how many keys of the demo the server has, and how many of them lack a TTL."""
    keys = sorted({key for pattern in KEY_PATTERNS for key in server.scan_iter(match=pattern, count=1000)})
    with server.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.pttl(key)
        return len(keys), pipeline.execute().count(NO_TTL)


if __name__ == "__main__":
    main()
