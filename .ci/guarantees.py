"""Checks that each test named in docs/guarantees.md exists and has passed in the run whose logs are in .cache."""

from __future__ import annotations

import sys
from pathlib import Path

from guarantee_rules import passed, problems, promises

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
LOGS = ROOT / ".cache" / "test-logs"
JVM_REPORTS = ROOT / "bindings" / "kotlin" / "target" / "surefire-reports"


def main() -> int:
    """Returns the exit code: 1 if a promise is not guarded."""
    page = PAGE.read_text(encoding="utf-8")
    results = passed(
        (log.read_text(encoding="utf-8", errors="replace") for log in sorted(LOGS.glob("*.log"))),
        (report.read_text(encoding="utf-8") for report in sorted(JVM_REPORTS.glob("TEST-*.xml"))),
    )
    found = problems(page, ROOT, results)
    for problem in found:
        print(f"guarantees: {problem}", file=sys.stderr)
    if not found:
        listed = promises(page)
        tests = {test for promise in listed for test in promise.tests}
        print(f"guarantees: {len(listed)} promises, guarded by {len(tests)} tests that exist and passed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
