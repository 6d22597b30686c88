"""How a holder is told that its lease is lost."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

import tallylock
import tallylock.aio
from faces import Face
from servers import KINDS, FaultProxy, Server

# Short enough to be outlived in a test, long enough for a busy machine.
TTL = timedelta(milliseconds=1500)
LONG = timedelta(seconds=60)
NOTHING = timedelta(0)
KEY = "invoice:42"
# How late a busy machine may tell what it knew in time, in seconds; less than what a call may take (`timeout=LONG`).
LATE = 20.0


def take_over(server: Server) -> None:
    """Put another's lock into our place, as an operator might."""
    server.plain.set(KEY, "another", px=60_000)


def assert_told_at(deadline: float) -> None:
    """Make sure that it is just now the deadline, which is known to a millisecond."""
    assert deadline - 0.002 <= time.monotonic() < deadline + LATE


def test_a_silent_network_is_told_at_the_deadline(proxy: FaultProxy, face: Face) -> None:
    told: list[tallylock.LostError] = []
    lease = face.connect(proxy.url, timeout=LONG).lock(KEY, ttl=2 * TTL).acquire(on_lost=told.append)
    proxy.do("hold")
    deadline = time.monotonic() + lease.remaining().total_seconds()
    assert face.await_loss(lease, 60)
    assert_told_at(deadline)
    assert lease.lost.error.reason == "unreachable"
    eventually(lambda: [error.reason for error in told] == ["unreachable"])
    for verb in (lease.release, lambda: lease.ensure(NOTHING)):
        with pytest.raises(tallylock.LostError) as lost:
            verb()
        assert lost.value.reason == "unreachable"


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_hangs_is_told_at_the_deadline(kind: str, face: Face) -> None:
    with Server(kind) as server:
        lease = face.connect(server.url, timeout=LONG).lock(KEY, ttl=2 * TTL).acquire()
        server.stop()
        try:
            deadline = time.monotonic() + lease.remaining().total_seconds()
            assert face.await_loss(lease, 60)
            assert_told_at(deadline)
            assert lease.lost.error.reason == "unreachable"
        finally:
            server.go_on()


def test_another_owner_is_told_at_the_next_renewal(server: Server, face: Face) -> None:
    lease = face.connect(server.url).lock(KEY, ttl=LONG, renewal=timedelta(milliseconds=50)).acquire()
    take_over(server)
    assert face.await_loss(lease, 20)
    assert lease.lost.error.reason == "taken_over"


def test_a_wait_ends_with_its_time_or_with_the_lease(server: Server, face: Face) -> None:
    lease = face.connect(server.url).lock(KEY, ttl=LONG).acquire()
    begun = time.monotonic()
    assert not face.await_loss(lease, 0.2)
    assert 0.2 <= time.monotonic() - begun < LATE
    lease.release()
    assert not face.await_loss(lease, 60), "it was let go of"
    assert time.monotonic() - begun < LATE
    assert lease.lost.error is None


def test_who_waits_in_a_thread_is_woken_by_the_release(server: Server) -> None:
    with tallylock.connect(server.url) as client:
        lease = client.lock(KEY, ttl=LONG).acquire()
        ended: list[bool] = []
        waiting = threading.Thread(target=lambda: ended.append(lease.lost.wait()))
        waiting.start()
        lease.release()
        waiting.join(20)
        assert ended == [False]


def test_a_closed_client_tells_the_end(server: Server, face: Face) -> None:
    client = face.connect(server.url)
    told: list[tallylock.LostError] = []
    lease = client.lock(KEY, ttl=TTL).acquire(on_lost=told.append)
    client.close()
    assert face.await_loss(lease, 60)
    assert lease.lost.error.reason == "expired"
    eventually(lambda: len(told) == 1)


def test_ctrl_c_ends_a_wait_for_the_loss(server: Server) -> None:
    with tallylock.connect(server.url) as client, client.lock(KEY, ttl=LONG).acquire() as lease:

        def wait() -> None:
            # Started in here, so that Ctrl-C comes nowhere else, however slow the machine is.
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            lease.lost.wait(60)

        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            wait()
        assert time.monotonic() - begun < 30


def test_in_memory_time_is_what_a_test_lets_pass(face: Face) -> None:
    client = face.connect("memory://")
    lease = client.lock(KEY, ttl=LONG).acquire()
    assert not face.await_loss(lease, 0.1)
    client.memory.advance(LONG)
    assert lease.lost.is_set()
    assert face.await_loss(lease, 20)
    assert lease.lost.error.reason == "expired"


