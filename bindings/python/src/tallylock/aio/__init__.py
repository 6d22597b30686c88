"""tallylock for asyncio: the same as the blocking face, awaited.

```python
async with await tallylock.aio.connect("redis://127.0.0.1:6379") as client:
    seconds = client.counter("session:42:billableSecondsPending", ttl=timedelta(minutes=15))
    await seconds.add(30)
    async with await client.lock("invoice:42", ttl=timedelta(seconds=30)).acquire(wait=timedelta(seconds=5)) as lease:
        lease.ensure(timedelta(seconds=2))
        await seconds.drain()
```

A client belongs to the event loop in which it was connected. The errors are those of `tallylock`.
"""

from tallylock.aio._client import Client, connect
from tallylock.aio._counter import Counter
from tallylock.aio._guarded import Guarded
from tallylock.aio._lease import Lease
from tallylock.aio._lock import Lock
from tallylock.aio._loss import Loss
from tallylock.aio._meter import Meter
from tallylock.aio._redlock import Redlock, connect_redlock
from tallylock.aio._scan import Scan
from tallylock.aio._sweeper import Sweeper
from tallylock.aio._value import Value

__all__ = [
    "Client",
    "Counter",
    "Guarded",
    "Lease",
    "Lock",
    "Loss",
    "Meter",
    "Redlock",
    "Scan",
    "Sweeper",
    "Value",
    "connect",
    "connect_redlock",
]
