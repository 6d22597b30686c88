"""Ctrl-C while a thread waits for a lock or changes a value: it acts at once, and leaves nothing behind."""

import gc
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from dis import opname
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tallylock
from handles import leases_count
from servers import Server
from tallylock import _ffi, _value

TTL = timedelta(seconds=30)
PACKAGE = str(Path(tallylock.__file__).parent)
WAITER = """
import sys
from datetime import timedelta
import tallylock

lock = tallylock.connect(sys.argv[1]).lock("invoice:42", ttl=timedelta(seconds=30))
try:
    print("waiting", flush=True)
    lock.acquire(wait=timedelta(seconds=60))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


def stays_free(server: Server, key: str) -> bool:
    """Return whether a key that is not there isn't there for a second, which is longer than any waiter pauses."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        if server.plain.exists(key):
            return False
        time.sleep(0.01)
    return True


def is_freed(server: Server, key: str) -> bool:
    """Return whether a key is gone within a time in which everything that is undone is."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not server.plain.exists(key):
            return True
        time.sleep(0.01)
    return False


def test_ctrl_c_ends_a_wait(server: Server) -> None:
    holder = tallylock.connect(server.url).lock("invoice:42", ttl=TTL).acquire()
    with subprocess.Popen(  # noqa: S603 - this very Python
        [sys.executable, "-c", WAITER, server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as waiter:
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "waiting\n"
        assert is_waiting_for_another(server)
        start = time.monotonic()
        waiter.send_signal(signal.SIGINT)
        assert waiter.stdout.readline() == "interrupted\n"
        # Far from the minute that it would have waited; a machine that is busy elsewhere may stall for seconds.
        assert time.monotonic() - start < 20
        holder.release()
        assert stays_free(server, "invoice:42")
        waiter.communicate("", timeout=10)


def is_waiting_for_another(server: Server) -> bool:
    """Return whether, before long, a second connection has asked for the lock."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        asking = [each for each in server.plain.client_list() if each["cmd"] in {"evalsha", "eval"}]
        if len(asking) > 1:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("wait", [None, timedelta(seconds=20)], ids=["at once", "waiting"])
def test_ctrl_c_just_after_the_grant_gives_it_back(
    server: Server, monkeypatch: pytest.MonkeyPatch, wait: timedelta | None
) -> None:
    def interrupted(call: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            if call(*arguments) != b"":
                raise KeyboardInterrupt
            return b""

        return called

    lock = tallylock.connect(server.url).lock("invoice:42", ttl=TTL)
    before = leases_count()
    name = "packed_lock_acquire" if wait is None else "ticket_wait"
    monkeypatch.setattr(_ffi, name, interrupted(getattr(_ffi, name)))
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(wait=wait)
    assert is_freed(server, "invoice:42")
    assert leases_count() == before


def test_ctrl_c_is_seen_though_the_client_was_closed_meanwhile(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = tallylock.connect(server.url).lock("invoice:42", ttl=TTL).acquire()
    client = tallylock.connect(server.url)

    def close_and_interrupt(*_: object) -> bytes:
        client.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(_ffi, "ticket_wait", close_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.lock("invoice:42", ttl=TTL).acquire(wait=timedelta(minutes=1))
    holder.release()
    assert stays_free(server, "invoice:42")


@pytest.mark.parametrize("wait", [None, timedelta(hours=1)], ids=["at once", "waiting"])
def test_ctrl_c_at_any_point_of_an_acquire_leaves_no_lock(wait: timedelta | None) -> None:
    client = tallylock.connect("memory://")
    lock, memory = client.lock("invoice:42", ttl=TTL), client.memory
    assert memory is not None
    before = leases_count()
    interrupted = 0
    while interrupted_at(interrupted, lambda: lock.acquire(wait=wait)):
        interrupted += 1
        deadline = time.monotonic() + 20
        while any(each.key == b"invoice:42" for each in memory.keys()):
            assert time.monotonic() < deadline, f"the interruption at {interrupted} leaves a lock"
            time.sleep(0.001)
    assert interrupted > 20
    assert [each.key for each in memory.keys() if each.key == b"invoice:42"] == [b"invoice:42"], "it ran to its end"
    assert leases_count() == before


def test_ctrl_c_at_any_point_of_an_update_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = tallylock.connect("memory://")
    value, memory = client.value("session:42:ctx"), client.memory
    assert memory is not None
    first = 2**63 + 2**62
    monkeypatch.setattr(_value, "next_update", partial(next, itertools.count(first)))
    interrupted = 0
    memory.put("session:42:ctx", "a", TTL)
    while interrupted_at(interrupted, lambda: value.update(bytes, ttl=TTL)):
        interrupted += 1
    assert interrupted > 20
    for update in range(first, first + interrupted + 1):
        with pytest.raises(_ffi.CallError):
            _ffi.update_present(update)


def test_ctrl_c_ends_a_look_for_claims(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = tallylock.connect(server.url).counter("session:42:billableSecondsPending", ttl=TTL)
    counter.add(30)
    counter.claim("run-1")

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_ffi, "ticket_wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            counter.claims()
    assert [(claim.id_text, claim.amount) for claim in counter.claims()] == [("run-1", 30)]


def interrupted_at(place: int, call: Callable[[], object]) -> bool:
    """Make a call and raise KeyboardInterrupt before its instruction at `place`; return whether it had that many."""
    left = place

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        # Between the end of a block and the return no signal is looked for.
        if event == "opcode" and not opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN"):
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    # Nothing is finalized meanwhile: an interruption of that would be seen by nobody.
    gc.disable()
    sys.settrace(trace)
    try:
        # Kept until nothing is interrupted any more.
        result = call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
        gc.enable()
    del result
    return False
