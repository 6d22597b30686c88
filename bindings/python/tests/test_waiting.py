"""Waiting for a lock: a release wakes the one who waits, and nothing is left subscribed."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import tallylock
from servers import Server
from tallylock import aio

TTL = timedelta(minutes=1)
WAIT = timedelta(seconds=30)
# Who looks by itself, looks half a second after the last time at the earliest.
HAND_OVERS, LESS_THAN_LOOKING = 20, 8


def test_a_release_wakes_a_thread_that_waits(server: Server) -> None:
    with tallylock.connect(server.url) as holder, tallylock.connect(server.url) as waiter:
        begun = time.monotonic()
        for _ in range(HAND_OVERS):
            lease = holder.lock("l", ttl=TTL).acquire()
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(waiter.lock("l", ttl=TTL).acquire, wait=WAIT)
                await_listeners(server, 1)
                lease.release()
                waiting.result().release()
        assert time.monotonic() - begun < LESS_THAN_LOOKING
        await_listeners(server, 0)


def test_tasks_that_wait_have_it_in_the_order_in_which_they_came(server: Server) -> None:
    async def run() -> None:
        async with await aio.connect(server.url) as client:
            had = []

            async def take(number: int) -> None:
                lease = await client.lock("l", ttl=TTL).acquire(wait=WAIT)
                had.append(number)
                await lease.release()

            holder = await client.lock("l", ttl=TTL).acquire()
            tasks = [asyncio.create_task(take(number)) for number in range(HAND_OVERS)]
            await asyncio.to_thread(await_listeners, server, 1)
            begun = time.monotonic()
            await holder.release()
            await asyncio.gather(*tasks)
            assert had == list(range(HAND_OVERS))
            assert time.monotonic() - begun < LESS_THAN_LOOKING
            await asyncio.to_thread(await_listeners, server, 0)

    asyncio.run(run())


def await_listeners(server: Server, wanted: int) -> None:
    """Wait until so many connections listen for releases of the lock."""
    end = time.monotonic() + WAIT.total_seconds()
    while (found := server.plain.pubsub_numsub("l{l}:tlu1:released")[0][1]) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.002)
