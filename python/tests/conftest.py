"""The command, for tests that compare with it; and marks for those of scikit-learn's tests that ours is right not to pass: one that passes
after all is a failure."""

import os
import pathlib
import subprocess

# Of processes side by side (pytest -n 2) each has one thread of each pool: two pools on two cores get in each other's way.
# Read when NumPy is loaded and when covary starts its first pool, which is later. Tests about threads ask for some.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.update(dict.fromkeys(["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1"))

import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = pathlib.Path(os.environ.get("COVARY_COMMAND", ROOT / "target/debug/covary"))


@pytest.fixture
def command():
    if not COMMAND.exists():
        pytest.skip(f"no command at {COMMAND}: cargo build -p covary-cli, or name one in COVARY_COMMAND")

    def run(*arguments):
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def pytest_collection_modifyitems(items):
    for item in items:
        reason_to_differ = getattr(item.module, "reason_to_differ", None) if hasattr(item, "module") else None
        why = reason_to_differ(item.name) if reason_to_differ else None
        if why is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
