"""The sweeper: what it bills, what its callback says, and what becomes of what fails."""

import asyncio
import logging
import sqlite3
import threading
from datetime import timedelta
from typing import Any

import pytest

import tallylock
import tallylock.aio
from faces import Face
from servers import FaultProxy, Server

PATTERN = "session:*:pending"
TTL = timedelta(minutes=15)
LOCK_TTL = timedelta(seconds=30)


class Invoices:
    """Invoices, one for each claim however often it is billed."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE TABLE invoices (claim TEXT PRIMARY KEY, units BIGINT NOT NULL)")

    def bill(self, _key: bytes, claim_id: str, amount: int) -> None:
        statement = "INSERT INTO invoices (claim, units) VALUES (?, ?) ON CONFLICT (claim) DO NOTHING"
        self._database.execute(statement, (claim_id, amount))
        self._database.commit()

    @property
    def total(self) -> int:
        total: int = self._database.execute("SELECT coalesce(sum(units), 0) FROM invoices").fetchone()[0]
        return total


def key(session: object) -> str:
    return f"session:{session}:pending"


def counter(client: Any, session: object) -> Any:
    return client.counter(key(session), ttl=TTL)


def fill(client: Any, *amounts: int) -> None:
    for session, amount in enumerate(amounts):
        counter(client, session).add(amount)


def sweeper(client: Any, **options: Any) -> Any:
    wanted: dict[str, Any] = {"ttl": TTL, "lock": "sweeper", "lock_ttl": LOCK_TTL, "within": timedelta(hours=1)}
    return client.sweeper(PATTERN, **(wanted | options))


def no_open_claims(client: Any, sessions: int) -> bool:
    return all(counter(client, session).claims() == [] for session in range(sessions))


def test_what_is_due_is_billed_and_reported(face: Face, server: Server) -> None:
    client, invoices = face.connect(server.url), Invoices()
    fill(client, 30, 5, 0)
    report = sweeper(client, within=None, at_least=10).sweep(invoices.bill)
    assert report == tallylock.SweepReport(1, 0, 1, 30, 0, 0, 0, 0)
    assert report.is_clean
    report = sweeper(client).sweep(invoices.bill)
    assert (report.committed, report.committed_units, invoices.total) == (1, 5, 35)
    assert [counter(client, session).read() for session in range(3)] == [0, 0, 0]
    assert no_open_claims(client, 3)
    assert server.plain.get("sweeper") is None
    assert all(server.plain.pttl(each) > 0 for each in server.plain.keys())


def test_the_callback_is_given_key_claim_and_amount(face: Face) -> None:
    client = face.connect("memory://")
    fill(client, 2**62, 2**62, 2**62)
    seen: dict[bytes, int] = {}

    def bill(key: bytes, claim_id: str, amount: int) -> None:
        assert claim_id.startswith("sweep.sweeper.")
        seen[key] = amount

    report = sweeper(client).sweep(bill)
    assert seen == {key(session).encode(): 2**62 for session in range(3)}
    assert report.committed_units == 3 * 2**62


def test_what_is_refused_goes_back_with_a_ttl(face: Face) -> None:
    client = face.connect("memory://")
    fill(client, 30)

    def refuse(*_: object) -> None:
        client.memory.remove(key(0))
        raise tallylock.RefusedError

    report = sweeper(client).sweep(refuse)
    assert (report.offered, report.aborted, report.aborted_units, report.left_open) == (1, 1, 30, 0)
    assert report.is_clean
    assert counter(client, 0).read() == 30
    assert all(found.ttl is not None for found in client.memory.keys())


def test_an_exception_leaves_the_claim_to_the_next_pass_and_stops_no_other(face: Face) -> None:
    client, invoices = face.connect("memory://"), Invoices()
    fill(client, 1, 2, 3)
    failed = OSError("the database is away")

    def bill(key: bytes, claim_id: str, amount: int) -> None:
        if amount == 2:
            raise failed
        invoices.bill(key, claim_id, amount)

    first = sweeper(client).sweep(bill)
    assert (first.offered, first.committed_units, first.left_open) == (3, 4, 1)
    ((failed_key, claim_id, error),) = first.failures
    assert (failed_key, error) == (key(1).encode(), failed)
    assert not first.is_clean
    # It was billed before the exception, perhaps; its counter is long gone.
    invoices.bill(failed_key, str(claim_id), 2)
    client.memory.advance(timedelta(days=2))
    seen: list[str] = []

    def again(key: bytes, claim_id: str, amount: int) -> None:
        seen.append(claim_id)
        invoices.bill(key, claim_id, amount)

    second = sweeper(client).sweep(again)
    assert (seen, second.resumed, second.committed_units) == ([claim_id], 1, 2)
    assert invoices.total == 6


def test_what_cannot_be_billed_is_reported_and_stops_nothing(face: Face, server: Server) -> None:
    client, invoices = face.connect(server.url), Invoices()
    fill(client, 30, 5)
    server.plain.rpush(key("list"), "x")
    server.plain.set(key("text"), "x")
    server.plain.set("session:foreign:pending", 7, px=60_000)
    server.plain.acl_setuser(
        "sweeping", enabled=True, passwords=["+secret"], commands=["+@all"], keys=["session:[0-9lt]*", "sweeper*"]
    )
    server.plain.execute_command("ACL", "SETUSER", "sweeping", "&*")
    restricted = face.connect(server.url.replace("redis://", "redis://sweeping:secret@"))
    report = sweeper(restricted).sweep(invoices.bill)
    assert (report.unusable, report.committed_units, invoices.total) == (3, 35, 35)
    found = {failure.key.decode(): type(failure.error) for failure in report.failures}
    assert found == {
        key("list"): tallylock.WrongTypeError,
        key("text"): tallylock.NotAnIntegerError,
        key("foreign"): tallylock.ForbiddenError,
    }
    assert all(failure.claim_id is None for failure in report.failures)


def test_another_sweeper_is_busy(face: Face, server: Server) -> None:
    client = face.connect(server.url)
    with tallylock.connect(server.url).lock("sweeper", ttl=LOCK_TTL).acquire(), pytest.raises(tallylock.BusyError):
        sweeper(client).sweep(print)
    assert sweeper(client).sweep(print).is_clean


def test_a_pass_that_loses_its_lock_commits_what_was_billed_and_stops(face: Face) -> None:
    url = f"memory://sweeper-loses-its-lock-{face.name}"
    client, invoices, other = face.connect(url), Invoices(), tallylock.connect(url)
    fill(client, 30, 5)

    def bill(key: bytes, claim_id: str, amount: int) -> None:
        invoices.bill(key, claim_id, amount)
        # A pause longer than the lock lasts: another has it.
        client.memory.advance(2 * LOCK_TTL)
        other.lock("sweeper", ttl=LOCK_TTL).acquire()

    report = sweeper(client).sweep(bill)
    assert isinstance(report.error, tallylock.LostError)
    assert (report.committed, invoices.total) == (1, report.committed_units)
    client.memory.remove("sweeper")
    sweeper(client).sweep(invoices.bill)
    assert invoices.total == 35
    assert no_open_claims(client, 2)


def test_each_reply_lost_once_loses_and_doubles_nothing(face: Face, server: Server, proxy: FaultProxy) -> None:
    client = face.connect(proxy.url)
    sweeper(client).sweep(print)
    for place in range(1, 100):
        server.plain.flushdb()
        with tallylock.connect(server.url) as before:
            fill(before, 30, 5)
            # One that a sweeper who died has left.
            counter(before, 0).claim("sweep.sweeper." + "a" * 32)
            counter(before, 0).add(7)
        invoices = Invoices()
        lost = proxy.do("stats")["stats"]["lost"]
        proxy.do(f"lose {place}")
        report = sweeper(client).sweep(invoices.bill)
        assert report.is_clean, f"reply {place} lost: {report}"
        assert (report.committed_units, report.resumed, invoices.total) == (42, 1, 42), f"reply {place} lost"
        assert no_open_claims(client, 2)
        assert server.plain.get("sweeper") is None
        if proxy.do("stats")["stats"]["lost"] == lost:
            break
    # The lock, a look at the claims, one at the counters, three claims and as many commits, the release.
    assert place > 11


def test_a_sweeper_that_is_told_to_stop_finishes_what_is_in_its_hand(server: Server) -> None:
    client, invoices, stop = tallylock.connect(server.url), Invoices(), threading.Event()
    fill(client, 30, 5)
    reports: list[tallylock.SweepReport] = []

    def bill(key: bytes, claim_id: str, amount: int) -> None:
        stop.set()
        invoices.bill(key, claim_id, amount)

    sweeper(client).run(bill, every=timedelta(hours=1), stop=stop, on_report=reports.append)
    (report,) = reports
    assert (report.offered, report.committed, invoices.total) == (1, 1, report.committed_units)
    assert report.is_clean
    assert no_open_claims(client, 2)
    assert server.plain.get("sweeper") is None


def test_a_task_that_is_told_to_stop_finishes_what_is_in_its_hand(server: Server) -> None:
    invoices, reports = Invoices(), list[tallylock.SweepReport]()

    async def scenario() -> None:
        async with await tallylock.aio.connect(server.url) as client:
            for session in range(2):
                await counter(client, session).add(10)
            stop = asyncio.Event()

            async def bill(key: bytes, claim_id: str, amount: int) -> None:
                stop.set()
                await asyncio.sleep(0)
                invoices.bill(key, claim_id, amount)

            await sweeper(client).run(bill, every=timedelta(hours=1), stop=stop, on_report=reports.append)

    asyncio.run(scenario())
    assert [(report.offered, report.committed) for report in reports] == [(1, 1)]
    assert invoices.total == 10
    assert server.plain.get("sweeper") is None


def test_it_goes_on_where_another_is_at_work_or_the_server_is_away(server: Server, proxy: FaultProxy) -> None:
    client, stop = tallylock.connect(proxy.url, timeout=timedelta(seconds=2)), threading.Event()
    counter(client, 0).add(30)
    other = tallylock.connect(server.url).lock("sweeper", ttl=LOCK_TTL).acquire()
    proxy.do("refuse")
    proxy.do("cut")
    reports: list[tallylock.SweepReport] = []

    def told(report: tallylock.SweepReport) -> None:
        reports.append(report)
        if report.error is None:
            stop.set()
            return
        proxy.do("accept")
        other.release()

    sweeper(client).run(print, every=timedelta(milliseconds=1), stop=stop, on_report=told)
    away, done = reports[0], reports[-1]
    assert isinstance(away.error, tallylock.UnavailableError)
    assert not away.is_clean
    assert done.committed_units == 30


def test_what_fails_is_logged_unless_somebody_looks_at_the_reports(caplog: pytest.LogCaptureFixture) -> None:
    client, stop = tallylock.connect("memory://"), threading.Event()
    assert client.memory is not None
    fill(client, 30)
    client.memory.put(key("text"), "x", ttl=TTL)

    def bill(*_: object) -> None:
        stop.set()
        message = "the database is away"
        raise OSError(message)

    with caplog.at_level(logging.ERROR, "tallylock.sweeper"):
        sweeper(client).run(bill, every=TTL, stop=stop)
    assert "the database is away" in caplog.text
    assert key(0) in caplog.text


def test_a_closed_client_ends_the_running(face: Face) -> None:
    client = face.connect("memory://")
    swept = sweeper(client)
    client.close()
    with pytest.raises(tallylock.ClosedError):
        swept.run(print, every=TTL)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_in_the_callback_leaves_the_claim_open_and_the_lock_free(server: Server) -> None:
    client, invoices = tallylock.connect(server.url), Invoices()
    fill(client, 30)
    with pytest.raises(KeyboardInterrupt):
        sweeper(client).run(interrupted, every=TTL)
    assert server.plain.get("sweeper") is None
    ((claim,)) = counter(client, 0).claims()
    report = sweeper(client).sweep(invoices.bill)
    assert (report.resumed, invoices.total) == (1, 30)
    assert claim.id.startswith(b"sweep.sweeper.")


def test_a_cancelled_task_leaves_the_claim_open_and_the_lock_free(server: Server) -> None:
    async def scenario() -> None:
        async with await tallylock.aio.connect(server.url) as client:
            await counter(client, 0).add(30)
            is_billing = asyncio.Event()

            async def bill(*_: object) -> None:
                is_billing.set()
                await asyncio.Event().wait()

            task = asyncio.create_task(sweeper(client).sweep(bill))
            await is_billing.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert server.plain.get("sweeper") is None
            report = await sweeper(client).sweep(print)
            assert (report.resumed, report.committed_units) == (1, 30)

    asyncio.run(scenario())


BAD: list[dict[str, Any]] = [
    {"within": None},
    {"at_least": 0},
    {"at_least": 2**63},
    {"within": timedelta(seconds=-1)},
    {"ttl": timedelta()},
    {"lock": ""},
    {"lock": "x" * 474},
    {"lock": b"\xff"},
    {"lock": "a{"},
    {"lock_ttl": timedelta(milliseconds=2)},
    {"wait": timedelta(days=4000)},
]


@pytest.mark.parametrize("options", BAD, ids=str)
def test_what_it_is_told_is_checked_before_anything_is_sent(options: dict[str, Any], face: Face) -> None:
    with pytest.raises(tallylock.InvalidArgumentError):
        sweeper(face.connect("memory://"), **options)


def test_a_claim_whose_client_is_closed_under_it_is_told_as_left_open(server: Server) -> None:
    client = tallylock.connect(server.url)
    fill(client, 30)
    report = sweeper(client).sweep(lambda *_claim: client.close())
    assert (report.offered, report.committed, report.left_open) == (1, 0, 1)
    assert isinstance(report.error, tallylock.ClosedError)
    with tallylock.connect(server.url) as other:
        # The lock is released in the background.
        report = sweeper(other, wait=timedelta(seconds=10)).sweep(lambda *_claim: None)
        assert (report.resumed, report.committed_units, other.counter(key(0), ttl=TTL).read()) == (1, 30, 0)
