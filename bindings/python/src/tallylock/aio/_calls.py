"""The calls of one client that are under way in the background, and how their results come to the event loop."""

import asyncio
import socket
import weakref
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from tallylock import _ffi
from tallylock._ids import next_ticket
from tallylock._outcomes import Outcome, unpack
from tallylock._session import Session
from tallylock.errors import ClosedError, TallylockError, translated

_Arguments = ParamSpec("_Arguments")


class Calls:
    """Submits calls of one client and awaits them on the event loop in which this was made.

    The native library rings a socket when its queue of results gets its first; one reading of the socket brings all
    that are there. Closing the session ends the ringing, and so takes the socket off the loop.
    """

    __slots__ = ("__weakref__", "_loop", "_waiting", "session")

    def __init__(self, session: Session) -> None:
        """Make the socket and watch it."""
        self.session = session
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        bell = socket.socket(fileno=_ffi.completions_socket(session.client_id))
        self._loop.add_reader(bell, _rung, weakref.ref(self), bell, self._loop)

    async def call(
        self,
        submit: Callable[Concatenate[int, int, _Arguments], None],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Outcome:
        """Submit a call and return what it ends with; if the task is cancelled meanwhile, the call is given up."""
        client_id = self.session.client_id
        future = self._future()
        ticket = next_ticket()
        self._waiting[ticket] = future
        try:
            submit(client_id, ticket, *arguments, **named)
            outcome = await future
        except _ffi.CallError as error:
            raise translated(error) from None
        except asyncio.CancelledError:
            self._give_up(ticket)
            raise
        finally:
            self._waiting.pop(ticket, None)
        if isinstance(outcome, TallylockError):
            raise outcome
        return outcome

    def close(self) -> None:
        """Close the session: every call under way ends with ClosedError."""
        self.session.close()
        for future in self._waiting.values():
            if not future.done():
                message = "closed: the client was closed meanwhile; make a new client"
                future.set_result(ClosedError(message, code="closed"))

    def take(self) -> None:
        """Bring the results that are there to those who wait for them."""
        try:
            records = _ffi.completions_take(self.session.client_id)
        except _ffi.CallError:
            # Closed since the bell rang: closing has answered everyone.
            return
        for ticket, outcome in unpack(records):
            future = self._waiting.get(ticket)
            if future is not None and not future.done():
                future.set_result(outcome)

    def _future(self) -> asyncio.Future[Outcome]:
        if asyncio.get_running_loop() is not self._loop:
            message = "the client belongs to another event loop: connect one in this loop"
            raise RuntimeError(message)
        return self._loop.create_future()

    def _give_up(self, ticket: int) -> None:
        try:
            _ffi.cancel(self.session.client_id, ticket)
        except _ffi.CallError:
            # Closed meanwhile: that has given up everything.
            return


def _rung(calls: weakref.ref[Calls], bell: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
    # The end of the stream means that the client was closed, by its owner or because it was forgotten.
    rings = bell.recv(4096)
    alive = calls()
    if not rings:
        loop.remove_reader(bell)
        bell.close()
    elif alive is not None:
        alive.take()
