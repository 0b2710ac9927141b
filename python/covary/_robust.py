"""Robust probabilistic PCA."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from covary import _covary
from covary._base import LinearGaussianEstimator, table
from covary._input import numbers, rows_of
from covary._steps import Steps
from covary._types import Components, Floats, Seed, Self, Table, Weights

_nu = table("nu", "ndarray of shape (1,): ν.")


class RobustPPCA(Steps, LinearGaussianEstimator):
    """Robust probabilistic PCA: Student's t in place of the normal, so that outliers count for little.

    x | u ~ N(μ, (W Wᵀ + σ²I)/u) with u ~ Γ(ν/2, ν/2): each row has a scale of its own, and is multivariate t
    with location μ, scale W Wᵀ + σ²I and ν degrees of freedom [LLT89]_. In a fit a row with k observed cells
    counts with the weight (ν + k)/(ν + δ), δ its squared Mahalanobis distance, so that gross errors move
    neither the mean nor the components. How heavy the tails are, ν, is found with the other parameters, or
    given; with ν = ∞ it is :class:`PPCA`. Missing values (NaN) are integrated out: the maximum likelihood is
    that of the cells that are there.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None
        Number of latent variables q, at most p - 1; or the share of the variance of the robust scale that
        they should explain; or all that the data allow.
    nu : float or "auto"
        Degrees of freedom ν > 0: the fewer, the less rows far out count. ``float("inf")`` is the normal
        distribution, "auto" finds ν between 1 (more where rows are few beside the features) and infinity.
    solver : {"auto", "eigen", "em"}
        "eigen": each pass gives the covariance of weighted complete rows, solved in closed form. "em": steps
        of EM, for missing values and for many features. "auto" finds by itself which.
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit: nothing, its standard deviation, the square root of
        that, or its range. Every answer is in the units of the data; `explained_variance_` and `components_`
        are those of the divided features.
    tol : float
        Nats per row of log-likelihood that may be left to gain.
    max_iter : int
        Limit on the iterations; reaching it gives a ``ConvergenceWarning``.
    random_state : int, RandomState or None
        Seed of random starts.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    nu_ : float
        ν, given or found; infinite for the normal distribution.
    weights_ : ndarray of shape (n,)
        How much each row of the fit counts, or of the last batch: about 1, and near 0 for gross outliers. For
        rows of a file, or of a model that was loaded, use `row_weights`.
    mean_ : ndarray of shape (p,)
        Location μ.
    loadings_ : ndarray of shape (p, q)
        W. Equal to ``components_.T * sqrt(explained_variance_ - noise_variance_)``.
    components_ : ndarray of shape (q, p)
        Orthonormal rows, largest variance first; the entry of largest magnitude in each is positive.
    explained_variance_ : ndarray of shape (q,)
        Eigenvalues of the scale W Wᵀ + σ²I, which exists for every ν; the covariance is ν/(ν - 2) times it.
    explained_variance_ratio_ : ndarray of shape (q,)
    noise_variance_ : float
        σ², of the scale.
    n_components_ : int
    log_likelihood_ : float
        Total over the rows.
    n_iter_ : int
    converged_ : bool
    report_ : dict
        How the fit went; ``report_["robust"]`` has `degrees_of_freedom`, whether they were `found`,
        `low_rows` (those whose weight is below 1/2) and `least_weight`.
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        When the rows had names.

    Notes
    -----
    p-values of `outliers` come from the F distribution: they say how unusual a row is among rows with tails as
    heavy. `get_covariance` needs ν > 2. Deviations of filled cells and of coordinates grow with the distance
    of the row, and are infinite where a row has too few cells for its ν to have a variance.

    Weights depend on the model, so rows must be read again: `partial_fit` comes near a fit of all rows but is not
    one, and there is no `merge`.

    References
    ----------
    .. [LLT89] K. L. Lange, R. J. A. Little & J. M. G. Taylor (1989). Robust statistical modeling using the t
       distribution. J. Amer. Statist. Assoc. 84.

    Examples
    --------
    Of 200 rows in the plane of two directions, ten are gross errors:

    >>> import numpy as np
    >>> from covary import PPCA, RobustPPCA
    >>> rng = np.random.default_rng(0)
    >>> W = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    >>> X = rng.normal(size=(200, 2)) @ (W * [5, 3]).T + 0.5 * rng.normal(size=(200, 6))
    >>> X[:10] = 50 * rng.normal(size=(10, 6))
    >>> def angle(model):  # between the planes, in degrees
    ...     return np.degrees(np.arccos(np.linalg.svd(model.components_ @ W)[1].min()))
    >>> model = RobustPPCA(2).fit(X)
    >>> bool(angle(model) < 2), bool(angle(PPCA(2).fit(X)) > 30)
    (True, True)
    >>> np.flatnonzero(model.weights_ < 0.1)
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    def __init__(
        self,
        n_components: Components = None,
        *,
        nu: Any = "auto",
        solver: str = "auto",
        scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.nu = nu
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "robust"

    def _family_options(self):
        if isinstance(self.nu, str) and self.nu == "auto":
            return {"solver": self.solver}
        if isinstance(self.nu, bool) or not isinstance(self.nu, Real):
            raise ValueError(f"nu={self.nu!r} must be a number above 0, float('inf') or 'auto'")
        return {"solver": self.solver, "nu": float(self.nu)}

    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        super().fit(X, y, sample_weight=sample_weight)
        # Rows in a plane without noise have no density, and no weights.
        known = not np.isinf(self.log_likelihood_)
        self._weights = self._fitted().row_weights(rows_of(self, X), self.n_threads) if known else None
        return self

    fit.__doc__ = LinearGaussianEstimator.fit.__doc__

    def _after_batch(self, rows):
        self._weights = self._fitted().row_weights(rows, self.n_threads)

    @property
    def merge(self) -> Any:
        raise AttributeError("RobustPPCA has no merge: weights depend on the model, so rows must be read again")

    @property
    def nu_(self) -> float:
        """float: degrees of freedom ν, given or found."""
        return float(_nu.fget(self)[0])

    @property
    def weights_(self) -> Floats | None:
        """ndarray of shape (n,): how much each row of the fit counts."""
        self._fitted()
        if self.__dict__.get("_weights") is None:
            raise AttributeError(
                "weights_ are those of the rows of a fit that has found noise; row_weights(X) gives them for any rows"
            )
        return self._weights

    def row_weights(self, X: Table) -> Floats:
        """How much rows would count in a fit that ended at this model.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n,)
            (ν + k)/(ν + δ) for k observed cells of squared Mahalanobis distance δ; 1 for a row without cells.
        """
        return self._fitted().row_weights(rows_of(self, X), self.n_threads)

    @classmethod
    def _of(cls, model, **parameters):
        estimator = super()._of(model, **parameters)
        found = (model.report.get("robust") or {}).get("found", False)
        if not found:
            estimator.nu = estimator.nu_
        return estimator

    @classmethod
    def from_parameters(cls, *, mean: Any, loadings: Any, noise_variance: Any, nu: Any) -> Self:
        """A fitted model from given numbers.

        Parameters
        ----------
        mean : array-like of shape (p,)
        loadings : array-like of shape (p, q)
        noise_variance : float or array-like of shape (p,)
            The same for every feature, or one for each.
        nu : float
            Degrees of freedom.

        Returns
        -------
        RobustPPCA

        Examples
        --------
        >>> from covary import RobustPPCA
        >>> model = RobustPPCA.from_parameters(mean=[0, 0], loadings=[[3], [4]], noise_variance=1, nu=4)
        >>> model.get_covariance()  # ν/(ν - 2) times the scale
        array([[20., 24.],
               [24., 34.]])
        >>> model.row_weights([[0.0, 0.0]])  # (ν + 2)/ν at the mean
        array([1.5])
        """
        mean, loadings = (numbers(given) for given in (mean, loadings))
        noise = np.atleast_1d(numbers(noise_variance))
        return cls._of(_covary.Model.given_robust(mean, loadings, noise, float(nu)))
