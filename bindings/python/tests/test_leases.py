"""Leases that renew themselves, and that pass from one holder to another."""

import asyncio
import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest

import tallylock
import tallylock.aio
from faces import Face
from handles import leases_count
from servers import FaultProxy, Server
from tallylock import _ffi

# Short enough to be outlived in a test, long enough for a busy machine.
TTL = timedelta(milliseconds=1500)
LONG = timedelta(seconds=60)
NOTHING = timedelta(0)
KEY = "invoice:42"


def test_a_lease_outlives_its_ttl(server: Server, face: Face) -> None:
    lease = face.connect(server.url).lock(KEY, ttl=2 * TTL).acquire()
    assert not face.await_loss(lease, 4 * TTL.total_seconds())
    lease.ensure(NOTHING)
    lease.verify(NOTHING)
    lease.release()
    assert server.plain.get(KEY) is None


def test_without_renewal_it_ends_with_its_ttl(server: Server, face: Face) -> None:
    lock = face.connect(server.url).lock(KEY, ttl=TTL, renewal=False)
    lease = lock.acquire()
    face.connect(server.url).lock(KEY, ttl=TTL).acquire(wait=4 * TTL)
    assert not lease.is_valid
    with pytest.raises(tallylock.LostError) as lost:
        lease.release()
    assert lost.value.reason == "expired"


def test_what_is_forgotten_is_not_renewed(server: Server, face: Face) -> None:
    client = face.connect(server.url)
    before = leases_count()
    lease = client.lock(KEY, ttl=TTL).acquire(on_lost=print)
    del lease
    gc.collect()
    # At once, and not with the next others.
    assert _ffi.leases_count() == before
    client.lock(KEY, ttl=LONG).acquire(wait=4 * TTL).release()


def test_who_hangs_loses_it(server: Server, face: Face) -> None:
    client = face.connect(server.url)
    lease = client.lock(KEY, ttl=TTL, max_hold=TTL).acquire()
    assert lease.is_valid
    client.lock(KEY, ttl=LONG).acquire(wait=6 * TTL)
    assert not lease.is_valid


def test_a_blocked_loop_is_told_the_truth_at_once(server: Server) -> None:
    async def block() -> None:
        async with await tallylock.aio.connect(server.url) as client:
            renewed = await client.lock("renewed", ttl=2 * TTL).acquire()
            told: list[tallylock.LostError] = []
            lease = await client.lock(KEY, ttl=TTL, renewal=False).acquire(on_lost=told.append)
            time.sleep(TTL.total_seconds() * 2.5)  # noqa: ASYNC251 - what this is about
            assert not told, "nothing has run in the loop"
            assert lease.lost.is_set()
            assert not lease.is_valid
            assert renewed.is_valid, "it is not the loop that renews"
            assert await asyncio.wait_for(lease.lost.wait(), 60)

    asyncio.run(block())


def hold_and_tell(url: str, answers: Connection) -> None:
    lease = tallylock.connect(url).lock(KEY, ttl=TTL).acquire()
    answers.send(lease.is_valid)
    answers.recv()
    answers.send((lease.is_valid, lease.remaining(), lease.lost.is_set()))
    try:
        lease.release()
    except tallylock.LostError as lost:
        answers.send(lost.reason)


def test_a_holder_that_was_stopped_is_told_the_truth_at_once(server: Server) -> None:
    here, there = multiprocessing.Pipe()
    holder = multiprocessing.get_context("spawn").Process(target=hold_and_tell, args=(server.url, there))
    with process(holder):
        assert here.poll(60)
        assert here.recv() is True
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGSTOP)
        # Another gets it: its TTL is over.
        with tallylock.connect(server.url) as client:
            lease = client.lock(KEY, ttl=LONG).acquire(wait=10 * TTL)
            here.send("go on")
            os.kill(holder.pid, signal.SIGCONT)
            assert here.poll(60)
            assert here.recv() == (False, NOTHING, True)
            assert here.recv() == "expired"
            lease.verify(NOTHING)
            lease.release()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_lease_that_is_renewed_is_lost_in_a_child(server: Server) -> None:
    client = tallylock.connect(server.url)
    lease = client.lock(KEY, ttl=2 * TTL).acquire()
    lost = lease.lost
    assert not lost.is_set()
    here, there = multiprocessing.Pipe()

    def child() -> None:
        was_told = lost.wait(30)
        reason = lost.error.reason if lost.error is not None else None
        with client.lock("other", ttl=2 * TTL).acquire() as other:
            time.sleep(TTL.total_seconds() * 3)
            there.send((was_told, reason, other.is_valid))

    with process(multiprocessing.get_context("fork").Process(target=child)):
        assert here.poll(60)
        assert here.recv() == (True, "forked", True)
    assert lease.is_valid
    lease.release()
    assert server.plain.get(KEY) is None


