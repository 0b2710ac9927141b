"""Curved surfaces: what a GP-LVM finds on real rows, beside PPCA, and how long it takes.

    python bench/curved.py DATA_FOLDER [neighbours|missing|covered|faces|scale|whole|peer ...]

Each case prints one table. Settings are the defaults unless a line says otherwise. `whole` is a whole fit of 10⁵ rows, which
takes a while. `peer` compares with GPy (pip install GPy) and is skipped where that is not installed.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

import covary


def digits(folder):
    table = pd.read_csv(folder / "digits.csv")
    return table.drop(columns="target").to_numpy(float), table["target"].to_numpy()


def usps(folder):
    table = pd.read_csv(folder / "usps_test.csv.gz")
    return table.drop(columns="label").to_numpy(float), table["label"].to_numpy()


def mocap(folder):
    """Markers that are never lost, around the mean of their frame, in units of 400 mm; frames stand in order of time."""
    table = pd.read_csv(folder / "mocap_run1.csv").iloc[:, 2:].dropna(axis=1).to_numpy()
    frames = table.reshape(len(table), -1, 3)
    return ((frames - frames.mean(axis=1, keepdims=True)) / 400).reshape(len(table), -1), None


def timed(work):
    """Seconds, and what comes out. That a fit ended at its limit is told by its number of steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begun = time.perf_counter()
        result = work()
    return time.perf_counter() - begun, result


def nearest(z):
    distance = (z**2).sum(1)[:, None] + (z**2).sum(1) - 2 * z @ z.T
    np.fill_diagonal(distance, np.inf)
    return distance.argmin(1)


def errors(z, labels):
    """Rows whose nearest other row has another label; of frames of a film, is not the frame before or after."""
    near = nearest(z)
    wrong = np.abs(near - np.arange(len(z))) > 1 if labels is None else labels[near] != labels
    return int(wrong.sum())


def neighbours(folder):
    print("nearest-neighbour errors in the latent space; GPLVM(10), dimensions weighted by √α")
    print(f"{'rows':24} {'GP-LVM':>7} {'two largest':>12} {'PPCA(2)':>8} {'PPCA(10)':>9} {'in use':>7} {'steps':>6} "
          f"{'seconds':>8} {'place 1000':>11} {'far':>4}")
    for name, load in [("mocap_run1", mocap), ("digits", digits), ("usps_test", usps)]:
        x, labels = load(folder)
        seconds, model = timed(lambda: covary.GPLVM(10).fit(x))
        z = model.latent_mean_ * np.sqrt(model.kernel_relevance_)
        used = np.array(model.report_["gplvm"]["divergence"]) > 0.01
        plane = [errors(covary.PPCA(q).fit(x).transform(x), labels) for q in (2, 10)]
        rows = x[:1000]
        place, placed = timed(lambda: model.place(rows))
        off = np.abs(placed["mean"] - model.latent_mean_[: len(rows)]) / model.latent_mean_.std(0)
        far = (off[:, used] > 0.1).any(axis=1).sum()
        print(f"{name + ' ' + str(x.shape):24} {errors(z, labels):7} {errors(z[:, :2], labels):12} {plane[0]:8} {plane[1]:9} "
              f"{used.sum():7} {model.n_iter_:6} {seconds:8.1f} {place * 1000 / len(rows):11.2f} {far:4}", flush=True)


def filled(model, holes, x, hidden):
    """Root mean square and mean absolute error of hidden cells, and the share inside 95 % intervals."""
    cells, std = model.impute(holes, return_std=True)
    off = np.abs(cells - x)[hidden]
    return np.sqrt(np.mean(off**2)), off.mean(), np.mean(off < 1.96 * std[hidden])


def missing(folder):
    print("20 % of the cells hidden: root mean square error of hidden cells, share inside 95 % intervals, seconds of the fit")
    for name, load in [("mocap_run1", mocap), ("digits", digits)]:
        x, _ = load(folder)
        hidden = np.random.default_rng(0).uniform(size=x.shape) < 0.2
        holes = np.where(hidden, np.nan, x)
        for q in (2, 5, 10, 15, 20, 30, 40):
            seconds, model = timed(lambda: covary.PPCA(q).fit(holes))
            error, _, inside = filled(model, holes, x, hidden)
            print(f"{name:12} PPCA({q}): {error:.4f} {inside:.3f} {seconds:.1f} s", flush=True)
        seconds, model = timed(lambda: covary.GPLVM(10).fit(holes))
        error, _, inside = filled(model, holes, x, hidden)
        print(f"{name:12} GPLVM(10): {error:.4f} {inside:.3f} {seconds:.1f} s, {model.n_iter_} steps", flush=True)


def covered(folder):
    """Rows drawn from models that were fitted to real ones, a fifth of their cells hidden, filled by the same model."""
    print("rows from the model, 20 % of the cells hidden: share inside 95 % intervals")
    for name, load in [("mocap_run1", mocap), ("digits", digits)]:
        x, _ = load(folder)
        _, model = timed(lambda: covary.GPLVM(10).fit(x[::2]))
        x = model.sample(500, random_state=1)
        hidden = np.random.default_rng(0).uniform(size=x.shape) < 0.2
        _, _, inside = filled(model, np.where(hidden, np.nan, x), x, hidden)
        print(f"{name:12} {inside:.3f} of {hidden.sum()} cells", flush=True)


