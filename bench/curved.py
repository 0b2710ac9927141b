"""Curved surfaces: what a GP-LVM finds on real rows, beside PPCA, and how long it takes.

    python bench/curved.py DATA_FOLDER [neighbours|missing|faces|scale|peer ...]

Settings are the defaults unless a line says otherwise. `peer` compares seconds at the same bound with GPy, where it is installed.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import covary


def digits(folder):
    table = pd.read_csv(folder / "digits.csv")
    return table.drop(columns="target").to_numpy(float), table["target"].to_numpy()


def usps(folder):
    table = pd.read_csv(folder / "usps_test.csv.gz")
    return table.drop(columns="label").to_numpy(float), table["label"].to_numpy()


def mocap(folder):
    """Markers that are never lost, around the mean of their frame, in units of 400 mm."""
    table = pd.read_csv(folder / "mocap_run1.csv").iloc[:, 2:].dropna(axis=1).to_numpy()
    frames = table.reshape(len(table), -1, 3)
    return ((frames - frames.mean(axis=1, keepdims=True)) / 400).reshape(len(table), -1), None


def errors(z, labels):
    """Rows whose nearest other row has another label."""
    distance = ((z[:, None] - z[None]) ** 2).sum(-1)
    np.fill_diagonal(distance, np.inf)
    return int((labels[distance.argmin(1)] != labels).sum())


def neighbours(folder):
    for name, load in [("digits", digits), ("usps_test", usps)]:
        x, labels = load(folder)
        begun = time.perf_counter()
        model = covary.GPLVM(10).fit(x)
        seconds = time.perf_counter() - begun
        z = model.latent_mean_ * np.sqrt(model.kernel_relevance_)
        carried = np.array(model.report_["gplvm"]["divergence"]) > 0.01
        plane = covary.PPCA(2).fit(x).transform(x)
        print(
            f"{name} {x.shape}: {seconds:.1f} s, {model.n_iter_} steps, bound {model.lower_bound_:.0f}; dimensions in use "
            f"{carried.sum()}; errors {errors(z, labels)} (two largest {errors(z[:, :2], labels)}), PPCA in two {errors(plane, labels)}"
        )
        begun = time.perf_counter()
        placed = model.place(x[:1000])
        far = np.abs(placed["mean"] - model.latent_mean_[:1000]) > 0.1 * model.latent_mean_.std(0)
        print(f"  1000 rows placed anew in {time.perf_counter() - begun:.2f} s, {far.any(1).sum()} further than a tenth")


def missing(folder):
    rng = np.random.default_rng(0)
    for name, load in [("mocap_run1", mocap), ("digits", digits)]:
        x, _ = load(folder)
        hidden = rng.uniform(size=x.shape) < 0.2
        holes = np.where(hidden, np.nan, x)
        plane = min(
            (np.sqrt(np.mean((covary.PPCA(q).fit(holes).impute(holes) - x)[hidden] ** 2)), q)
            for q in (2, 5, 10, 15, 20, 30)
        )
        model = covary.GPLVM(10).fit(holes)
        cells, std = model.impute(holes, return_std=True)
        error = np.sqrt(np.mean((cells - x)[hidden] ** 2))
        inside = np.mean(np.abs(cells - x)[hidden] < 1.96 * std[hidden])
        print(f"{name}: error {error:.4f}, 95 % intervals cover {inside:.3f}; PPCA at best {plane[0]:.4f} with q {plane[1]}")


def faces(folder):
    rng = np.random.default_rng(0)
    x = rng.permutation(pd.read_csv(folder / "frey_faces.csv.gz").to_numpy(float))
    hidden = rng.uniform(size=(965, 560)) < 0.5
    holes = np.where(hidden, np.nan, x[1000:])
    for q in (2, 5, 10, 30, 50, 100, 150):
        cells = covary.PPCA(q).fit(x[:1000]).impute(holes)
        print(f"PPCA q {q}: {np.abs(cells - x[1000:])[hidden].mean():.2f}")
    for q, m in [(2, 50), (5, 50), (10, 100), (30, 50), (30, 100)]:
        begun = time.perf_counter()
        model = covary.GPLVM(q, n_inducing=m).fit(x[:1000])
        fitted = time.perf_counter()
        cells, std = model.impute(holes, return_std=True)
        off = np.abs(cells - x[1000:])[hidden]
        print(
            f"GPLVM q {q}, M {m}: {off.mean():.2f}, 95 % intervals cover {np.mean(off < 1.96 * std[hidden]):.3f}; "
            f"fit {fitted - begun:.1f} s, filling {time.perf_counter() - fitted:.1f} s"
        )


def surface(n, p, rng):
    z, w = rng.normal(size=(n, 2)), rng.normal(size=(p, 3))
    return np.sin(z @ w[:, :2].T + w[:, 2]) + 0.1 * rng.normal(size=(n, p))


def scale(_):
    for n in (1000, 10_000, 100_000):
        x = surface(n, 20, np.random.default_rng(0))
        seconds = []
        for steps in (1, 21):
            begun = time.perf_counter()
            covary.GPLVM(5, tol=1e-300, max_iter=steps).fit(x)
            seconds.append(time.perf_counter() - begun)
        print(f"n {n}: {1e3 * (seconds[1] - seconds[0]) / 20:.1f} ms a step")


def peer(_):
    try:
        import GPy
    except ImportError:
        print("skipped: GPy is not installed")
        return
    x = surface(1000, 12, np.random.default_rng(0))
    x = (x - x.mean(0)) / x.std(0)
    begun = time.perf_counter()
    model = GPy.models.BayesianGPLVM(x, 10, num_inducing=50)
    model.optimize(max_iters=100)
    seconds = time.perf_counter() - begun
    target = float(model.log_likelihood())
    print(f"GPy: {seconds:.1f} s for 100 iterations, bound {target:.0f}")
    begun = time.perf_counter()
    ours = covary.GPLVM(10, max_iter=500).fit(x)
    seconds, trace = time.perf_counter() - begun, np.array(ours.report_["trace"])
    steps = int(np.argmax(trace >= target)) + 1 if trace.max() >= target else None
    print(f"covary: {seconds:.1f} s for {len(trace)} steps, bound {trace[-1]:.0f}; GPy's bound after {steps} steps")


if __name__ == "__main__":
    cases = {"neighbours": neighbours, "missing": missing, "faces": faces, "scale": scale, "peer": peer}
    for case in sys.argv[2:] or cases:
        cases[case](Path(sys.argv[1]))
