"""The agent in Python."""

import sys
from datetime import timedelta

import tallylock

client = tallylock.connect(sys.argv[1])
leases: dict[str, tallylock.Lease] = {}


def perform(word: str, key: str, *rest: str) -> int | None:
    """Do what a line says and return what it comes to."""
    if word == "acquire":
        leases[key] = client.lock(key, ttl=timedelta(seconds=30)).acquire()
        return leases[key].fence
    if word == "release":
        leases.pop(key).release()
        return 0
    counter = client.counter(key, ttl=timedelta(minutes=15))
    if word == "add":
        return counter.add(int(*rest))
    return counter.drain() if word == "drain" else counter.finish()


for line in sys.stdin:
    try:
        outcome = perform(*line.split())
        print("none" if outcome is None else outcome, flush=True)
    except tallylock.TallylockError as error:
        print(f"error {error.code}", flush=True)
