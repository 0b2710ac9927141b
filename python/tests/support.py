"""Data and dense formulas that tests compare with, and scikit-learn's own tests."""

import importlib.util

import numpy as np


def low_rank(n, p, q, noise=0.5, seed=0):
    """Rows of a known model: n × p, q latent variables, and a mean that is not 0."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(p, q))
    return rng.normal(size=(n, q)) @ W.T + 3.0 * rng.normal(size=p) + noise * rng.normal(size=(n, p))


def punched(X, share, seed=1):
    """The same with some cells missing."""
    Y = X.copy()
    Y[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return Y


def closed_form(X, q, weights=None):
    """Tipping & Bishop's maximum by NumPy: mean, eigenvalues, noise variance, loadings."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    mean = np.average(X, axis=0, weights=weights)
    S = (X - mean).T @ ((X - mean) * weights[:, None]) / weights.sum()
    values, vectors = np.linalg.eigh(S)
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = values[q:].mean() if q < X.shape[1] else 0.0
    vectors = vectors[:, :q] * np.sign(vectors[np.abs(vectors[:, :q]).argmax(axis=0), range(q)])
    return mean, values, noise, vectors * np.sqrt(values[:q] - noise)


def log_normal(x, mean, C):
    """Log density of one row by the dense formula, over its observed cells."""
    o = ~np.isnan(x)
    if not o.any():
        return 0.0
    e, C = (x - mean)[o], C[np.ix_(o, o)]
    return -0.5 * (o.sum() * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + e @ np.linalg.solve(C, e))


def with_our(original, **classes):
    """A module of scikit-learn's tests once more, under another name, with our classes in the place of theirs."""
    spec = importlib.util.spec_from_file_location(f"{original.__name__.rpartition('.')[2]}_of_covary", original.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update(classes)
    return module
