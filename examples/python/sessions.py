"""The sessions' counters on the server: what they are called, and which of them have something to bill."""

import re
from collections.abc import Iterator

import redis
import tallylock

SUFFIX = ":billableSecondsPending"
# Sessions that the billing jobs look for.
SESSIONS = f"session:*{SUFFIX}"
# Sessions that nobody looks for and nobody ends.
GUESTS = f"guest:*{SUFFIX}"


def counter_key(session: str) -> str:
    """Return the key of the counter of a session (here an aircraft's tail number)."""
    return SESSIONS.replace("*", session)


def session_of(key: str) -> str:
    """Return the session that a counter belongs to."""
    return key.partition(":")[2].removesuffix(SUFFIX)


def sessions_to_bill(client: tallylock.Client) -> list[str]:
    """Return the sessions whose counters hold something, each once."""
    # A scan may find a counter twice, and the second of two claims would find nothing.
    return sorted({session_of(found.key.decode()) for found in client.scan(SESSIONS) if found.total})


def plain_client(url: str) -> redis.Redis:
    """Return an ordinary Redis client for a URL as tallylock takes it.

    What tallylock did to the server is looked at without it.
    """
    return redis.Redis.from_url(re.sub("^valkey", "redis", url), decode_responses=True)


def plain_values(server: redis.Redis) -> Iterator[tuple[str, str | None]]:
    """Yield each session's and each guest's counter on the server with what it holds, as text."""
    keys = sorted({key for pattern in (SESSIONS, GUESTS) for key in server.scan_iter(match=pattern, count=1000)})
    yield from zip(keys, server.mget(keys) if keys else [], strict=True)
