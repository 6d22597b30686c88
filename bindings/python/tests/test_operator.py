"""Guarded writes, and what operators do to locks: what the cases, which every language runs, can't see."""

import logging
from datetime import timedelta
from typing import Any

import pytest

import tallylock
from faces import Face
from servers import Server

TTL = timedelta(minutes=15)


def test_a_steal_is_logged_and_counted(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    client = face.connect("memory://", owner="biller-7")
    lock = client.lock("invoice:42", ttl=TTL)
    lease = lock.acquire()
    holder = lock.inspect()
    with caplog.at_level(logging.INFO, logger="tallylock"):
        assert lock.steal(b"another", reason="it hangs") is None
        assert (client.stolen, caplog.records) == (0, [])
        fence = lock.steal(holder.token, reason="it hangs\nfor hours")
    (record,) = caplog.records
    assert (client.stolen, record.levelno, record.name) == (1, logging.WARNING, "tallylock")
    for part in ("invoice:42", "biller-7", "it hangs", str(fence)):
        assert part in record.getMessage()
    assert holder.token.decode()[:32] not in record.getMessage()
    assert "\n" not in record.getMessage()
    assert lease.fence < fence < client.lock("invoice:42", ttl=TTL).acquire().fence


def test_a_holder_does_not_show_its_token(face: Face) -> None:
    lock = face.connect("memory://", owner="biller-7").lock("invoice:42", ttl=TTL)
    lock.acquire()
    holder = lock.inspect()
    assert "biller-7" in repr(holder)
    assert holder.token.decode()[:32] not in repr(holder)


def test_a_lock_of_redis_py_is_seen_and_stolen(face: Face, server: Server) -> None:
    theirs: Any = server.plain.lock("theirs", timeout=60)
    assert theirs.acquire()
    lock = face.connect(server.url).lock("theirs", ttl=TTL)
    holder = lock.inspect()
    assert (holder.token, holder.label, holder.fence) == (theirs.local.token, None, None)
    assert timedelta(seconds=50) < holder.remaining <= timedelta(seconds=60)
    assert lock.steal(holder.token, reason="its owner is gone") is not None
    assert not theirs.owned()


def test_what_is_no_fence_is_refused(face: Face) -> None:
    guarded = face.connect("memory://").guarded("v")
    for fence in (-1, 2**64):
        with pytest.raises(tallylock.InvalidArgumentError, match="fence"):
            guarded.set("x", fence=fence, ttl=TTL)
        with pytest.raises(tallylock.InvalidArgumentError, match="fence"):
            guarded.delete(fence=fence)
    guarded.set("x", fence=2**64 - 1, ttl=TTL)
    with pytest.raises(tallylock.FencedOffError, match=str(2**64 - 1)):
        guarded.set("x", fence=2**64 - 2, ttl=TTL)
    wrong: Any = "8"
    with pytest.raises(TypeError):
        guarded.delete(fence=wrong)


def test_after_close_nothing_is_done(face: Face) -> None:
    client = face.connect("memory://")
    guarded, lock = client.guarded("v"), client.lock("l", ttl=TTL)
    client.close()
    for call in (
        lambda: guarded.set("x", fence=1, ttl=TTL),
        lambda: guarded.delete(fence=1),
        lock.inspect,
        lambda: lock.steal(b"x", reason="it hangs"),
        lambda: client.stolen,
    ):
        with pytest.raises(tallylock.ClosedError):
            call()