def faces(folder):
    print("Frey faces, 1000 random frames fitted, half of the pixels of 965 hidden: mean absolute error in grey levels, "
          "share inside 95 % intervals, seconds of the fit and of the filling")
    rng = np.random.default_rng(0)
    x = rng.permutation(pd.read_csv(folder / "frey_faces.csv.gz").to_numpy(float))
    hidden = rng.uniform(size=(965, 560)) < 0.5
    new, holes = x[1000:], np.where(hidden, np.nan, x[1000:])
    cases = [(f"PPCA({q})", covary.PPCA(q)) for q in (2, 5, 10, 30, 50, 100, 150)]
    cases += [(f"MixturePPCA({k}, {q})", covary.MixturePPCA(k, q)) for k, q in ((5, 5), (5, 10), (5, 30), (5, 50), (10, 30))]
    cases += [(f"GPLVM({q}, n_inducing={m})", covary.GPLVM(q, n_inducing=m)) for m in (50, 100) for q in (2, 5, 10, 30)]
    for name, model in cases:
        seconds, model = timed(lambda: model.fit(x[:1000]))
        filling, (_, error, inside) = timed(lambda: filled(model, holes, new, hidden))
        steps = f"{model.n_iter_} steps" if "GPLVM" in name else ""
        print(f"{name:28} {error:6.2f} {inside:.3f} {seconds:7.1f} {filling:7.1f} {steps}", flush=True)


def surface(n, p, rng):
    z, w = rng.normal(size=(n, 2)), rng.normal(size=(p, 3))
    return np.sin(z @ w[:, :2].T + w[:, 2]) + 0.1 * rng.normal(size=(n, p))


def step_seconds(x, q, steps=20, **options):
    """Seconds of a step, which is a value of the bound and its derivatives: fits of 1 + steps steps beside fits of one."""
    fit = lambda steps: covary.GPLVM(q, tol=1e-300, max_iter=steps, **options).fit(x)
    return (timed(lambda: fit(1 + steps))[0] - timed(lambda: fit(1))[0]) / steps


def scale(_):
    print("one step (two passes), p 20, q 5, M 50")
    sizes = np.array([1000, 10_000, 100_000])
    seconds = []
    for n, steps in zip(sizes, (40, 20, 5)):
        seconds.append(step_seconds(surface(n, 20, np.random.default_rng(0)), 5, steps))
        print(f"n {n:7}: {seconds[-1]:.3f} s", flush=True)
    print(f"exponent {np.polyfit(np.log(sizes), np.log(seconds), 1)[0]:.2f}")


def whole(_):
    x = surface(100_000, 20, np.random.default_rng(0))
    seconds, model = timed(lambda: covary.GPLVM(5).fit(x))
    print(f"a whole fit of {x.shape}, q 5, M 50: {seconds:.0f} s, {model.n_iter_} steps ({model.report_['stop']}), noise "
          f"{np.sqrt(model.noise_variance_):.4f} (0.1 is true), nats of each dimension "
          f"{np.round(model.report_['gplvm']['divergence'], 2)}")


def bound_of(theirs):
    return float(np.ravel(theirs.log_likelihood())[0])


def same_bound(theirs, ours):
    """The peer's bound where our search has ended, with what we add to the diagonal of the inducing points' matrix."""
    alpha, variance = ours.kernel_relevance_, ours.report_["gplvm"]["kernel_variance"]
    theirs.inference_method.const_jitter = 1e-6 * variance
    theirs.X.mean[:] = ours.latent_mean_
    theirs.X.variance[:] = ours.latent_variance_
    theirs.Z[:] = ours.inducing_
    theirs.kern.variance[:] = variance
    theirs.kern.lengthscale[:] = 1 / np.sqrt(alpha)
    theirs.likelihood.variance[:] = ours.noise_variance_
    return bound_of(theirs)


def peer(_, steps=50):
    try:
        import GPy
    except ImportError:
        print("peer: skipped, GPy is not installed")
        return
    x = surface(1000, 12, np.random.default_rng(0))
    x = (x - x.mean(0)) / x.std(0)
    print(f"1000 × 12, q 10, M 50, GPy {GPy.__version__}")
    theirs = GPy.models.BayesianGPLVM(x, 10, num_inducing=50, kernel=GPy.kern.RBF(10, ARD=True))
    ours = timed(lambda: covary.GPLVM(10, max_iter=100).fit(x))[1]
    print(f"the same bound at the same place: covary {ours.lower_bound_:.4f}, GPy {same_bound(theirs, ours):.4f}")
    theirs = GPy.models.BayesianGPLVM(x, 10, num_inducing=50, kernel=GPy.kern.RBF(10, ARD=True))
    at, evaluations = theirs.optimizer_array.copy(), 5

    def evaluate():
        for _ in range(evaluations):
            theirs.optimizer_array = at

    their_step = timed(evaluate)[0] / evaluations
    our_step = step_seconds(x, 10, 40)
    print(f"value and derivatives: covary {our_step:.4f} s, GPy {their_step:.4f} s: {their_step / our_step:.1f} times")
    their_seconds, _ = timed(lambda: theirs.optimize(max_iters=steps))
    target = bound_of(theirs)
    trace = np.array(timed(lambda: covary.GPLVM(10).fit(x))[1].report_["trace"])
    if trace.max() < target:
        print(f"GPy: bound {target:.1f} after {steps} iterations; covary ends at {trace[-1]:.1f}")
        return
    needed = int(np.argmax(trace >= target)) + 1
    our_seconds, _ = timed(lambda: covary.GPLVM(10, max_iter=needed).fit(x))
    print(f"to GPy's bound after {steps} iterations, {target:.1f}: covary {our_seconds:.2f} s ({needed} steps), "
          f"GPy {their_seconds:.2f} s: {their_seconds / our_seconds:.1f} times")


if __name__ == "__main__":
    cases = dict(neighbours=neighbours, missing=missing, covered=covered, faces=faces, scale=scale, whole=whole, peer=peer)
    for case in sys.argv[2:] or cases:
        cases[case](Path(sys.argv[1]))
