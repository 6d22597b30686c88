"""Both faces by one set of words, so that one test runs against each."""

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Any

import tallylock
import tallylock.aio

FACES = ("blocking", "asyncio")
# Of clients whose calls are not to be given up because the machine is busy.
PATIENCE = timedelta(seconds=60)


class Face:
    """The blocking face, or the one for asyncio with each coroutine run to its end on the spot. A context manager."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop = asyncio.new_event_loop() if name == "asyncio" else None
        self._clients: list[Any] = []

    def connect(self, url: str, **options: Any) -> Any:
        options = {"timeout": PATIENCE} | options
        if self._loop is None:
            client: Any = tallylock.connect(url, **options)
        else:
            client = Awaited(self._loop.run_until_complete(tallylock.aio.connect(url, **options)), self._loop)
        self._clients.append(client)
        return client

    def await_loss(self, lease: Any, longest: float) -> bool:
        """Wait for the loss of a lease, at most so many seconds, and return whether it came."""
        if self._loop is None:
            return bool(lease.lost.wait(longest))
        waiting = asyncio.wait_for(lease.lost.wait(), longest)
        try:
            return bool(self._loop.run_until_complete(waiting))
        except asyncio.TimeoutError:
            return False

    def connect_redlock(self, urls: list[str], **options: Any) -> Any:
        if self._loop is None:
            client: Any = tallylock.connect_redlock(urls, **options)
        else:
            connecting = tallylock.aio.connect_redlock(urls, **options)
            client = Awaited(self._loop.run_until_complete(connecting), self._loop)
        self._clients.append(client)
        return client

    def __enter__(self) -> "Face":
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        if self._loop is not None:
            # The loop hears that the clients are closed.
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()


class Awaited:
    """An object of the face for asyncio whose coroutines are run to their end when they are called."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        return self._awaiting(found) if inspect.ismethod(found) else found

    def __iter__(self) -> "Awaited":
        return self

    def __next__(self) -> Any:
        try:
            return self._loop.run_until_complete(self._target.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> "Awaited":
        self._loop.run_until_complete(self._target.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._target.__aexit__(kind, error, traceback))

    def _awaiting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            if inspect.isawaitable(result):
                result = self._loop.run_until_complete(result)
            is_ours = type(result).__module__.startswith("tallylock.aio")
            return Awaited(result, self._loop) if is_ours else result

        return call
