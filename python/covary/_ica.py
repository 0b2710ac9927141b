"""Independent component analysis: components that are independent, not only uncorrelated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from covary import _covary
from covary._base import LinearGaussianEstimator, table
from covary._input import numbers, whole
from covary._types import Components, Floats, Seed, Self


def _has_density(estimator):
    """Without noise rows have no density, and nothing scores them."""
    return getattr(estimator, "noise", False)


class Sources(LinearGaussianEstimator):
    """What both classes share: the numbers of the sources."""

    score_samples = available_if(_has_density)(LinearGaussianEstimator.score_samples)
    score = available_if(_has_density)(LinearGaussianEstimator.score)

    mixing_: Floats = table("mixing", "ndarray of shape (p, q): A, what each source does to each feature.")
    components_: Floats = table("unmixing", "ndarray of shape (q, p): B, with which sources of a complete row are B(x − μ).")
    correlation_: Floats = table("correlation", "ndarray of shape (q, q): correlation of the sources.")
    explained_variance_: Floats = table("variances", "ndarray of shape (q,): what each source adds to the variance.")
    explained_variance_ratio_: Floats = table("shares", "ndarray of shape (q,): its share of the total variance.")

    @property
    def stability_(self) -> Floats | None:
        """ndarray of shape (q,) or None: how well each source was found again from other starts."""
        found = self._details().get("stability")
        return None if found is None else np.array(found)

    @property
    def gaussian_(self) -> NDArray[np.bool_]:
        """ndarray of shape (q,), bool: sources that cannot be told from a normal variable."""
        details = self._details()
        contrast = details.get("contrast", np.full(self.n_components_, np.inf))
        return np.abs(contrast) <= details.get("normal_below", 0.0)

    def _details(self):
        return self._report().get("ica") or {}

    @property
    def partial_fit(self) -> Any:
        raise AttributeError(f"{type(self).__name__} has no partial_fit: passes over all rows find the sources")

    @property
    def merge(self) -> Any:
        raise AttributeError(f"{type(self).__name__} has no merge: passes over all rows find the sources")


class ICA(Sources):
    """Independent component analysis: sources that are independent, not only uncorrelated.

    x = A s + μ + ε. Probabilistic PCA finds μ, the noise and the plane of the sources; the turn of its latent space
    that makes the coordinates of the rows as independent as they can be gives the mixing matrix A. So noise,
    weights, missing values and every question of :class:`PPCA` remain: its density, imputation with deviations,
    outliers and draws do not depend on the turn. Sources have variance 1, stand in descending order of what they
    add to the variance, and have their largest loading positive.

    Parameters
    ----------
    n_components : int, float in (0, 1), "auto", "mle" or None
        Number of sources; or the share of the variance that they should explain; or what `covary.select`
        recommends; or as many as Minka's evidence speaks for; or all that the data allow.
    method : {"picard", "infomax", "fastica"}
        "picard" maximises the likelihood of uncorrelated sources (Picard-O [ACG18]_); "infomax" that of sources
        that may be correlated over the rows; "fastica" is the fixed-point iteration with log cosh, which ends at
        the same sources as "picard".
    extended : bool
        Whether sources may have light tails too, not only heavy ones; of "picard" and "infomax".
    noise : bool
        Whether the model has PPCA's noise. Without, rows of the plane are mixed from their sources exactly, and
        `components_` is the pseudo-inverse of `mixing_`; there is no density unless there are as many sources as
        features, and so no `score`.
    n_init : int
        Random starts, of which the best likelihood wins.
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit: nothing, its standard deviation, the square root of
        that, or its range. Every answer is in the units of the data.
    tol : float
        Where the search ends: the largest entry of the gradient; of "fastica" the angle, in radians, by which a
        step turns a source.
    max_iter : int
        Limit on the steps; reaching it gives a ``ConvergenceWarning``.
    random_state : int, RandomState or None
        Seed of the starts.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    mixing_ : ndarray of shape (p, q)
        A.
    components_ : ndarray of shape (q, p)
        The unmixing matrix: sources of a complete row are ``components_ @ (x - mean_)``.
    mean_ : ndarray of shape (p,)
    noise_variance_ : float
        σ²; 0 without noise.
    stability_ : ndarray of shape (q,) or None
        How well each source was found again from the other starts: the mean of its absolute correlation with the
        source that matches it. None with one start.
    gaussian_ : ndarray of shape (q,), bool
        Sources that cannot be told from a normal variable. Two of them are not determined: any turn of them fits
        as well.
    correlation_ : ndarray of shape (q, q)
        Of the sources: the identity but for "infomax".
    explained_variance_, explained_variance_ratio_ : ndarray of shape (q,)
        What each source adds to the variance of the features, the squared length of its column of `mixing_`, and
        its share of the total.
    log_likelihood_ : float
        Of the rows under the normal density, which does not know the turn: PPCA's. NaN without noise.
    n_components_ : int
    n_iter_ : int
    converged_ : bool
    report_ : dict
        How the fit went; ``report_["ica"]`` has `objective` (mean log-likelihood of whitened sources), `starts` and
        `contrast` (how far from normal each source is, in standard errors).
    loadings_ : ndarray of shape (p, q)
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    Notes
    -----
    With missing values, what is maximised is the mean of the contrast over the distribution that PPCA gives the
    missing cells. `transform` gives posterior means, which noise draws towards 0.

    References
    ----------
    .. [ACG18] P. Ablin, J.-F. Cardoso & A. Gramfort (2018). Faster ICA under orthogonal constraint. ICASSP.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import ICA
    >>> rng = np.random.default_rng(0)
    >>> S = np.column_stack([rng.laplace(size=5000), rng.uniform(-1, 1, size=5000)])
    >>> X = S @ np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]]) + 0.05 * rng.normal(size=(5000, 3))
    >>> ica = ICA(2).fit(X)
    >>> np.abs(np.corrcoef(ica.transform(X).T, S.T)[:2, 2:]).round(1)
    array([[1., 0.],
           [0., 1.]])
    >>> (ica.mixing_[:, 0] / ica.mixing_[0, 0]).round(1) + 0.0
    array([1. , 0.5, 0. ])
    """

    def __init__(
        self,
        n_components: Components = None,
        *,
        method: Any = "picard",
        extended: bool = True,
        noise: bool = True,
        n_init: int = 5,
        scale: str = "none",
        tol: float = 1e-7,
        max_iter: int = 500,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.extended = extended
        self.noise = noise
        self.n_init = n_init
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "ica"

    def _checked_components(self):
        q = self.n_components
        return q if isinstance(q, str) and q == "auto" else super()._checked_components()

    def _family_options(self):
        options = {"method": self.method, "noise": bool(self.noise), "starts": whole("n_init", self.n_init)}
        return options if self.method == "fastica" else {**options, "extended": bool(self.extended)}

    @classmethod
    def _of(cls, model, **parameters):
        estimator = super()._of(model, **parameters)
        details = estimator._details()
        estimator.method = details.get("method", estimator.method)
        estimator.n_init = details.get("starts", estimator.n_init)
        estimator.noise = estimator.noise_variance_ > 0 or estimator.n_components_ == estimator.n_features_in_
        return estimator

    @classmethod
    def from_parameters(cls, *, mean: Any, mixing: Any, noise_variance: Any) -> Self:
        """A fitted model from given numbers.

        Parameters
        ----------
        mean : array-like of shape (p,)
        mixing : array-like of shape (p, q)
        noise_variance : float or array-like of shape (p,)
            The same for every feature, or one for each.

        Returns
        -------
        ICA

        Examples
        --------
        >>> from covary import ICA
        >>> model = ICA.from_parameters(mean=[0, 0], mixing=[[1, 1], [0, 2]], noise_variance=0)
        >>> model.transform([[3.0, 2.0]])
        array([[2., 1.]])
        """
        mean, mixing = (numbers(given) for given in (mean, mixing))
        noise = np.atleast_1d(numbers(noise_variance))
        return cls._of(_covary.Model.given_ica(mean, mixing, noise))
