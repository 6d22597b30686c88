"""Each verb with its reply lost, against the repeat table: repeated where harmless, else its outcome is unknown."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import tallylock
from faces import Face
from servers import FaultProxy, Server

KEY = "session:42:billableSecondsPending"
TTL = timedelta(minutes=15)
Verb = Callable[[Any, str], object]


@dataclass(frozen=True)
class Row:
    """A verb, what is there before, what it gives (a lost reply or not), what it leaves, and what is done before it."""

    verb: Verb
    before: str | None
    result: object
    after: bytes | None
    first: Verb | None = None


def counter(client: Any, key: str) -> Any:
    return client.counter(key, ttl=TTL)


def claim(client: Any, key: str) -> object:
    return counter(client, key).claim("run-1")


REPEATED = {
    "read": Row(lambda client, key: counter(client, key).read(), "5", 5, b"5"),
    "get": Row(lambda client, key: client.value(key).get(), "5", b"5", b"5"),
    "keyed add": Row(lambda client, key: counter(client, key).add(7, idempotency_key="evt-1").total, "5", 12, b"12"),
    "batch of keyed adds": Row(
        lambda client, key: client.add_many([counter(client, key).entry(7, idempotency_key="evt-1")])[0].total,
        "5",
        12,
        b"12",
    ),
    "commit": Row(lambda client, key: counter(client, key).commit("run-1", 5), "5", None, b"0", claim),
    "abort": Row(lambda client, key: counter(client, key).abort("run-1"), "5", 5, b"5", claim),
    "claim": Row(claim, "5", tallylock.Claim(5, "open"), b"0"),
    "inspect": Row(lambda client, key: client.lock(key, ttl=TTL).inspect().token, "5", b"5", b"5"),
    "touch": Row(lambda client, key: client.value(key).touch(ttl=TTL), "5", True, b"5"),
}
NOT_REPEATED = {
    "add": Row(lambda client, key: counter(client, key).add(7), "5", 12, b"12"),
    "drain": Row(lambda client, key: counter(client, key).drain(), "5", 5, b"0"),
    "finish": Row(lambda client, key: counter(client, key).finish(), "5", 5, None),
    "replace_if_present": Row(lambda client, key: client.value(key).replace_if_present("w", ttl=TTL), "5", True, b"w"),
    "guarded set": Row(lambda client, key: client.guarded(key).set("w", fence=7, ttl=TTL), "5", None, b"w"),
    "guarded delete": Row(lambda client, key: client.guarded(key).delete(fence=7), "5", True, None),
    "steal": Row(
        lambda client, key: client.lock(key, ttl=TTL).steal("5", reason="it hangs") is not None, "5", True, None
    ),
    "compare_and_set": Row(lambda client, key: client.value(key).compare_and_set("5", "w", ttl=TTL), "5", True, b"w"),
}


def prepare(row: Row, face: Face, server: Server) -> None:
    """Put there what is there before, and let the server know the verb's script."""
    client = face.connect(server.url)
    for key in ("warm", KEY):
        server.plain.set(key, row.before or "", px=60_000)
        if row.first is not None:
            row.first(client, key)
    assert row.verb(client, "warm") == row.result


@pytest.mark.parametrize("row", REPEATED.values(), ids=REPEATED.keys())
def test_what_is_harmless_is_repeated(row: Row, face: Face, server: Server, proxy: FaultProxy) -> None:
    prepare(row, face, server)
    client = face.connect(proxy.url)
    proxy.do(f"lose-matching {KEY}")
    assert row.verb(client, KEY) == row.result
    proxy.do("await-lost 1")
    assert server.plain.get(KEY) == row.after


@pytest.mark.parametrize("row", NOT_REPEATED.values(), ids=NOT_REPEATED.keys())
def test_what_is_not_harmless_is_not_repeated(row: Row, face: Face, server: Server, proxy: FaultProxy) -> None:
    prepare(row, face, server)
    client = face.connect(proxy.url)
    proxy.do(f"lose-matching {KEY}")
    with pytest.raises(tallylock.OutcomeUnknownError) as caught:
        row.verb(client, KEY)
    assert (caught.value.applied, caught.value.key) == ("maybe", KEY)
    proxy.do("await-lost 1")
    assert server.plain.get(KEY) == row.after
    # The client is as good as before, and no late reply is taken for another's.
    assert client.value("warm").touch(ttl=TTL) is (row.after is not None)


def test_acquire_extend_and_release_are_repeated(face: Face, server: Server, proxy: FaultProxy) -> None:
    warm = face.connect(server.url).lock("warm", ttl=TTL).acquire()
    warm.extend()
    warm.release()
    lock = face.connect(proxy.url).lock("invoice:42", ttl=timedelta(seconds=30))
    proxy.do("lose-matching invoice:42")
    lease = lock.acquire()
    proxy.do("await-lost 1")
    holder = server.plain.get("invoice:42")
    proxy.do("lose-matching invoice:42")
    lease.extend(TTL)
    proxy.do("await-lost 2")
    assert server.plain.get("invoice:42") == holder
    assert server.plain.pttl("invoice:42") > 60_000
    proxy.do("lose-matching invoice:42")
    lease.release()
    proxy.do("await-lost 3")
    assert server.plain.get("invoice:42") is None


@pytest.mark.parametrize("wait", [timedelta(), timedelta(seconds=30)], ids=["once", "waiting"])
def test_a_connection_that_is_lost_while_it_opens_is_opened_again(
    wait: timedelta, face: Face, proxy: FaultProxy
) -> None:
    lock = face.connect(proxy.url, timeout=timedelta(seconds=30)).lock("invoice:42", ttl=TTL)
    proxy.do("cut")
    # A call that waits may need its first connection now, whoever has connected before.
    proxy.do("lose-matching SETNAME")
    lock.acquire(wait=wait).release()
    assert proxy.do("stats")["stats"]["lost"] == 1


def test_a_silent_server_ends_a_call_at_its_deadline(face: Face, server: Server, proxy: FaultProxy) -> None:
    # Not less: with it a machine that is busy elsewhere has to connect and, at the end, to add.
    reader, adder = (face.connect(proxy.url, timeout=timedelta(seconds=2)) for _ in range(2))
    server.plain.set(KEY, "5", px=60_000)
    proxy.do("hold")
    with pytest.raises(tallylock.CallTimeoutError):
        counter(reader, KEY).read()
    with pytest.raises(tallylock.OutcomeUnknownError):
        counter(adder, KEY).add(1)
    # Not even a new connection is answered: nothing can have been applied.
    with pytest.raises(tallylock.UnavailableError):
        counter(adder, KEY).add(1)
    proxy.do("go")
    assert server.plain.get(KEY) == b"6"
    assert counter(adder, KEY).add(1) == 7
