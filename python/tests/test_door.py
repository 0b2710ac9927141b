"""The one door: the interpreter's lock, Ctrl-C, progress, memory, forks."""

import io
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from support import low_rank

import covary
from covary._progress import Progress


def script(text, *arguments, timeout=300):
    """Runs Python code in a process of its own and gives what it prints."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    environment.pop("RAYON_NUM_THREADS", None)  # as many threads as people get who say nothing
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


LONG_FIT = """
    import os, signal, sys, threading, time
    import numpy as np
    import covary
    from support import low_rank, punched

    folder = sys.argv[1]
    {given}
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.7, press).start()
    try:
        for _ in range(10_000):
            {work}
        print("done")
    except KeyboardInterrupt:
        print(time.perf_counter() - sent[0], flush=True)
        os._exit(0)  # without waiting for a decomposition that nobody wants any more
"""

TALL, WIDE = "X = low_rank(60_000, 200, 5)", "X = low_rank(1200, 8000, 5)"
LONG = {
    "svd": ("X = low_rank(2500, 2500, 5)", "covary.PPCA(5, solver='svd').fit(X)"),
    "dual": (WIDE, "covary.PPCA(solver='dual').fit(X)"),
    "eigen": (TALL, "covary.PPCA(5, solver='eigen').fit(X)"),
    "krylov": (WIDE, "covary.PPCA(20, solver='krylov').fit(X)"),
    "a whole decomposition": ("X = low_rank(2500, 2000, 5)", "covary.PCA().fit(X)"),
    "holes": ("X = punched(low_rank(40_000, 60, 5), 0.3)", "covary.PPCA(8).fit(X)"),
    "binary file in chunks": (
        f"{TALL}; path = folder + '/x.npy'; np.save(path, X)",
        "covary.PPCA(5).fit(covary.read(path, memory=64 << 20))",
    ),
    "text file": (
        "X = low_rank(30_000, 20, 2); path = folder + '/x.csv'; np.savetxt(path, X, delimiter=',')",
        "covary.PPCA(2).fit(covary.read(path))",
    ),
    "question": ("X = low_rank(100_000, 50, 5); m = covary.PPCA(5).fit(X)", "m.score_samples(X)"),
    "batches": (TALL, "covary.PPCA(5).partial_fit(X)"),
}


@pytest.mark.parametrize("given, work", LONG.values(), ids=LONG)
def test_ctrl_c_ends_a_call_within_a_fifth_of_a_second(given, work, tmp_path):
    best = np.inf
    # The machine may do other things at that moment, and the fit itself keeps all cores busy: the best of some attempts counts.
    for _ in range(8):
        best = min(best, float(script(LONG_FIT.format(given=given, work=work), tmp_path)))
        if best < 0.2:
            break
    assert best < 0.2


ROWS = "X = np.broadcast_to(np.zeros(p), (5_000_000, p))  # one row, 40 GB of them"
HOLES = "X = np.where(np.random.default_rng(0).random((20_000, p)) < 0.5, np.nan, 0.0)"
QUESTIONS = {
    "score_samples": (1000, 100, ROWS, "m.score_samples(X)"),
    "posterior": (600, 20, HOLES, "m.posterior(X)"),
    "sample_missing": (600, 2, HOLES + "[:1000]", "m.sample_missing(X, 300)"),
    "get_precision": (12_000, 400, "", "m.get_precision()"),
    "conditional": (12_000, 1500, "", "m.conditional(np.full(p, np.nan))"),
    "select": (900, 2, "X = np.random.default_rng(0).normal(size=(3000, p))", "covary.select(X)"),
}


@pytest.mark.parametrize("p, q, given, question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_ends_with_ctrl_c(p, q, given, question):
    """The threads have nothing to do soon after, though the rest of the work would take them a long time."""
    idle = script(
        f"""
        import os, signal, threading, time
        import numpy as np
        import covary

        p, q = {p}, {q}
        m = covary.PPCA.from_parameters(mean=np.zeros(p), loadings=np.ones((p, q)), noise_variance=1.0)
        {given}
        threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            {question}
            print("done")
        except KeyboardInterrupt:
            for _ in range(20):
                before = time.process_time()
                time.sleep(0.5)
                if time.process_time() - before < 0.1:
                    print("idle", flush=True)
                    break
        os._exit(0)
        """
    )
    assert idle.strip() == "idle"


def test_python_runs_while_a_fit_does():
    X = low_rank(40_000, 120, 5)
    steps, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            steps[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = steps[0]
    for _ in range(5):
        covary.PPCA(5).fit(X)
    counted = steps[0] - before
    stop.set()
    thread.join()
    assert counted > 5


def test_fits_in_two_threads_are_the_fits_one_after_the_other():
    data = [low_rank(20_000, 40, 3, seed=seed) for seed in range(4)]
    alone = [covary.PPCA(3, n_threads=2).fit(X).loadings_ for X in data]
    together = [None] * 4

    def work(i):
        together[i] = covary.PPCA(3, n_threads=2).fit(data[i]).loadings_

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for a, b in zip(alone, together):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_array_in_place_is_not_copied(order, dtype):
    grown = script(
        """
        import resource, sys
        import numpy as np
        import covary

        order, dtype = sys.argv[1:]
        covary.PPCA(5).fit(np.random.default_rng(1).normal(size=(5000, 100)).astype(dtype))  # threads, libraries
        X = np.empty((400_000, 100), dtype=dtype, order=order)
        rng = np.random.default_rng(0)
        for j in range(0, 100, 10):
            X[:, j : j + 10] = rng.random((len(X), 10)) + j
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        covary.PPCA(5).fit(X)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(grown * 1024 / X.nbytes)
        """,
        order,
        dtype,
    )
    assert float(grown) < 0.05


def test_a_forked_child_has_threads_of_its_own():
    printed = script(
        """
        import os
        from support import low_rank
        import covary

        X = low_rank(5000, 10, 2)
        before = covary.PPCA(2).fit(X).noise_variance_
        child = os.fork()
        if child == 0:
            os._exit(0 if covary.PPCA(2).fit(X).noise_variance_ == before else 1)
        print(os.waitpid(child, 0)[1])
        """,
        timeout=60,
    )
    assert printed.strip() == "0"


def test_progress_is_one_line_that_moves():
    stream = io.StringIO()
    progress = Progress("PPCA", stream)
    progress(500, 1000, None, None, None)
    progress(1000, 1000, 3, -1234.5, 1e-7)
    progress.close("1000 rows")
    lines = stream.getvalue().split("\r")
    assert "[###############...............] 500/1000 rows" in lines[1]
    assert "iteration 3: objective -1234.5, change 1.0e-07" in lines[2]
    assert lines[3].startswith("PPCA  1000 rows") and lines[3].endswith("\n")


def test_verbose_tells_how_it_went(capsys):
    covary.PPCA(2, verbose=True).fit(low_rank(500, 5, 2))
    assert "PPCA  500 rows, 1 pass" in capsys.readouterr().err


def test_an_error_in_the_progress_callback_ends_the_fit():
    from covary import _covary

    def broken(*_):
        raise RuntimeError("no more paper")

    X = np.random.default_rng(0).normal(size=(1500, 1500))
    with pytest.raises(RuntimeError, match="no more paper"):
        _covary.fit(_covary.Rows.dense(X), _covary.Request("ppca", 5, solver="svd"), broken)


def test_numbers_of_threads():
    """As joblib has them; more than make sense are not started."""
    printed = script(
        """
        import os
        import covary
        from support import low_rank

        X, cores = low_rank(200, 5, 2), len(os.sched_getaffinity(0))
        expected = covary.PPCA(2).fit(X).noise_variance_
        for n in (-1, -2, -1000, 1, 10**6, 10**40):
            assert covary.PPCA(2, n_threads=n).fit(X).noise_variance_ == expected
        print(len(os.listdir("/proc/self/task")) < 20 * cores + 10)
        """
    )
    assert printed.strip() == "True"


@pytest.mark.parametrize("n", [0, 1.5, "all", [2]])
def test_numbers_of_threads_that_are_none(n):
    with pytest.raises(ValueError, match="n_threads=.* must be a positive number of threads, -1 for all cores"):
        covary.PPCA(2, n_threads=n).fit(low_rank(50, 4, 2))
