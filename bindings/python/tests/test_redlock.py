"""Locks over several independent servers."""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import pytest

import tallylock
from faces import Face
from points import Points
from servers import Server
from tallylock import aio
from test_fork import in_a_child

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

TTL = timedelta(seconds=60)
KEY = "invoice:42"
LAST = "invoice:43"


@pytest.fixture(scope="module")
def _three() -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Server(kind)) for kind in ("valkey", "redis", "valkey")]


@pytest.fixture
def servers(_three: list[Server]) -> list[Server]:
    """Return three empty servers."""
    for server in _three:
        server.plain.flushall()
    return _three


def urls(servers: list[Server]) -> list[str]:
    """Return where the servers are."""
    return [server.url for server in servers]


@contextmanager
def hung(servers: list[Server]) -> Iterator[None]:
    """Stop the servers' clocks meanwhile."""
    for server in servers:
        server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for server in servers:
            server.signal(signal.SIGCONT)


def held_on(servers: list[Server], key: str = KEY) -> int:
    """Return on how many servers the lock is."""
    return sum(server.plain.exists(key) for server in servers)


def assert_free(servers: list[Server]) -> None:
    """Wait until no server has the lock: what is undone in the background takes a moment."""
    deadline = time.monotonic() + 20
    while held_on(servers):
        assert time.monotonic() < deadline, "a lock is left"
        time.sleep(0.01)


def await_all(redlock: Any, servers: list[Server]) -> None:
    """Wait until each server, and not just a quorum, has executed what was asked of it before this."""
    with redlock.lock(LAST, ttl=TTL).acquire(wait=timedelta(seconds=20)):
        deadline = time.monotonic() + 20
        while held_on(servers, LAST) < len(servers):
            assert time.monotonic() < deadline, "a server was not asked"
            time.sleep(0.01)


def test_a_quorum_decides(face: Face, servers: list[Server]) -> None:
    # Neither client gives up what it asks of the hung server.
    redlock = face.connect_redlock(urls(servers), timeout=TTL)
    await_all(redlock, servers)
    lock = redlock.lock(KEY, ttl=TTL)
    with hung(servers[:1]):
        other = face.connect_redlock(urls(servers), timeout=TTL)
        lease = lock.acquire(wait=timedelta(seconds=20))
        assert lease.is_valid
        assert held_on(servers[1:]) == 2
        with pytest.raises(tallylock.BusyError, match="held by another on 2") as busy:
            other.lock(KEY, ttl=TTL).acquire()
        assert busy.value.key == KEY
        lease.extend(2 * TTL)
        assert lease.remaining() > TTL
        lease.release()
        other.lock(KEY, ttl=TTL).acquire(wait=timedelta(seconds=20)).release()
    for client in (redlock, other):
        await_all(client, servers)
    assert not held_on(servers), "a release went before its acquire"
    with redlock.lock(KEY, ttl=TTL).acquire() as later:
        assert later.fence > lease.fence
    assert_free(servers)


def test_without_a_quorum_the_servers_are_counted(face: Face, servers: list[Server]) -> None:
    redlock = face.connect_redlock(urls(servers), timeout=timedelta(seconds=2), node_timeout=timedelta(seconds=1))
    lock = redlock.lock(KEY, ttl=TTL)
    lock.acquire(wait=timedelta(seconds=20)).release()
    with hung(servers[:2]), pytest.raises(tallylock.TallylockError, match="unreachable 2 of 3 nodes") as failed:
        lock.acquire()
    assert failed.value.code in ("timeout", "unavailable")
    assert_free(servers)


def test_a_server_that_lost_the_lock_has_it_again_if_that_was_asked_for(face: Face, servers: list[Server]) -> None:
    for rejoin in (True, False):
        redlock = face.connect_redlock(urls(servers), rejoin=rejoin)
        lease = redlock.lock(KEY, ttl=TTL).acquire(wait=timedelta(seconds=20))
        # A quorum was enough for it; the third has it soon.
        deadline = time.monotonic() + 20
        while held_on(servers) < len(servers):
            assert time.monotonic() < deadline, "a server was not connected to"
        servers[0].plain.flushall()
        lease.extend()
        while rejoin and not held_on(servers[:1]):
            assert time.monotonic() < deadline, "it has not joined again"
            lease.extend()
        assert held_on(servers[:1]) == int(rejoin)
        lease.release()


