"""Bayesian PCA."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary import _covary
from covary._base import LinearGaussianEstimator, table
from covary._input import numbers
from covary._types import Components, Floats, Seed, Self


def _table(name, doc):
    """What is known of the parameters; only variational Bayes knows how well it knows them."""
    missing = f"{name}_ is for method='vb': relevance determination (method='ard') keeps W and μ as points"
    return table(name, doc, missing)


class BayesianPCA(LinearGaussianEstimator):
    """Bayesian PCA: probabilistic PCA that finds out how many components the data support.

    Each column of W has a normal prior whose precision α is found from the data: columns that explain nothing
    but noise are driven out [B99]_. With ``method="vb"`` W and μ have a distribution, and what is not known
    of them is part of every answer: log densities, p-values and the deviations of filled cells. That is why
    it does not overfit where rows or observed cells are few, and why ratings of which most are missing are
    predicted well [IR10]_. The means of the features have a prior too, found from the data: as far as they
    are alike, or lie along the components, those of features with few cells are told by the others. Complete
    rows are solved from their spectrum [NSBT13]_ and moments; rows with missing values (NaN) in passes, from
    the cells that are there.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None
        The most components that may be kept; or as many as explain this share of the variance; or all that
        the data allow (with missing values: as many as the available cases promise, and a margin).
    method : {"vb", "ard"}
        Variational Bayes: the highest lower bound on the evidence. Or automatic relevance determination: the
        most probable W, as a point.
    solver : {"auto", "eigen", "svd", "dual", "krylov", "em"}
        How the spectrum of complete rows is found; rows with missing values need "em", which "auto" finds by
        itself. All agree.
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
    n_components_ : int
        How many components are left; 0 when no direction stands out from noise.
    alpha_ : ndarray of shape (q,)
        Precision of each column of W that is left: the reciprocal of its mean square.
    elbo_ : float
        The lower bound on the log evidence, of ``method="vb"``; infinite when the rows lie in the plane of
        the components.
    mean_ : ndarray of shape (p,)
        Mean of μ.
    mean_std_ : ndarray of shape (p,)
        Standard deviation of μ, of ``method="vb"``.
    loadings_ : ndarray of shape (p, q)
        Mean of W.
    loadings_std_ : ndarray of shape (p, q)
        Standard deviation of W, of ``method="vb"``.
    components_ : ndarray of shape (q, p)
        Orthonormal rows, largest variance first; the entry of largest magnitude in each is positive.
    explained_variance_ : ndarray of shape (q,)
        Variance along each; eigenvalues of the covariance with divisor n for complete rows.
    explained_variance_ratio_ : ndarray of shape (q,)
    noise_variance_ : float
        σ², the noise of a cell when W and μ are known. `get_covariance` includes what is not known.
    log_likelihood_ : float
        Total log density of the rows, with what is not known of W and μ in it.
    n_iter_ : int
    converged_ : bool
    report_ : dict
        How the fit went; ``report_["bayes"]`` has `method`, `objective` and the number of components that
        were `allowed`.
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        When the rows had names.

    Notes
    -----
    `partial_fit` and `merge` take complete rows.

    References
    ----------
    .. [B99] C. M. Bishop (1999). Bayesian PCA. Advances in Neural Information Processing Systems 11.
    .. [IR10] A. Ilin & T. Raiko (2010). Practical approaches to principal component analysis in the presence
       of missing values. J. Mach. Learn. Res. 11.
    .. [NSBT13] S. Nakajima, M. Sugiyama, S. D. Babacan & R. Tomioka (2013). Global analytic solution of
       fully-observed variational Bayesian matrix factorization. J. Mach. Learn. Res. 14.

    Examples
    --------
    Three of ten independent features vary more than the others [B99]_:

    >>> import numpy as np
    >>> from covary import BayesianPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 10)) * [5, 4, 3, 1, 1, 1, 1, 1, 1, 1]
    >>> model = BayesianPCA().fit(X)
    >>> model.n_components_, model.report_["bayes"]["allowed"]
    (3, 10)

    Of rows with missing values, the deviations of filled cells know how few rows there were:

    >>> Y = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    >>> model = BayesianPCA(5).fit(Y)
    >>> model.n_components_
    3
    >>> filled, std = model.impute(Y, return_std=True)
    >>> bool((std[np.isnan(Y)] ** 2 > model.noise_variance_).all())
    True
    """

    alpha_: Floats = _table("precisions", "ndarray of shape (q,): precision of each column of W that is left.")
    loadings_std_: Floats = _table("loadings_std", "ndarray of shape (p, q): standard deviation of W, of method='vb'.")
    mean_std_: Floats = _table("mean_std", "ndarray of shape (p,): standard deviation of μ, of method='vb'.")

    def __init__(
        self,
        n_components: Components = None,
        *,
        method: Any = "vb",
        solver: str = "auto",
        scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "bpca"

    def _family_options(self):
        return {"solver": self.solver, "method": self.method}

    @classmethod
    def _of(cls, model, **parameters):
        found = model.report.get("bayes") or {}
        method = {"method": found["method"]} if "method" in found else {}
        estimator = super()._of(model, **{**method, **parameters})
        estimator.n_components = found.get("allowed", estimator.n_components)
        return estimator

    @classmethod
    def from_parameters(
        cls, *, mean: Any, loadings: Any, noise_variance: Any, loadings_std: Any = None, mean_std: Any = None
    ) -> Self:
        """A fitted model from given numbers.

        Parameters
        ----------
        mean : array-like of shape (p,)
        loadings : array-like of shape (p, q)
        noise_variance : float
            σ².
        loadings_std : array-like of shape (p, q), optional
            Standard deviations of the loadings; with them and without `mean_std`, the mean is known.
        mean_std : array-like of shape (p,), optional
            Standard deviations of the mean; with them and without `loadings_std`, the loadings are known.

        Returns
        -------
        BayesianPCA

        Examples
        --------
        >>> from covary import BayesianPCA
        >>> model = BayesianPCA.from_parameters(mean=[0, 0], loadings=[[3], [4]], noise_variance=1, mean_std=[1, 2])
        >>> model.get_covariance()
        array([[11., 12.],
               [12., 21.]])
        >>> model.alpha_
        array([0.08])
        """
        mean, loadings = (numbers(given) for given in (mean, loadings))
        known = None
        if loadings_std is not None or mean_std is not None:
            given = (np.zeros_like(like) if std is None else std for std, like in ((loadings_std, loadings), (mean_std, mean)))
            known = tuple(numbers(std) for std in given)
        return cls._of(_covary.Model.given_bayes(mean, loadings, float(numbers(noise_variance)), known))

    @property
    def elbo_(self) -> float:
        """float: the lower bound on the log evidence, of method='vb'.

        Infinite when the rows lie in the plane of the components.
        """
        found = self.report_.get("bayes")
        if found is None or found["method"] != "vb":
            raise AttributeError("elbo_ is for a fit with method='vb'; report_['bayes']['objective'] has what others maximise")
        return float("nan") if found["objective"] is None else found["objective"]
