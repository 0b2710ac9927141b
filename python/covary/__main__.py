"""The command ``covary``, as ``pip install`` puts it on the path; ``python -m covary`` is the same."""

import os
import signal
import sys

from covary._covary import command


def main():
    """Runs the command with the arguments of this process and gives its exit code."""
    _open_standard_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The command has a handler of its own; Python's would wait for the interpreter.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["covary", *sys.argv[1:]])


def _open_standard_streams():
    """Closed ones lead nowhere: otherwise the next file to be opened would take their place."""
    for stream in range(3):
        try:
            os.fstat(stream)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    sys.exit(main())
