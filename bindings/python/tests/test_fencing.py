"""The pattern of examples/python/fencing.py: whoever was overtaken changes nothing in the database."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples import example

fencing = example("fencing")

# Larger than 32 bits, as fences are, and the largest that a BIGINT holds.
NOW, LARGEST = 1_700_000_000_000_000, 2**63 - 1


def guard(database: Any, name: str = "invoices") -> Any:
    made = fencing.Fence(database, name)
    made.make()
    database.commit()
    return made


def test_a_lower_fence_is_refused_and_a_higher_one_takes_over(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "invoices.db")) as database:
        invoices = guard(database)
        for fence in (NOW, NOW, NOW + 1, LARGEST):
            invoices.pass_through(fence)
        database.commit()
        # Made again, as by the next process, it has forgotten nothing.
        for again in (invoices, guard(database)):
            with pytest.raises(fencing.FencedOff, match=str(NOW + 1)):
                again.pass_through(NOW + 1)
        guard(database, "another").pass_through(1)


def test_what_is_rolled_back_has_not_passed(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "invoices.db")) as database:
        invoices = guard(database)
        invoices.pass_through(NOW + 1)
        database.rollback()
        invoices.pass_through(NOW)


def test_a_transaction_that_is_open_keeps_a_later_one_from_passing(tmp_path: Path) -> None:
    file = tmp_path / "invoices.db"
    with closing(sqlite3.connect(file)) as first, closing(sqlite3.connect(file, timeout=0)) as second:
        early, late = guard(first), guard(second)
        early.pass_through(NOW)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            late.pass_through(NOW + 1)
        first.commit()
        late.pass_through(NOW + 1)
        second.commit()
        with pytest.raises(fencing.FencedOff):
            early.pass_through(NOW)


def test_without_its_row_nobody_passes(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "invoices.db")) as database:
        guard(database)
        with pytest.raises(fencing.FencedOff):
            fencing.Fence(database, "never made").pass_through(NOW)


def test_the_example_refuses_the_holder_who_was_stolen_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fencing.py"])
    fencing.main()
    refused, written = capsys.readouterr().out.splitlines()
    assert refused.startswith("refused: fence ")
    assert written.startswith("invoice: under the fence ")
