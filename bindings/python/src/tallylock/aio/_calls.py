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
from tallylock.errors import TallylockError, translated

_Arguments = ParamSpec("_Arguments")


class Calls:
    """Submits calls of one client and awaits them on the event loop in which this was made.

    The native library rings a socket when its queue of results gets its first; one reading of the socket brings all
    that are there. The last result after the closing ends the ringing, and so takes the socket off the loop.
    """

    __slots__ = ("__weakref__", "_loop", "_waiting", "session")

    def __init__(self, session: Session) -> None:
        """Make the socket and watch it."""
        self.session = session
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        bell = socket.socket(fileno=_ffi.completions_socket(session.client_id))
        self._loop.add_reader(bell, _rung, weakref.ref(self), session.client_id, bell, self._loop)

    async def call(
        self,
        submit: Callable[Concatenate[int, int, _Arguments], None],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Outcome:
        """Submit a call and return what it ends with; if the task is cancelled meanwhile, the call is given up."""
        ticket = next_ticket()
        future = self._submitted(ticket, submit, *arguments, **named)
        try:
            outcome = await future
        except asyncio.CancelledError:
            _ffi.cancel(self.session.client_id, ticket)
            self._waiting.pop(ticket, None)
            raise
        if isinstance(outcome, TallylockError):
            raise outcome
        return outcome

    def begin(
        self,
        submit: Callable[Concatenate[int, int, _Arguments], None],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> asyncio.Future[Outcome]:
        """Submit a call and return what will hold its end, also if that is an error."""
        return self._submitted(next_ticket(), submit, *arguments, **named)

    async def close(self) -> None:
        """Close the session, and wait until the calls under way have ended."""
        self.session.close()
        if self._waiting:
            await asyncio.wait(list(self._waiting.values()))

    def bring(self, records: bytes) -> None:
        """Bring results to those who wait for them."""
        for ticket, outcome in unpack(records):
            future = self._waiting.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(outcome)

    def _submitted(
        self,
        ticket: int,
        submit: Callable[Concatenate[int, int, _Arguments], None],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> asyncio.Future[Outcome]:
        if asyncio.get_running_loop() is not self._loop:
            message = "the client belongs to another event loop: connect one in this loop"
            raise RuntimeError(message)
        # Before it is submitted: its end may come at once.
        future = self._waiting[ticket] = self._loop.create_future()
        try:
            submit(self.session.client_id, ticket, *arguments, **named)
        except BaseException as error:
            del self._waiting[ticket]
            if isinstance(error, _ffi.CallError):
                raise translated(error) from None
            raise
        return future


def _rung(calls: weakref.ref[Calls], client_id: int, bell: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
    # The end of the stream means that the client was closed, by its owner or because it was forgotten.
    if not bell.recv(4096):
        loop.remove_reader(bell)
        bell.close()
        return
    try:
        records = _ffi.completions_take(client_id)
    except _ffi.CallError:
        # Closed, and the last result was taken since the bell rang.
        return
    # Taken also where nobody is left to be told: the ringing ends with the last.
    if (alive := calls()) is not None:
        alive.bring(records)
