"""Clients and handles: closed, forgotten, shared by threads, and wrong from the start."""

import asyncio
import gc
import pickle
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

import tallylock
import tallylock.aio
from faces import Face
from handles import leases_count
from servers import Server

TTL = timedelta(minutes=15)


def test_after_close_everything_is_closed(face: Face, server: Server) -> None:
    client = face.connect(server.url)
    counter, lock = client.counter("c", ttl=TTL), client.lock("l", ttl=TTL)
    client.close()
    client.close()
    for call in (lambda: counter.add(1), lock.acquire, lambda: lock.acquire(wait=TTL), lambda: client.healed):
        with pytest.raises(tallylock.ClosedError):
            call()


def test_scripts_can_be_avoided_from_the_first_call_on(server: Server) -> None:
    def count(command: str) -> int:
        return int(server.plain.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])

    async def add_in_asyncio() -> int:
        async with await tallylock.aio.connect(server.url, avoid_scripts=True) as client:
            return await client.counter("c", ttl=TTL).add(1)

    scripts, transactions = count("evalsha"), count("exec")
    with tallylock.connect(server.url, avoid_scripts=True) as client:
        assert client.counter("c", ttl=TTL).add(1) == 1
    assert asyncio.run(add_in_asyncio()) == 2
    assert (count("evalsha") - scripts, count("exec") - transactions) == (0, 2)


def test_closing_ends_a_wait(server: Server) -> None:
    holder = tallylock.connect(server.url).lock("l", ttl=TTL).acquire()
    client = tallylock.connect(server.url)
    lock = client.lock("l", ttl=TTL)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            lock.acquire(wait=timedelta(minutes=1))
        except tallylock.TallylockError as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    deadline = time.monotonic() + 20
    while len([each for each in server.plain.client_list() if each["cmd"].startswith("eval")]) < 2:
        assert time.monotonic() < deadline
    client.close()
    thread.join(20)
    assert [type(error) for error in ended] == [tallylock.ClosedError]
    holder.release()


def test_closing_ends_the_connections_of_leases_that_are_held(face: Face, server: Server) -> None:
    others = {each["id"] for each in server.plain.client_list()}
    client = face.connect(server.url)
    lease = client.lock("l", ttl=TTL).acquire(wait=timedelta(seconds=20))
    client.close()
    deadline = time.monotonic() + 20
    while any(each["name"] == "tallylock" and each["id"] not in others for each in server.plain.client_list()):
        assert time.monotonic() < deadline, "a connection is still there"
    with pytest.raises(tallylock.ClosedError) as caught:
        lease.release()
    assert caught.value.key == "l"
    assert server.plain.exists("l")


def test_a_forgotten_lease_is_freed_but_not_released(face: Face, server: Server) -> None:
    client = face.connect(server.url)
    before = leases_count()
    for number in range(20):
        client.lock(f"l{number}", ttl=TTL).acquire(wait=timedelta(seconds=20 * (number % 2)))
    assert leases_count() == before
    assert server.plain.exists("l0", "l1") == 2


def test_a_forgotten_client_is_closed(server: Server) -> None:
    before = len(server.plain.client_list())
    tallylock.connect(server.url)
    gc.collect()
    deadline = time.monotonic() + 20
    while len(server.plain.client_list()) > before:
        assert time.monotonic() < deadline, "its connection is still there"


def test_a_handle_keeps_its_client(server: Server) -> None:
    counter = tallylock.connect(server.url).counter("c", ttl=TTL)
    gc.collect()
    assert counter.add(1) == 1
    memory = tallylock.connect("memory://").memory
    gc.collect()
    assert memory is not None
    assert memory.keys() == []


