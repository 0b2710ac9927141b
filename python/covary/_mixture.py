"""Mixtures of PPCA and of factor analysers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import DensityMixin

from covary import _covary
from covary._estimator import Estimator, table
from covary._frames import as_asked
from covary._input import numbers, rows_of, weights_of, whole
from covary._questions import DensityQuestions
from covary._steps import Steps
from covary._types import Answer, Components, Floats, Integers, Seed, Self, Table, Weights

if TYPE_CHECKING:
    from covary._ppca import PPCA

_RANDOM_STARTS = 50


class MixturePPCA(Steps, DensityQuestions, DensityMixin, Estimator):
    """A mixture of probabilistic PCA, or of factor analysers, by maximum likelihood.

    Each row belongs to one of K groups, and within its group it is explained by q latent variables and noise:
    p(x) = Σ πₖ N(x | μₖ, Wₖ Wₖᵀ + Ψₖ) [TB99b]_ [GH96]_. With q = 0 the groups are spheres, with q = p - 1
    they have any covariance, as in scikit-learn's ``GaussianMixture``. Rows may have missing values (NaN):
    the likelihood is that of the observed cells.

    Groups that lie apart are found from clusters of the rows. Otherwise the number of groups grows one by one: each
    group is split along its leading axes, short runs show which split is best, and at the end groups are split and
    merged as long as that gains. So the result hardly depends on chance. A prior that counts as one row keeps groups from shrinking onto a few rows.

    Parameters
    ----------
    n_components : int, pair of int or "auto"
        Number of groups K; or the fewest and the most, of which BIC chooses; "auto" is (1, 10).
    n_latent : int, "auto" or None
        Number of latent variables q of each group; None is 2, or less where there are fewer features.
        "auto" chooses it by BIC, and then for each group by itself.
    noise : {"isotropic", "diagonal"}
        Noise of the same variance in every feature, as PPCA has it, or of one for each, as factor analysis
        has it.
    shared_noise : bool
        Whether the noise is the same in all groups.
    prior : "auto", float or None
        How many rows the prior counts as in each group; "auto" is 1. None is maximum likelihood alone, where
        a group that shrinks onto a few rows is an error.
    method : {"em", "vb"}
        Maximum likelihood by EM: K groups with q latent variables each. Or variational Bayes [GB00]_: means,
        loadings and noises have distributions, and the highest lower bound on the evidence decides how many
        groups and latent variables are kept. `n_components` and `n_latent` are then the most, and None for
        `n_latent` is as many as the rows allow, up to 12. The noise is isotropic, of each group its own, and
        every answer includes how well the parameters are known.
    init : {"k-means++", "random"}, MixturePPCA or dict
        Where groups come from: growing, with clusters of k-means as further starts; "random" adds short runs from
        random rows as a second opinion, of which the best is kept where it is better. Or a fitted mixture, or the
        arguments of `from_parameters`, where the fit then starts instead of growing.
    n_init : int or "auto"
        Number of those random runs; "auto" is none, and 50 where `init` is "random". Where the best optimum is
        rare, more of them find it more often.
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit. Every answer is in the units of the data.
    tol : float
        Nats per row of the objective that may be left to gain.
    max_iter : int
        Limit on the iterations of the last run; reaching it gives a ``ConvergenceWarning``.
    random_state : int, RandomState or None
        Seed of clusters, of random starts, and of the sample on which groups are looked for where rows are very
        many.
    warm_start : bool
        Whether `fit` starts from the groups of the fit before, if there is one, instead of `init`.
    n_threads : int or None
        As in :class:`PPCA`.
    verbose : bool
        Show progress.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Shares of the groups, largest first.
    means_ : ndarray of shape (K, p)
    loadings_ : ndarray of shape (K, p, q)
        W of each group; columns beyond a group's own number of latent variables are 0.
    noise_variance_ : ndarray of shape (K,) or (K, p)
        With ``method="vb"`` what is not known of means and loadings is part of it.
    n_latent_ : ndarray of shape (K,)
    n_components_ : int
    elbo_ : float
        The lower bound on the log evidence, of ``method="vb"``.
    bic_, aic_, icl_ : float
        Information criteria of the rows of the fit; smaller is better. After `partial_fit` estimates, from the log
        densities of the batches.
    log_likelihood_ : float
    n_iter_ : int
    converged_ : bool
    report_ : dict
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        When the rows had names.

    References
    ----------
    .. [TB99b] M. E. Tipping & C. M. Bishop (1999). Mixtures of probabilistic principal component analyzers.
       Neural Computation 11.
    .. [GH96] Z. Ghahramani & G. E. Hinton (1996). The EM algorithm for mixtures of factor analyzers.
       University of Toronto, CRG-TR-96-1.
    .. [GB00] Z. Ghahramani & M. J. Beal (2000). Variational inference for Bayesian mixtures of factor
       analysers. Advances in Neural Information Processing Systems 12.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import MixturePPCA
    >>> rng = np.random.default_rng(1)
    >>> groups = [rng.normal(size=(200, 1)) @ rng.normal(size=(1, 5)) + shift for shift in (0.0, 4.0)]
    >>> X = np.concatenate(groups) + 0.3 * rng.normal(size=(400, 5))
    >>> model = MixturePPCA(2, 1).fit(X)
    >>> model.weights_.round(2)
    array([0.5, 0.5])
    >>> bool(np.all(np.bincount(model.predict(X)) == 200))
    True

    Missing values are imputed by each group, as far as the row may belong to it:

    >>> Y = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled, std = MixturePPCA(2, 1).fit(Y).impute(Y, return_std=True)
    >>> missing = np.isnan(Y)
    >>> bool(np.mean(np.abs(filled - X)[missing] < 1.96 * std[missing]) > 0.9)
    True

    Variational Bayes finds out how many groups and latent variables there are:

    >>> model = MixturePPCA(6, method="vb").fit(Y)
    >>> model.n_components_, model.n_latent_
    (2, array([1, 1]))
    """

    def __init__(
        self,
        n_components: Components = 1,
        n_latent: Any = None,
        *,
        noise: Any = "isotropic",
        shared_noise: bool = False,
        prior: Any = "auto",
        method: Any = "em",
        init: Any = "k-means++",
        n_init: Any = "auto",
        scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 500,
        random_state: Seed = 0,
        warm_start: bool = False,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_latent = n_latent
        self.noise = noise
        self.shared_noise = shared_noise
        self.prior = prior
        self.method = method
        self.init = init
        self.n_init = n_init
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "mixture"

    weights_: Floats = table("weights", "ndarray of shape (K,): shares of the groups.")
    means_: Floats = table("means", "ndarray of shape (K, p): means of the groups.")
    loadings_: Floats = table("group_loadings", "ndarray of shape (K, p, q): W of each group.")
    noise_variance_: Floats = table("group_noise_variance", "ndarray of shape (K,) or (K, p): noise of each group.")
    n_latent_: Integers = table("group_latent", "ndarray of shape (K,): latent variables of each group.")

    @property
    def n_components_(self) -> int:
        """int: number of groups, K."""
        return len(self.weights_)

    @property
    def _n_features_out(self):
        return self._fitted().n_components

    @property
    def bic_(self) -> float:
        """float: Bayesian information criterion of the rows of the fit, -2 log-likelihood + parameters · log n."""
        return self._criterion("bic")

    @property
    def aic_(self) -> float:
        """float: Akaike's information criterion of the rows of the fit."""
        return self._criterion("aic")

    @property
    def icl_(self) -> float:
        """float: integrated completed likelihood of the rows of the fit, BIC + 2 · entropy of the groups."""
        return self._criterion("icl")

    @property
    def elbo_(self) -> float:
        """float: the lower bound on the log evidence, of method="vb"."""
        found = (self._report().get("mixture") or {}).get("variational")
        if found is None:
            raise AttributeError("elbo_ is for method='vb': maximum likelihood has no bound")
        return found["bound"]

    def _criterion(self, name):
        found = self._report().get("mixture")
        if found is None:
            raise AttributeError("the parameters were given, so there are no rows that a criterion could be of")
        return found[name]

    # -- what is asked of the core ---------------------------------------------------------------------------

    def _request(self, seen):
        return _covary.Request(
            self._kind,
            self._latent(seen),
            **self._search_options(),
            start=self._start(),
            groups=self._groups(),
            noise=self.noise,
            shared_noise=bool(self.shared_noise),
            prior=self._prior(),
            method=self.method,
            random_starts=self._random_starts(),
        )

    def _start(self):
        """The model that a fit starts from, if there is one."""
        before = self.__dict__.get("_model") if self.warm_start else None
        if before is not None or (isinstance(self.init, str) and self.init in ("k-means++", "auto", "random")):
            return before
        if isinstance(self.init, MixturePPCA):
            return self.init._fitted()
        if isinstance(self.init, dict):
            return type(self).from_parameters(**self.init)._fitted()
        return self._refused("init", self.init)

    def _random_starts(self):
        if isinstance(self.n_init, str) and self.n_init == "auto":
            return _RANDOM_STARTS if isinstance(self.init, str) and self.init == "random" else 0
        if not isinstance(self.n_init, Integral) or isinstance(self.n_init, bool) or self.n_init < 0:
            return self._refused("n_init", self.n_init)
        return int(self.n_init)

    def _groups(self):
        wanted = self.n_components
        if isinstance(wanted, str) and wanted == "auto":
            return (1, 10)
        if isinstance(wanted, Integral):
            return whole("n_components", wanted) if wanted > 0 else self._refused("n_components", wanted)
        if isinstance(wanted, tuple | list) and len(wanted) == 2 and all(isinstance(k, Integral) for k in wanted):
            fewest, most = wanted
            allowed = 0 < fewest <= most
            return tuple(whole("n_components", k) for k in wanted) if allowed else self._refused("n_components", wanted)
        return self._refused("n_components", wanted)

    def _latent(self, seen):
        wanted = self.n_latent
        if wanted is None:
            return "all"
        if isinstance(wanted, str) and wanted == "auto":
            return "auto"
        if not isinstance(wanted, Integral) or wanted < 0:
            return self._refused("n_latent", wanted)
        if seen is not None and wanted >= seen.n_features:
            raise ValueError(
                f"n_latent={wanted} must be below the number of features, and there are n_features = {seen.n_features}"
            )
        return int(wanted)

    def _prior(self):
        if self.prior is None:
            return 0.0
        if isinstance(self.prior, str) and self.prior == "auto":
            return None
        if isinstance(self.prior, Real) and self.prior > 0:
            return float(self.prior)
        return self._refused("prior", self.prior)

    @staticmethod
    def _refused(name, value):
        allowed = {
            "n_components": "a whole number of at least 1, a pair of the fewest and the most, or 'auto'",
            "n_latent": "a whole number, 'auto' or None",
            "prior": "a positive number of rows, 'auto' or None",
            "init": "'k-means++', 'random', a fitted MixturePPCA or a dict of its parameters",
            "n_init": "'auto' or a number of random starts",
        }
        raise ValueError(f"{name}={value!r} must be {allowed[name]}")

    @classmethod
    def _constructor_of(cls, model):
        tables = model.tables()
        found = model.report.get("mixture") or {}
        variational = found.get("variational") is not None
        diagonal = tables["group_noise_variance"].ndim == 2 and not variational
        return {
            "n_components": len(tables["weights"]),
            "n_latent": model.n_components,
            "noise": "diagonal" if diagonal else "isotropic",
            "shared_noise": found.get("shared_noise", False),
            "method": "vb" if variational else "em",
        }

    # -- groups ----------------------------------------------------------------------------------------------

    def predict(self, X: Table) -> Integers:
        """The most probable group of each row, by its observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of int of shape (n,)
            Counted from 0, in the order of `weights_`. A row without any cell belongs to the largest group.
        """
        model = self._fitted()
        return model.assign(rows_of(self, X), self.n_threads)

    def predict_proba(self, X: Table) -> Answer:
        """The probability of each group for each row, by its observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, K), or the frame that `set_output` asks for, with columns group0, group1, …
        """
        found = self._probabilities(X)
        return as_asked(self, found, X, [f"group{k}" for k in range(found.shape[1])])

    def _probabilities(self, X):
        return self._fitted().probabilities(rows_of(self, X), self.n_threads)

    def fit_predict(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Integers:
        """Fit the model, and give the most probable group of each row.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ndarray of int of shape (n,)
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def posterior(self, X: Table) -> tuple[Floats, Floats, Floats]:
        """Probability of each group and, given the group, mean and covariance of the latent variables.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        probabilities : ndarray of shape (n, K)
        mean : ndarray of shape (n, K, q)
        covariance : list of K ndarrays of shape (q, q), or (n, q, q) when rows have missing values
        """
        model = self._fitted()
        return model.mixture_posterior(rows_of(self, X), self.n_threads)

    def component(self, k: Any) -> PPCA:
        """A group as a model of its own.

        Parameters
        ----------
        k : int
            Which, counted from 0.

        Returns
        -------
        PPCA
            Fitted; with a noise variance for each feature where the noise is diagonal.
        """
        from covary._ppca import PPCA

        return PPCA._of(self._fitted().component(whole("k", k)), n_threads=self.n_threads)

    def bic(self, X: Table, sample_weight: Weights = None) -> float:
        """Bayesian information criterion of rows: -2 log-likelihood + parameters · log n; smaller is better.

        Parameters
        ----------
        X : as for `fit`
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        likelihood, n = self._likelihood(X, sample_weight)
        return -2 * likelihood + self._n_parameters() * np.log(n)

    def aic(self, X: Table, sample_weight: Weights = None) -> float:
        """Akaike's information criterion of rows: -2 log-likelihood + 2 · parameters; smaller is better.

        Parameters
        ----------
        X : as for `fit`
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        return -2 * self._likelihood(X, sample_weight)[0] + 2 * self._n_parameters()

    def icl(self, X: Table, sample_weight: Weights = None) -> float:
        """Integrated completed likelihood of rows: BIC + 2 · entropy of their groups; smaller is better.

        Parameters
        ----------
        X : as for `fit`
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        p = self._probabilities(X)
        entropy = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=1)
        weights = weights_of(sample_weight, len(p))
        return self.bic(X, sample_weight) + 2 * float(np.sum(entropy if weights is None else weights * entropy))

    def _likelihood(self, X, sample_weight):
        scores = self.score_samples(X)
        weights = weights_of(sample_weight, len(scores))
        weights = np.ones(len(scores)) if weights is None else weights
        return float(np.sum(weights * scores)), float(np.sum(weights))

    def _n_parameters(self):
        found = self._report().get("mixture")
        if found is not None:
            return found["parameters"]
        k, p = self.means_.shape
        loadings = sum(p * q - q * (q - 1) // 2 for q in self.n_latent_.tolist())
        noises = 1 if self.noise_variance_.ndim == 1 else p
        return k - 1 + k * p + loadings + noises * k

    @classmethod
    def from_parameters(cls, *, weights: Any, means: Any, loadings: Any, noise_variance: Any) -> Self:
        """A fitted mixture from given numbers.

        Parameters
        ----------
        weights : array-like of shape (K,)
            Made to add up to 1.
        means : array-like of shape (K, p)
        loadings : array-like of shape (K, p, q)
        noise_variance : array-like of shape (K,) or (K, p)

        Returns
        -------
        MixturePPCA

        Examples
        --------
        >>> from covary import MixturePPCA
        >>> model = MixturePPCA.from_parameters(
        ...     weights=[3, 1], means=[[0, 0], [5, 5]], loadings=[[[1], [0]], [[0], [1]]], noise_variance=[1, 1]
        ... )
        >>> model.predict([[0.1, 0.2], [5.0, 4.0]])
        array([0, 1])
        """
        noise = numbers(noise_variance)
        noise = noise[:, np.newaxis] if noise.ndim == 1 else noise
        arrays = [numbers(given) for given in (weights, means, loadings)]
        return cls._of(_covary.Model.given_mixture(*arrays, noise))
