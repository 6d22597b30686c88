"""What only the face for asyncio has: cancelling, many calls at once, event loops."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

import tallylock
from handles import leases_count
from points import Points
from servers import FaultProxy, Server
from tallylock import aio

TTL = timedelta(seconds=30)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[aio.Client]:
    """Yield a client, and close it in time for its loop to hear of it."""
    async with await aio.connect(url) as client:
        yield client
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def is_freed(server: Server, key: str) -> bool:
    """Return whether a key is gone within a time in which everything that is undone is."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not server.plain.exists(key):
            return True
        await asyncio.sleep(0.01)
    return False


def test_many_calls_at_once_get_their_own_answers(server: Server) -> None:
    async def main() -> None:
        async with connected(server.url) as client:
            counters = [client.counter(f"c{number}", ttl=TTL) for number in range(500)]
            totals = await asyncio.gather(*(each.add(number) for number, each in enumerate(counters)))
            assert totals == list(range(500))

    asyncio.run(main())


def test_cancelling_at_random_points_leaves_no_lock_and_no_wrong_answer(server: Server) -> None:
    async def count(client: aio.Client, over: asyncio.Event) -> None:
        counter, total = client.counter("c", ttl=TTL), 0
        while not over.is_set():
            total += 1
            assert await counter.add(1) == total

    async def main() -> None:
        async with connected(server.url) as client:
            over = asyncio.Event()
            counting = asyncio.create_task(count(client, over))
            points = Points()
            for number in range(300):
                lock = client.lock(f"l{number % 3}", ttl=TTL)
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
            over.set()
            await counting
            for number in range(3):
                assert await is_freed(server, f"l{number}")
            assert min(points.early, points.late) > 20, (points.early, points.late)

    before = leases_count()
    asyncio.run(main())
    assert leases_count() == before


def test_cancelling_while_the_grant_is_on_its_way_gives_it_back(server: Server, proxy: FaultProxy) -> None:
    async def main() -> None:
        async with connected(proxy.url) as client:
            await (await client.lock("warm", ttl=TTL).acquire()).release()
            proxy.do("hold-matching invoice:42")
            task = asyncio.create_task(client.lock("invoice:42", ttl=TTL).acquire())
            await asyncio.to_thread(proxy.do, "await-held 1")
            assert server.plain.exists("invoice:42")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            proxy.do("go")
            assert await is_freed(server, "invoice:42")
            assert await client.counter("c", ttl=TTL).add(1) == 1

    asyncio.run(main())


def test_cancelling_in_the_turn_of_the_grant_gives_it_back() -> None:
    async def main() -> None:
        async with connected("memory://") as client:
            assert client.memory is not None
            lock = client.lock("invoice:42", ttl=TTL)
            task = asyncio.create_task(lock.acquire())
            while not any(each.key == b"invoice:42" for each in client.memory.keys()):
                await asyncio.sleep(0)
            # The grant is in the queue, or already in the future; the task has not gone on.
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            deadline = time.monotonic() + 20
            while any(each.key == b"invoice:42" for each in client.memory.keys()):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)

    before = leases_count()
    asyncio.run(main())
    assert leases_count() == before


def test_a_timeout_around_a_wait_leaves_no_waiter(server: Server) -> None:
    async def main() -> None:
        async with connected(server.url) as client:
            holder = await client.lock("l", ttl=TTL).acquire()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.lock("l", ttl=TTL).acquire(wait=timedelta(minutes=1)), 0.05)
            await holder.release()
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                assert not server.plain.exists("l"), "who gave up has taken it"
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_each_loop_has_its_own_clients(server: Server) -> None:
    def in_a_thread(work: Coroutine[None, None, int], results: list[int]) -> threading.Thread:
        thread = threading.Thread(target=lambda: results.append(asyncio.run(work)))
        thread.start()
        return thread

    async def count() -> int:
        async with connected(server.url) as client:
            for _ in range(200):
                total = await client.counter("c", ttl=TTL).add(1)
            return total

    results: list[int] = []
    threads = [in_a_thread(count(), results) for _ in range(4)]
    for thread in threads:
        thread.join()
    assert max(results) == 800


def test_a_client_of_another_loop_is_refused() -> None:
    async def connect() -> aio.Client:
        return await aio.connect("memory://")

    async def use(client: aio.Client) -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            await client.counter("c", ttl=TTL).add(1)

    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(connect())
    asyncio.run(use(client))
    loop.run_until_complete(client.close())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()


def test_closing_lets_calls_under_way_run_to_their_end(server: Server, proxy: FaultProxy) -> None:
    async def main() -> None:
        async with connected(proxy.url) as client:
            counter = client.counter("invoice:42", ttl=TTL)
            assert await counter.add(1) == 1
            proxy.do("hold-matching invoice:42")
            adding = asyncio.create_task(counter.add(1))
            await asyncio.to_thread(proxy.do, "await-held 1")
            assert server.plain.get("invoice:42") == b"2"
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0)
            with pytest.raises(tallylock.ClosedError):
                await counter.add(1)
            assert not closing.done()
            proxy.do("go")
            await closing
            assert adding.result() == 2

    asyncio.run(main())


def test_closing_ends_acquires_under_way_and_leaves_no_lock(server: Server, proxy: FaultProxy) -> None:
    async def main() -> None:
        async with connected(proxy.url) as client:
            await (await client.lock("warm", ttl=TTL).acquire()).release()
            proxy.do("hold-matching invoice:42")
            acquiring = asyncio.create_task(client.lock("invoice:42", ttl=TTL).acquire(wait=timedelta(minutes=1)))
            await asyncio.to_thread(proxy.do, "await-held 1")
            assert server.plain.exists("invoice:42")
            await client.close()
            with pytest.raises(tallylock.ClosedError) as caught:
                await acquiring
            assert caught.value.key == "invoice:42"
            proxy.do("go")
            assert await is_freed(server, "invoice:42")

    asyncio.run(main())


def test_closing_many_calls_gives_each_its_answer() -> None:
    async def main() -> None:
        async with connected("memory://") as client:
            counter = client.counter("c", ttl=TTL)
            tasks = [asyncio.create_task(counter.add(1)) for _ in range(200)]
            await asyncio.sleep(0)
            await client.close()
            assert sorted(await asyncio.gather(*tasks)) == list(range(1, 201))

    asyncio.run(main())


def test_cancelling_a_block_releases_its_lock(server: Server) -> None:
    async def hold(client: aio.Client, held: asyncio.Event) -> None:
        async with await client.lock("l", ttl=TTL).acquire():
            held.set()
            await asyncio.sleep(60)

    async def main() -> None:
        async with connected(server.url) as client:
            held = asyncio.Event()
            task = asyncio.create_task(hold(client, held))
            await held.wait()
            assert server.plain.exists("l")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not server.plain.exists("l")

    asyncio.run(main())
