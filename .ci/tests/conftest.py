"""Lets the tests import the checks, which are scripts beside them and no package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
