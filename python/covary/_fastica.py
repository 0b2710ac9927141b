"""FastICA under scikit-learn's names, with contrast functions of the core or one given in Python."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from covary import _covary
from covary._base import LinearGaussianEstimator, table
from covary._ica import Sources
from covary._input import filled, fixed_seed_of, is_single, numbers, rows_of, whole
from covary._own_contrast import all_at_once, one_by_one
from covary._types import Answer, Components, Floats, Seed, Self, Table, Weights
from covary._warn import warn

_TINY = np.finfo(np.float64).tiny


class FastICA(Sources):
    """FastICA: a drop-in replacement for scikit-learn's `FastICA`.

    Constructor, attributes and meanings are scikit-learn's. What is added: rows with missing values, weights, sparse
    matrices, files larger than memory (:func:`covary.read`), results that do not depend on the number of threads,
    and sources in one order and sign: in descending order of what they add to the variance, the largest entry of
    each column of `mixing_` positive. `ICA` has noise, several starts and a faster method besides.

    Parameters
    ----------
    n_components : int or None
        Number of sources, all that the data allow by default.
    algorithm : {"parallel", "deflation"}
        All sources at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance", False}
        Sources of variance 1, or of variance 1/n; False takes X as whitened already, with as many sources as
        features.
    fun : {"logcosh", "exp", "cube"} or callable
        What measures how far from normal a source is. A function of your own gets the sources of all rows, of shape
        (q, n) or with "deflation" (n,), and `fun_args`; it returns g of each and the mean of g′ along the last
        axis. Rows must then be complete and fit in memory, and count alike.
    fun_args : dict or None
        ``{"alpha": a}`` of log cosh, between 1 and 2; 1 by default. Keywords of a function of your own.
    max_iter : int
        Limit on the steps; reaching it gives a ``ConvergenceWarning``.
    tol : float
        Where the iteration ends: 1 minus the cosine of the angle by which a step turns a source.
    w_init : array-like of shape (n_components, n_components) or None
        Where it begins, made orthogonal; at random by default. Whitened coordinates are principal components in
        order, the entry of largest magnitude of each positive.
    whiten_solver : {"svd", "eigh"}
        Ignored: the closed form chooses by itself and is as accurate.
    random_state : int, RandomState or None
        Seed of the start; None is 0.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    components_ : ndarray of shape (q, p)
        The unmixing matrix.
    mixing_ : ndarray of shape (p, q)
        Its pseudo-inverse.
    mean_ : ndarray of shape (p,)
        Where `whiten` is not False.
    whitening_ : ndarray of shape (q, p)
        The matrix that makes principal components of variance 1/n; where `whiten` is not False.
    n_iter_ : int
        With "deflation" that of the source that took most.
    converged_ : bool
    correlation_ : ndarray of shape (q, q)
    explained_variance_ : ndarray of shape (q,)
    explained_variance_ratio_ : ndarray of shape (q,)
    gaussian_ : ndarray of shape (q,), bool
    loadings_ : ndarray of shape (p, q)
    log_likelihood_ : float
    n_components_ : int
    noise_variance_ : float
    scale_ : ndarray of shape (p,) or None
    stability_ : ndarray of shape (q,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
    report_ : dict

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from covary import FastICA
    >>> X, _ = load_digits(return_X_y=True)
    >>> transformer = FastICA(n_components=7, random_state=0, whiten="unit-variance")
    >>> transformer.fit_transform(X).shape
    (1797, 7)
    """

    _mixing = table("mixing", "")
    _unmixing = table("unmixing", "")
    _whitening = table("whitening", "")

    def __init__(
        self,
        n_components: Components = None,
        *,
        algorithm: Any = "parallel",
        whiten: Any = "unit-variance",
        fun: Any = "logcosh",
        fun_args: Any = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        w_init: Any = None,
        whiten_solver: Any = "svd",
        random_state: Seed = None,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.whiten = whiten
        self.fun = fun
        self.fun_args = fun_args
        self.max_iter = max_iter
        self.tol = tol
        self.w_init = w_init
        self.whiten_solver = whiten_solver
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def _request(self, seen):
        q = self._number_of_sources(seen)
        return _covary.Request(
            "ica",
            "all" if q is None else q,
            # 1 − cos θ ≤ tol is a chord of at most √(2 tol), which the core measures.
            tolerance=max(np.sqrt(2.0 * self._checked_tol()), _TINY),
            max_iterations=whole("max_iter", self.max_iter),
            seed=fixed_seed_of(self.random_state),
            threads=self.n_threads,
            method="fastica",
            deflation=self._one_of("algorithm", ("parallel", "deflation")) == "deflation",
            noise=False,
            starts=1,
            **self._contrast(q, seen),
            whitened=not self._whiten(),
        )

    def _contrast(self, q, seen):
        """What is searched from where; of a function of one's own, where its search has ended."""
        if callable(self.fun):
            return {"unmixing": self._own_unmixing}
        contrast = self._one_of("fun", ("logcosh", "exp", "cube"))
        return {"contrast": contrast, "alpha": self._alpha(), "begin": self._start(q, seen)}

    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Arrow table or :func:`covary.read` of shape (n, p)
            NaN and masked cells are missing values, infinite cells are an error. With a function as `fun` an array
            without missing values.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How often each row counts; not with a function as `fun`.

        Returns
        -------
        self
        """
        if callable(self.fun) and sample_weight is not None:
            raise ValueError("a function as fun takes rows that count alike; leave sample_weight out")
        return super().fit(X, sample_weight=sample_weight)

    def _learn(self, X, rows, progress):
        self.__dict__.pop("_own_search", None)
        if not callable(self.fun):
            return super()._learn(X, rows, progress)
        X = check_array(filled(X), dtype=[np.float64, np.float32], accept_sparse=False, input_name="X")
        u = self._whitened(X.astype(np.float64, copy=False), rows)  # (n, q)
        start = self._start(u.shape[1], rows)
        if start is None:
            start = np.random.default_rng(fixed_seed_of(self.random_state)).normal(size=(u.shape[1],) * 2)
        function = partial(self.fun, **(self.fun_args or {}))
        search = one_by_one if self._one_of("algorithm", ("parallel", "deflation")) == "deflation" else all_at_once
        limit = whole("max_iter", self.max_iter)
        self._own_unmixing, steps, converged = search(u, function, start, self._checked_tol(), limit)
        try:
            super()._learn(X, rows, progress)
        finally:
            del self._own_unmixing
        self._own_search = (steps, converged)

    def _whitened(self, X, rows):
        """Coordinates along the principal components, of variance 1 (n, q)."""
        if not self._whiten():
            return X
        q = self._number_of_sources(rows)
        model = _covary.fit(rows, _covary.Request("pca", "all" if q is None else q, threads=self.n_threads))
        z = model.transform(rows, False, False, self.n_threads)
        return z / np.sqrt(np.mean(z**2, axis=0))

    @property
    def n_iter_(self) -> int:
        """int: number of steps."""
        own = self.__dict__.get("_own_search")
        return own[0] if own is not None else super().n_iter_

    @property
    def converged_(self) -> bool:
        """bool: whether the search ended by itself."""
        own = self.__dict__.get("_own_search")
        return own[1] if own is not None else super().converged_

    def _whiten(self):
        if self.whiten is False:
            return False
        return self._one_of("whiten", ("unit-variance", "arbitrary-variance"))

    def _checked_tol(self):
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0 <= self.tol < np.inf:
            raise ValueError(f"tol={self.tol!r} must be a number of at least 0")
        return float(self.tol)

    def _alpha(self):
        alpha = (self.fun_args or {}).get("alpha", 1.0)
        if not 1 <= alpha <= 2:
            raise ValueError("alpha must be in [1,2]")
        return float(alpha)

    def _number_of_sources(self, seen):
        """n_components within the limits of the rows, as scikit-learn has them."""
        q = self.n_components
        if q is not None and (isinstance(q, bool) or not isinstance(q, Integral) or q < 1):
            raise ValueError(f"n_components={q!r} must be a whole number of at least 1, or None")
        if q is not None and not self._whiten():
            warn("Ignoring n_components with whiten=False.")
            return None
        if q is None or seen is None or seen.n_rows is None:
            return q
        most = min(seen.n_rows, seen.n_features)
        if q > most:
            warn(f"n_components is too large: it will be set to {most}")
            return None
        return int(q)

    def _start(self, q, seen):
        if self.w_init is None:
            return None
        start = numbers(self.w_init)
        sources = q if q is not None else min(seen.n_rows or seen.n_features, seen.n_features)
        if start.shape != (sources, sources):
            raise ValueError(f"w_init has invalid shape -- should be {(sources, sources)}")
        return np.ascontiguousarray(start)

    def _warn_unless_converged(self):
        if not self.converged_:
            warn(
                "FastICA did not converge. Consider increasing tolerance or the maximum number of iterations.",
                ConvergenceWarning,
            )

    def _unit(self):
        """By what sources of variance 1 are divided."""
        return np.sqrt(self._report()["weight"]) if self._whiten() == "arbitrary-variance" else 1.0

    @property
    def components_(self) -> Floats:
        """ndarray of shape (q, p): the unmixing matrix."""
        return self._unmixing / self._unit()

    @property
    def mixing_(self) -> Floats:
        """ndarray of shape (p, q): the mixing matrix."""
        return self._mixing * self._unit()

    @property
    def mean_(self) -> Floats:
        """ndarray of shape (p,): mean of the features."""
        self._only_whitened("mean_")
        return LinearGaussianEstimator.mean_.fget(self)

    @property
    def whitening_(self) -> Floats:
        """ndarray of shape (q, p): the matrix that makes principal components of variance 1/n."""
        self._only_whitened("whitening_")
        return self._whitening / np.sqrt(self._report()["weight"])

    def _only_whitened(self, name):
        self._fitted()
        if not self._whiten():
            raise AttributeError(f"{name} is there when whiten is not False")

    def transform(self, X: Table, copy: bool = True) -> Answer:
        """Sources of each row.

        Parameters
        ----------
        X : as for `fit`
        copy : ignored

        Returns
        -------
        ndarray of shape (n, q)
        """
        model, rows = self._fitted(), rows_of(self, X)
        sources = model.transform(rows, False, is_single(X, rows), self.n_threads)
        unit = self._unit()
        return sources if unit == 1.0 else sources / sources.dtype.type(unit)

    def inverse_transform(self, X: Table, copy: bool = True) -> Answer:
        """Rows mixed from their sources.

        Parameters
        ----------
        X : array-like of shape (n, q)
        copy : ignored

        Returns
        -------
        ndarray of shape (n, p)
        """
        unit = self._unit()
        if unit != 1.0:
            X = (X if hasattr(X, "iloc") else np.asarray(X)) * unit
        return super().inverse_transform(X)
