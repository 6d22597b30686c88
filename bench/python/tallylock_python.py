"""tallylock's blocking face in Python as a contestant. Usage: tallylock_python.py add|lock redis://HOST:PORT KEY"""

import sys
from datetime import timedelta

import tallylock
from blocks import answer_blocks

_, work, url, key = sys.argv
client = tallylock.connect(url)

if work == "add":
    counter = client.counter(key, ttl=timedelta(minutes=15))
    answer_blocks(lambda: counter.add(1))
elif work == "lock":
    lock = client.lock(key, ttl=timedelta(seconds=30))
    answer_blocks(lambda: lock.acquire().release())
else:
    sys.exit(f"unknown work: {work}")
