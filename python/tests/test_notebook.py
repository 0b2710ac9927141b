"""notebook.py runs, and mypy --strict has nothing to say of it: what is public has types."""

import pathlib
import subprocess
import sys

NOTEBOOK = pathlib.Path(__file__).with_name("notebook.py")


def test_every_line_holds():
    run = "import matplotlib; matplotlib.use('Agg'); import runpy, sys; runpy.run_path(sys.argv[1])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", run, NOTEBOOK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_mypy_has_nothing_to_say(tmp_path):
    # pandas and scikit-learn bring no types of their own; everything else is asked for.
    flags = ["--strict", "--disable-error-code=import-untyped", "--cache-dir", tmp_path]
    done = subprocess.run([sys.executable, "-m", "mypy", *flags, NOTEBOOK], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_mypy_sees_a_mistake(tmp_path):
    script = tmp_path / "mistake.py"
    script.write_text("import covary\n\ncovary.PPCA(3, n_theads=2)\ncovary.PPCA(3).fit([[1.0]]).n_iter_ + 'x'\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, script], capture_output=True, text=True
    )
    assert 'Unexpected keyword argument "n_theads"' in done.stdout and "Unsupported operand types" in done.stdout
