"""Before the demo: makes sure that the server holds nothing that the demo would bill as if it were its own."""

import argparse
import sys

from leftovers import Leftovers
from sessions import plain_client, plain_values


def main() -> None:
    parser = argparse.ArgumentParser(description="Refuse a server with pending seconds or open claims on it.")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    url = parser.parse_args().url
    with plain_client(url) as server:
        # What an earlier demo claimed is 0 until it expires.
        pending = [key for key, value in plain_values(server) if value not in (None, "0")]
        open_claims = Leftovers(server).open_claims
    if pending:
        sys.exit(
            f"preflight: this server already has {len(pending)} sessions to bill, such as {pending[0]}: give the demo "
            "a database of its own (such as redis://HOST:PORT/1), or wait 15 minutes if they are an earlier demo's"
        )
    if open_claims:
        sys.exit(
            f"preflight: this server already has {open_claims} claims to bill, perhaps of a demo that was stopped: "
            "give the demo a database of its own (such as redis://HOST:PORT/1)"
        )


if __name__ == "__main__":
    main()
