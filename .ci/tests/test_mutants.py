"""The mutants of the lock's protocol: each can still be made, and what is to catch it is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants import MUTANTS, Mutant, RustTest, Simulation, World
from run import SIMULATED

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_text_is_there_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.before) == 1


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_catches_it_is_there(mutant: Mutant) -> None:
    catcher = mutant.caught_by
    match catcher:
        case RustTest(file=path, name=name):
            text = f"fn {name}("
        case World(name=name):
            path, text = "tests/model/src/worlds.rs", f'"{name}"'
        case Simulation():
            path, text = "tests/simulation/main.rs", f"fn {SIMULATED}("
    assert text in (ROOT / path).read_text("utf-8")
