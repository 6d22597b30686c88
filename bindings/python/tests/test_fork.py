"""Children made by fork: clients work in them, leases don't pass to them."""

import multiprocessing
import threading
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection

import pytest

import tallylock
from servers import Server

# Forking a process that has threads is what this is about.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

TTL = timedelta(seconds=30)
FORK = multiprocessing.get_context("fork")


def in_a_child(work: Callable[[], object]) -> object:
    """Run work in a child made by fork and return what it returns."""
    here, there = FORK.Pipe()

    def run(answers: Connection) -> None:
        try:
            answers.send(work())
        except Exception as error:  # noqa: BLE001 - the parent shall see it
            answers.send(error)

    child = FORK.Process(target=run, args=(there,))
    child.start()
    try:
        assert here.poll(30), "the child hangs"
        return here.recv()
    finally:
        child.kill()
        child.join()


def test_a_client_works_in_the_child_and_still_in_the_parent(server: Server) -> None:
    client = tallylock.connect(server.url)
    counter = client.counter("session:42:billableSecondsPending", ttl=TTL)
    assert counter.add(1) == 1
    assert in_a_child(lambda: counter.add(10)) == 11
    assert counter.add(100) == 111


def test_waiting_works_in_the_child_of_a_parent_that_has_waited(server: Server) -> None:
    client = tallylock.connect(server.url)
    lock = client.lock("invoice:42", ttl=TTL)
    with lock.acquire(wait=timedelta(seconds=20)) as lease:
        fence = lease.fence

    def acquire() -> int:
        with lock.acquire(wait=timedelta(seconds=20)) as lease:
            return lease.fence

    childs = in_a_child(acquire)
    assert isinstance(childs, int)
    assert childs > fence
    with lock.acquire(wait=timedelta(seconds=20)) as lease:
        assert lease.fence > childs


@pytest.mark.parametrize("wait", [None, timedelta(seconds=20)], ids=["at once", "waiting"])
def test_a_lease_is_lost_in_the_child_and_its_exit_sends_nothing(server: Server, wait: timedelta | None) -> None:
    client = tallylock.connect(server.url)
    lease = client.lock("invoice:42", ttl=TTL).acquire(wait=wait)
    holder = server.plain.get("invoice:42")

    def use() -> list[tuple[str, str | None, str | None]]:
        seen = []
        verbs: list[Callable[[], object]] = [
            lambda: lease.ensure(timedelta(0)),
            lease.extend,
            lease.release,
            lambda: lease.__exit__(None, None, None),
        ]
        for verb in verbs:
            try:
                verb()
            except tallylock.TallylockError as error:
                seen.append((error.code, error.reason, error.key))
        return seen

    assert in_a_child(use) == [("lost", "forked", "invoice:42")] * 4
    assert in_a_child(lambda: (lease.is_valid, lease.remaining())) == (False, timedelta(0))
    assert server.plain.get("invoice:42") == holder
    lease.release()
    assert server.plain.get("invoice:42") is None


def test_closing_and_forgetting_in_the_child_leaves_the_parent_alone(server: Server) -> None:
    client = tallylock.connect(server.url)
    lock = client.lock("invoice:42", ttl=TTL)
    lock.acquire(wait=timedelta(seconds=20)).release()
    in_a_child(client.close)
    with lock.acquire(wait=timedelta(seconds=20)) as lease:
        assert lease.is_valid
    assert client.counter("c", ttl=TTL).add(1) == 1


def test_forks_while_other_threads_are_in_calls(server: Server) -> None:
    client = tallylock.connect(server.url)
    lock = client.lock("invoice:42", ttl=TTL)
    over = threading.Event()

    def hammer(name: str) -> None:
        counter = client.counter(name, ttl=TTL)
        while not over.is_set():
            counter.add(1)
            client.lock(name + ":lock", ttl=TTL).acquire(wait=timedelta(seconds=20)).release()

    threads = [threading.Thread(target=hammer, args=(f"hammer:{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, 21):

            def use() -> int:
                with lock.acquire(wait=timedelta(seconds=20)):
                    return client.counter("forks", ttl=TTL).add(1)

            assert in_a_child(use) == number
    finally:
        over.set()
        for thread in threads:
            thread.join()
