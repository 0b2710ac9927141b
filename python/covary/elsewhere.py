"""Fits of rows that lie in parts, on other machines or in other processes: only evidence travels.

A fit runs where it is asked for. In each pass it hands out a task, as bytes; :func:`fill` fills it where some rows are, and
:func:`merge` makes one answer of several, in any tree. Spark has :mod:`covary.spark`; this is for every other engine.

Examples
--------
>>> import numpy as np
>>> import covary
>>> from covary import elsewhere
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(90, 5))
>>> X[rng.random(X.shape) < 0.2] = np.nan
>>> parts = np.array_split(X, 4)  # on four machines, say
>>> def carry(task, numbered):
...     return elsewhere.merge([elsewhere.fill(task, part) for part in parts])
>>> model = elsewhere.fit(covary.PPCA(2), carry, n_features=5)
>>> bool(np.allclose(model.loadings_, covary.PPCA(2).fit(X).loadings_))
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from covary import _covary
from covary._input import Reader, rows_of
from covary._types import Table, Weights

__all__ = ["fill", "fit", "merge"]


class _Seen:
    """What an estimator asks of rows before a fit."""

    single_precision = False

    def __init__(self, n_features, n_rows, names):
        self.n_features = n_features
        self.n_rows = self.n_counted = n_rows
        self.names = names


def fit(
    estimator: Any,
    carry: Callable[[bytes, bool], bytes],
    n_features: int,
    *,
    n_rows: int | None = None,
    feature_names: list[str] | None = None,
    observed: bool = False,
) -> Any:
    """Fit an estimator to rows elsewhere.

    Parameters
    ----------
    estimator : estimator of covary
        It is fitted and returned. Those that need the rows themselves (GPLVM, Autoencoder) say so.
    carry : callable
        ``carry(task, numbered)`` takes the bytes of a task to all rows and returns the merged evidence, as bytes. Where
        `numbered` is True, each part must be filled with the number of its first row in the whole (`first_row`). It is
        called once for each pass, from another thread.
    n_features : int
    n_rows : int, optional
        Needed by estimators that draw some of the rows: KMeans, MixturePPCA, ICA, KernelPCA.
    feature_names : list of str, optional
    observed : bool, default False
        Whether only some cells of the rows were seen, as in :func:`covary.observed`.

    Returns
    -------
    estimator
    """
    names = None if feature_names is None else [str(name) for name in feature_names]
    seen = _Seen(n_features, n_rows, names)
    model = estimator._best_model(
        None, seen, lambda request: _covary.fit_elsewhere(request, carry, n_features, n_rows, names, observed)
    )
    return fitted(estimator, model, names)


def fitted(estimator, model, names):
    """The estimator with a model of features of these names."""
    estimator._take(model)
    estimator.n_features_in_ = model.n_features
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    estimator._warn_unless_converged()
    return estimator


def fill(task: bytes, X: Table, *, sample_weight: Weights = None, first_row: int = 0) -> bytes:
    """Fill the evidence of a task with some of the rows.

    Parameters
    ----------
    task : bytes
    X : as for the `fit` of an estimator, of shape (n, p)
    sample_weight : array-like of shape (n,), optional
    first_row : int, default 0
        Number of the first row in the whole of the data.

    Returns
    -------
    bytes
        What is wrong with the rows travels with it, and is raised by the fit.
    """
    evidence = _covary.Evidence(task, first_row)
    evidence.add(rows_of(Reader(), X, sample_weight=sample_weight, reset=True))
    return evidence.to_bytes()


def merge(parts: Any) -> bytes:
    """One piece of evidence from several, which stand in the order of their rows.

    Parameters
    ----------
    parts : list of bytes
        Of :func:`fill`, or of `merge`.

    Returns
    -------
    bytes
    """
    return _covary.merge_evidence(list(parts))
