"""Gaussian process latent variable models: curved surfaces in place of planes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from covary import _covary
from covary._estimator import Estimator, learned, table
from covary._frames import as_asked, feature_names
from covary._input import filled, rows_of, whole
from covary._questions import DecoderQuestions, DensityQuestions
from covary._types import Answer, Components, Floats, Seed, Table


class GPLVM(DecoderQuestions, Estimator):
    """Gaussian process latent variable model: nonlinear PCA with a probability model.

    Each row has a position x ~ N(0, I) in `n_components` dimensions, and each feature is a smooth function of the
    position with a Gaussian process prior, plus noise. With a linear kernel that is probabilistic PCA; with the rbf
    kernel the rows lie on a curved surface. The Bayesian method [TL10]_ keeps a distribution of each position and
    finds by itself which dimensions matter; missing values are left out of the bound, cell by cell.

    Parameters
    ----------
    n_components : int
        Latent dimensions. The Bayesian method may have more than are needed: `relevance_` says which matter.
    kernel : {"rbf", "linear"}
        Curved surfaces with a relevance for each dimension, or planes.
    method : {"bayes", "map"}
        "bayes" maximises a lower bound on the evidence, for any number of rows. "map" finds the most probable
        positions exactly [L05]_, in time n³, for at most 2000 complete rows; with the linear kernel that is dual PPCA, in
        closed form.
    n_inducing : int
        Points in the latent space that stand for the surface, at most as many as rows; of the rbf kernel with "bayes".
        More follow the surface more closely, in time that grows with their square.
    init : {"ppca"}
        Where positions start: at the whitened coordinates of probabilistic PCA.
    n_init : int
        From how many random choices of inducing points the bound is climbed: each goes 100 steps, and the best goes on.
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit: nothing, its standard deviation, the square root of that, or its
        range. One noise variance serves all features, so choose "unit" where units differ. Every answer is in the units
        of the data.
    tol : float
        Where the search ends: mean gain of the last ten steps, per observed cell.
    max_iter : int
        Limit on the steps; reaching it gives a ``ConvergenceWarning``.
    random_state : int, RandomState or None
        Seed of the choice of inducing points.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it, to the last bit.
    verbose : bool
        Show progress.

    Attributes
    ----------
    latent_mean_, latent_variance_ : ndarray of shape (n, q)
        Positions of the rows of the fit, dimensions in descending relevance. Variances are 0 with "map".
    relevance_ : ndarray of shape (q,)
        Relevance of each dimension relative to the largest: how fast the surface bends along it, times the variance of
        the positions. Weight dimensions by its square root to compare positions.
    kernel_relevance_ : ndarray of shape (q,)
        α of the kernel.
    inducing_ : ndarray of shape (M, q)
        The points that stand for the surface.
    mean_ : ndarray of shape (p,)
    noise_variance_ : float or ndarray of shape (p,)
        Of a cell: one number unless features were scaled.
    lower_bound_ : float
        What was maximised: the lower bound on the log evidence; with "map" the log posterior of the positions, or of dual
        PPCA the log-likelihood of the columns.
    n_components_, n_iter_ : int
    converged_ : bool
    report_ : dict
        How the fit went; ``report_["gplvm"]`` has `divergence`, the nats per row that each dimension carries.
    log_likelihood_ : float
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)

    Notes
    -----
    A new row is placed by maximising the bound over its own position, from the rows of the fit that are nearest to it in
    the cells that it has; `place` also says where two places explain a row about as well. `transform` gives the mean of
    its position; the covariance of `posterior` is diagonal, because the bound takes coordinates as independent.

    References
    ----------
    .. [L05] N. Lawrence (2005). Probabilistic non-linear principal component analysis with Gaussian process latent
       variable models. Journal of Machine Learning Research 6.
    .. [TL10] M. Titsias & N. Lawrence (2010). Bayesian Gaussian process latent variable model. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import GPLVM
    >>> t = np.linspace(-2, 2, 60)
    >>> X = np.column_stack([t, np.sin(2 * t), np.cos(2 * t)]) + 0.02 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = GPLVM(1, n_inducing=12).fit(X)
    >>> z = model.latent_mean_[:, 0]
    >>> bool(abs(np.corrcoef(z, t)[0, 1]) > 0.95)
    True
    >>> x = X[30].copy()
    >>> x[1] = np.nan
    >>> bool(abs(model.impute([x])[0, 1] - X[30, 1]) < 0.1)
    True
    """

    def __init__(
        self,
        n_components: Components = 2,
        *,
        kernel: Any = "rbf",
        method: Any = "bayes",
        n_inducing: int = 50,
        init: Any = "ppca",
        n_init: int = 1,
        scale: str = "none",
        tol: float = 1e-5,
        max_iter: int = 1000,
        random_state: Seed = 0,
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.method = method
        self.n_inducing = n_inducing
        self.init = init
        self.n_init = n_init
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    _kind = "gplvm"

    latent_mean_: Floats = table("latent_mean", "ndarray of shape (n, q): means of the positions of the rows of the fit.")
    latent_variance_: Floats = table("latent_variance", "ndarray of shape (n, q): variances of those positions.")
    relevance_: Floats = table("relevance", "ndarray of shape (q,): relevance of each dimension relative to the largest.")
    kernel_relevance_: Floats = table("kernel_relevance", "ndarray of shape (q,): α of the kernel.")
    inducing_: Floats = table("inducing", "ndarray of shape (M, q): the points that stand for the surface.")
    mean_: Floats = table("mean", "ndarray of shape (p,): what is taken off each feature.")
    _noise_variances = table("noise_variances", "ndarray of shape (p,): noise variance of each feature.")
    n_components_: int = learned("n_components", "int: number of latent dimensions, q.")
    scale_: Floats | None = learned("scale", "ndarray of shape (p,) or None: what each feature was divided by before the fit.")

    @property
    def noise_variance_(self) -> float | Floats:
        """float or ndarray of shape (p,): noise variance of a cell; one for each feature where they were scaled."""
        each = self._noise_variances
        return each if self.scale_ is not None else float(each[0])

    @property
    def lower_bound_(self) -> float:
        """float: what was maximised."""
        return self._report()["gplvm"]["objective"]

    def _request(self, rows):
        if self.init != "ppca":
            raise ValueError(f"init={self.init!r} must be 'ppca'")
        whole("n_components", self.n_components)
        return _covary.Request(
            self._kind,
            self.n_components,
            **self._search_options(),
            method=self.method,
            kernel=self.kernel,
            n_inducing=whole("n_inducing", self.n_inducing),
            starts=whole("n_init", self.n_init),
        )

    @classmethod
    def _of(cls, model, **parameters):
        estimator = super()._of(model, **parameters)
        details = estimator._report().get("gplvm") or {}
        estimator.method = details.get("method", estimator.method)
        estimator.kernel = details.get("kernel", estimator.kernel)
        estimator.n_inducing = details.get("inducing", estimator.n_inducing)
        return estimator

    def place(self, X: Table) -> dict[str, Any]:
        """Positions of rows, how sure they are, and whether another place explains a row about as well.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        dict of ndarrays
            `mean` and `variance` of shape (n, q); `bound` of shape (n,), a lower bound on the log density of the observed
            cells; `ambiguous` of shape (n,), bool: a second place, found from another start far away, has a bound that
            is less than 3 below.
        """
        model = self._fitted()
        found = model.place(rows_of(self, X), self.n_threads)
        return dict(zip(("mean", "variance", "bound", "ambiguous"), found))

    def inverse_transform(self, Z: Table, return_std: bool = False) -> Answer:
        """Rows that positions stand for.

        Parameters
        ----------
        Z : array-like of shape (n, q)
        return_std : bool
            Also give the standard deviation of a new cell there: of what is not known of the surface, and noise.

        Returns
        -------
        ndarray of shape (n, p), or two of them; the frames that `set_output` asks for
        """
        model = self._fitted()
        latent = check_array(filled(Z), dtype=[np.float64, np.float32], input_name="Z")
        names = feature_names(self)
        if return_std:
            found = model.inverse_transform_with_std(latent.astype(np.float64), self.n_threads)
            return tuple(as_asked(self, table, Z, names) for table in found)
        rows = model.inverse_transform(latent.astype(np.float64), False, latent.dtype == np.float32, self.n_threads)
        return as_asked(self, rows, Z, names)

    reconstruct = DensityQuestions.reconstruct
    predict_cells = DensityQuestions.predict_cells
    sample = DensityQuestions.sample
