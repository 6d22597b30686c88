"""Lets the tests import the checks, which are scripts beside them and no package."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / ".ci", ROOT / "tests" / "mutants"):
    sys.path.insert(0, str(folder))
