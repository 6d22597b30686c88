"""Which tests docs/guarantees.md names for each promise, and whether each of them is there and has run."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROMISE = re.compile(r"^#{2,3} (\d+)\. ", re.MULTILINE)
NAMED_TEST = re.compile(r"`([\w./-]+\.(?:rs|py|kt|java|js|mjs|ts))::([^`\n]+)`")
# A world of the model, with its nodes, states, depth and seconds.
WORLD_PASSED = re.compile(r"^(\S.*?) +\d+ +\d+ +\d+ +[\d.]+  (?:holds|broken, as it must be: .*)$", re.MULTILINE)
RUST_PASSED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ok$", re.MULTILINE)
PYTEST_PASSED = re.compile(r"([\w-]+\.py)::(?:\w+::)*(\w+)(?:\[.*\])? PASSED")
# Node's reporters: `spec` on a terminal (and elsewhere from Node 23 on), else `tap`.
NODE_SPEC_PASSED = re.compile(r"^\s*✔ (.+?) \([\d.]+ms\)$", re.MULTILINE)
NODE_TAP_PASSED = re.compile(r"^\s*ok \d+ - (.+?)(?: # time=.*)?$", re.MULTILINE)
# As a runner colours it on a terminal.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Promise:
    """One numbered heading and the tests that its section names, each as (file, name)."""

    number: int
    tests: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Passed:
    """The names of the tests that passed in the last run, for each kind of runner."""

    rust: frozenset[str]
    # With the name of the file, since pytest prints it.
    python: frozenset[tuple[str, str]]
    # With the simple name of the class, which is the name of the file.
    jvm: frozenset[tuple[str, str]]
    node: frozenset[str]

    def has(self, path: str, name: str) -> bool:
        """Returns whether the test `name` of the file `path` has passed."""
        file = Path(path)
        if file.suffix == ".rs":
            return name in self.rust
        if file.suffix == ".py":
            return (file.name, name) in self.python
        if file.suffix in (".kt", ".java"):
            return (file.stem, name) in self.jvm
        return name in self.node


def promises(page: str) -> list[Promise]:
    """Returns the promises of the page: a heading with a number, up to the next one."""
    starts = list(PROMISE.finditer(page))
    ends = [*(start.start() for start in starts), len(page)][1:]
    return [
        Promise(int(start.group(1)), tuple(NAMED_TEST.findall(page[start.end() : end])))
        for start, end in zip(starts, ends, strict=False)
    ]


def passed(logs: Iterable[str], jvm_reports: Iterable[str]) -> Passed:
    """Reads what the runners have left: their output, and the XML files of Maven's."""
    text = COLOUR.sub("", "\n".join(logs))
    return Passed(
        rust=frozenset(name for path in RUST_PASSED.findall(text) for name in rust_names(path))
        | frozenset(WORLD_PASSED.findall(text)),
        python=frozenset(PYTEST_PASSED.findall(text)),
        jvm=frozenset(test for report in jvm_reports for test in jvm_passed(report)),
        node=frozenset(NODE_SPEC_PASSED.findall(text)) | frozenset(node_tap_passed(text)),
    )


def rust_names(path: str) -> list[str]:
    """Returns what a Rust test may be called by: its function, or the module that `on_each_server!` makes of one."""
    return path.split("::")[-2:]


def node_tap_passed(text: str) -> list[str]:
    """Returns the tests of a TAP log that were neither skipped nor left to do."""
    return [name for name in NODE_TAP_PASSED.findall(text) if not re.search(r" # (SKIP|TODO)\b", name)]


def jvm_passed(report: str) -> list[tuple[str, str]]:
    """Returns the class and name of each test case of a report that neither failed nor was skipped."""
    found = []
    for case in ET.fromstring(report).iter("testcase"):
        if any(case.find(outcome) is not None for outcome in ("failure", "error", "skipped")):
            continue
        # One that takes parameters is reported as `name(Type)[1]`, one that suspends as `name{Continuation}()`.
        name = re.sub(r"(\{.*\})?\(.*\)(\[.*\])?$", "", case.get("name", ""))
        found.append((case.get("classname", "").rpartition(".")[2], name))
    return found


def problems(page: str, root: Path, results: Passed) -> list[str]:
    """Returns what is wrong: a promise without a test, a test that is not in its file, a test that has not passed."""
    found = []
    listed = promises(page)
    if [promise.number for promise in listed] != list(range(1, len(listed) + 1)) or not listed:
        found.append("the promises must be headings numbered from 1 without a gap")
    for promise in listed:
        if not promise.tests:
            found.append(f"promise {promise.number} names no test")
        for path, name in promise.tests:
            file = root / path
            if not file.is_file():
                found.append(f"promise {promise.number}: there is no file {path}")
            elif name not in file.read_text(encoding="utf-8"):
                found.append(f"promise {promise.number}: {path} has no test called {name}")
            elif not results.has(path, name):
                found.append(f"promise {promise.number}: {path}::{name} has not passed in this run")
    return found
