"""The programs of examples/python, imported as they import each other."""

import importlib
import sys
from types import ModuleType

from servers import ROOT

EXAMPLES = ROOT / "examples" / "python"


def example(name: str) -> ModuleType:
    """Return a program of examples/python as a module."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module(name)
