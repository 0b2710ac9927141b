"""Whether correlations are worth a factor analysis."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from covary import _covary
from covary._input import Reader, numbers, rows_of
from covary._types import Floats, Table, Weights


class Kmo(NamedTuple):
    """Sampling adequacy; see :func:`kmo`."""

    overall: float
    features: np.ndarray


class Bartlett(NamedTuple):
    """A test of sphericity; see :func:`bartlett`."""

    chi2: float
    dof: int
    p_value: float


def _found(X, covariance, n_samples, sample_weight):
    if (X is None) == (covariance is None):
        raise ValueError("give rows X or a covariance, one of the two")
    if covariance is not None:
        names = getattr(covariance, "columns", None)
        names = None if names is None else [str(name) for name in names]
        matrix = numbers(covariance)
        return _covary.adequacy(matrix, None if n_samples is None else float(n_samples), names)
    rows = rows_of(Reader(), X, sample_weight=sample_weight, reset=True)
    batches = _covary.Batches(rows.n_features)
    batches.update(rows, _covary.Request("fa", 1))
    return batches.adequacy(rows.names)


def kmo(X: Table = None, *, covariance: Any = None, sample_weight: Weights = None) -> Kmo:
    """Kaiser, Meyer and Olkin's measure of sampling adequacy: near 1 when few factors suffice.

    The squared correlations as a share of squared correlations and squared partial correlations. Below 0.5 a
    factor analysis is said to be of no use, above 0.8 the data are said to be good.

    Parameters
    ----------
    X : rows without missing values, as for `fit`
    covariance : array-like of shape (p, p), optional
        In place of rows: their covariance or correlation matrix.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    Kmo
        A named tuple: `overall`, and `features` (p,), of each feature with the others.

    Examples
    --------
    >>> import numpy as np, covary
    >>> R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    >>> round(covary.kmo(covariance=R).overall, 6)  # 9/13
    0.692308
    """
    found = _found(X, covariance, None, sample_weight)["kmo"]
    return Kmo(found["overall"], np.array(found["features"]))


def bartlett(X: Table = None, *, covariance: Any = None, n_samples: Any = None, sample_weight: Weights = None) -> Bartlett:
    """Bartlett's test of sphericity: whether features correlate at all.

    Parameters
    ----------
    X : rows without missing values, as for `fit`
    covariance : array-like of shape (p, p), optional
        In place of rows: their covariance or correlation matrix, with `n_samples`.
    n_samples : int, optional
        Number of rows behind `covariance`.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    Bartlett
        A named tuple: `chi2`, `dof`, and `p_value`, the probability of a larger χ² when all correlations are
        0.

    Examples
    --------
    >>> import numpy as np, covary
    >>> R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    >>> test = covary.bartlett(covariance=R, n_samples=100)
    >>> test.dof, test.p_value < 1e-10
    (3, True)
    """
    if covariance is not None and n_samples is None:
        raise ValueError("the test needs n_samples, the number of rows behind the covariance")
    found = _found(X, covariance, n_samples, sample_weight)["sphericity"]
    if found is None:
        raise ValueError("too few rows: Bartlett's test of p features needs more than 1 + (2p + 5)/6")
    p_value = found["p_value"]
    return Bartlett(found["chi2"], found["dof"], float("nan") if p_value is None else p_value)


def smc(X: Table = None, *, covariance: Any = None, sample_weight: Weights = None) -> Floats:
    """Squared multiple correlation of each feature with all others: a lower bound of its communality.

    Parameters
    ----------
    X : rows without missing values, as for `fit`
    covariance : array-like of shape (p, p), optional
        In place of rows: their covariance or correlation matrix.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    ndarray of shape (p,)

    Examples
    --------
    >>> import numpy as np, covary
    >>> R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    >>> covary.smc(covariance=R).round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    return np.array(_found(X, covariance, None, sample_weight)["smc"])
