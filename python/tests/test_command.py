"""The command that the package brings is the one that cargo builds, and starts without NumPy."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import COMMAND

# What pip writes into the script: the object that is named under project.scripts.
SCRIPT = "import sys; from covary.__main__ import main; sys.exit(main())"
OURS = [sys.executable, "-c", SCRIPT]

TABLE = "name,a,b,c\n" + "".join(f"r{i},{i % 7},{i % 5 + i % 7},{i % 3}\n" for i in range(40))


@pytest.fixture
def folder(tmp_path):
    if not COMMAND.exists():
        pytest.skip(f"no command at {COMMAND}: cargo build -p covary-cli, or name one in COVARY_COMMAND")
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "text.csv").write_text("a,b\nx,y\n")
    subprocess.run([COMMAND, "fit", "table.csv", "-q1", "-o", "model.covary", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def run(command, folder, **options):
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, **options)
    return done.returncode, done.stdout, done.stderr


CASES = {
    "version": (["--version"], 0),
    "help": (["fit", "--help"], 0),
    "an answer": (["score", "model.covary", "table.csv"], 0),
    "JSON": (["inspect", "model.covary", "--json"], 0),
    "a summary": (["inspect", "model.covary"], 0),
    "no such flag": (["fit", "table.csv", "--nonsense"], 2),
    "too many components": (["fit", "table.csv", "-q", "9"], 3),
    "bad data": (["fit", "text.csv"], 3),
    "no such file": (["fit", "none.csv"], 5),
    "a name that is not UTF-8": (["fit", b"\xff.csv"], 5),
}


@pytest.mark.parametrize("arguments, code", CASES.values(), ids=CASES)
def test_it_says_and_ends_as_the_plain_command(arguments, code, folder):
    plain = run([COMMAND, *arguments], folder)
    assert plain[0] == code
    assert run([*OURS, *arguments], folder) == plain


def test_a_module_that_is_run_is_the_command(folder):
    plain = run([COMMAND, "--help"], folder)
    assert run([sys.executable, "-m", "covary", "--help"], folder) == plain


def test_it_starts_without_numpy():
    script = """if True:
        import sys
        from covary.__main__ import main
        sys.argv = ["covary", "--version"]
        assert main() == 0
        assert not {"numpy", "sklearn", "typing"} & set(sys.modules)
    """
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, env=_path())
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_it_with_130(folder):
    options = {"cwd": folder, "stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*OURS, "fit", "-", "-o", "new.covary"], **options) as process:
        process.stdin.write("a,b\n1,2\n")
        process.stdin.flush()
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert "covary: interrupted; nothing was written" in process.stderr.read()
    assert not (folder / "new.covary").exists()


def test_a_reader_that_went_away_is_no_failure(folder):
    options = {"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*OURS, "sample", "model.covary", "-n", "1000000"], **options) as process:
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


def test_closed_streams_do_not_become_files(folder):
    closed = ["bash", "-c", '"$@" >&-', "bash"]
    arguments = ["fit", "table.csv", "-q1", "-o", "new.covary"]
    assert run([*closed, *OURS, *arguments], folder)[0] == run([*closed, COMMAND, *arguments], folder)[0] == 0
    assert (folder / "new.covary").read_bytes() == (folder / "model.covary").read_bytes()


def _path():
    """Without site packages the interpreter has to be told where this package is."""
    import covary

    return {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(covary.__file__))}
