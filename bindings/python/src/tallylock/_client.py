"""The blocking client."""

from datetime import timedelta
from types import TracebackType
from typing import Literal

from tallylock._arguments import Binary
from tallylock._counter import Counter
from tallylock._lock import Lock
from tallylock._memory import Memory
from tallylock._session import Session, connected
from tallylock._value import Value


def connect(
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
        The client. It may be shared by threads, and used in children made by `fork`.

    Raises:
        InvalidArgumentError: if an argument is wrong; nothing was sent.
        UnavailableError: if the server can't be reached, or is silent until the time-out.
        ForbiddenError: if it wants another user or password.

    """
    return Client(connected(url, timeout, owner))


class Client:
    """A connection to a server, or several where threads use it at once. A context manager: closed at the exit."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        """Make a client; `connect` does this."""
        self._session = session

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
        return Counter(self._session, key, ttl, expiry)

    def value(self, key: str | Binary) -> Value:
        """Return a handle on a value; nothing is sent. InvalidArgumentError if it can't be a key."""
        return Value(self._session, key)

    def lock(self, key: str | Binary, *, ttl: timedelta) -> Lock:
        """Return a handle on a lock; nothing is sent.

        Args:
            key: its key, used as given; text is sent in UTF-8.
            ttl: how long a lease lasts that isn't extended: 3 ms to 10 years, rounded up to whole milliseconds.

        Raises:
            InvalidArgumentError: if one of them is wrong.

        """
        return Lock(self._session, key, ttl)

    @property
    def healed(self) -> int:
        """How many counters had lost their TTL and were given it back by a drain of this client."""
        return self._session.healed()

    @property
    def memory(self) -> Memory | None:
        """The test face of a client of `memory://`; None for any other."""
        return self._session.memory()

    def close(self) -> None:
        """Close the client, touching no data.

        Every later call raises ClosedError, and so does an acquire that another thread waits for, which leaves no lock
        behind. Other calls of other threads run to their end.
        """
        self._session.close()

    def __enter__(self) -> "Client":
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()
