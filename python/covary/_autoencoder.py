"""Autoassociative networks (autoencoders)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from covary import _covary
from covary._estimator import Estimator, learned, table
from covary._frames import columns_as_asked, in_features
from covary._input import is_single, real, rows_of, whole
from covary._questions import DecoderQuestions
from covary._types import Answer, Components, Floats, Seed, Table


class Autoencoder(DecoderQuestions, Estimator):
    """Autoassociative network (autoencoder): latent variables along a surface that may be bent.

    A decoder x̂ = μ + Wz + f(z) whose tanh units f bend the plane of PCA, and an encoder z = Vx + g(x). The network
    starts as PCA and its objective only falls from there, so that it explains at least what PCA does. Missing values
    need no imputation: rows with missing cells are fitted without an encoder (nonlinear PPCA), and `impute` fills them
    along the surface, with deviations.

    Parameters
    ----------
    n_components : int or float
        Number of latent variables, below the number of features; a fraction in (0, 1) takes as many as PCA needs for
        that share of the variance.
    hidden : int or "auto"
        Hidden units of the encoder and of the decoder; by default √n, between 2 and 50.
    activation : {"tanh", "linear"}
        "linear" has no hidden units and is PCA.
    encoder : bool
        Without one the latent variables of each row are searched, and the objective is the log-likelihood of the
        observed cells by Laplace's approximation. Always so where cells are missing.
    alpha : float
        Decay of the weights towards those of PCA. It has no unit.
    early_stopping : bool or "auto"
        Hide a tenth of the rows (without an encoder: of the cells) from the fit where there are at least a hundred
        rows, end when they are predicted no better, and keep the network that predicted them best. "auto" does so where
        there is an encoder.
    solver : {"auto", "lbfgs", "adam"}
        All rows at once, or batches of them; "auto" takes batches where rows times weights exceed 1e8.
    scale : {"none", "unit", "pareto", "range"}
        What features are divided by before the fit: "unit" for features of different kinds. All answers are in the
        units of the data.
    tol : float
        The fit has converged when ten steps together lower the objective by less than this share of it (without an
        encoder: nats for each cell).
    max_iter : int
        Limit on the steps; reaching it gives a ``ConvergenceWarning``.
    random_state : int, RandomState or None
        Seed of the inner weights, and of what is hidden.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    loss_curve_ : ndarray of shape (steps,)
        The objective after each step.
    explained_variance_ : ndarray of shape (q,)
        What each latent variable explains: of a linear network the eigenvalues of the covariance, divisor n.
    explained_ : float
        Share of the variance that reconstructions of the rows of the fit hold (R²); `explained_by_pca_` that of PCA.
    hidden_error_ : tuple or None
        Root mean squared error of the part that was hidden from the fit, by PCA and by the network.
    noise_variance_ : float
        σ², the variance of a cell around the surface; of the scaled features where they were.
    mean_ : ndarray of shape (p,)
    n_components_ : int
    n_iter_ : int
    converged_ : bool
    explained_by_pca_ : float
    explained_variance_ratio_ : ndarray of shape (q,)
    log_likelihood_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
    report_ : dict

    Notes
    -----
    Coordinates have mean 0 and covariance I over complete rows, stand in descending order of what they explain, and the
    largest entry of the mean slope of each is positive. A bent surface has no single most probable place for a row:
    searches begin at several, and the best wins. `transform` gives the coordinates of the encoder, and the most probable
    ones where there is none or cells are missing; `posterior` is Laplace's approximation.

    References
    ----------
    .. [K91] M. A. Kramer (1991). Nonlinear principal component analysis using autoassociative neural networks. AIChE
       Journal 37.
    .. [BH89] P. Baldi & K. Hornik (1989). Neural networks and principal component analysis. Neural Networks 2.
    .. [SKGKS05] M. Scholz, F. Kaplan, C. L. Guy, J. Kopka & J. Selbig (2005). Non-linear PCA: a missing data
       approach. Bioinformatics 21.

    Examples
    --------
    Most of a circle: one number tells where a row is, but not along a line.

    >>> import numpy as np
    >>> from covary import Autoencoder
    >>> angle = np.linspace(0, 5, 300)
    >>> X = np.c_[np.cos(angle), np.sin(angle)]
    >>> model = Autoencoder(1).fit(X)
    >>> bool(model.explained_ > 0.95 > model.explained_by_pca_)
    True

    Missing values are filled along the curve:

    >>> bool(abs(model.impute([[np.cos(2.5), np.nan]])[0, 1] - np.sin(2.5)) < 0.2)
    True

    Rows that lie off the curve are new:

    >>> spe = model.outliers([[1.0, 0.0], [0.0, 0.0]])["spe"]
    >>> bool(spe[1] > 10 * spe[0])
    True
    """

    _kind = "autoencoder"

    explained_variance_: Floats = learned("explained_variance", "ndarray of shape (q,): what each latent variable explains.")
    explained_variance_ratio_: Floats = learned(
        "explained_variance_ratio", "ndarray of shape (q,): its share of the total variance."
    )
    n_components_: int = learned("n_components", "int: number of latent variables, q.")
    mean_: Floats = table("mean", "ndarray of shape (p,): mean of the features.")
    _noise = table("noise", "ndarray of shape (1,): the noise variance.")

    def __init__(
        self,
        n_components: Components = 2,
        *,
        hidden: Any = "auto",
        activation: Any = "tanh",
        encoder: bool = True,
        alpha: float = 1e-3,
        early_stopping: Any = "auto",
        solver: str = "auto",
        scale: str = "none",
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.activation = activation
        self.encoder = encoder
        self.alpha = alpha
        self.early_stopping = early_stopping
        self.solver = solver
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    # -- fitting ---------------------------------------------------------------------------------------------

    def _request(self, seen):
        return _covary.Request(
            self._kind,
            self._components(),
            hidden=None if isinstance(self.hidden, str) and self.hidden == "auto" else whole("hidden", self.hidden),
            activation=self._one_of("activation", ("tanh", "linear")),
            encoder=bool(self.encoder),
            alpha=real("alpha", self.alpha),
            early_stopping=None if self.early_stopping == "auto" else bool(self.early_stopping),
            solver=self._one_of("solver", ("auto", "lbfgs", "adam")),
            **{**self._search_options(), "tolerance": real("tol", self.tol)},
        )

    def _components(self):
        q = self.n_components
        if isinstance(q, str) and q == "auto":
            return "auto"
        if isinstance(q, Integral) and not isinstance(q, bool) and q >= 1:
            return int(q)
        if isinstance(q, Real) and not isinstance(q, Integral) and 0.0 < q < 1.0:
            return float(q)
        raise ValueError(
            f"n_components={q!r} must be a whole number of at least 1, a fraction of the variance in (0, 1) or 'auto'"
        )

    @classmethod
    def _constructor_of(cls, model):
        report = model.report.get("network") or {}
        known = {name: report[name] for name in ("activation", "encoder", "alpha") if name in report}
        hidden = {"hidden": report["hidden"]} if report.get("hidden") else {}
        return {"n_components": model.n_components, **hidden, **known}

    # -- numbers ---------------------------------------------------------------------------------------------

    def _network(self):
        return self._report().get("network") or {}

    @property
    def loss_curve_(self) -> Floats:
        """ndarray of shape (steps,): the objective after each step."""
        return np.array(self._report()["trace"])

    @property
    def explained_(self) -> float:
        """float: share of the variance that reconstructions hold (R²)."""
        return self._network()["explained"]

    @property
    def explained_by_pca_(self) -> float:
        """float: the same of PCA with as many components."""
        return self._network()["explained_by_pca"]

    @property
    def hidden_error_(self) -> tuple[Any, ...] | None:
        """tuple or None: root mean squared error of the hidden part, by PCA and by the network."""
        found = self._network().get("hidden_error")
        return None if found is None else tuple(found)

    @property
    def noise_variance_(self) -> float:
        """float: σ²."""
        return float(self._noise[0])

    # -- questions -------------------------------------------------------------------------------------------

    def reconstruct(self, X: Table) -> Answer:
        """Each row rebuilt from its latent coordinates, the missing cells too.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, p), or a data frame where X is one
        """
        model, rows = self._fitted(), rows_of(self, X)
        return in_features(self, model.reconstruct(rows, "orthogonal", is_single(X, rows), self.n_threads), X)

    def outliers(self, X: Table) -> Answer:
        """How far each row lies from the surface, by its observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        dict of ndarrays of shape (n,), or the frame that `set_output` asks for
            `spe`: squared error of the reconstruction, of the scaled features where they were.
        """
        return columns_as_asked(self, {"spe": self._novelty(X)}, X)

    def _novelty(self, X):
        return self._fitted().novelty(rows_of(self, X), self.n_threads)

    def score_samples(self, X: Table) -> Floats:
        """Minus the squared error of the reconstruction of each row: the larger, the more the row is like those of the
        fit.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n,)
        """
        return -self._novelty(X)

    def score(self, X: Table, y: Any = None) -> float:
        """Minus the mean squared error of the reconstruction of rows: what cross-validation compares.

        Parameters
        ----------
        X : as for `fit`
        y : ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))
