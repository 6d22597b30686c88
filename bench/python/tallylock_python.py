"""The blocking face of tallylock in Python as a contestant. Usage: tallylock_python.py add|batch|lock URL KEY"""

import sys
from datetime import timedelta

import tallylock
from blocks import answer_blocks

_, work, url, key = sys.argv
client = tallylock.connect(url)

if work == "add":
    counter = client.counter(key, ttl=timedelta(minutes=15))
    answer_blocks(lambda: counter.add(1))
elif work == "batch":
    ttl = timedelta(minutes=15)
    counters = [client.counter(f"{key}:{number:02}", ttl=ttl) for number in range(100)]

    def add_many() -> None:
        results = client.add_many([counters[number % 100].entry(1) for number in range(10_000)])
        for result in results:
            if not isinstance(result, tallylock.Added):
                raise result

    answer_blocks(add_many)
elif work == "lock":
    lock = client.lock(key, ttl=timedelta(seconds=30))
    answer_blocks(lambda: lock.acquire().release())
else:
    sys.exit(f"unknown work: {work}")
