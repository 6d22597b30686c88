"""Checks each Lua script of core against the rules of `script_rules`; prints one line for each that is broken."""

from __future__ import annotations

import sys
from pathlib import Path

from script_rules import problems

SCRIPTS = Path(__file__).resolve().parent.parent / "core" / "lua"


def main() -> int:
    """Returns the exit code: 1 if there is no script or a rule is broken."""
    scripts = sorted(SCRIPTS.glob("**/*.lua"))
    if not scripts:
        print(f"scripts: none in {SCRIPTS}", file=sys.stderr)
        return 1
    broken = False
    for script in scripts:
        for problem in problems(script.read_text(encoding="utf-8")):
            print(f"scripts: {script.relative_to(SCRIPTS.parent.parent)}:{problem}", file=sys.stderr)
            broken = True
    if not broken:
        print(f"scripts: {len(scripts)} Lua scripts use only what Redis 6.0 has")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
