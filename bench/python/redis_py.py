"""redis-py (with hiredis) as a contestant. Usage: redis_py.py add|batch|lock redis://HOST:PORT KEY"""

import sys
from pathlib import Path

import redis
from blocks import answer_blocks

COUNTER_ADD = Path(__file__).parents[2] / "core" / "lua" / "counter_add.lua"

_, work, url, key = sys.argv
client = redis.Redis.from_url(url)

if work == "add":
    sha = client.script_load(COUNTER_ADD.read_text())
    answer_blocks(lambda: int(client.evalsha(sha, 1, key, "1", "900000", "sliding")))
elif work == "batch":
    sha = client.script_load(COUNTER_ADD.read_text())
    keys = [f"{key}:{number:02}" for number in range(100)]

    def add_many() -> None:
        pipeline = client.pipeline(transaction=False)
        for number in range(10_000):
            pipeline.evalsha(sha, 1, keys[number % 100], "1", "900000", "sliding")
        totals = [int(total) for total in pipeline.execute()]
        if len(totals) != 10_000:
            raise RuntimeError(f"{len(totals)} totals for 10,000 adds")

    answer_blocks(add_many)
elif work == "lock":

    def acquire_and_release() -> None:
        lock = client.lock(key, timeout=30, blocking=False)
        if not lock.acquire():
            raise RuntimeError(f"{key} is locked by somebody else")
        lock.release()

    answer_blocks(acquire_and_release)
else:
    sys.exit(f"unknown work: {work}")
