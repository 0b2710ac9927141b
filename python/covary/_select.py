"""How many components: one table over their number, and what each method chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covary import _covary
from covary._input import Reader, rows_of, seed_of, whole
from covary._progress import Progress
from covary._select_groups import select_groups
from covary._select_kernel import select_kernel
from covary._select_table import SelectionTable
from covary._types import Seed, Table, Weights
from covary._warn import warn

_SHOWN = ["components", "explained", "bic", "log_evidence", "cross_validated", "q2", "noise_variance"]
_MOST_LINES = 25
_MODELS = ["ppca", "mixture", "kmeans", "kpca"]


class Selection(SelectionTable):
    """What :func:`select` has found.

    Attributes
    ----------
    table : dict of str to ndarray
        One entry for each number of components from 0 on, NaN where a method says nothing;
        ``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` make a frame of it. `components`,
        `eigenvalue`, `explained`, `noise_variance`, `log_likelihood`, `aic`, `bic`, `log_evidence` (Minka's,
        up to a constant), `cross_validated` (mean log density of held-out rows) and `cross_validated_error`,
        `q2` of hidden cells, `q2_error` and `cell_log_density`, `correlation_eigenvalue` and
        `noise_eigenvalue` (parallel analysis).
    choices : dict of str to int
        What each method chooses.
    reasons : dict of str to str
        What it goes by.
    absent : dict of str to str
        Methods that choose nothing here, and why.
    recommended : int
        The number to take, at least 1.
    reason : str
        Why.
    n_rows, n_features : int
    redundant : dict or None
        Features that are left out of all this because they add no direction: `constant`, a list of them,
        `repeated`, pairs of a feature and the earlier one that it repeats, and `combined`, pairs of a feature
        and the earlier ones that it is a linear combination of; by name where `X` has names, else by
        position. None when there are none.
    holes : dict or None
        What is missing; None for complete rows.
    converged : bool
        Whether every fit that this took came to its end.
    """

    _columns_shown = _SHOWN

    def __init__(self, found: Any, names: Any = None) -> None:
        self.table = _columns(found["table"])
        self.choices = {choice["method"]: choice["components"] for choice in found["choices"]}
        self.reasons = {choice["method"]: choice["reason"] for choice in found["choices"]}
        self.absent = {absent["method"]: absent["reason"] for absent in found["absent"]}
        self.recommended = found["recommended"]
        self.reason = found["reason"]
        self.n_rows = found["rows"]
        self.n_features = found["features"]
        self.redundant = _named(found.get("redundant"), names)
        self.holes = found["holes"]
        self.converged = found["converged"]

    def _lines_shown(self):
        return range(min(max([*self.choices.values(), 1]) + 2, _MOST_LINES, len(self.table["components"])))

    def _advice(self):
        choices = ", ".join(f"{method} {q}" for method, q in self.choices.items())
        advice = f"{choices}; take {self.recommended} ({self.reason})"
        if self.redundant is None:
            return advice
        constant = [f"{name!r} is constant" for name in self.redundant["constant"]]
        repeated = [f"{name!r} repeats {other!r}" for name, other in self.redundant["repeated"]]
        combined = [
            f"{name!r} is a linear combination of {', '.join(map(repr, others))}"
            for name, others in self.redundant["combined"]
        ]
        return f"{advice}; left out: {'; '.join(constant + repeated + combined)}"


def _named(redundant, names):
    if redundant is None or names is None:
        return redundant
    return {
        "constant": [names[j] for j in redundant["constant"]],
        "repeated": [[names[j], names[k]] for j, k in redundant["repeated"]],
        "combined": [[names[j], [names[k] for k in others]] for j, others in redundant["combined"]],
    }


def _range(groups):
    """The smallest and the largest number."""
    if groups is None:
        return None
    if isinstance(groups, (tuple, list)):
        if len(groups) != 2:
            raise ValueError(f"groups={groups!r} must be a number, or the smallest and the largest")
        return whole("groups", groups[0]), whole("groups", groups[1])
    return 1, whole("groups", groups)


def _of_kernel(rows, groups, noise, options, **kernel):
    if groups is not None or noise is not None or options["folds"] is not None or options["cells"]:
        raise ValueError("groups, noise, folds and cells are not for model='kpca'")
    shared = {name: options[name] for name in ("max", "seed", "threads", "progress")}
    return select_kernel(rows, **kernel, **shared)


def _columns(lines):
    columns = {name: [line[name] for line in lines] for name in lines[0]}
    numbers = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}  # None is NaN
    return {**numbers, "components": np.array(columns["components"])}


def select(
    X: Table,
    max_components: int | None = None,
    *,
    model: Any = "ppca",
    groups: Any = None,
    noise: Any = None,
    kernel: Any = None,
    gamma: Any = None,
    degree: int = 3,
    coef0: float = 1.0,
    folds: int | None = None,
    cells: bool = False,
    sample_weight: Weights = None,
    random_state: Seed = 0,
    n_threads: int | None = None,
    verbose: bool | int = False,
) -> Any:
    """How many components or groups: what each method would take, and a recommendation that says why.

    Complete rows are looked at once: all numbers of components share one spectrum, from which follow
    likelihood, AIC and BIC, Minka's evidence [Min00]_, parallel analysis [Horn65]_, the optimal hard
    threshold [GD14]_ and, from the moments of ten parts of the rows, the likelihood of held-out rows, by
    which the recommendation goes.

    Rows with missing values are fitted for each number of components, and so is what is left when a fifth of
    the observed cells is hidden: the recommendation goes by how well hidden cells are predicted, Q²
    [Wold78]_. It is the fewest that do no worse than the best within a standard error. The search ends when
    three more components have predicted no better.

    With ``model="mixture"`` the table is over the number of groups and of latent variables in each; mixtures
    are grown on all rows, and fitted from there to those that are left when a fifth is held out. With ``model="kmeans"`` it is
    over the number of clusters, by the gap statistic.

    With ``model="kpca"`` it is over widths of the kernel, around the median of distances: at each, the components whose
    eigenvalues exceed those of rows with permuted columns (kernel parallel analysis [JH12]_), at the 95 % quantile of 20
    permutations of at most 500 rows. The width at which they exceed them most is recommended.

    Parameters
    ----------
    X : as for `fit`
        Rows, with missing values or without; :func:`covary.observed` and :func:`covary.read` too.
    max_components : int, optional
        The largest number of components, or of latent variables of a mixture, to look at. By default all that
        leave noise, where cells are hidden 10, and of a mixture 4.
    model : {"ppca", "mixture", "kmeans", "kpca"}, default="ppca"
        What the numbers are of.
    groups : int or pair of int, optional
        Of a mixture and of k-means: the largest number of groups, or the smallest and the largest. By default
        up to 8 of a mixture and up to 10 of k-means.
    noise : {"isotropic", "diagonal"}, optional
        Of a mixture: "isotropic" by default.
    kernel : str, optional
        Of kernel PCA, as for :class:`KernelPCA`: "rbf" by default.
    gamma : float, optional
        Of kernel PCA: the only width to look at.
    degree, coef0
        Of kernel PCA, as for :class:`KernelPCA`.
    folds : int, optional
        Parts that rows or cells are dealt to; by default 10 of rows and 5 of cells.
    cells : bool, default=False
        Whether cells of complete rows are hidden and predicted too. It takes many fits.
    sample_weight : array-like of shape (n,), optional
        How often each row was seen; the sum is the n of every criterion. Weights that sum to less than the
        number of rows are shares, and n is the number of rows.
    random_state : int, RandomState instance or None, default=0
        Of the folds and of the samples of noise.
    n_threads : int, optional
        All cores by default; -1 too, -2 is all but one. The result does not depend on it.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Selection, or for mixtures GroupSelection, for k-means ClusterSelection and for kernel PCA KernelSelection

    References
    ----------
    .. [Min00] T. P. Minka (2000). Automatic choice of dimensionality for PCA. NIPS 13.
    .. [Horn65] J. L. Horn (1965). A rationale and test for the number of factors in factor analysis.
       Psychometrika 30.
    .. [GD14] M. Gavish & D. L. Donoho (2014). The optimal hard threshold for singular values is 4/√3. IEEE
       Trans. Inf. Theory 60.
    .. [JH12] K. W. Jørgensen & L. K. Hansen (2012). Model selection for Gaussian kernel PCA denoising. IEEE Trans.
       Neural Networks and Learning Systems 23.
    .. [Wold78] S. Wold (1978). Cross-validatory estimation of the number of components in factor and
       principal components models. Technometrics 20.

    Examples
    --------
    >>> import numpy as np
    >>> import covary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
    >>> found = covary.select(X)
    >>> found.recommended, found.choices["bic"]
    (2, 2)
    >>> covary.select(X, model="kpca", kernel="linear").recommended
    {'n_components': 2}
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> found = covary.select(X, max_components=4)
    >>> found.recommended, bool(found.table["q2"][2] > 0.9)
    (2, True)
    """
    if model not in _MODELS:
        raise ValueError(f"model={model!r} must be one of {', '.join(map(repr, _MODELS))}")
    reader = Reader(n_threads)
    rows = rows_of(reader, X, sample_weight=sample_weight, reset=True)
    progress = Progress("select") if verbose else None
    options = {
        "max": None if max_components is None else whole("max_components", max_components),
        "folds": None if folds is None else whole("folds", folds),
        "cells": cells,
        "seed": seed_of(random_state),
        "threads": n_threads,
        "progress": progress,
    }
    if model != "kpca" and (kernel, gamma, degree, coef0) != (None, None, 3, 1.0):
        raise ValueError("kernel, gamma, degree and coef0 are for model='kpca'")
    if model == "kpca":
        found = _of_kernel(rows, groups, noise, options, kernel=kernel or "rbf", gamma=gamma, degree=degree, coef0=coef0)
        if progress is not None:
            progress.close(f"take {found.recommended}")
        return found
    if model != "ppca":
        found = select_groups(model, rows, groups=_range(groups), noise=noise, **options)
        if progress is not None:
            progress.close(f"take {found.recommended}")
        return found
    if groups is not None or noise is not None:
        raise ValueError("groups and noise are for model='mixture' and model='kmeans'")
    found = _covary.select(rows, **options)
    names = getattr(reader, "feature_names_in_", None)
    selection = Selection(found, None if names is None else list(names))
    if progress is not None:
        progress.close(f"take {selection.recommended}")
    if not selection.converged:
        warn(
            "some fits stopped at their limit of passes; the table is near, not at, what they would give",
            ConvergenceWarning,
        )
    return selection
