"""What a client counts: exactly in memory, whose time is virtual, and on a real server what needs a renewal."""

import asyncio
import dataclasses
import pickle
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import tallylock
from faces import Face
from servers import Server
from tallylock import Losses, Metrics, aio
from test_fork import in_a_child

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

TTL = timedelta(seconds=60)
# What is left of it for its holder, whose clock may be another by this much.
VALID = TTL - timedelta(milliseconds=602)
SECOND = timedelta(seconds=1)


def test_each_number_but_those_of_renewals_comes_about(face: Face) -> None:
    client = face.connect("memory://")
    memory, lock, other = client.memory, client.lock("l", ttl=TTL), client.lock("l", ttl=TTL)
    blank = client.metrics()
    assert (blank.granted, blank.smallest_margin, blank.lost) == (0, None, Losses(0, 0, 0))

    lease = lock.acquire()
    memory.advance(2 * SECOND)
    with pytest.raises(tallylock.BusyError):
        other.acquire(wait=5 * SECOND)
    denied = client.metrics()
    assert denied.attempts > 2
    with pytest.raises(tallylock.AlreadyHeldError):
        lock.acquire()
    assert client.metrics() == denied
    memory.advance(3 * SECOND)
    lease.release()

    token = _granted(lock, memory).transfer()
    adopted = other.adopt(token)
    memory.advance(2 * TTL)
    assert not adopted.is_valid
    taken = lock.acquire()
    memory.put("l", b"another's", TTL)
    with pytest.raises(tallylock.LostError):
        taken.extend(TTL)
    memory.remove("l")
    forgotten = lock.acquire()
    del forgotten
    other.steal(other.inspect().token, reason="nobody has it")

    memory.put_other_type("list", None)
    with pytest.raises(tallylock.WrongTypeError):
        client.lock("list", ttl=TTL).acquire(wait=SECOND)
    memory.put("counter", b"5", None)
    client.counter("counter", ttl=TTL).drain()

    assert client.metrics() == Metrics(
        granted=4,
        busy=1,
        cancelled=0,
        failed=1,
        attempts=denied.attempts + 4,
        waited=5 * SECOND,
        longest_wait=5 * SECOND,
        adopted=1,
        released=1,
        transferred=1,
        abandoned=1,
        lost=Losses(expired=1, taken_over=1, unreachable=0),
        held=11 * SECOND + VALID,
        longest_hold=VALID,
        renewals=0,
        failed_renewals=0,
        smallest_margin=None,
        stolen=1,
        healed=1,
    )


def test_renewals_and_a_lost_server_are_counted(face: Face, server: Server) -> None:
    ttl = 4 * SECOND
    client = face.connect(server.url)
    lease = client.lock("l", ttl=ttl, renewal=timedelta(milliseconds=20)).acquire()
    renewed = _until(client.metrics, lambda metrics: metrics.renewals >= 3)
    assert renewed.smallest_margin is not None
    assert timedelta(0) < renewed.smallest_margin < ttl
    server.stop()
    try:
        lost = _until(client.metrics, lambda metrics: metrics.lost.total == 1)
    finally:
        server.go_on()
    assert lost.lost == Losses(0, 0, 1)
    assert lost.failed_renewals > 0
    assert lost.held == lost.longest_hold > ttl - SECOND
    assert not lease.is_valid


def test_both_connections_of_a_client_count_together(server: Server) -> None:
    # The leases of the blocking face are renewed, and its counters drained, over the same client.
    with tallylock.connect(server.url) as client:
        server.plain.set("counter", "5")
        client.counter("counter", ttl=TTL).drain()
        client.lock("l", ttl=TTL).acquire().release()
        metrics = client.metrics()
        assert (metrics.granted, metrics.released, metrics.healed, client.healed) == (1, 1, 1, 1)


def test_several_servers_are_one_attempt(face: Face) -> None:
    client = face.connect_redlock(["memory://", "memory://", "memory://"])
    lock = client.lock("l", ttl=TTL)
    lease = lock.acquire()
    with pytest.raises(tallylock.BusyError):
        client.lock("l", ttl=TTL).acquire()
    lease.release()
    metrics = client.metrics()
    assert (metrics.granted, metrics.busy, metrics.attempts, metrics.released) == (1, 1, 2, 1)


def test_a_cancelled_acquire_is_counted_as_such(server: Server) -> None:
    async def count() -> None:
        async with await aio.connect(server.url) as client:
            lease = await client.lock("l", ttl=TTL).acquire()
            acquiring = asyncio.create_task(client.lock("l", ttl=TTL).acquire(wait=TTL))
            while not server.plain.pubsub_channels():
                await asyncio.sleep(0.005)
            acquiring.cancel()
            with pytest.raises(asyncio.CancelledError):
                await acquiring
            while not (metrics := client.metrics()).cancelled:
                await asyncio.sleep(0.005)
            assert (metrics.granted, metrics.cancelled, metrics.busy, metrics.failed) == (1, 1, 0, 0)
            await lease.release()

    asyncio.run(asyncio.wait_for(count(), 120))


def test_a_child_begins_anew_and_a_parents_lease_is_not_its_loss(server: Server) -> None:
    with tallylock.connect(server.url) as client:
        lease = client.lock("l", ttl=TTL).acquire()

        def count() -> None:
            assert client.metrics().granted == 0
            with pytest.raises(tallylock.LostError) as lost:
                lease.ensure(timedelta(0))
            assert lost.value.reason == "forked"
            client.lock("other", ttl=TTL).acquire().release()
            metrics = client.metrics()
            assert (metrics.granted, metrics.released, metrics.lost.total, metrics.abandoned) == (1, 1, 0, 0)

        assert in_a_child(count) is None
        lease.release()
        metrics = client.metrics()
        assert (metrics.granted, metrics.released, metrics.abandoned) == (1, 1, 0)


def test_they_are_plain_data(face: Face) -> None:
    metrics = face.connect("memory://").metrics()
    assert pickle.loads(pickle.dumps(metrics)) == metrics  # noqa: S301 - our own bytes
    assert dataclasses.asdict(metrics.lost) == {"expired": 0, "taken_over": 0, "unreachable": 0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        metrics.granted = 1


def test_a_closed_client_has_none(face: Face) -> None:
    client = face.connect("memory://")
    client.close()
    with pytest.raises(tallylock.ClosedError):
        client.metrics()


def _granted(lock: Any, memory: Any) -> Any:
    lease = lock.acquire()
    memory.advance(SECOND)
    return lease


def _until(look: Callable[[], Metrics], is_there: Callable[[Metrics], bool]) -> Metrics:
    end = time.monotonic() + 120
    while not is_there(metrics := look()):
        assert time.monotonic() < end, metrics
        time.sleep(0.005)
    return metrics
