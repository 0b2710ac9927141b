"""Probabilistic PCA."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from covary import _covary
from covary._base import LinearGaussianEstimator
from covary._input import numbers
from covary._types import Components, Seed, Self


class PPCAErrors(NamedTuple):
    """Standard errors of a fit; see :meth:`PPCA.standard_errors`."""

    mean: np.ndarray
    noise_variance: float
    explained_variance: np.ndarray
    loadings: np.ndarray


class PPCAIntervals(NamedTuple):
    """Intervals of a fit, lower ends first; see :meth:`PPCA.intervals`."""

    mean: np.ndarray
    noise_variance: np.ndarray
    explained_variance: np.ndarray
    loadings: np.ndarray


class PPCA(LinearGaussianEstimator):
    """Probabilistic PCA: x = W z + μ + ε, by maximum likelihood.

    Each row is explained by q latent variables z ~ N(0, I) and noise ε of the same variance σ² in every
    feature. Where rows are complete the answer is exact and in closed form [TB99]_; rows with missing values
    (NaN) are fitted by maximum likelihood of the cells that are there.

    Parameters
    ----------
    n_components : int, float in (0, 1), "mle" or None
        Number of latent variables q; or the share of the variance that they should explain; or as many as
        Minka's evidence speaks for; or all that the data allow: as many as there are directions in which the
        rows vary.
    solver : {"auto", "eigen", "svd", "dual", "krylov", "em"}
        How the answer is found; `report_` says which solver was chosen and why. All agree. Rows with missing
        values need "em", which "auto" finds by itself.
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit: nothing, its standard deviation, the square root of
        that, or its range. Every answer is in the units of the data; `explained_variance_` and `components_`
        are those of the divided features.
    tol : float
        When an iterative solver has converged: residuals for "krylov", nats per row left to gain for "em".
    max_iter : int
        Limit on its iterations; reaching it gives a ``ConvergenceWarning``.
    random_state : int, RandomState or None
        Seed of its random start.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    mean_ : ndarray of shape (p,)
    loadings_ : ndarray of shape (p, q)
        W. Equal to ``components_.T * sqrt(explained_variance_ - noise_variance_)``.
    components_ : ndarray of shape (q, p)
        Orthonormal rows, largest variance first; the entry of largest magnitude in each is positive.
    explained_variance_ : ndarray of shape (q,)
        Eigenvalues of the covariance with divisor n.
    explained_variance_ratio_ : ndarray of shape (q,)
    noise_variance_ : float
    n_components_ : int
    log_likelihood_ : float
        Total over the rows.
    n_iter_ : int
    converged_ : bool
    report_ : dict
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        When the rows had names.

    References
    ----------
    .. [TB99] M. E. Tipping & C. M. Bishop (1999). Probabilistic principal component analysis. J. R. Statist.
       Soc. B 61.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PPCA
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 10)) + 0.5 * rng.normal(size=(1000, 10))
    >>> model = PPCA(3).fit(X)
    >>> model.report_["solver"]
    'eigen'
    >>> bool(abs(model.noise_variance_ - 0.25) < 0.02)
    True

    Rows with missing values are fitted, judged, projected, rebuilt and filled from the cells that are there:

    >>> Y = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = PPCA(3).fit(Y)
    >>> model.report_["solver"], model.converged_
    ('em', True)
    >>> filled, std = model.impute(Y, return_std=True)
    >>> missing = np.isnan(Y)
    >>> inside = np.abs(filled - X)[missing] < 1.96 * std[missing]
    >>> bool(0.93 < inside.mean() < 0.97)
    True
    """

    def __init__(
        self,
        n_components: Components = None,
        *,
        solver: str = "auto",
        scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "ppca"

    def standard_errors(self) -> PPCAErrors:
        """Standard errors of mean, noise variance, explained variances and loadings, for many rows [A63]_.

        Returns
        -------
        PPCAErrors
            A named tuple: `mean` (p,), `noise_variance` (NaN when q = p: there is none), `explained_variance`
            (q,), `loadings` (p, q). The loadings of a component whose variance is that of another direction
            are not determined; their errors are infinite.

        Raises
        ------
        ValueError
            When values were missing, were too few, or the parameters were given.

        References
        ----------
        .. [A63] T. W. Anderson (1963). Asymptotic theory for principal component analysis. Ann. Math.
           Statist. 34.

        Examples
        --------
        >>> import numpy as np
        >>> from covary import PPCA
        >>> X = np.random.default_rng(0).normal(size=(400, 4)) * [3, 1, 1, 1]
        >>> model = PPCA(1).fit(X)
        >>> model.standard_errors().mean.round(2)
        array([0.15, 0.05, 0.05, 0.05])
        """
        return PPCAErrors(**self._fitted().standard_errors(self.n_threads))

    def intervals(self, level: float | None = None) -> PPCAIntervals:
        """Confidence intervals of mean, noise variance, explained variances and loadings, from complete rows.

        The mean has Student's intervals, variances have those of χ² distributions, which hold with few rows
        too; those of the loadings are normal ones, for many rows.

        The interval of the noise variance lies around its estimate without bias, n / (n - 1 - q) times
        `noise_variance_`. That of maximum likelihood, `noise_variance_` itself, is too small by that factor
        and may lie below the interval when there are many features.

        Parameters
        ----------
        level : float or None
            Probability with which each interval holds its number; None is 0.95.

        Returns
        -------
        PPCAIntervals
            A named tuple of arrays whose first axis has the lower and the upper end: `mean` (2, p),
            `noise_variance` (2,), `explained_variance` (2, q), `loadings` (2, p, q). Without ends where
            `standard_errors` are infinite.

        Raises
        ------
        ValueError
            As for `standard_errors`, and when `level` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from covary import PPCA
        >>> X = np.random.default_rng(0).normal(size=(400, 4)) * [3, 1, 1, 1]
        >>> low, high = PPCA(1).fit(X).intervals().noise_variance
        >>> bool(low < 1 < high)
        True
        """
        return PPCAIntervals(**self._fitted().intervals(level, self.n_threads))

    @classmethod
    def from_parameters(cls, *, mean: Any, loadings: Any, noise_variance: Any) -> Self:
        """A fitted model from given numbers.

        Parameters
        ----------
        mean : array-like of shape (p,)
        loadings : array-like of shape (p, q)
        noise_variance : float or array-like of shape (p,)
            The same for every feature, or one for each.

        Returns
        -------
        PPCA

        Examples
        --------
        >>> from covary import PPCA
        >>> model = PPCA.from_parameters(mean=[0, 0], loadings=[[3], [4]], noise_variance=1)
        >>> model.get_covariance()
        array([[10., 12.],
               [12., 17.]])
        >>> model.components_
        array([[0.6, 0.8]])
        """
        mean, loadings, noise = numbers(mean), numbers(loadings), numbers(noise_variance)
        return cls._of(_covary.Model.given(mean, loadings, noise if noise.ndim else float(noise)))