def test_a_callback_that_fails_is_logged(server: Server, face: Face, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_lost: tallylock.LostError) -> None:
        raise ZeroDivisionError

    with nothing_unheard(), caplog.at_level(logging.ERROR, "tallylock"):
        lease = face.connect(server.url).lock(KEY, ttl=TTL).acquire(on_lost=fail)
        take_over(server)
        assert face.await_loss(lease, 60)
        eventually(lambda: "ZeroDivisionError" in caplog.text)


def test_the_thread_of_a_callback_ends_with_the_lease(server: Server) -> None:
    client = tallylock.connect(server.url)
    lock = client.lock(KEY, ttl=LONG)
    lock.acquire(on_lost=print).release()
    eventually(lambda: not watching_threads())
    forgotten = lock.acquire(on_lost=print)
    assert watching_threads()
    del forgotten
    eventually(lambda: not watching_threads())


def test_the_task_is_cancelled_by_choice(server: Server) -> None:
    async def hold(lock: tallylock.aio.Lock) -> None:
        async with await lock.acquire(cancel_on_loss=True):
            take_over(server)
            await asyncio.sleep(60)
            pytest.fail("it goes on")

    async def run() -> None:
        async with await tallylock.aio.connect(server.url) as client:
            with pytest.raises(tallylock.LostError) as lost:
                await hold(client.lock(KEY, ttl=TTL))
            assert lost.value.reason == "taken_over"
            # It was the loss that cancelled, and that is over.
            await asyncio.sleep(0)

    with nothing_unheard():
        asyncio.run(run())


def test_nobody_is_cancelled_unasked(server: Server) -> None:
    went_on: list[bool] = []

    async def hold() -> None:
        async with (
            await tallylock.aio.connect(server.url) as client,
            await client.lock(KEY, ttl=TTL).acquire() as lease,
        ):
            take_over(server)
            # Not by wait_for, which before Python 3.12 may lose a cancelling.
            went_on.append(await lease.lost.wait())
            await asyncio.sleep(0)
            went_on.append(True)

    with nothing_unheard(), pytest.raises(tallylock.LostError):
        asyncio.run(hold())
    assert went_on == [True, True]


def test_who_is_cancelled_by_another_is_cancelled(server: Server) -> None:
    async def hold() -> None:
        async with (
            await tallylock.aio.connect(server.url) as client,
            await client.lock(KEY, ttl=TTL).acquire(cancel_on_loss=True),
        ):
            await asyncio.sleep(60)

    async def run() -> None:
        task = asyncio.create_task(hold())
        while server.plain.get(KEY) is None:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert server.plain.get(KEY) is None

    with nothing_unheard():
        asyncio.run(run())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task does not know yet how often it was cancelled")
def test_who_is_cancelled_by_both_is_cancelled(server: Server) -> None:
    async def hold() -> None:
        task = asyncio.current_task()
        assert task is not None
        async with (
            await tallylock.aio.connect(server.url) as client,
            await client.lock(KEY, ttl=TTL).acquire(cancel_on_loss=True, on_lost=lambda _: task.cancel()),
        ):
            take_over(server)
            await asyncio.sleep(60)

    async def run() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(hold())

    with nothing_unheard():
        asyncio.run(run())


def test_a_lease_that_is_lost_already_lets_nobody_in(server: Server) -> None:
    async def run() -> None:
        async with await tallylock.aio.connect(server.url) as client:
            lease = await client.lock(KEY, ttl=TTL).acquire(cancel_on_loss=True)
            take_over(server)
            assert await asyncio.wait_for(lease.lost.wait(), 60)
            with pytest.raises(tallylock.LostError):
                async with lease:
                    pytest.fail("it was entered")

    with nothing_unheard():
        asyncio.run(run())


def test_a_loop_that_ends_with_a_lease_hears_nothing_more(server: Server) -> None:
    async def run() -> Any:
        client = await tallylock.aio.connect(server.url)
        lease = await client.lock(KEY, ttl=TTL).acquire(on_lost=print)
        await client.close()
        return lease

    with nothing_unheard():
        lease = asyncio.run(run())
        eventually(lambda: bool(lease.lost.is_set()))
        eventually(lambda: not watching_threads())


@contextmanager
def nothing_unheard() -> Iterator[None]:
    """Make sure that no thread ends with an error, and that asyncio has none of which nobody has heard."""
    unheard: list[object] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = unheard.append  # type: ignore[method-assign, assignment]
    hook, threading.excepthook = threading.excepthook, unheard.append
    logging.getLogger("asyncio").addHandler(handler)
    try:
        yield
        gc.collect()
    finally:
        logging.getLogger("asyncio").removeHandler(handler)
        threading.excepthook = hook
    assert not unheard


def watching_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tallylock-lost"]


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds that is to hold before long."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