def test_a_release_waits_for_the_renewal_under_way(proxy: FaultProxy, server: Server) -> None:
    with tallylock.connect(proxy.url) as client:
        lock = client.lock(KEY, ttl=LONG, renewal=timedelta(milliseconds=50))
        told: list[tallylock.LostError] = []
        for _ in range(10):
            with lock.acquire(on_lost=told.append) as lease:
                time.sleep(0.05)
                assert lease.is_valid
            assert server.plain.get(KEY) is None
        assert not told


def test_a_lease_changes_hands(server: Server, face: Face) -> None:
    client = face.connect(server.url)
    with client.lock(KEY, ttl=TTL).acquire() as lease:
        token = lease.transfer()
        assert not lease.is_valid
    other = face.connect(server.url).lock(KEY, ttl=TTL)
    adopted = other.adopt(token)
    assert adopted.fence == lease.fence
    lease.release()
    assert not lease.lost.is_set()
    with pytest.raises(tallylock.AlreadyHeldError):
        other.adopt(token)
    adopted.verify(NOTHING)
    adopted.release()
    assert server.plain.get(KEY) is None
    with pytest.raises(tallylock.LostError):
        other.adopt(token)


@pytest.mark.parametrize("token", ["", "no token", "1:", ":a", "1:\ud800", "1:" + "x" * 100])
def test_what_is_no_token_is_refused(face: Face, token: str) -> None:
    with pytest.raises(tallylock.InvalidArgumentError) as refused:
        face.connect("memory://").lock(KEY, ttl=TTL).adopt(token)
    assert refused.value.key == KEY


def test_an_adoption_that_is_cancelled_leaves_the_lease_to_be_adopted(server: Server) -> None:
    async def adopt() -> None:
        async with await tallylock.aio.connect(server.url) as client:
            before = leases_count()
            giver = await client.lock(KEY, ttl=LONG).acquire()
            token = await giver.transfer()
            adopting = asyncio.create_task(client.lock(KEY, ttl=LONG).adopt(token))
            await asyncio.sleep(0)
            # So its end is there, but was not taken.
            time.sleep(0.3)  # noqa: ASYNC251
            adopting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adopting
            del giver
            assert leases_count() == before
            await (await client.lock(KEY, ttl=LONG).adopt(token)).release()

    asyncio.run(adopt())


def test_a_handle_that_holds_the_lock_does_not_wait_for_itself(server: Server, face: Face) -> None:
    lock = face.connect(server.url).lock(KEY, ttl=LONG)
    with lock.acquire(), pytest.raises(tallylock.AlreadyHeldError) as held:
        lock.acquire(wait=LONG)
    assert held.value.key == KEY
    lock.acquire().release()


def test_an_error_of_the_block_is_not_hidden_by_a_loss(server: Server, face: Face) -> None:
    client = face.connect(server.url)

    def lose(error: Exception | None) -> None:
        server.plain.delete(KEY)
        with client.lock(KEY, ttl=TTL).acquire():
            server.plain.set(KEY, "another", px=60_000)
            if error is not None:
                raise error

    with pytest.raises(ZeroDivisionError):
        lose(ZeroDivisionError())
    with pytest.raises(tallylock.LostError) as lost:
        lose(None)
    assert lost.value.reason == "taken_over"


@pytest.mark.parametrize(
    "options",
    [
        {"renewal": TTL / 2 + timedelta(milliseconds=1)},
        {"renewal": NOTHING},
        {"renewal": timedelta(microseconds=-1)},
        {"renewal": timedelta(-1)},
        {"max_hold": NOTHING},
        {"max_hold": timedelta(-1)},
        {"max_hold": timedelta(days=40_000)},
    ],
    ids=str,
)
def test_a_keeping_that_cannot_be_is_refused(face: Face, options: dict[str, Any]) -> None:
    with pytest.raises(tallylock.InvalidArgumentError) as refused:
        face.connect("memory://").lock(KEY, ttl=TTL, **options)
    assert refused.value.key == KEY


@contextmanager
def process(started: Any) -> Iterator[None]:
    """Run a process, and have it ended."""
    started.start()
    try:
        yield
    finally:
        started.kill()
        started.join()
