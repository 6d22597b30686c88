"""A thousand leases while the server forgets its scripts and kills its connections.

None of ours is lost, each loss is told, and no key is left.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

import tallylock
import tallylock.aio
from servers import Server

WORKERS = 4
CYCLES = 250
# No machine is so busy that a lease of this TTL is lost by itself.
TTL = timedelta(seconds=60)
# How long a call may take while connections are killed.
PATIENCE = timedelta(seconds=20)


class Disturbance:
    """What an operator does to the server meanwhile, over the one connection that is not killed."""

    def __init__(self, server: Server) -> None:
        self._plain = server.plain
        self._lock = threading.Lock()
        # They are disturbed as they proceed, so that they do.
        self._steps = 0

    def step(self) -> None:
        """Take in that a worker has come further."""
        self._steps += 1

    def take_now_and_then(self, key: str, cycle: int) -> str | None:
        """Take the lock away at some cycles, and return why its holder is to be told that it is lost."""
        match cycle % 25:
            case 7:
                self._do(lambda: self._plain.set(key, "another", px=60_000))
                return "taken_over"
            case 19:
                self.forget(key)
                return "expired"
            case _:
                return None

    def forget(self, key: str) -> None:
        """Remove a key."""
        self._do(lambda: self._plain.delete(key))

    @contextmanager
    def around(self) -> Iterator[None]:
        """Disturb until the workers are over; then no key may be left."""
        over = threading.Event()
        disturbing = threading.Thread(target=self._disturb, args=(over,))
        disturbing.start()
        try:
            yield
        finally:
            over.set()
            disturbing.join()
        fences = {f"lock:{worker}{{lock:{worker}}}:tlu1:fence".encode() for worker in range(WORKERS)}
        assert set(self._plain.keys()) == fences

    def _disturb(self, over: threading.Event) -> None:
        choice = random.Random(WORKERS)  # noqa: S311 - the same in each run
        following = 0
        while not over.is_set():
            time.sleep(0.0002)
            if self._steps >= following:
                following = self._steps + choice.randrange(8)
                self._do(choice.choice([self._plain.script_flush, self._kill]))

    def _kill(self) -> object:
        return self._plain.execute_command("CLIENT", "KILL", "TYPE", "normal")

    def _do(self, command: Callable[[], object]) -> None:
        with self._lock:
            command()


def test_a_thousand_cycles_of_threads(server: Server) -> None:
    disturbance = Disturbance(server)
    errors: list[BaseException] = []
    with tallylock.connect(server.url, timeout=PATIENCE) as client:

        def work(worker: int) -> None:
            choice = random.Random(worker)  # noqa: S311 - the same in each run
            key = f"lock:{worker}"
            for cycle in range(CYCLES):
                renewal = timedelta(milliseconds=choice.randrange(1, 6))
                lease = client.lock(key, ttl=TTL, renewal=renewal).acquire(wait=PATIENCE)
                disturbance.step()
                assert not lease.lost.wait(choice.randrange(8) / 1000), lease.lost.error
                disturbance.step()
                if (reason := disturbance.take_now_and_then(key, cycle)) is not None:
                    assert lease.lost.wait(30)
                    with pytest.raises(tallylock.LostError) as lost:
                        lease.release()
                    assert lost.value.reason == reason
                    disturbance.forget(key)
                else:
                    lease.release()
                disturbance.step()

        def run(worker: int) -> None:
            try:
                work(worker)
            except BaseException as error:  # noqa: BLE001 - the test shall see it
                errors.append(error)

        threads = [threading.Thread(target=run, args=(worker,)) for worker in range(WORKERS)]
        with disturbance.around():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert not errors, errors


def test_a_thousand_cycles_of_tasks(server: Server) -> None:
    disturbance = Disturbance(server)

    async def work(client: tallylock.aio.Client, worker: int) -> None:
        choice = random.Random(worker)  # noqa: S311 - the same in each run
        key = f"lock:{worker}"
        for cycle in range(CYCLES):
            renewal = timedelta(milliseconds=choice.randrange(1, 6))
            lease = await client.lock(key, ttl=TTL, renewal=renewal).acquire(wait=PATIENCE)
            disturbance.step()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(lease.lost.wait(), choice.randrange(8) / 1000)
            disturbance.step()
            if (reason := disturbance.take_now_and_then(key, cycle)) is not None:
                assert await asyncio.wait_for(lease.lost.wait(), 30)
                with pytest.raises(tallylock.LostError) as lost:
                    await lease.release()
                assert lost.value.reason == reason
                disturbance.forget(key)
            else:
                await lease.release()
            disturbance.step()

    async def run() -> None:
        # Connected before it is disturbed: to connect is not tried again.
        async with await tallylock.aio.connect(server.url, timeout=PATIENCE) as client:
            with disturbance.around():
                await asyncio.gather(*(work(client, worker) for worker in range(WORKERS)))

    asyncio.run(run())
