"""setup/digest.sh: what is remembered as built is what the build began with."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "setup"
SCRIPTS = sorted(path for folder in ("setup", "bench", "examples") for path in (ROOT / folder).glob("*.sh"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of its own with one folder of sources."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "setup").mkdir()
    shutil.copy(SETUP / "digest.sh", tmp_path / "setup")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "one").write_text("first")
    return tmp_path


def run(tree: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail; cd {tree}; source setup/digest.sh; {script}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def build(tree: Path, during: str = ":") -> str:
    """Builds if need be, as the scripts in setup do, and says whether that was so."""
    done = run(tree, f"if fresh it source; then echo fresh; exit; fi; {during}; remember it; echo built")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_is_unchanged_is_built_once(tree: Path) -> None:
    assert [build(tree), build(tree)] == ["built", "fresh"]


@pytest.mark.parametrize("change", ["echo second >source/one", "rm source/one", "echo first >source/two"])
def test_a_change_is_built(tree: Path, change: str) -> None:
    assert build(tree) == "built"
    assert run(tree, change).returncode == 0
    assert [build(tree), build(tree)] == ["built", "fresh"]


def test_a_change_during_the_build_is_built_by_the_next(tree: Path) -> None:
    assert build(tree, during="echo second >source/one") == "built"
    assert [build(tree), build(tree)] == ["built", "fresh"]


def test_what_failed_is_built_again(tree: Path) -> None:
    assert run(tree, "fresh it source || false; remember it").returncode != 0
    assert build(tree) == "built"


def test_nothing_is_remembered_that_was_not_looked_at_before(tree: Path) -> None:
    done = run(tree, "fresh other source || true; remember it")
    assert (done.returncode, done.stderr) == (1, "digest: 'remember it' without 'fresh it' before the build\n")
    assert build(tree) == "built"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_caller_looks_before_anything_else_decides(script: Path) -> None:
    """Where another condition is asked first, `fresh` may not be asked at all, and there is nothing to record."""
    for line in script.read_text("utf-8").splitlines():
        asked = re.search(r"(?<![-\w])fresh ", line)
        if asked and not line.startswith("#"):
            assert not re.search(r"&&|\|\|", line[: asked.start()]), line
