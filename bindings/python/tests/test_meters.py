"""Meters: what is added in memory is counted once, whoever dies, forks, is cancelled or away."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tallylock
import tallylock.aio
from faces import Face
from servers import FaultProxy, Server
from test_fork import in_a_child

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

KEY = "session:42:billableSecondsPending"
TTL = timedelta(minutes=15)
# Of clients whose server is silent: waited for by a test, and long enough for a busy machine.
TIMEOUT = timedelta(milliseconds=1500)
BY_HAND: dict[str, Any] = {"ttl": TTL, "interval": timedelta(hours=1)}
NOTHING = tallylock.Flushed(0, 0, 0, 0)


def test_what_is_added_is_flushed(face: Face, server: Server) -> None:
    with face.connect(server.url).meter(**BY_HAND) as meter:
        meter.add(KEY, 30)
        meter.add(KEY.encode(), -5)
        meter.add(bytearray(b"b{t}"), 2**63 - 1)
        assert server.plain.get(KEY) is None
        assert meter.flush() == tallylock.Flushed(settled=2, units=2**63 + 24, waiting=0, refused=0)
        assert meter.flush() == NOTHING
        assert meter.trouble is None
        meter.add(KEY, 1)
        meter.add(b"a\0\xff", 1)
    assert server.plain.get(KEY) == b"26"
    assert server.plain.get(b"a\0\xff") == b"1"
    assert server.plain.get("b{t}") == b"9223372036854775807"
    assert 0 < server.plain.ttl(KEY) <= TTL.total_seconds()
    assert meter.close() == NOTHING
    with pytest.raises(tallylock.ClosedError):
        meter.add(KEY, 1)
    with pytest.raises(tallylock.ClosedError):
        meter.flush()


def test_what_gathers_is_flushed_by_itself(face: Face, server: Server) -> None:
    client = face.connect(server.url)
    meters = [
        client.meter(ttl=TTL, interval=timedelta(milliseconds=1)),
        client.meter(**BY_HAND, max_units=10),
        client.meter(**BY_HAND, max_counters=1),
    ]
    for number, meter in enumerate(meters):
        meter.add(f"c{number}", 10)
    wait_for(lambda: [server.plain.get(f"c{number}") for number in range(3)] == [b"10"] * 3)


def test_what_the_server_refuses_is_handed_out(face: Face, server: Server) -> None:
    server.plain.rpush("list", "x")
    with face.connect(server.url).meter(**BY_HAND) as meter:
        for key in ("a", "list", "b"):
            meter.add(key, 7)
        assert meter.flush() == tallylock.Flushed(settled=2, units=14, waiting=0, refused=1)
        (refused,) = meter.take_refused()
        assert (refused.key, refused.key_text, refused.amount) == (b"list", "list", 7)
        assert isinstance(refused.error, tallylock.WrongTypeError)
        assert meter.take_refused() == []
    assert [server.plain.get(key) for key in "ab"] == [b"7", b"7"]


def test_memory_is_bounded(face: Face, server: Server, proxy: FaultProxy) -> None:
    client = face.connect(proxy.url, timeout=TIMEOUT)
    meter = client.meter(**BY_HAND, max_counters=2)
    proxy.do("refuse")
    proxy.do("cut")
    meter.add("a", 1)
    meter.add("b", 1)
    with pytest.raises(tallylock.BusyError, match="2 wait for the server") as caught:
        meter.add("c", 1)
    assert caught.value.key == "c"
    proxy.do("accept")
    meter.flush()
    meter.add("c", 1)
    meter.close()
    assert [server.plain.get(key) for key in "abc"] == [b"1", b"1", b"1"]


def test_lost_replies_and_a_server_that_is_away(face: Face, server: Server, proxy: FaultProxy) -> None:
    meter = face.connect(proxy.url, timeout=TIMEOUT).meter(**BY_HAND)
    meter.add("warm", 1)
    meter.flush()
    meter.add(KEY, 30)
    proxy.do("hold")
    with pytest.raises(tallylock.OutcomeUnknownError, match="30 units over 1 counters wait"):
        meter.flush()
    assert isinstance(meter.trouble, tallylock.OutcomeUnknownError)
    assert server.plain.get(KEY) == b"30"
    proxy.do("refuse")
    proxy.do("cut")
    proxy.do("go")
    meter.add(KEY, 12)
    with pytest.raises(tallylock.UnavailableError):
        meter.flush()
    proxy.do("accept")
    assert meter.flush() == tallylock.Flushed(settled=2, units=42, waiting=0, refused=0)
    assert server.plain.get(KEY) == b"42"


def test_an_error_of_the_block_comes_first(face: Face, server: Server, proxy: FaultProxy) -> None:
    client = face.connect(server.url)

    def fail(client: Any, before: Callable[[], object]) -> None:
        with client.meter(**BY_HAND) as meter:
            meter.add(KEY, 30)
            before()
            raise ZeroDivisionError

    def go_away() -> None:
        proxy.do("refuse")
        proxy.do("cut")

    with pytest.raises(ZeroDivisionError):
        fail(client, lambda: None)
    assert server.plain.get(KEY) == b"30"
    away = face.connect(proxy.url, timeout=TIMEOUT)
    away.counter(KEY, ttl=TTL).read()
    with pytest.raises(ZeroDivisionError) as caught:
        fail(away, go_away)
    if sys.version_info >= (3, 11):
        assert "30 units over 1 counters are not on the server" in caught.value.__notes__[0]
    with (
        pytest.raises(tallylock.TallylockError, match="4 units over 1 counters are not"),
        away.meter(**BY_HAND) as meter,
    ):
        meter.add(KEY, 4)


def test_a_client_that_is_closed_first(face: Face, server: Server, tmp_path: Path) -> None:
    client = face.connect(server.url)
    meter, written = client.meter(**BY_HAND), client.meter(**BY_HAND, journal=tmp_path)
    meter.add(KEY, 30)
    written.add(KEY, 12)
    client.close()
    with pytest.raises(tallylock.ClosedError):
        meter.add(KEY, 1)
    with pytest.raises(tallylock.ClosedError, match="30 units over 1 counters are not on the server"):
        meter.close()
    assert written.close() == tallylock.Flushed(settled=0, units=0, waiting=1, refused=0)
    with face.connect(server.url).meter(**BY_HAND, journal=tmp_path):
        pass
    assert server.plain.get(KEY) == b"12"


MISTAKES: dict[str, dict[str, Any]] = {
    "no ttl": {"ttl": timedelta()},
    "another expiry": {"expiry": "never"},
    "no interval": {"interval": timedelta()},
    "no units": {"max_units": 0},
    "fewer units than none": {"max_units": -(2**70)},
    "no counters": {"max_counters": 0},
    "remembered for too short": {"remember": timedelta(seconds=1)},
    "remembered for too long": {"remember": timedelta(days=3651)},
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused(face: Face, mistake: dict[str, Any]) -> None:
    with pytest.raises(tallylock.InvalidArgumentError):
        face.connect("memory://").meter(**{"ttl": TTL, **mistake})


def test_a_bad_add_counts_nothing(face: Face, server: Server) -> None:
    with face.connect(server.url).meter(**BY_HAND) as meter:
        meter.add(KEY, 2**63 - 1)
        with pytest.raises(tallylock.CounterOverflowError):
            meter.add(KEY, 1)
        refused: list[tuple[Any, Any]] = [("", 1), ("{}", 1), (KEY, 2**63), ("\ud800", 1)]
        for key, amount in refused:
            with pytest.raises(tallylock.InvalidArgumentError):
                meter.add(key, amount)
        nonsense: list[tuple[Any, Any]] = [(5, 1), (KEY, 1.5), (KEY, "1")]
        for key, amount in nonsense:
            with pytest.raises(TypeError):
                meter.add(key, amount)
    assert server.plain.get(KEY) == b"9223372036854775807"


def test_a_journal_serves_one_meter_until_that_is_closed_or_forgotten(
    face: Face, server: Server, tmp_path: Path
) -> None:
    client = face.connect(server.url)
    journal = tmp_path / "m\udce9ter"
    first = client.meter(**BY_HAND, journal=journal)
    with pytest.raises(tallylock.BusyError):
        client.meter(**BY_HAND, journal=journal)
    first.add(KEY, 30)
    del first
    gc.collect()
    second = client.meter(**BY_HAND, journal=journal)
    assert second.close() == tallylock.Flushed(settled=1, units=30, waiting=0, refused=0)
    assert client.meter(**BY_HAND, journal=str(journal)).close() == NOTHING
    damaged = journal / ("0" * 32 + ".segment")
    damaged.write_bytes(b"nonsense")
    with pytest.raises(tallylock.InvalidArgumentError, match=damaged.name):
        client.meter(**BY_HAND, journal=journal)


KILLED = """
    import os, signal, sys
    from datetime import timedelta
    import tallylock

    client = tallylock.connect(sys.argv[1])
    meter = client.meter(ttl=timedelta(minutes=15), interval=timedelta(milliseconds=1), journal=sys.argv[2])
    for _ in range(1000):
        meter.add("killed", 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_loses_nothing(server: Server, tmp_path: Path) -> None:
    for number in range(1, 6):
        killed = in_another_process(KILLED, server.url, str(tmp_path))
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        with tallylock.connect(server.url) as client, client.meter(**BY_HAND, journal=tmp_path):
            pass
        assert server.plain.get("killed") == b"%d" % (1000 * number)


FULL = """
    import resource, sys
    from datetime import timedelta
    import tallylock

    client = tallylock.connect(sys.argv[1])
    meter = client.meter(ttl=timedelta(minutes=15), interval=timedelta(hours=1), journal=sys.argv[2])
    counted = refused = 0
    for most in (1000, 1003, 2000):
        # No file may grow beyond this.
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        for number in range(60):
            try:
                # Records of several lengths: what a long one has left must not stand behind a short one.
                meter.add("full" + "x" * (7 * number % 40), 1)
                counted += 1
            except tallylock.UnavailableError as error:
                assert "File too large" in str(error), error
                refused += 1
    print(counted, refused)
"""


def test_a_full_disk_refuses_adds_and_counts_the_others(server: Server, tmp_path: Path) -> None:
    full = in_another_process(FULL, server.url, str(tmp_path))
    assert full.returncode == 0, full.stderr
    counted, refused = map(int, full.stdout.split())
    assert refused > 60
    with tallylock.connect(server.url) as client, client.meter(**BY_HAND, journal=tmp_path) as meter:
        assert meter.flush().units == counted


def test_a_child_that_lives_on_does_not_keep_the_journal_of_a_meter_that_was_closed(tmp_path: Path) -> None:
    client = tallylock.connect("memory://")
    meter = client.meter(**BY_HAND, journal=tmp_path)
    until, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.read(until, 1)
        os._exit(0)
    os.close(until)
    try:
        meter.close()
        client.meter(**BY_HAND, journal=tmp_path).close()
    finally:
        os.close(end)
        os.waitpid(child, 0)


def test_a_child_counts_nothing_of_its_parents(server: Server, tmp_path: Path) -> None:
    client = tallylock.connect(server.url)
    meter = client.meter(**BY_HAND)
    written = client.meter(ttl=TTL, interval=timedelta(milliseconds=1), journal=tmp_path)
    meter.add(KEY, 30)
    written.add("written", 1)

    def use() -> list[str]:
        codes = []
        verbs: list[Callable[[], object]] = [
            lambda: meter.add(KEY, 1),
            lambda: written.add("written", 1),
            meter.flush,
            meter.take_refused,
            lambda: meter.trouble,
            meter.close,
            written.close,
            lambda: client.meter(**BY_HAND, journal=tmp_path),
        ]
        for verb in verbs:
            try:
                verb()
            except tallylock.TallylockError as error:
                codes.append(error.code)
        with client.meter(**BY_HAND) as own:
            own.add("child's", 5)
        return codes

    assert in_a_child(use) == ["closed"] * 7 + ["busy"]
    assert server.plain.get("child's") == b"5"
    written.add("written", 1)
    assert server.plain.get(KEY) is None
    meter.close()
    written.close()
    assert server.plain.get(KEY) == b"30"
    assert server.plain.get("written") == b"2"


def test_forks_while_other_threads_add(server: Server) -> None:
    client = tallylock.connect(server.url)
    meter = client.meter(ttl=TTL, interval=timedelta(milliseconds=1))
    over = threading.Event()
    added = [0] * 3

    def hammer(number: int) -> None:
        while not over.is_set():
            meter.add("hammered", 1)
            added[number] += 1

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, 11):

            def use() -> str:
                with client.meter(**BY_HAND) as own:
                    own.add("forks", 1)
                    with pytest.raises(tallylock.ClosedError) as caught:
                        meter.add("hammered", 1)
                return caught.value.code

            assert in_a_child(use) == "closed"
            assert server.plain.get("forks") == b"%d" % number
    finally:
        over.set()
        for thread in threads:
            thread.join()
    meter.close()
    assert server.plain.get("hammered") == b"%d" % sum(added)