def test_servers_in_memory_are_looked_at_by_their_names(face: Face) -> None:
    names = [f"memory://redlock-{face.name}-{number}" for number in range(3)]
    lock = face.connect_redlock(names, owner="biller-7").lock(KEY, ttl=TTL)
    lease = lock.acquire()
    for name in names:
        memory = tallylock.connect(name).memory
        assert memory is not None
        (value,) = (key.value for key in memory.keys() if key.key == KEY.encode())
        assert value is not None
        assert value.endswith(b".biller-7")
        memory.advance(TTL)
    with pytest.raises(tallylock.LostError):
        lease.extend()


def test_what_is_about_one_server_is_refused(face: Face) -> None:
    lock = face.connect_redlock(["memory://"] * 3).lock(KEY, ttl=TTL)
    with pytest.raises(tallylock.UnsupportedError):
        lock.inspect()
    with pytest.raises(tallylock.UnsupportedError):
        lock.steal(b"token", reason="it hangs")


@pytest.mark.parametrize(
    ("addresses", "words"),
    [
        ([], "not 0"),
        (["redis://a", "redis://b"], "not 2"),
        (["redis://:secret@a", "redis://b", "rediss://:secret@a/1"], "URLs 1 and 3"),
        (["memory://", "memory://", "redis://a"], "clock"),
    ],
)
def test_servers_that_are_no_good_are_refused(face: Face, addresses: list[str], words: str) -> None:
    with pytest.raises(tallylock.InvalidArgumentError, match=words) as refused:
        face.connect_redlock(addresses)
    assert "secret" not in str(refused.value)


def test_a_closed_client_is_closed(face: Face) -> None:
    redlock = face.connect_redlock(["memory://"] * 3)
    lock = redlock.lock(KEY, ttl=TTL)
    redlock.close()
    with pytest.raises(tallylock.ClosedError):
        lock.acquire()


@pytest.mark.parametrize("wait", [None, timedelta(seconds=20)], ids=["at once", "waiting"])
def test_it_works_in_a_child_made_by_fork(servers: list[Server], wait: timedelta | None) -> None:
    lock = tallylock.connect_redlock(urls(servers)).lock(KEY, ttl=TTL)
    lease = lock.acquire(wait=wait)

    def use() -> tuple[str, str | None]:
        with pytest.raises(tallylock.LostError) as lost:
            lease.release()
        with pytest.raises(tallylock.BusyError) as busy:
            lock.acquire(wait=None if wait is None else timedelta(seconds=2))
        return busy.value.code, lost.value.reason

    assert in_a_child(use) == ("busy", "forked")
    lease.release()
    assert_free(servers)

    def hold() -> int:
        with lock.acquire(wait=wait) as lease:
            return lease.fence

    fence = in_a_child(hold)
    assert isinstance(fence, int)
    assert fence > lease.fence
    assert_free(servers)
    lock.acquire(wait=wait).release()


def test_acquires_cancelled_at_random_points_leave_no_lock(servers: list[Server]) -> None:
    async def main() -> None:
        async with await aio.connect_redlock(urls(servers)) as redlock:
            lock = redlock.lock(KEY, ttl=TTL)
            await (await lock.acquire(wait=timedelta(seconds=20))).release()
            points = Points()
            for _ in range(100):
                task = asyncio.create_task(lock.acquire(wait=timedelta(seconds=20)))
                await points.next()
                task.cancel()
                try:
                    lease = await task
                except asyncio.CancelledError:
                    points.met(was_late=False)
                else:
                    points.met(was_late=True)
                    await lease.release()
            assert min(points.early, points.late) > 0, (points.early, points.late)
            await (await lock.acquire(wait=timedelta(seconds=20))).release()

    asyncio.run(main())
    assert_free(servers)
