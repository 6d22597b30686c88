"""The command `tallylock`, which the package brings along."""

import os
import signal
import sys

from tallylock._ffi import command_line


def main() -> int:
    """Run the command with the arguments of this process and return its exit code."""
    # While it runs no Python code would handle Ctrl-C: let that end the process, as it ends other commands.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command_line([os.fsencode(argument) for argument in sys.argv])
