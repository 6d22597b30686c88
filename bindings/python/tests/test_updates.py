"""Updates beyond what the cases say: others that are faster, and functions that fail."""

import asyncio
import signal
from datetime import timedelta
from typing import Any

import pytest

import tallylock
import tallylock.aio
from faces import FACES, Face
from tallylock import _ffi, _ids, _value
from tallylock.aio import _value as _aio_value

KEY = "session:42:ctx"
TTL = timedelta(minutes=15)


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the id of each update."""
    ids: list[int] = []

    def next_update() -> int:
        ids.append(_ids.next_update())
        return ids[-1]

    for module in (_value, _aio_value):
        monkeypatch.setattr(module, "next_update", next_update)
    return ids


def is_kept(update: int) -> bool:
    """Return whether the native library keeps an update under this id."""
    try:
        _ffi.update_present(update)
    except _ffi.CallError:
        return False
    return True


def client_with_a_value(face: Face, **options: Any) -> Any:
    client = face.connect("memory://", **options)
    client.memory.put(KEY, "a", TTL)
    return client


def test_a_change_is_made_again_if_another_was_faster(face: Face, updates: list[int]) -> None:
    client = client_with_a_value(face)
    seen = []

    def change(present: bytes) -> str:
        seen.append(present)
        if len(seen) < 3:
            client.memory.put(KEY, f"other's {len(seen)}", TTL)
        return present.decode() + " and mine"

    assert client.value(KEY).update(change, ttl=timedelta(seconds=5)) == b"other's 2 and mine"
    assert seen == [b"a", b"other's 1", b"other's 2"]
    assert [each.ttl for each in client.memory.keys()] == [timedelta(seconds=5)]
    assert not is_kept(*updates)


def test_a_value_that_goes_meanwhile_is_not_made_again(face: Face, updates: list[int]) -> None:
    client = client_with_a_value(face)

    def change(_: bytes) -> bytes:
        client.memory.remove(KEY)
        return b"b"

    assert client.value(KEY).update(change, ttl=TTL) is None
    assert client.memory.keys() == []
    assert not is_kept(*updates)


def test_others_that_are_always_faster_are_a_conflict(face: Face, updates: list[int]) -> None:
    client = client_with_a_value(face, timeout=timedelta(seconds=1))
    calls = 0

    def change(_: bytes) -> bytes:
        nonlocal calls
        calls += 1
        client.memory.put(KEY, f"other's {calls}", TTL)
        return b"mine"

    with pytest.raises(tallylock.ConflictError) as caught:
        client.value(KEY).update(change, ttl=TTL)
    assert (caught.value.applied, caught.value.key) == ("no", KEY)
    assert calls > 1
    assert not is_kept(*updates)


@pytest.mark.parametrize("made", [RuntimeError("refused"), 7, "\ud800"], ids=["raises", "number", "half a pair"])
def test_a_change_that_fails_writes_nothing_and_keeps_nothing(face: Face, updates: list[int], made: object) -> None:
    client = client_with_a_value(face)

    def change(_: bytes) -> Any:
        assert is_kept(*updates)
        if isinstance(made, Exception):
            raise made
        return made

    with pytest.raises((RuntimeError, TypeError, tallylock.InvalidArgumentError)):
        client.value(KEY).update(change, ttl=TTL)
    assert not is_kept(*updates)
    assert [each.value for each in client.memory.keys()] == [b"a"]


@pytest.mark.parametrize("name", FACES)
def test_ctrl_c_in_a_long_change_ends_the_update(name: str, updates: list[int]) -> None:
    def change(_: bytes) -> bytes:
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the signal was not handled")

    # The loop of a face is left behind in the middle of its task.
    face = Face(name)
    client = client_with_a_value(face)
    with pytest.raises(KeyboardInterrupt):
        client.value(KEY).update(change, ttl=TTL)
    assert not is_kept(*updates)
    assert [each.value for each in client.memory.keys()] == [b"a"]
    face.__exit__()


def test_an_async_change_is_awaited(updates: list[int]) -> None:
    async def scenario() -> None:
        async with await tallylock.aio.connect("memory://") as client:
            assert client.memory is not None
            client.memory.put(KEY, "a", TTL)

            async def change(present: bytes) -> bytes:
                await asyncio.sleep(0)
                return present + b"b"

            assert await client.value(KEY).update(change, ttl=TTL) == b"ab"

    asyncio.run(scenario())
    assert not is_kept(*updates)


def test_an_update_that_is_cancelled_at_any_turn_keeps_nothing(updates: list[int]) -> None:
    async def scenario() -> int:
        async with await tallylock.aio.connect("memory://") as client:
            assert client.memory is not None
            for turns in range(1000):
                client.memory.put(KEY, "a", TTL)
                task = asyncio.ensure_future(client.value(KEY).update(slowly, ttl=TTL))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    assert task.result() == b"ab"
                    return turns
        pytest.fail("it never ran to its end")

    async def slowly(present: bytes) -> bytes:
        await asyncio.sleep(0)
        return present + b"b"

    assert asyncio.run(scenario()) > 3
    assert [update for update in updates if is_kept(update)] == []
