"""Autoassociative networks beside PCA and pcaMethods: helix, digits and Frey faces.

`helix`: R² of one latent variable with an encoder, without one, and with one of the three cells of each row blanked.
`digits`, `frey_faces`: mean squared error of rows that were not fitted, by PCA and by a network, for 2, 5 and 10 latent
variables. `nlpca`: beside pcaMethods' nlpca, where Rscript and that package are installed (Debian: r-bioc-pcamethods).
`many`: Adam on many rows. Data sets are looked for in the folder that COVARY_DATA names, or in ../shared/data.

    python bench/curved_networks.py [helix] [digits] [frey_faces] [nlpca] [many]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

import covary

FOLDER = pathlib.Path(os.environ.get("COVARY_DATA") or pathlib.Path(__file__).parents[2] / "shared" / "data")


def read(name):
    """The measured columns of a data set; None where it is not there."""
    for ending in (".csv", ".csv.gz"):
        path = FOLDER / (name + ending)
        if path.exists():
            frame = pd.read_csv(path)
            return frame.drop(columns=[c for c in ("target", "label", "index") if c in frame]).to_numpy(dtype=float)
    print(f"{name}: skipped, it is not in {FOLDER}")
    return None


def fitted(model, X):
    """Seconds and the fitted model; that a fit ended at its limit is told, not warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(X)
    return time.perf_counter() - start, model


def explained(model, X):
    return 1 - np.sum((X - model.reconstruct(X)) ** 2) / np.sum((X - X.mean(axis=0)) ** 2)


def helix(X):
    print(f"helix, {X.shape[0]} × {X.shape[1]}, one latent variable")
    pca = covary.PCA(1).fit(X)
    print(f"  PCA                  R² {explained(pca, X):.5f}")
    for words, encoder in (("with an encoder", True), ("without an encoder", False)):
        seconds, model = fitted(covary.Autoencoder(1, encoder=encoder), X)
        print(f"  {words:20} R² {explained(model, X):.5f}  noise {model.noise_variance_**0.5:.4f}"
              f"  {model.n_iter_} steps ({model.report_['stop']})  {seconds:.2f} s")
    where = np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.arange(len(X))
    Y = X.copy()
    Y[rows, where] = np.nan
    for words, model in (("PPCA(1)", covary.PPCA(1)), ("network", covary.Autoencoder(1))):
        seconds, model = fitted(model, Y)
        filled, std = model.impute(Y, return_std=True)
        errors = np.abs(filled - X)[rows, where]
        inside = np.mean(errors <= 1.96 * std[rows, where])
        print(f"  one cell of each row blanked, {words:8} error: median {np.median(errors):.4f}"
              f"  root mean square {np.sqrt(np.mean(errors**2)):.4f}  in 95 % intervals {inside:.3f}  {seconds:.2f} s")


def held_out(name, X):
    test = np.arange(len(X)) % 4 == 0
    fit, new = X[~test], X[test]
    print(f"{name}, {len(fit)} rows fitted, {len(new)} held out, {X.shape[1]} features: mean squared error by cell")
    for q in (2, 5, 10):
        pca = covary.PCA(q).fit(fit)
        seconds, model = fitted(covary.Autoencoder(q), fit)
        theirs, ours = (np.mean((m.reconstruct(new) - new) ** 2) for m in (pca, model))
        print(f"  q {q:2}  PCA {theirs:9.4f}  network {ours:9.4f}  ratio {ours / theirs:.3f}"
              f"  {model.n_iter_} steps ({model.report_['stop']})  {seconds:.1f} s", flush=True)


def by_nlpca(X, q, steps):
    """Seconds and fitted rows of pcaMethods; None where it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        given, fitted_rows = pathlib.Path(folder, "x.csv"), pathlib.Path(folder, "fitted.csv")
        np.savetxt(given, X, delimiter=",")
        script = pathlib.Path(__file__).with_name("curved_nlpca.R")
        try:
            run = subprocess.run(["Rscript", script, given, str(q), str(steps), fitted_rows], capture_output=True, text=True)
        except FileNotFoundError:
            return None
        return None if run.returncode else (float(run.stdout), np.loadtxt(fitted_rows, delimiter=","))


def beside_nlpca():
    for name, every, q, steps in (("helix", 5, 1, 0), ("digits", 9, 2, 300)):
        X = read(name)
        if X is None:
            continue
        X = X[::every] - X[::every].mean(axis=0)
        print(f"{name}, every {every}th row ({X.shape[0]} × {X.shape[1]}), q {q}: R² of the rows that were fitted, seconds")
        share = lambda Y: 1 - np.sum((X - Y) ** 2) / np.sum(X**2)
        print(f"  PCA                          {share(covary.PCA(q).fit(X).reconstruct(X)):.5f}")
        for words, encoder in (("with an encoder", True), ("without an encoder", False)):
            seconds, model = fitted(covary.Autoencoder(q, encoder=encoder), X)
            print(f"  network, {words:19} {share(model.reconstruct(X)):.5f} {seconds:8.2f}", flush=True)
        theirs = by_nlpca(X, q, steps)
        told = "skipped: Rscript with pcaMethods is not there"
        if theirs is not None:
            told = f"{share(theirs[1]):.5f} {theirs[0]:8.2f}  ({steps or 2 * X.size} steps)"
        print(f"  pcaMethods' nlpca            {told}", flush=True)


def many():
    rng = np.random.default_rng(0)
    for n in (30_000, 300_000):
        z, w = rng.uniform(-2, 2, size=(n, 2)), rng.normal(size=(20, 3))
        X = np.sin(z @ w[:, :2].T + w[:, 2]) + 0.1 * rng.normal(size=(n, 20))
        pca = covary.PCA(2).fit(X)
        for solver in ("adam", "lbfgs") if n < 100_000 else ("auto",):
            seconds, model = fitted(covary.Autoencoder(2, solver=solver, max_iter=60), X)
            print(f"{n} × 20, q 2, {model.report_['solver']}: R² {explained(model, X):.4f} (PCA {explained(pca, X):.4f}), "
                  f"{model.n_iter_} {'epochs' if model.report_['solver'] == 'adam' else 'steps'} ({model.report_['stop']}), "
                  f"{seconds:.1f} s", flush=True)


CASES = {"nlpca": beside_nlpca, "many": many}
for name in sys.argv[1:] or ("helix", "digits", "frey_faces", "nlpca", "many"):
    if name in CASES:
        CASES[name]()
        continue
    X = read(name)
    if X is not None:
        helix(X) if name == "helix" else held_out(name, X)
