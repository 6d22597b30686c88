"""The demo does not bill what is not its own."""

import subprocess
import sys
from datetime import timedelta

import pytest

import tallylock
from examples import EXAMPLES, example
from servers import Server

sessions = example("sessions")

KEYS = (sessions.counter_key("N1"), sessions.GUESTS.replace("*", "N1"))


def preflight(server: Server) -> tuple[int, str]:
    done = subprocess.run(  # noqa: S603 - a program of our own
        [sys.executable, EXAMPLES / "preflight.py", "--url", server.url], stderr=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("key", KEYS)
def test_what_others_have_pending_is_refused_and_what_is_billed_is_not(server: Server, key: str) -> None:
    assert preflight(server) == (0, "")
    with tallylock.connect(server.url) as client:
        pending = client.counter(key, ttl=timedelta(minutes=15))
        pending.add(60, idempotency_key="evt-1")
        code, told = preflight(server)
        assert code == 1
        assert key in told
        pending.claim("run-1")
        code, told = preflight(server)
        assert code == 1
        assert "1 claims" in told
        pending.commit("run-1", 60)
    assert preflight(server) == (0, "")
