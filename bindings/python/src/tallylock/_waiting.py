"""Calls that may take long, on a background thread of the native library: signals are handled meanwhile."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from tallylock import _ffi
from tallylock._ids import next_ticket
from tallylock._outcomes import Outcome, unpack
from tallylock.errors import TallylockError

# Signals are handled between two waits of this length.
_SLICE_MILLIS = 50
_Arguments = ParamSpec("_Arguments")


def awaited(
    client_id: int,
    submit: Callable[Concatenate[int, int, _Arguments], None],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> Outcome:
    """Submit a call and return what it ends with; if the wait is interrupted, the call is given up."""
    ticket = next_ticket()
    try:
        submit(client_id, ticket, *arguments, **named)
        while not (record := _ffi.ticket_wait(client_id, ticket, _SLICE_MILLIS)):
            pass
    except BaseException:
        _ffi.cancel(client_id, ticket)
        raise
    ((_, outcome),) = unpack(record)
    if isinstance(outcome, TallylockError):
        raise outcome
    return outcome