def test_a_flush_whose_task_is_cancelled_goes_on(server: Server, proxy: FaultProxy) -> None:
    async def run() -> None:
        async with (
            await tallylock.aio.connect(proxy.url, timeout=timedelta(seconds=20)) as client,
            await client.meter(**BY_HAND) as meter,
        ):
            meter.add("warm", 1)
            await meter.flush()
            meter.add(KEY, 30)
            proxy.do("hold")
            flush = asyncio.create_task(meter.flush())
            await asyncio.to_thread(proxy.do, "await-held 1")
            flush.cancel()
            with pytest.raises(asyncio.CancelledError):
                await flush
            meter.add(KEY, 12)
            proxy.do("go")
            assert (await meter.flush()).units == 12

    asyncio.run(run())
    assert server.plain.get(KEY) == b"42"


def test_a_flush_that_is_interrupted_goes_on(server: Server, proxy: FaultProxy) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def ring() -> None:
        # The server has it, and so it comes in the middle of the flush.
        proxy.do("await-held 1")
        signal.raise_signal(signal.SIGALRM)

    client = tallylock.connect(proxy.url, timeout=timedelta(seconds=20))
    with client.meter(**BY_HAND) as meter:
        meter.add("warm", 1)
        meter.flush()
        meter.add(KEY, 30)
        proxy.do("hold")
        before = signal.signal(signal.SIGALRM, interrupt)
        interrupting = threading.Thread(target=ring)
        interrupting.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                meter.flush()
            interrupting.join()
        finally:
            signal.signal(signal.SIGALRM, before)
        proxy.do("go")
        meter.add(KEY, 12)
        assert meter.flush().units == 12
    assert server.plain.get(KEY) == b"42"


def in_another_process(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - our own code


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds, for at most some seconds."""
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    pytest.fail("it never came")
