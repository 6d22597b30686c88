"""Takes one thing after the other out of the lock, in a copy of the tree, and checks that it is noticed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mutants import MUTANTS, Catcher, Mutant, RustTest, Simulation, World

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "target" / "mutants"
TREE = BUILT / "tree"
WIDTH = max(len(mutant.name) for mutant in MUTANTS)
PACKAGES = {"core": "tallylock-core", "bindings/rust": "tallylock"}
SIMULATED = "whatever_happens_the_lock_keeps_its_promises"
# What the model prints of a world that is not as it must be, and the simulation of a seed.
BROKEN_WORLD = re.compile(r"^ +((?:found broken|not found): .+?)(?:, after)?$", re.MULTILINE)
BROKEN_SEED = re.compile(r"^(seed \d+: (?!Plan).+)$", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """How a mutant fared: whether it was noticed as it must be, and by what, or why not."""

    is_noticed: bool
    what: str


def main() -> int:
    """Returns the exit code: 1 if a mutant was not noticed, or can no longer be made."""
    copy_tree()
    for catcher in sorted({mutant.caught_by for mutant in MUTANTS}, key=str):
        verdict = noticed(catcher)
        if verdict.is_noticed or verdict.what:
            print(f"mutants: without a mutant, {shown(catcher)} must pass: {verdict.what}", file=sys.stderr)
            return 1
    print(f"{'mutant':<{WIDTH}} what caught it", flush=True)
    verdicts = [tried(mutant) for mutant in MUTANTS]
    return int(not all(verdicts))


def tried(mutant: Mutant) -> bool:
    """Makes a mutant, prints what caught it, and undoes it; returns whether it was caught as it must be."""
    source = TREE / mutant.file
    text = source.read_text(encoding="utf-8")
    if text.count(mutant.before) != 1:
        verdict = Verdict(False, f"CANNOT BE MADE: its text is not in {mutant.file}, or more than once")
    else:
        source.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
        try:
            verdict = noticed(mutant.caught_by)
        finally:
            source.write_text(text, encoding="utf-8")
    what = verdict.what or "NOTHING"
    print(f"{mutant.name:<{WIDTH}} {what}", flush=True)
    return verdict.is_noticed


def noticed(catcher: Catcher) -> Verdict:
    """Runs what is to catch a mutant. That it cannot be built, or run, is not to be taken for that."""
    ran = cargo(command(catcher))
    output = ran.stdout + ran.stderr
    if ran.returncode == 0:
        return Verdict(False, "" if has_passed(catcher, output) else f"{shown(catcher)} did not run:\n{output}")
    if isinstance(catcher, RustTest):
        is_caught, detail = f"test {path_of(catcher)} ... FAILED" in output, ""
    else:
        broken = (BROKEN_SEED if isinstance(catcher, Simulation) else BROKEN_WORLD).search(output)
        is_caught, detail = broken is not None, f": {broken.group(1)}" if broken else ""
    return Verdict(is_caught, f"{shown(catcher)}{detail}" if is_caught else f"{shown(catcher)} did not run:\n{output}")


def has_passed(catcher: Catcher, output: str) -> bool:
    """Returns whether the catcher itself has run, and not nothing."""
    match catcher:
        case World():
            return re.search(r"  (holds|broken, as it must be: .+)$", output, re.MULTILINE) is not None
        case Simulation():
            return f"test {SIMULATED} ... ok" in output
        case RustTest():
            return f"test {path_of(catcher)} ... ok" in output


def command(catcher: Catcher) -> list[str]:
    """Returns what cargo is asked for to run a catcher."""
    match catcher:
        case World(name=name):
            return ["run", "--release", "--quiet", "--package", "tallylock-model", "--", "--world", name]
        case Simulation():
            return ["test", "--package", "tallylock-simulation", SIMULATED, "--", "--exact"]
        case RustTest(file=file):
            crate, kind, stem = places(file)
            target = ["--test", stem] if kind == "tests" else ["--lib"]
            return ["test", "--package", PACKAGES[crate], *target, path_of(catcher), "--", "--exact"]


def path_of(test: RustTest) -> str:
    """Returns what cargo calls it."""
    _, kind, stem = places(test.file)
    return test.name if kind == "tests" else f"{stem}::tests::{test.name}"


def places(file: str) -> tuple[str, str, str]:
    """Takes a file's path apart: its crate's folder, `tests` or `src`, and its name without the suffix."""
    path = Path(file)
    return str(path.parent.parent), path.parent.name, path.stem


def shown(catcher: Catcher) -> str:
    """Returns its name for people."""
    match catcher:
        case World(name=name):
            return f"model, {name}"
        case Simulation():
            return "simulation"
        case RustTest(file=file, name=name):
            return f"{file}::{name}"


def cargo(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs cargo in the copy, with a target folder that all mutants share."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(BUILT / "target")}
    return subprocess.run(["cargo", *arguments], cwd=TREE, env=environment, capture_output=True, text=True, check=False)


def copy_tree() -> None:
    """Copies what git knows of; files that are the same keep their times, so that little is built anew."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for old in [path for path in TREE.rglob("*") if path.is_file()]:
        if str(old.relative_to(TREE)) not in names:
            old.unlink()
    for name in names:
        content, copy = (ROOT / name).read_bytes(), TREE / name
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
