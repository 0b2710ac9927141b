"""Factor analysis."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from covary import _covary
from covary._base import LinearGaussianEstimator, table
from covary._input import filled, is_single, numbers, rows_of
from covary._rotate import Rotation, rotation_of
from covary._types import Answer, Components, Floats, Seed, Self, Table
from covary._warn import warn


class StandardErrors(NamedTuple):
    """Standard errors of a fit; see :meth:`FactorAnalysis.standard_errors`."""

    loadings: np.ndarray
    factor_correlation: np.ndarray
    uniquenesses: np.ndarray


def _table(name, doc):
    """An array of the factors."""
    return table(name, doc)


class FactorAnalysis(LinearGaussianEstimator):
    """Factor analysis by maximum likelihood: x = Λ f + μ + ε, a noise variance for each feature.

    A drop-in replacement for scikit-learn's `FactorAnalysis`, with what psychologists expect around it:
    rotations, fit indices, standard errors, fits from a correlation matrix, and rows with missing values
    (NaN) by maximum likelihood of the cells that are there (FIML). Numbers agree with R's factanal, psych and
    lavaan. Complete rows are read once; the optimum is then found by Newton's method [J67]_.

    Parameters
    ----------
    n_components : int or None
        Number of factors q; None for as many as leave degrees of freedom and the number of rows allows. More
        are fitted with a warning: their covariance is a good one, but the loadings are some of many that give
        it.
    rotation : str, Rotation or None
        How the factors are turned: "varimax", "oblimin", "geomin", …, or a :class:`covary.Rotation` with
        settings. Loadings on the scale of correlations are what is turned.
    solver : {"auto", "newton", "krylov", "em"}
        How the optimum is found; `report_` says which was chosen and why. All agree.
    lower : float or None
        Least uniqueness of a feature. None is 0.005, as in R's factanal, and less where the data have less
        noise; features that end there are in `heywood_`.
    n_starts : int or None
        Number of starts, of which the best is kept. None is one, and five where it ends at a bound or does
        not converge.
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit: nothing, its standard deviation, the square root of
        that, or its range. Every answer is in the units of the data; `explained_variance_` and `components_`
        are those of the divided features.
    tol : float
        Norm of the gradient at which the fit ends.
    max_iter : int
        Limit on the iterations from each start; reaching it gives a ``ConvergenceWarning``.
    copy, noise_variance_init, svd_method, iterated_power
        scikit-learn's, ignored: X is never changed, and neither start nor decomposition decides about the
        optimum.
    random_state : int, RandomState or None
        Seed of the starts after the first.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    components_ : ndarray of shape (q, p)
        Λᵀ, the loadings in rows, as in scikit-learn.
    loadings_ : ndarray of shape (p, q)
        Λ, the pattern: ``loadings_ @ factor_correlation_ @ loadings_.T + diag(noise_variance_)`` is the
        covariance.
    standardised_loadings_ : ndarray of shape (p, q)
        The same for features of unit variance: what tables of factor analyses show.
    structure_, standardised_structure_ : ndarray of shape (p, q)
        Covariances, or correlations, of features and factors.
    factor_correlation_ : ndarray of shape (q, q)
        Φ; the identity unless the rotation is oblique.
    rotation_matrix_ : ndarray of shape (q, q)
        T, with columns of length 1: ``structure_ = W @ T`` for the unrotated loadings W,
        ``factor_correlation_ = T.T @ T``.
    noise_variance_ : ndarray of shape (p,)
        ψ.
    uniquenesses_, communalities_ : ndarray of shape (p,)
        Shares of each feature's variance that are its own, and that the factors explain.
    factor_variances_ : ndarray of shape (q,)
        What each factor explains of features of unit variance; "SS loadings" in R.
    fit_indices_ : dict
        chi2, dof, p_value, rmsea, rmsea_ci (of 90 %), cfi, tli, srmr, aic, bic, and more; NaN where one
        cannot be told.
    heywood_ : list
        Features whose uniqueness is at its bound: names, or positions when there are none.
    mean_ : ndarray of shape (p,)
    n_components_ : int
    log_likelihood_ : float
        Total over the rows, observed cells.
    loglike_ : list of float
        The same after each iteration.
    n_iter_ : int
    converged_ : bool
    report_ : dict
        How the fit went; ``report_["factor"]`` has what is particular to factors.
    explained_variance_ : ndarray of shape (q,)
    explained_variance_ratio_ : ndarray of shape (q,)
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    Notes
    -----
    `partial_fit` and `merge` take complete rows. After a rotation the entry of largest magnitude in each
    column of the pattern is positive, and factors come in the order of the variance that they explain.

    References
    ----------
    .. [J67] K. G. Jöreskog (1967). Some contributions to maximum likelihood factor analysis. Psychometrika
       32.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> pattern = np.kron(np.diag([0.9, 0.7]), [[1.0], [0.9], [0.9], [0.8]])
    >>> f = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=5000)
    >>> X = f @ pattern.T + rng.normal(size=(5000, 8)) * np.sqrt(1 - (pattern**2).sum(axis=1))
    >>> model = FactorAnalysis(2, rotation="oblimin").fit(X)
    >>> bool(np.abs(model.standardised_loadings_ - pattern).max() < 0.06)
    True
    >>> bool(abs(model.factor_correlation_[0, 1] - 0.5) < 0.05)
    True
    >>> model.fit_indices_["dof"], model.fit_indices_["rmsea"] < 0.02, model.heywood_
    (13, True, [])
    """

    structure_: Floats = _table("structure", "ndarray of shape (p, q): covariances of features and factors, ΛΦ.")
    factor_correlation_: Floats = _table("factor_correlation", "ndarray of shape (q, q): correlation of the factors, Φ.")
    rotation_matrix_: Floats = _table("rotation_matrix", "ndarray of shape (q, q): T, columns of length 1, with Φ = TᵀT.")
    standardised_loadings_: Floats = _table("standardised_loadings", "ndarray of shape (p, q): Λ of features of unit variance.")
    standardised_structure_: Floats = _table(
        "standardised_structure", "ndarray of shape (p, q): correlations of features and factors."
    )
    communalities_: Floats = _table("communalities", "ndarray of shape (p,): share of the variance that factors explain.")
    uniquenesses_: Floats = _table("uniquenesses", "ndarray of shape (p,): share of the variance that is a feature's own.")
    factor_variances_: Floats = _table("factor_variances", "ndarray of shape (q,): what each factor explains of unit variances.")

    def __init__(
        self,
        n_components: Components = 1,
        *,
        rotation: Any = None,
        solver: str = "auto",
        lower: Any = None,
        n_starts: Any = None,
        scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 1000,
        copy: bool = True,
        noise_variance_init: Any = None,
        svd_method: Any = "randomized",
        iterated_power: int = 3,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.rotation = rotation
        self.solver = solver
        self.lower = lower
        self.n_starts = n_starts
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.copy = copy
        self.noise_variance_init = noise_variance_init
        self.svd_method = svd_method
        self.iterated_power = iterated_power
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "fa"

    def _request(self, seen):
        return _covary.Request(
            self._kind,
            self._number_of_factors(seen),
            rotation=rotation_of(self.rotation),
            lower=self.lower,
            starts=self.n_starts,
            undetermined=True,
            solver=self.solver,
            **self._search_options(),
        )

    def _number_of_factors(self, seen):
        """None is as many as leave degrees of freedom and the number of rows allows."""
        q = self.n_components
        if q is not None and (not isinstance(q, Integral) or q < 0):
            raise ValueError(f"n_components={q!r} must be a whole number of factors, or None")
        if q is not None:
            return int(q)
        most = 1 if seen is None else _covary.most_factors(seen.n_features)
        rows = None if seen is None else seen.n_rows
        return max(1, most if rows is None else min(most, rows - 1))

    def _warn_unless_converged(self):
        super()._warn_unless_converged()
        dof = self.fit_indices_["dof"]
        if dof < 0:
            warn(
                f"{self.n_components_} factors of {self.n_features_in_} features leave {dof} degrees of freedom: the loadings are "
                f"some of many that fit equally; ask for at most {_covary.most_factors(self.n_features_in_)}"
            )

    @classmethod
    def _of(cls, model, **parameters):
        return super()._of(model, **{"rotation": _rotation_in(model.report.get("rotation")), **parameters})

    @classmethod
    def from_covariance(
        cls, covariance: Any, n_samples: float, n_components: Components = 1, *, mean: Any = None, **parameters: Any
    ) -> Self:
        """Fit a covariance or correlation matrix: no rows are needed.

        Parameters
        ----------
        covariance : array-like or data frame of shape (p, p)
            With divisor n; its columns name the features. A correlation matrix gives standardised loadings.
        n_samples : int
            Number of rows behind it.
        n_components : int or None
        mean : array-like of shape (p,), optional
            0 when it is not known.
        **parameters
            Those of the constructor.

        Returns
        -------
        FactorAnalysis
            Fitted.

        Examples
        --------
        >>> from covary import FactorAnalysis
        >>> R = [[1.0, 0.56, 0.48, 0.4], [0.56, 1.0, 0.42, 0.35], [0.48, 0.42, 1.0, 0.3], [0.4, 0.35, 0.3, 1.0]]
        >>> FactorAnalysis.from_covariance(R, 30, 1).loadings_.ravel().round(4)
        array([0.8, 0.7, 0.6, 0.5])
        """
        estimator = cls(n_components, **parameters)
        names = getattr(covariance, "columns", None)
        if names is not None:
            estimator.feature_names_in_ = np.asarray([str(name) for name in names], dtype=object)
        covariance = check_array(
            filled(covariance), dtype=np.float64, ensure_all_finite=False, input_name="covariance", ensure_min_samples=0
        )
        mean = None if mean is None else numbers(mean)
        estimator.n_features_in_ = covariance.shape[1]
        estimator._set_evidence(_covary.Batches.of_covariance(covariance, n_samples, mean))
        estimator._fitted()
        return estimator

    @classmethod
    def from_parameters(cls, *, mean: Any, loadings: Any, noise_variance: Any, factor_correlation: Any = None) -> Self:
        """A fitted model from given numbers.

        Parameters
        ----------
        mean : array-like of shape (p,)
        loadings : array-like of shape (p, q)
            Λ.
        noise_variance : float or array-like of shape (p,)
        factor_correlation : array-like of shape (q, q), optional
            Φ, for correlated factors.

        Returns
        -------
        FactorAnalysis

        Examples
        --------
        >>> from covary import FactorAnalysis
        >>> model = FactorAnalysis.from_parameters(
        ...     mean=[0, 0], loadings=[[3, 0], [0, 4]], noise_variance=[1, 2], factor_correlation=[[1, 0.5], [0.5, 1]])
        >>> model.get_covariance()
        array([[10.,  6.],
               [ 6., 18.]])
        """
        mean, loadings, noise = (numbers(given) for given in (mean, loadings, noise_variance))
        noise = np.broadcast_to(noise, mean.shape) if noise.ndim == 0 else noise
        if factor_correlation is not None:
            factor_correlation = numbers(factor_correlation)
        return cls._of(_covary.Model.given_factors(mean, loadings, noise, factor_correlation))

    # -- what was found --------------------------------------------------------------------------------------

    @property
    def noise_variance_(self) -> Floats:
        """ndarray of shape (p,): ψ, the noise variance of each feature."""
        noise = self._fitted().noise_variance
        return np.broadcast_to(noise, (self._fitted().n_features,))

    @property
    def fit_indices_(self) -> dict[str, Any]:
        """dict: how well the model fits; NaN where an index cannot be told."""
        factor = self.report_.get("factor") or {}
        known = (factor.get("assessment") or {}).get("fit") or {}
        found = {name: float("nan") if known.get(name) is None else known[name] for name in _INDICES}
        interval = known.get("rmsea_interval")
        found["rmsea_ci"] = (float("nan"),) * 2 if interval is None else tuple(interval)
        if not known:
            found["dof"] = factor.get("dof", float("nan"))
            found["log_likelihood"] = self.log_likelihood_
        return found

    @property
    def heywood_(self) -> list[Any]:
        """list: features whose uniqueness is at its bound, by name or position."""
        positions = (self.report_.get("factor") or {}).get("heywood", [])
        names = getattr(self, "feature_names_in_", None)
        return positions if names is None else [names[j] for j in positions]

    @property
    def loglike_(self) -> list[float]:
        """list of float: log-likelihood after each iteration."""
        report = self.report_
        trace = report["trace"]
        return [self.log_likelihood_ + report["weight"] * (value - trace[-1]) for value in trace]

    def standard_errors(self, standardised: bool = False) -> StandardErrors:
        """Standard errors of loadings, factor correlations and uniquenesses, from the information matrix.

        Parameters
        ----------
        standardised : bool
            Of `standardised_loadings_` and `uniquenesses_` instead of `loadings_` and `noise_variance_`.

        Returns
        -------
        StandardErrors
            A named tuple: `loadings` (p, q), `factor_correlation` (q, q), `uniquenesses` (p,). 0 for what is
            fixed.
        """
        found = self._fitted().standard_errors(self.n_threads)
        found = found["standardised" if standardised else "given"]
        return StandardErrors(
            np.array(found["loadings"]), np.array(found["correlation"]), np.array(found["uniquenesses"])
        )

    def transform(self, X: Table, method: Any = "regression") -> Answer:
        """Factor scores of each row, given the cells that were observed.

        Parameters
        ----------
        X : as for `fit`
        method : {"regression", "bartlett"}
            The posterior mean, which has the least error and lies nearer to 0; or Bartlett's weighted least
            squares, which is unbiased (NaN for a row whose cells do not determine all factors).

        Returns
        -------
        ndarray of shape (n, q)
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return model.scores(rows, method, is_single(X, rows), self.n_threads)


_INDICES = (
    "chi2", "dof", "p_value", "rmsea", "rmsea_ci", "cfi", "tli", "srmr", "rmsr", "aic", "bic", "bic_difference",
    "log_likelihood", "parameters", "discrepancy", "null_chi2", "null_dof",
)  # fmt: skip
_PARAMETER_NAMES = {"promax": "power", "oblimin": "gamma", "geomin": "delta", "geomin-orthogonal": "delta"}


def _rotation_in(report):
    """The rotation that a report tells of.

    None where there is none, or it was towards a target, which a report does not keep.
    """
    if report is None or report["method"] in ("target", "procrustes"):
        return None
    parameter = {_PARAMETER_NAMES[report["method"]]: report["parameter"]} if "parameter" in report else {}
    return Rotation(report["method"], kaiser=report["kaiser"], **parameter)
