"""Maximum likelihood of the observed cells of PPCA by an optimiser that shares nothing with covary's.

SciPy's L-BFGS-B on the exact gradient of dense marginal normals, one per row, from the principal components of
the mean-filled table and from a random start; the better one wins.
Prints the JSON that `tests/suite/holes.rs` reads:

    python observed_ml.py FOLDER > observed_ml.json        # FOLDER holds metabolite_missing.csv

Needs numpy, scipy and pandas.
"""

import json
import sys

import numpy as np
import pandas as pd
import scipy
from scipy.optimize import minimize


def objective(theta, x, q, masks):
    """Negative log-likelihood and its gradient in (mean, W, log noise)."""
    n, p = x.shape
    mean, w, noise = theta[:p], theta[p : p + p * q].reshape(p, q), np.exp(theta[-1])
    c = w @ w.T + noise * np.eye(p)
    value, by_mean, by_c = 0.0, np.zeros(p), np.zeros((p, p))
    for mask, rows in masks:
        k = mask.sum()
        if k == 0:
            continue
        part = c[np.ix_(mask, mask)]
        factor = np.linalg.cholesky(part)
        inverse = np.linalg.inv(part)
        e = x[np.ix_(rows, mask)] - mean[mask]
        solved = e @ inverse
        value -= 0.5 * (len(rows) * (k * np.log(2 * np.pi) + 2 * np.log(np.diag(factor)).sum()) + (solved * e).sum())
        by_mean[mask] += solved.sum(0)
        by_c[np.ix_(mask, mask)] += 0.5 * (solved.T @ solved - len(rows) * inverse)
    gradient = np.r_[by_mean, (2 * by_c @ w).ravel(), noise * np.trace(by_c)]
    return -value, -gradient


def maximise(x, q, seed=0):
    p = x.shape[1]
    mean = np.nanmean(x, 0)
    _, s, v = np.linalg.svd(np.where(np.isnan(x), 0.0, x - mean), full_matrices=False)
    filled = v[:q].T * s[:q] / np.sqrt(len(x))
    random = np.random.default_rng(seed).normal(size=(p, q)) * np.nanstd(x - mean)
    patterns = {}
    for i, row in enumerate(~np.isnan(x)):
        patterns.setdefault(row.tobytes(), (row, []))[1].append(i)
    masks = list(patterns.values())
    best = None
    for w in (filled, random):
        start = np.r_[mean, w.ravel(), np.log(np.nanvar(x - mean) / 4)]
        found = minimize(
            objective, start, (x, q, masks), jac=True, method="L-BFGS-B",
            options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-6, "maxcor": 30},
        )
        if best is None or found.fun < best.fun:
            best = found
    return {"q": q, "log_likelihood": -best.fun, "noise_variance": float(np.exp(best.x[-1]))}


def main():
    x = pd.read_csv(f"{sys.argv[1]}/metabolite_missing.csv").select_dtypes("number").to_numpy(float)
    made_with = f"observed_ml.py, numpy {np.__version__}, scipy {scipy.__version__}"
    json.dump({"made_with": made_with, "metabolite_missing": [maximise(x, q) for q in (1, 2, 3)]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
