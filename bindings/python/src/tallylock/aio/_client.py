"""The client for asyncio."""

from datetime import timedelta
from types import TracebackType
from typing import Literal

from tallylock import _ffi
from tallylock._arguments import Binary
from tallylock._memory import Memory
from tallylock._session import opened
from tallylock.aio._calls import Calls
from tallylock.aio._counter import Counter
from tallylock.aio._lock import Lock
from tallylock.aio._value import Value


async def connect(
    url: str,
    *,
    timeout: timedelta | None = None,
    owner: str | Literal[False] | None = None,
) -> "Client":
    """Connect to a Redis or Valkey server.

    Args:
        url: `redis://`, `valkey://`, `rediss://` or `valkeys://` with `user:password@host:port/database`,
            `unix:///path`, or `memory://` for a server in this process.
        timeout: how long one call may take, repeats included; the default that all languages share if not given.
        owner: what people see in the value of this client's locks: host and process id if not given, this text (1 to
            64 visible ASCII characters), or nothing at all with False.

    Returns:
        The client. It belongs to the running event loop.

    Raises:
        InvalidArgumentError: if an argument is wrong; nothing was sent.
        UnavailableError: if the server can't be reached, or is silent until the time-out.
        ForbiddenError: if it wants another user or password.

    """
    calls = Calls(opened(url, timeout, owner))
    try:
        await calls.call(_ffi.submit_connect)
    except BaseException:
        calls.session.close()
        raise
    return Client(calls)


class Client:
    """A connection to a server, for the tasks of one event loop. A context manager: closed at the exit."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        """Make a client; `connect` does this."""
        self._calls = calls

    def counter(
        self,
        key: str | Binary,
        *,
        ttl: timedelta,
        expiry: Literal["sliding", "fixed"] = "sliding",
    ) -> Counter:
        """Return a handle on a counter; nothing is sent.

        Args:
            key: its key, used as given; text is sent in UTF-8.
            ttl: how long it lives after an add: 1 ms to 10 years, rounded up to whole milliseconds.
            expiry: `sliding`, each add sets the TTL; or `fixed`, an add sets it only where there is none.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        return Counter(self._calls, key, ttl, expiry)

    def value(self, key: str | Binary) -> Value:
        """Return a handle on a value; nothing is sent. InvalidArgumentError if it can't be a key."""
        return Value(self._calls, key)

    def lock(self, key: str | Binary, *, ttl: timedelta) -> Lock:
        """Return a handle on a lock; nothing is sent.

        Args:
            key: its key, used as given; text is sent in UTF-8.
            ttl: how long a lease lasts that isn't extended: 3 ms to 10 years, rounded up to whole milliseconds.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        return Lock(self._calls, key, ttl)

    @property
    def healed(self) -> int:
        """How many counters had lost their TTL and were given it back by a drain of this client."""
        return self._calls.session.healed()

    @property
    def memory(self) -> Memory | None:
        """The test face of a client of `memory://`; None for any other."""
        return self._calls.session.memory()

    async def close(self) -> None:
        """Close the client, touching no data, and wait until the calls under way have ended.

        Every later call raises ClosedError, and so does an acquire under way, which leaves no lock behind. Other calls
        under way run to their end, bounded by the client's time-out.
        """
        await self._calls.close()

    async def __aenter__(self) -> "Client":
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        await self.close()
