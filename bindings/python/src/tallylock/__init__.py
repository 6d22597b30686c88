"""TTL-safe billing counters and distributed locks on Redis or Valkey.

```python
with tallylock.connect("redis://127.0.0.1:6379") as client:
    seconds = client.counter("session:42:billableSecondsPending", ttl=timedelta(minutes=15))
    seconds.add(30)
    with client.lock("invoice:42", ttl=timedelta(seconds=30)).acquire(wait=timedelta(seconds=5)) as lease:
        lease.ensure(timedelta(seconds=2))
        seconds.drain()
```

`tallylock.aio` has the same for asyncio. Calls block the calling thread only, and a client may be shared by threads.
"""

from tallylock._batch import Entry
from tallylock._client import Client, connect
from tallylock._counter import Counter
from tallylock._guarded import Guarded
from tallylock._holder import Holder
from tallylock._lease import Lease
from tallylock._lock import Lock
from tallylock._loss import Loss
from tallylock._memory import Memory, MemoryKey
from tallylock._meter import Flushed, Meter, Refused
from tallylock._metrics import Losses, Metrics
from tallylock._once import Added, Claim, OpenClaim
from tallylock._redlock import Redlock, connect_redlock
from tallylock._scan import CounterFound, Scan
from tallylock._sweep import RefusedError, SweepFailure, SweepReport
from tallylock._sweeper import Sweeper
from tallylock._value import Value
from tallylock.errors import (
    AlreadyHeldError,
    BusyError,
    CallCancelledError,
    CallTimeoutError,
    ClosedError,
    ConflictError,
    CounterOverflowError,
    FencedOffError,
    ForbiddenError,
    InvalidArgumentError,
    LostError,
    NotAnIntegerError,
    OutcomeUnknownError,
    OutOfMemoryError,
    ReadOnlyError,
    TallylockError,
    UnavailableError,
    UnsupportedError,
    WrongTypeError,
)

__all__ = [
    "Added",
    "AlreadyHeldError",
    "BusyError",
    "CallCancelledError",
    "CallTimeoutError",
    "Claim",
    "Client",
    "ClosedError",
    "ConflictError",
    "Counter",
    "CounterFound",
    "CounterOverflowError",
    "Entry",
    "FencedOffError",
    "Flushed",
    "ForbiddenError",
    "Guarded",
    "Holder",
    "InvalidArgumentError",
    "Lease",
    "Lock",
    "Loss",
    "Losses",
    "LostError",
    "Memory",
    "MemoryKey",
    "Meter",
    "Metrics",
    "NotAnIntegerError",
    "OpenClaim",
    "OutOfMemoryError",
    "OutcomeUnknownError",
    "ReadOnlyError",
    "Redlock",
    "Refused",
    "RefusedError",
    "Scan",
    "SweepFailure",
    "SweepReport",
    "Sweeper",
    "TallylockError",
    "UnavailableError",
    "UnsupportedError",
    "Value",
    "WrongTypeError",
    "connect",
    "connect_redlock",
]
