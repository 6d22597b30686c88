"""Other libraries' locks on the same key exclude ours, and ours exclude theirs."""

from datetime import timedelta

import pytest

import tallylock
from faces import Face
from servers import Server

TTL = timedelta(seconds=30)


def test_redis_py_excludes_us_and_we_it(face: Face, server: Server) -> None:
    ours = face.connect(server.url).lock("invoice:42", ttl=TTL)
    theirs = server.plain.lock("invoice:42", timeout=30)
    assert theirs.acquire(blocking=False)
    with pytest.raises(tallylock.BusyError):
        ours.acquire()
    theirs.release()
    with ours.acquire():
        assert not theirs.acquire(blocking=False)
    assert theirs.acquire(blocking=False)
    theirs.release()


def test_a_bare_set_excludes_us_and_we_it(face: Face, server: Server) -> None:
    ours = face.connect(server.url).lock("invoice:42", ttl=TTL)
    assert server.plain.set("invoice:42", "theirs", nx=True, px=30_000)
    with pytest.raises(tallylock.BusyError):
        ours.acquire(wait=timedelta(milliseconds=30))
    server.plain.delete("invoice:42")
    with ours.acquire():
        assert server.plain.set("invoice:42", "theirs", nx=True, px=30_000) is None
    assert server.plain.set("invoice:42", "theirs", nx=True, px=30_000)


def test_a_lease_that_another_has_taken_over_is_lost(face: Face, server: Server) -> None:
    lease = face.connect(server.url).lock("invoice:42", ttl=TTL).acquire()
    server.plain.set("invoice:42", "theirs", px=30_000)
    with pytest.raises(tallylock.LostError) as caught:
        lease.release()
    assert (caught.value.reason, caught.value.key) == ("taken_over", "invoice:42")
    assert server.plain.get("invoice:42") == b"theirs"


def test_what_people_see_of_the_owner(face: Face, server: Server) -> None:
    for owner, seen in (("biller", b".biller"), (False, b"")):
        with face.connect(server.url, owner=owner).lock("invoice:42", ttl=TTL).acquire():
            assert server.plain.get("invoice:42")[32:] == seen
    with face.connect(server.url).lock("invoice:42", ttl=TTL).acquire():
        assert server.plain.get("invoice:42")[32:].startswith(b".")


def test_connections_say_who_they_are(face: Face, server: Server) -> None:
    face.connect(server.url).counter("c", ttl=TTL).add(1)
    assert "tallylock" in {each["name"] for each in server.plain.client_list()}
