"""Before the demo: makes sure that the server holds no seconds that the demo would bill as if they were its own."""

import argparse
import sys

from sessions import counter_keys, plain_client


def main() -> None:
    parser = argparse.ArgumentParser(description="Refuse a server with pending seconds on it.")
    parser.add_argument("--url", required=True, help="the Redis or Valkey server")
    url = parser.parse_args().url
    with plain_client(url) as server:
        keys = list(counter_keys(server))
        values = server.mget(keys) if keys else []
        # What an earlier demo drained is 0 until it expires.
        pending = [key for key, value in zip(keys, values, strict=True) if value not in (None, "0")]
    if pending:
        sys.exit(
            f"preflight: this server already has {len(pending)} sessions to bill, such as {pending[0]}: give the demo "
            "a database of its own (such as redis://HOST:PORT/1), or wait 15 minutes if they are an earlier demo's"
        )


if __name__ == "__main__":
    main()
