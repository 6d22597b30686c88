"""What the demo has left on the server, looked at without tallylock."""

from collections.abc import Iterator, Sequence
from itertools import islice

import redis

KEY_PATTERNS = ("session:*", "guest:*", "billing:*")
# In a claim's key, behind the counter's; see docs/layout.md.
CLAIM = ":tlu1:claim:"
NO_TTL = -1
AT_ONCE = 5_000


class Leftovers:
    """How many keys there are, how many of them lack a TTL, and how many are claims."""

    def __init__(self, server: redis.Redis) -> None:
        """Count them."""
        self.keys = self.without_ttl = self.claims = self.open_claims = 0
        # SCAN may show a key twice.
        keys = {key for pattern in KEY_PATTERNS for key in server.scan_iter(match=pattern, count=AT_ONCE)}
        for some in slices(iter(keys)):
            self._count(server, some)

    def _count(self, server: redis.Redis, keys: Sequence[str]) -> None:
        self.keys += len(keys)
        with server.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.pttl(key)
            self.without_ttl += pipeline.execute().count(NO_TTL)
        claims = [key for key in keys if CLAIM in key]
        self.claims += len(claims)
        if claims:
            self.open_claims += sum(str(value).startswith("open") for value in server.mget(claims))


def slices(keys: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(keys, AT_ONCE)):
        yield some
