"""The sessions' counters on the server: what they are called, and which are there."""

import re
from collections.abc import Iterator

import redis

PREFIX = "session:"
SUFFIX = ":billableSecondsPending"


def session_of(counter_key: str) -> str:
    """Return the session (here an aircraft's tail number) that a counter belongs to."""
    return counter_key.removeprefix(PREFIX).removesuffix(SUFFIX)


def plain_client(url: str) -> redis.Redis:
    """Return an ordinary Redis client for a URL as tallylock takes it.

    Which keys there are is a question that tallylock does not answer, so the demo asks as anyone would.
    """
    return redis.Redis.from_url(re.sub("^valkey", "redis", url), decode_responses=True)


def counter_keys(server: redis.Redis) -> Iterator[str]:
    """Yield the key of each session's counter on the server, once."""
    # SCAN may show a key twice, which would only cost a second, empty drain: but a batch is better without it.
    yield from sorted(set(server.scan_iter(match=f"{PREFIX}*{SUFFIX}", count=1000)))
