"""The billing job in its shortest form: add seconds, then bill them under a lock, fenced.

usage: quickstart.py [URL]     memory:// if no URL is given
"""

import sys
from datetime import timedelta

import tallylock

url = sys.argv[1] if len(sys.argv) > 1 else "memory://"

with tallylock.connect(url) as client:
    pending = client.counter("session:42:billableSecondsPending", ttl=timedelta(minutes=15))
    pending.add(30)
    pending.add(45)

    billing = client.lock("billing:42", ttl=timedelta(seconds=30))
    with billing.acquire(wait=timedelta(seconds=5)) as lease:
        seconds = pending.drain()
        lease.ensure(timedelta(seconds=2))
        print(f"invoice: {seconds} seconds, fence {lease.fence}")
