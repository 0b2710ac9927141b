"""The stubs say what the compiled module has."""

import subprocess
import sys


def test_stubs_agree_with_the_module():
    command = [sys.executable, "-m", "mypy.stubtest", "covary._covary"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
