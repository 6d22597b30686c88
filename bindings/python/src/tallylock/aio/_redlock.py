"""Locks over several independent servers, for asyncio."""

from collections.abc import Iterable
from datetime import timedelta
from types import TracebackType
from typing import Literal

from tallylock import _ffi
from tallylock._arguments import Binary
from tallylock._metrics import Metrics
from tallylock._session import Session, redlock_arguments
from tallylock.aio._calls import Calls
from tallylock.aio._lock import Lock
from tallylock.errors import translating


async def connect_redlock(  # noqa: PLR0913 - named ones, each with a default
    urls: Iterable[str],
    *,
    timeout: timedelta | None = None,
    node_timeout: timedelta | None = None,
    rejoin: bool = False,
    owner: str | Literal[False] | None = None,
    avoid_scripts: bool = False,
) -> "Redlock":
    """Connect to several independent servers, of which more than half decide about each lock.

    Args:
        urls: one for each server, as of `connect`: an odd number, 3 to 99, each another server.
        timeout: how long one call may take, repeats included; the default that all languages share if not given.
        node_timeout: how long a server is waited for that the others can do without; a small part of the lock's TTL if
            not given.
        rejoin: whether a server that knows nothing of a lock has it again after the next extend, which then waits for
            all servers. Only for servers that keep the rule of the delayed restart, see docs/locks.md.
        owner: what people see in the value of this client's locks, as of `connect`.
        avoid_scripts: go by WATCH, MULTI and EXEC from the first call on, as of `connect`.

    Returns:
        The client, which has locks only, once more than half of the servers are connected. It belongs to the running
        event loop.

    Raises:
        InvalidArgumentError: if an argument is wrong; nothing was sent.
        UnavailableError: if too few servers can be reached within the time-out; the message counts them.
        ForbiddenError: if a server wants another user or password, and said so before enough were connected.

    """
    arguments = redlock_arguments(
        urls,
        timeout=timeout,
        node_timeout=node_timeout,
        rejoin=rejoin,
        owner=owner,
        avoid_scripts=avoid_scripts,
    )
    with translating():
        calls = Calls(Session(_ffi.open_redlock(*arguments)))
    try:
        await calls.call(_ffi.submit_connect)
    except BaseException:
        calls.session.close()
        raise
    return Redlock(calls)


class Redlock:
    """Connections to several independent servers, for the tasks of one event loop. A context manager."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        """Make a client; `connect_redlock` does this."""
        self._calls = calls

    def lock(self, key: str | Binary, *, ttl: timedelta) -> Lock:
        """Return a handle on a lock; nothing is sent.

        Its verbs are those of a lock on one server, but for `inspect` and `steal`, which are about one: they raise
        UnsupportedError.

        Args:
            key: its key, used as given; text is sent in UTF-8.
            ttl: how long a lease lasts that isn't extended: 3 ms to 10 years, rounded up to whole milliseconds.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        return Lock(self._calls, key, ttl)

    def metrics(self) -> Metrics:
        """Return what was counted of this client's locks in this process; nothing is sent.

        Raises:
            ClosedError: if the client is closed.

        """
        return self._calls.session.metrics()

    async def close(self) -> None:
        """Close the client, touching no data, and wait until the calls under way have ended.

        Every later call raises ClosedError, and so does an acquire under way, which leaves no lock behind. Other calls
        under way run to their end, bounded by the client's time-out.
        """
        await self._calls.close()

    async def __aenter__(self) -> "Redlock":
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
