"""Batches and scans beyond what the cases say: their sizes, their mistakes, and where a scan goes on."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import tallylock
from faces import Face
from servers import Server
from tallylock import _ffi, _scan

KEY = "session:42:billableSecondsPending"
TTL = timedelta(minutes=15)
MOST = 10_000


def test_a_batch_has_ten_thousand_adds(face: Face, server: Server) -> None:
    client = face.connect(server.url, timeout=timedelta(seconds=60))
    entry = client.counter(KEY, ttl=TTL).entry(2)
    results = client.add_many(iter([entry] * MOST))
    assert results == [tallylock.Added(2 * number, applied=True) for number in range(1, MOST + 1)]
    with pytest.raises(tallylock.InvalidArgumentError) as caught:
        client.add_many([entry] * (MOST + 1))
    assert caught.value.applied == "no"
    assert server.plain.get(KEY) == b"20000"


def test_an_error_hides_no_result_of_a_long_batch(face: Face) -> None:
    client = face.connect("memory://")
    client.memory.put("text", "text", TTL)
    good, bad = client.counter(KEY, ttl=TTL).entry(1), client.counter("text", ttl=TTL).entry(1)
    results = client.add_many([bad if number % 7 == 0 else good for number in range(700)])
    assert [number for number, result in enumerate(results) if isinstance(result, tallylock.NotAnIntegerError)] == [
        *range(0, 700, 7)
    ]
    totals = [result.total for result in results if isinstance(result, tallylock.Added)]
    assert totals == [*range(1, 601)]


def test_entries_of_another_client_are_refused(face: Face) -> None:
    ours, others = face.connect("memory://"), face.connect("memory://")
    entries = [client.counter(KEY, ttl=TTL).entry(1) for client in (ours, others)]
    with pytest.raises(tallylock.InvalidArgumentError):
        ours.add_many(entries)
    assert ours.memory.keys() == []


MISTAKES: dict[str, Callable[[Any], object]] = {
    "an empty idempotency key of an entry": lambda client: client.add_many(
        [counter(client).entry(7), counter(client).entry(1, idempotency_key="")]
    ),
    "an empty idempotency key": lambda client: counter(client).add(1, idempotency_key=""),
    "an amount of 65 bits": lambda client: counter(client).add(2**63, idempotency_key="evt-1"),
    "an amount of 65 bits in an entry": lambda client: counter(client).entry(2**63),
    "an amount of 65 bits in a keyed entry": lambda client: counter(client).entry(2**63, idempotency_key="evt-1"),
    "remembered for no time": lambda client: counter(client).add(1, idempotency_key="evt-1", remember=timedelta()),
    "an entry remembered for no time": lambda client: client.add_many(
        [counter(client).entry(7), counter(client).entry(1, idempotency_key="evt-1", remember=timedelta())]
    ),
    "a negative fence": lambda client: counter(client).drain(fence=-1),
    "a fence of 65 bits": lambda client: counter(client).claim("run-1", fence=2**64),
    "a commit of 65 bits": lambda client: counter(client).commit("run-1", -(2**63) - 1),
    "an empty claim id": lambda client: counter(client).claim(b""),
    "a cursor that is none": lambda client: list(client.scan("*", cursor="here")),
    "ending within less than no time": lambda client: client.expiring("*", within=timedelta(microseconds=-1)),
}


def counter(client: Any) -> Any:
    return client.counter(KEY, ttl=TTL)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_refused_before_anything_is_sent(mistake: Callable[[Any], object], face: Face) -> None:
    client = face.connect("memory://")
    counter(client).add(5)
    with pytest.raises(tallylock.InvalidArgumentError) as caught:
        mistake(client)
    assert caught.value.applied == "no"
    assert [(each.key, each.value) for each in client.memory.keys()] == [(KEY.encode(), b"5")]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda client: counter(client).add(1, remember=TTL),
        lambda client: counter(client).entry(1, remember=TTL),
        lambda client: counter(client).entry(1.5),
        lambda client: counter(client).add(1, idempotency_key=7),
        lambda client: counter(client).drain(fence="7"),
    ],
    ids=["remember", "remember of an entry", "half", "number for a key", "text for a fence"],
)
def test_an_argument_of_another_type_is_a_type_error(mistake: Callable[[Any], object], face: Face) -> None:
    client = face.connect("memory://")
    with pytest.raises(TypeError):
        mistake(client)
    assert client.memory.keys() == []


def test_the_largest_fence_is_taken(face: Face) -> None:
    client = face.connect("memory://")
    counter(client).add(5)
    assert counter(client).drain(fence=2**64 - 1) == 5
    with pytest.raises(tallylock.FencedOffError):
        counter(client).claim("run-1", fence=2**64 - 2)


def test_a_claim_tells_its_id_as_text_if_it_is_one(face: Face) -> None:
    client = face.connect("memory://")
    for name in ("Zürich", b"\xff"):
        counter(client).add(1)
        counter(client).claim(name)
    text, other = counter(client).claims()
    assert (text.id_text, text.amount, text.remaining) == ("Zürich", 1, timedelta(days=7))
    with pytest.raises(UnicodeDecodeError):
        _ = other.id_text


def many_counters(server: Server) -> set[bytes]:
    keys = [b"session:%d" % number for number in range(3000)]
    server.plain.mset(dict.fromkeys(keys, 7))
    return set(keys)


def test_a_scan_asks_for_a_page_when_it_is_needed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, pages = many_counters(server), list[bytes]()
    client = tallylock.connect(server.url)

    def counted(*arguments: Any) -> bytes:
        pages.append(_ffi.client_scan(*arguments))
        return pages[-1]

    monkeypatch.setattr(_scan, "client_scan", counted)
    scan = client.scan("session:*")
    assert pages == []
    found = {next(scan).key}
    assert len(pages) == 1
    assert len(pages[0]) < 100_000
    found |= {each.key for each in scan}
    assert found == keys
    assert len(pages) > 2
    assert next(scan, None) is None


def test_a_scan_goes_on_where_another_stopped(face: Face, server: Server) -> None:
    keys = many_counters(server)
    client = face.connect(server.url)
    first = client.scan("session:*")
    assert first.cursor is None
    found = set()
    for each in first:
        found.add(each.key)
        if first.cursor is not None and len(found) > 1000:
            break
    assert len(found) < len(keys)
    second = face.connect(server.url).scan("session:*", cursor=first.cursor)
    assert second.cursor == first.cursor
    later = {each.key for each in second}
    # The page at which the first stopped is read again, and nothing is left out.
    assert found | later == keys
    assert len(later) < len(keys)
    assert second.cursor is None


def test_a_scan_goes_on_after_an_error(face: Face, server: Server) -> None:
    keys = many_counters(server)
    server.plain.acl_setuser("scanner", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all"])
    scan = face.connect(server.url.replace("://", "://scanner:secret@")).scan("session:*")
    found = {next(scan).key}
    server.plain.acl_setuser("scanner", commands=["-scan"])
    with pytest.raises(tallylock.ForbiddenError):
        found |= {each.key for each in scan}
    stopped = scan.cursor
    server.plain.acl_setuser("scanner", commands=["+scan"])
    assert scan.cursor == stopped
    found |= {each.key for each in face.connect(server.url).scan("session:*", cursor=stopped)}
    found |= {each.key for each in scan}
    server.plain.acl_deluser("scanner")
    assert found == keys
