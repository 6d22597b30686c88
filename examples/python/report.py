"""The end of the demo: shows what was billed and what went wrong, and refuses to call it right unless it is.

Exits with 1 if the billed seconds are not those of the data, if any key of the demo lacks a TTL, if a claim is still
open, if a fence did not grow from one grant to the next, or if less went wrong than was asked.
"""

import argparse
import csv
import itertools
import json
import sqlite3
import sys
from pathlib import Path

from leftovers import Leftovers
from plan import ADDER_KILLS_ASKED, JOB_KILLS_ASKED, LOST_REPLIES_ASKED, SWEPT_ASKED
from sessions import plain_client

REFUSALS_SHOWN = 3


def main() -> None:
    arguments = parse_arguments()
    with sqlite3.connect(f"file:{arguments.ledger}?mode=ro", uri=True) as ledger:
        show_largest_bills(ledger)
        in_order = show_hand_overs(ledger)
        enough = show_chaos(ledger, json.loads(arguments.chaos.read_text()))
        billed = number(ledger, "SELECT coalesce(sum(seconds), 0) FROM invoices")
        # A claim gives a counter that lacks its TTL a new one: that must not hide it.
        healed = number(ledger, "SELECT coalesce(sum(healed), 0) FROM grants")
    show_refusals(arguments.refused)
    with plain_client(arguments.url) as server:
        left = Leftovers(server)
    print(f"\nKeys left: {left.keys:,}, {left.without_ttl} without a TTL; found so by a claim: {healed}; ", end="")
    print(f"claims: {left.claims:,}, {left.open_claims} of them open")
    immortal = left.without_ttl + healed
    print(f"\nbilled {billed} of {arguments.expected_seconds} seconds; {immortal} keys without a TTL")
    balances = billed == arguments.expected_seconds and left.claims and not left.open_claims and not immortal
    sys.exit(0 if balances and in_order and enough else 1)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show what the demo billed, and check it.")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    parser.add_argument("--ledger", type=Path, required=True, help="the SQLite database of the invoices")
    parser.add_argument("--chaos", type=Path, required=True, help="the file that says how much went wrong")
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
        print(f"{session:10}{seconds:>10,}{seconds / 3600:>9.1f}{invoices:>10}{fence or 'swept':>20}")
    sessions, claimed, finished, swept, while_adding = ledger.execute(
        """
        SELECT count(DISTINCT session), coalesce(sum(iif(origin = 'claimed', seconds, 0)), 0),
               coalesce(sum(iif(origin = 'finished', seconds, 0)), 0),
               coalesce(sum(iif(origin = 'swept', seconds, 0)), 0), coalesce(sum(iif(while_adding, seconds, 0)), 0)
        FROM invoices LEFT JOIN grants USING (fence)
        """
    ).fetchone()
    print(f"\n{sessions:,} sessions: {claimed:,} seconds were claimed, {finished:,} were left when sessions ended,")
    print(f"{swept:,} were swept; {while_adding:,} were invoiced by the jobs while the services went on adding")


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


def show_chaos(ledger: sqlite3.Connection, chaos: dict[str, int]) -> bool:
    """Print what went wrong; return whether it was as much as was asked."""
    swept = number(ledger, "SELECT count(*) FROM invoices WHERE origin = 'swept'")
    resumed = number(ledger, "SELECT coalesce(sum(resumed), 0) FROM grants")
    refusals = ledger.execute("SELECT told_by, count(*) FROM overtaken GROUP BY told_by ORDER BY told_by").fetchall()
    told = ", ".join(f"{count} by the {who}" for who, count in refusals) or "none needed it"
    print(f"\nWhat went wrong (DEMO_SEED={chaos['seed']} repeats it)\n")
    print(f"billing jobs killed           {chaos['job_kills']:>6,}")
    print(f"claims that others had to end {resumed:>6,}")
    print(f"billing jobs held up          {chaos['hold_ups']:>6,}   told that they were overtaken: {told}")
    print(f"abandoned sessions swept      {swept:>6,}   by a sweeper that was killed {chaos['sweeper_kills']} times")
    print(f"services killed and resumed   {chaos['adder_kills']:>6,}")
    print(f"replies to services lost      {chaos['lost_replies']:>6,}")
    asked = (
        ("kills of jobs", chaos["job_kills"], JOB_KILLS_ASKED),
        ("kills of services", chaos["adder_kills"], ADDER_KILLS_ASKED),
        ("lost replies", chaos["lost_replies"], LOST_REPLIES_ASKED),
        ("swept sessions", swept, SWEPT_ASKED),
    )
    missed = [f"{count} {what} of {least}" for what, count, least in asked if count < least]
    if missed:
        print(f"\nBUT THAT IS LESS THAN WAS ASKED: {', '.join(missed)}")
    return not missed


def number(ledger: sqlite3.Connection, query: str) -> int:
    (found,) = ledger.execute(query).fetchone()
    return int(found)


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


if __name__ == "__main__":
    main()
