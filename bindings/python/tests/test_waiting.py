"""Waiting for a lock: a release wakes the one who waits, and nothing is left subscribed."""

import asyncio
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import tallylock
from servers import Server
from tallylock import aio

TTL = timedelta(minutes=2)
WAIT = timedelta(seconds=60)
HAND_OVERS = 20
# Who looks by itself, looks half a second after the last time at the earliest.
LESS_THAN_LOOKING = 0.4


def test_a_release_wakes_a_thread_that_waits(server: Server) -> None:
    with tallylock.connect(server.url) as holder, tallylock.connect(server.url) as waiter:
        times = []
        for _ in range(HAND_OVERS):
            lease = holder.lock("l", ttl=TTL).acquire()
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(waiter.lock("l", ttl=TTL).acquire, wait=WAIT)
                await_listeners(server, 1)
                begun = time.monotonic()
                lease.release()
                granted = waiting.result()
                times.append(time.monotonic() - begun)
                granted.release()
            await_listeners(server, 0)
        assert_told(times)


def test_tasks_that_wait_have_it_in_the_order_in_which_they_came(server: Server) -> None:
    async def run() -> list[int]:
        async with await aio.connect(server.url) as client:
            had, granted = [], []

            async def take(number: int) -> None:
                lease = await client.lock("l", ttl=TTL).acquire(wait=WAIT)
                had.append(number)
                granted.append(time.monotonic())
                await lease.release()

            holder = await client.lock("l", ttl=TTL).acquire()
            tasks = [asyncio.create_task(take(number)) for number in range(HAND_OVERS)]
            await asyncio.to_thread(await_listeners, server, 1)
            await holder.release()
            await asyncio.gather(*tasks)
            assert_told([later - earlier for earlier, later in itertools.pairwise(granted)])
            await asyncio.to_thread(await_listeners, server, 0)
            return had

    assert asyncio.run(run()) == list(range(HAND_OVERS))


def assert_told(times: list[float]) -> None:
    """Make sure that a release was told; now and then a busy machine is as slow as who looks by itself."""
    told = [each for each in times if each < LESS_THAN_LOOKING]
    assert 2 * len(told) > len(times), times


def await_listeners(server: Server, wanted: int) -> None:
    """Wait until so many connections listen for releases of the lock."""
    end = time.monotonic() + WAIT.total_seconds()
    while (found := server.plain.pubsub_numsub("l{l}:tlu1:released")[0][1]) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.002)
