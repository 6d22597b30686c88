"""The check of docs/guarantees.md: it must see a test that is gone, renamed, skipped or failing."""

from __future__ import annotations

from pathlib import Path

import pytest
from guarantee_rules import Passed, passed, problems, promises

RUST_LOG = """
     Running tests/server.rs (target/debug/deps/server-1)
test counter::keeps_the_ttl::on_valkey ... ok
test loses_a_unit ... FAILED
test slow_one ... ignored
"""
PYTEST_LOG = """
tests/test_lock.py::test_release PASSED                    [ 50%]
tests/test_lock.py::test_wait[memory] \x1b[32mPASSED\x1b[0m
tests/test_lock.py::test_extend FAILED
tests/test_lock.py::test_quorum SKIPPED (no)
"""
MODEL_LOG = """
world                              nodes     states  depth      s  verdict
one node: a clock that gains           1      84112     40    3.1  holds
one node: one token for two            1      18352    104    0.4  broken, as it must be: never two valid leases
three nodes: renewal                   3        120     12    0.1  NOT AS EXPECTED
"""
NODE_TAP_LOG = """
# Subtest: adds exactly
ok 1 - adds exactly
not ok 2 - drains
    ok 3 - nested one # time=3ms
ok 4 - left out # SKIP
"""
NODE_SPEC_LOG = "✔ finishes (1.25ms)\n✖ extends (2.5ms)\n"
JVM_REPORT = """<testsuite>
<testcase name="adds exactly" classname="dev.tallylock.CounterTest"/>
<testcase name="drains{Continuation}()" classname="dev.tallylock.CounterTest"><failure/></testcase>
<testcase name="waits(Duration)[1]" classname="dev.tallylock.LockTest"/>
</testsuite>"""


@pytest.fixture
def results() -> Passed:
    return passed([RUST_LOG, MODEL_LOG, PYTEST_LOG, NODE_TAP_LOG, NODE_SPEC_LOG], [JVM_REPORT])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("core/src/counter.rs", "on_valkey"),
        ("core/src/counter.rs", "keeps_the_ttl"),
        ("tests/model/src/worlds.rs", "one node: a clock that gains"),
        ("tests/model/src/worlds.rs", "one node: one token for two"),
        ("bindings/python/tests/test_lock.py", "test_release"),
        ("bindings/python/tests/test_lock.py", "test_wait"),
        ("wasm/npm/test/counter.test.js", "adds exactly"),
        ("wasm/npm/test/counter.test.js", "nested one"),
        ("wasm/npm/test/counter.test.js", "finishes"),
        ("bindings/kotlin/src/test/kotlin/dev/tallylock/CounterTest.kt", "adds exactly"),
        ("bindings/kotlin/src/test/java/dev/tallylock/LockTest.java", "waits"),
    ],
)
def test_sees_what_passed(results: Passed, path: str, name: str) -> None:
    assert results.has(path, name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("core/src/counter.rs", "loses_a_unit"),
        ("core/src/counter.rs", "slow_one"),
        ("core/src/counter.rs", "valkey"),
        ("tests/model/src/worlds.rs", "three nodes: renewal"),
        ("tests/model/src/worlds.rs", "one node"),
        ("bindings/python/tests/test_lock.py", "test_extend"),
        ("bindings/python/tests/test_lock.py", "test_quorum"),
        ("bindings/python/tests/test_other.py", "test_release"),
        ("wasm/npm/test/counter.test.js", "drains"),
        ("wasm/npm/test/counter.test.js", "left out"),
        ("wasm/npm/test/counter.test.js", "extends"),
        ("bindings/kotlin/src/test/kotlin/dev/tallylock/CounterTest.kt", "drains"),
        ("bindings/kotlin/src/test/kotlin/dev/tallylock/LockTest.kt", "adds exactly"),
    ],
)
def test_sees_what_did_not_pass(results: Passed, path: str, name: str) -> None:
    assert not results.has(path, name)


def test_reads_the_tests_of_each_promise() -> None:
    page = "# Guarantees\n## 1. One\n`a/b.rs::c`, `d.kt::e f`\n### 2. Two\nsee `x::y`\n## Trade-offs\n"
    assert [promise.tests for promise in promises(page)] == [(("a/b.rs", "c"), ("d.kt", "e f")), ()]


def test_names_each_thing_that_is_wrong(tmp_path: Path, results: Passed) -> None:
    (tmp_path / "a.rs").write_text("fn on_valkey() {}\nfn loses_a_unit() {}\n")
    page = "## 1. One\n`a.rs::on_valkey`\n## 2. Two\n## 3. Three\n`b.rs::x` `a.rs::renamed` `a.rs::loses_a_unit`\n"
    assert problems(page, tmp_path, results) == [
        "promise 2 names no test",
        "promise 3: there is no file b.rs",
        "promise 3: a.rs has no test called renamed",
        "promise 3: a.rs::loses_a_unit has not passed in this run",
    ]


@pytest.mark.parametrize("page", ["", "# Nothing\n", "## 1. One\n`a.rs::on_valkey`\n## 3. Three\n`a.rs::on_valkey`\n"])
def test_refuses_a_page_that_skips_a_promise(tmp_path: Path, results: Passed, page: str) -> None:
    (tmp_path / "a.rs").write_text("fn on_valkey() {}\n")
    assert len(problems(page, tmp_path, results)) == 1
