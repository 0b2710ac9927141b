"""What `verbose=True` shows: one line that moves, on standard error, in a terminal or a notebook."""

import sys
import time

_WIDTH = 30


class Progress:
    """Called by the core about fifty times a second while a fit runs."""

    def __init__(self, name, stream=None):
        self.name = name
        self.stream = sys.stderr if stream is None else stream
        self.started = time.monotonic()
        self.length = 0

    def __call__(self, done, total, iteration, objective, change):
        parts = [self.name]
        if iteration is not None:
            parts.append(f"iteration {iteration}: objective {objective:.6g}, change {change:.1e}")
        if done is not None:
            parts.append(_bar(done, total))
        parts.append(f"{time.monotonic() - self.started:.1f} s")
        self._write("  ".join(parts))

    def close(self, summary):
        """Leaves the last line standing."""
        self._write(f"{self.name}  {summary}")
        self.stream.write("\n")
        self.stream.flush()

    def _write(self, line):
        self.stream.write("\r" + line.ljust(self.length))
        self.stream.flush()
        self.length = len(line)


def _bar(done, total):
    if not total:
        return f"{done} rows"
    filled = min(_WIDTH, _WIDTH * done // total)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{total} rows"