def test_threads_share_a_client(server: Server) -> None:
    counter = tallylock.connect(server.url).counter("c", ttl=TTL)
    threads = [threading.Thread(target=lambda: [counter.add(1) for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read() == 1600


def test_bad_options_are_refused(face: Face) -> None:
    for url in ("http://127.0.0.1", "redis://", "127.0.0.1:6379", "memory://a/b"):
        with pytest.raises(tallylock.InvalidArgumentError):
            face.connect(url)
    for options in ({"timeout": timedelta(0)}, {"owner": "two words"}, {"owner": ""}, {"owner": "x" * 65}):
        with pytest.raises(tallylock.InvalidArgumentError):
            face.connect("memory://", **options)


def test_arguments_of_another_type_are_no_arguments(face: Face) -> None:
    client = face.connect("memory://")
    with pytest.raises(TypeError):
        client.counter("c", ttl=900)
    with pytest.raises(TypeError):
        client.counter("c", ttl=TTL).add(1.5)
    with pytest.raises(tallylock.InvalidArgumentError, match='key "c": expiry'):
        client.counter("c", ttl=TTL, expiry="never")
    assert client.memory.keys() == []


@pytest.mark.parametrize("wrong", [3, 1.5, None, [1, 2], (1, 2), {"a": 1}, True], ids=repr)
def test_a_key_or_value_is_text_or_bytes(face: Face, wrong: object) -> None:
    client = face.connect("memory://")
    value = client.value("v")
    calls: list[Callable[[], object]] = [
        lambda: client.counter(wrong, ttl=TTL),
        lambda: client.lock(wrong, ttl=TTL),
        lambda: client.value(wrong),
        lambda: value.replace_if_present(wrong, ttl=TTL),
        lambda: value.compare_and_set(wrong, "new", ttl=TTL),
        lambda: value.compare_and_set("old", wrong, ttl=TTL),
        lambda: client.memory.put(wrong, "v"),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="str or bytes"):
            call()
    assert client.memory.keys() == []


def test_half_of_a_surrogate_pair_is_refused(face: Face) -> None:
    client = face.connect("memory://")
    value = client.value("v")
    calls: list[Callable[[], object]] = [
        lambda: client.counter("a\ud800", ttl=TTL),
        lambda: client.lock("a\ud800", ttl=TTL),
        lambda: client.value("a\ud800"),
        lambda: value.replace_if_present("a\ud800", ttl=TTL),
        lambda: value.compare_and_set("old", "a\ud800", ttl=TTL),
    ]
    keys = []
    for call in calls:
        with pytest.raises(tallylock.InvalidArgumentError, match="surrogate") as caught:
            call()
        keys.append(caught.value.key)
    assert keys == ["a?", "a?", "a?", "v", "v"]
    assert client.memory.keys() == []


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_all_that_is_bytes_is_a_key_and_a_value(face: Face, kind: Callable[[bytes], object]) -> None:
    client = face.connect("memory://")
    client.memory.put(kind(b"\xff"), kind(b"old"), TTL)
    value = client.value(kind(b"\xff"))
    assert value.compare_and_set(kind(b"old"), kind(b"new"), ttl=TTL)
    assert value.get() == b"new"


def test_a_server_that_is_not_there_is_unavailable(face: Face) -> None:
    with pytest.raises(tallylock.UnavailableError) as caught:
        face.connect("redis://127.0.0.1:1")
    assert isinstance(caught.value, ConnectionError)


def test_a_wrong_password_is_forbidden_and_not_shown(face: Face) -> None:
    with Server("valkey", "--requirepass", "right") as server:
        with pytest.raises(tallylock.ForbiddenError) as caught:
            face.connect(f"redis://:wrong-secret@127.0.0.1:{server.port}")
        assert "wrong-secret" not in str(caught.value)
        assert face.connect(f"redis://:right@127.0.0.1:{server.port}").counter("c", ttl=TTL).add(1) == 1


def test_an_error_crosses_processes() -> None:
    error = tallylock.LostError("lost", code="lost", key="invoice:42", reason="expired", applied="no")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), str(copy), copy.code, copy.key, copy.reason, copy.applied) == (
        tallylock.LostError,
        "lost",
        "lost",
        "invoice:42",
        "expired",
        "no",
    )


def test_an_error_of_a_block_is_not_hidden_by_that_of_the_release(face: Face) -> None:
    client = face.connect("memory://")
    with pytest.raises(ZeroDivisionError) as caught:  # noqa: PT012, SIM117
        with client.lock("l", ttl=TTL).acquire():
            client.memory.put("l", "of another", TTL)
            raise ZeroDivisionError
    assert any("not released" in note for note in getattr(caught.value, "__notes__", ["not released"]))
    with pytest.raises(tallylock.LostError):  # noqa: SIM117
        with client.lock("m", ttl=TTL).acquire():
            client.memory.put("m", "of another", TTL)


def test_a_healed_counter_is_counted(face: Face, server: Server) -> None:
    server.plain.set("c", "5")
    client = face.connect(server.url)
    assert client.counter("c", ttl=TTL).drain() == 5
    assert client.healed == 1
    assert 0 < server.plain.pttl("c") <= 900_000


def test_memory_of_a_name_is_shared_and_without_one_private(face: Face) -> None:
    first, second = face.connect("memory://shared-by-two"), face.connect("memory://shared-by-two")
    assert first.counter("c", ttl=TTL).add(1) == 1
    assert second.counter("c", ttl=TTL).add(1) == 2
    assert face.connect("memory://").counter("c", ttl=TTL).add(1) == 1


def test_memory_waits_take_no_time(face: Face) -> None:
    client = face.connect("memory://")
    client.memory.put("l", "of another", timedelta(hours=1))
    start = time.monotonic()
    assert client.lock("l", ttl=TTL).acquire(wait=timedelta(hours=2)).is_valid
    assert time.monotonic() - start < 10


def test_memory_is_there_for_memory_only(face: Face, server: Server) -> None:
    assert face.connect(server.url).memory is None
