"""Kernel PCA under scikit-learn's names."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_array, validate_data

from covary import _covary
from covary._estimator import Estimator, learned, table
from covary._frames import as_asked, feature_names, in_features
from covary._input import filled, fixed_seed_of, is_single, real, rows_of, weights_of, whole
from covary._types import Answer, Components, Floats, Seed, Self, Table, Weights

# scikit-learn's names for what the core calls otherwise.
_SOLVERS = {"dense": "dual", "arpack": "krylov", "randomized": "krylov"}


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Kernel principal component analysis: a drop-in replacement for scikit-learn's `KernelPCA`.

    Principal components in the feature space of a kernel [SSM98]_. Constructor, attributes and meanings are
    scikit-learn's. What is added: landmarks, with which any number of rows and files larger than memory can be
    fitted; weights; the "laplacian" kernel; the share of the variance that components explain; novelty of rows;
    and pre-images by a fixed point that do not lose the mean.

    Parameters
    ----------
    n_components : int, float in (0, 1), "auto" or None
        How many components; or the share of the variance in the feature space that they should explain; or all
        of variance above 0. With "auto" their number and, unless `gamma` is given, the width of the kernel are chosen by
        kernel parallel analysis (:func:`covary.select` with ``model="kpca"``).
    kernel : {"linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "precomputed"} or callable
        How alike two rows are. A function is called with two rows and `kernel_params`; with "precomputed", X holds
        the kernel values of rows with each other, and in `transform` those of new rows with the rows of the fit.
    gamma : float, optional
        Factor in "rbf", "laplacian", "poly" and "sigmoid"; 1/p by default.
    degree : int
        Of "poly".
    coef0 : float
        Constant of "poly" and "sigmoid".
    kernel_params : dict, optional
        Of a function.
    alpha : float
        Ridge of the regression from coordinates to rows.
    fit_inverse_transform : bool
        Whether `inverse_transform` is wanted. Not for "precomputed", nor for functions.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}
        "dense" decomposes the whole kernel matrix. "arpack" and "randomized" both mean block Krylov iteration, which is as
        accurate; "auto" takes it where few components are wanted.
    tol, max_iter, iterated_power
        Ignored: the iteration goes on until eigenvectors are found to rounding.
    remove_zero_eig : bool
        Whether components of no variance are left out where `n_components` asks for more than there are.
    random_state : int, RandomState or None
        Seed of the random start, and of the landmarks.
    copy_X : bool
        Ignored: X is never changed.
    n_jobs : int or None
        Used for functions only.
    n_landmarks : int, optional
        Use so many landmarks in place of all rows. By default all rows are used while their kernel matrix fits in
        memory, and landmarks beyond.
    landmarks : {"pivoted", "k-means"} or array-like of shape (m, p)
        Drawn by randomly pivoted Cholesky [CETW24]_, centres of clusters, or given.
    inverse : {"fixed-point", "ridge"}
        How rows are found from coordinates: by Mika's fixed point [MSS98]_, which starts from the regression (kernel
        "rbf"; other kernels have the regression alone; `reconstruct` starts from the row itself), or by the regression. With kernel "linear" both are PCA's
        reconstruction.
    n_threads : int or None
        All cores by default. Results do not depend on it.
    verbose : bool
        Show progress.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (q,)
        Of the centred kernel matrix, descending. Those of an indefinite kernel may be negative; their components
        have no coordinates.
    eigenvectors_ : ndarray of shape (n, q)
        Of the centred kernel matrix; not with landmarks.
    X_fit_ : ndarray of shape (n, p)
        The rows of the fit; with landmarks those.
    X_transformed_fit_ : ndarray of shape (n, q)
        Their coordinates, with `fit_inverse_transform`.
    dual_coef_ : ndarray of shape (n, p)
        Weights of the regression from coordinates to rows around their mean, with `fit_inverse_transform`.
    gamma_ : float
    explained_variance_ratio_ : ndarray of shape (q,)
        Share of the trace of the centred kernel.
    noise_variance_ : float
        Mean of the eigenvalues that were left out: (trace − kept)/(n − 1 − q).
    landmarks_ : ndarray of shape (m, p) or None
        None when all rows are used.
    approximation_error_ : float
        Share of the trace of the centred kernel that the landmarks leave out; 0 when all rows are used.
    n_components_ : int
    converged_ : bool
    log_likelihood_ : float
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
    report_ : dict

    Notes
    -----
    Rows of the fit, or landmarks, are part of the model, and of its file. `summary` says how large that is.

    Rows may miss cells with the kernels "rbf" and "linear". A Bayesian PCA of the rows then knows the distribution of
    the missing cells, and the image of a row in the feature space is its expectation over it; the number of components
    of that model is in ``report_["kernel"]["filling_components"]``. `X_fit_` has NaN where a cell is missing. A row
    without a cell is no row of the fit, and `transform` gives it the coordinates that are expected of any row. A model
    of complete rows refuses missing cells.

    An indefinite kernel is not refused: its negative eigenvalues are told, in `eigenvalues_` and in
    ``report_["kernel"]["negative"]``.

    References
    ----------
    .. [SSM98] B. Schölkopf, A. Smola & K.-R. Müller (1998). Nonlinear component analysis as a kernel eigenvalue
       problem. Neural Computation 10.
    .. [MSS98] S. Mika, B. Schölkopf, A. Smola, K.-R. Müller, M. Scholz & G. Rätsch (1998). Kernel PCA and de-noising
       in feature spaces. NIPS 11.
    .. [CETW24] Y. Chen, E. N. Epperly, J. A. Tropp & R. J. Webber (2024). Randomly pivoted Cholesky. Comm. Pure
       Appl. Math.

    Examples
    --------
    Two rings that no line tells apart:

    >>> import numpy as np
    >>> from covary import KernelPCA
    >>> angle = np.arange(40) * 0.7
    >>> radius = np.where(np.arange(40) % 2, 2.0, 0.3)
    >>> X = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    >>> kpca = KernelPCA(1, kernel="rbf", gamma=1.0).fit(X)
    >>> z = kpca.transform(X)[:, 0]
    >>> bool(max(z[1::2]) < min(z[::2]) or min(z[1::2]) > max(z[::2]))
    True

    Rows that lie off the rings are new:

    >>> novelty = KernelPCA(12, kernel="rbf", gamma=1.0).fit(X).score_samples([[0.3, 0.0], [4.0, 4.0]])
    >>> bool(novelty[0] < 0.05 < 0.5 < novelty[1])
    True
    """

    _kind = "kpca"

    explained_variance_ratio_: Floats = learned(
        "explained_variance_ratio", "ndarray of shape (q,): share of the trace of the centred kernel."
    )
    n_components_: int = learned("n_components", "int: number of components, q.")

    def __init__(
        self,
        n_components: Components = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: int = 3,
        coef0: int = 1,
        kernel_params: Any = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: Any = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: Any = "auto",
        remove_zero_eig: bool = False,
        random_state: Seed = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        n_landmarks: Any = None,
        landmarks: Any = "pivoted",
        inverse: Any = "fixed-point",
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.inverse = inverse
        self.n_threads = n_threads
        self.verbose = verbose

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Arrow table or :func:`covary.read` of shape (n, p)
            Finite; with the kernels "rbf" and "linear" NaN and masked cells are missing values. With
            ``kernel="precomputed"``, the kernel matrix of shape (n, n).
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        if self.fit_inverse_transform and self._is_matrix():
            given = "precomputed" if self.kernel == "precomputed" else "callable"
            raise ValueError(f"Cannot fit_inverse_transform with a {given} kernel.")
        if not callable(self.kernel):
            self.__dict__.pop("_rows_of_function", None)
            return super().fit(X, sample_weight=sample_weight)
        X = validate_data(self, filled(X), accept_sparse="csr", dtype=[np.float64, np.float32])
        weights = weights_of(sample_weight, X.shape[0])
        matrix = _covary.Rows.dense(self._values(X, X), weights, None)
        self._learn(X, matrix, None)
        self._rows_of_function = X
        return self

    def _is_matrix(self):
        """Whether the core gets kernel values in place of rows."""
        return callable(self.kernel) or self.kernel == "precomputed"

    def _values(self, X, Y):
        """Kernel values of a function."""
        values = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, n_jobs=self.n_jobs, **(self.kernel_params or {}))
        return np.ascontiguousarray(values, dtype=np.float64)

    def _request(self, seen):
        if self.eigen_solver not in ("auto", *_SOLVERS):
            raise ValueError(f"eigen_solver={self.eigen_solver!r} must be 'auto', 'dense', 'arpack' or 'randomized'")
        if self.inverse not in ("fixed-point", "ridge"):
            raise ValueError(f"inverse={self.inverse!r} must be 'fixed-point' or 'ridge'")
        return _covary.Request(
            self._kind,
            self._components(seen),
            kernel="precomputed" if callable(self.kernel) else self.kernel,
            gamma=None if self.gamma is None else real("gamma", self.gamma),
            degree=self._degree(),
            coef0=real("coef0", self.coef0),
            solver=_SOLVERS.get(self.eigen_solver, self.eigen_solver),
            drop_empty=bool(self.remove_zero_eig),
            alpha=real("alpha", self.alpha),
            fixed_point=self.inverse == "fixed-point",
            seed=fixed_seed_of(self.random_state),
            threads=self.n_threads,
            **self._landmark_options(),
        )

    def _components(self, seen):
        q = self.n_components
        if q is None:
            return "all"
        if isinstance(q, str) and q == "auto":
            return "auto"
        if isinstance(q, Integral) and not isinstance(q, bool):
            if q < 1:
                raise ValueError(f"n_components={q} must be at least 1")
            return q if seen is None or seen.n_rows is None else min(int(q), max(seen.n_rows, 1))
        if isinstance(q, Real) and 0.0 < q < 1.0:
            return float(q)
        raise ValueError(f"n_components={q!r} must be a whole number, a fraction of the variance in (0, 1), 'auto' or None")

    def _degree(self):
        degree = self.degree
        if not isinstance(degree, Real) or degree != int(degree) or not 0 <= degree < 2**31:
            raise ValueError(f"degree={degree!r} must be a whole number, at least 1")
        return int(degree)

    def _landmark_options(self):
        if not isinstance(self.landmarks, str):
            points = check_array(filled(self.landmarks), dtype=np.float64, order="C", input_name="landmarks")
            return {"landmarks": points}
        if self.landmarks not in ("pivoted", "k-means"):
            raise ValueError(f"landmarks={self.landmarks!r} must be 'pivoted', 'k-means' or an array")
        if self.n_landmarks is None:
            if self.landmarks == "k-means":
                raise ValueError("landmarks='k-means' needs the number of them: n_landmarks")
            return {}
        return {"n_landmarks": whole("n_landmarks", self.n_landmarks), "centres": self.landmarks == "k-means"}

    @classmethod
    def _constructor_of(cls, model):
        report = model.report.get("kernel") or {}
        known = {name: report[name] for name in ("kernel", "gamma", "degree", "coef0") if report.get(name) is not None}
        alpha = float(model.tables()["alpha"][0])
        back = known.get("kernel") != "precomputed"
        return {"n_components": model.n_components, **known, "alpha": alpha, "fit_inverse_transform": back}

    # -- numbers ---------------------------------------------------------------------------------------------

    @property
    def eigenvalues_(self) -> Floats:
        """ndarray of shape (q,): eigenvalues of the centred kernel matrix."""
        return self._fitted().explained_variance * self._report()["weight"]

    @property
    def eigenvectors_(self) -> Floats:
        """ndarray of shape (n, q): eigenvectors of the centred kernel matrix; not with landmarks."""
        if self.landmarks_ is not None:
            raise AttributeError("landmarks stand for the rows, so there are no eigenvectors of their kernel matrix")
        roots = np.sqrt(self._centre * self._report()["weight"])
        vectors = self._coefficients * np.sqrt(np.maximum(self.eigenvalues_, 0.0))
        return vectors / np.where(roots > 0, roots, 1.0)[:, None]

    @property
    def X_fit_(self) -> Floats:
        """ndarray of shape (n, p): the rows of the fit; with landmarks those."""
        self._fitted()
        if "_rows_of_function" in self.__dict__:
            return self._rows_of_function
        if self.kernel == "precomputed":
            raise AttributeError("a precomputed kernel does not tell the rows, and the model does not keep the matrix")
        return self._points

    @property
    def landmarks_(self) -> Floats | None:
        """ndarray of shape (m, p) or None: the landmarks; None when all rows are used."""
        return None if self._kernel_report().get("landmarks") is None else self._points

    @property
    def approximation_error_(self) -> float:
        """float: share of the trace of the centred kernel that the landmarks leave out; 0 when all rows are used."""
        return self._kernel_report()["left_out"]

    @property
    def gamma_(self) -> float:
        """float: γ of the kernel; 1/p where the kernel has none and nothing was given, as in scikit-learn."""
        if self._kernel_report().get("gamma") is not None:
            return float(self._gamma[0])
        return 1 / self.n_features_in_ if self.gamma is None else self.gamma

    @property
    def noise_variance_(self) -> float:
        """float: mean of the eigenvalues that were left out, (trace − kept)/(n − 1 − q)."""
        return float(self._noise[0])

    @property
    def X_transformed_fit_(self) -> Floats:
        """ndarray of shape (n, q): coordinates of the rows of the fit, or of the landmarks."""
        return self._for_inverse().coordinates_of_points(self.n_threads)

    @property
    def dual_coef_(self) -> Floats:
        """ndarray of shape (n, p): weights of the regression from coordinates to rows around their mean."""
        return self._for_inverse().ridge_weights(self.n_threads)

    _points = table("points", "ndarray of shape (m, p): rows of the fit or landmarks.")
    _coefficients = table("coefficients", "ndarray of shape (m, q): weights of the points in each direction.")
    _centre = table("centre", "ndarray of shape (m,): weights of the points in the mean.")
    _gamma = table("gamma", "ndarray of shape (1,): γ.")
    _noise = table("noise", "ndarray of shape (1,): the noise variance.")

    def _kernel_report(self):
        return self._report().get("kernel") or {}

    @property
    def _n_features_out(self):
        return self.n_components_

    # -- questions -------------------------------------------------------------------------------------------

    def _rows(self, X):
        """Rows as the core gets them: of a function, its values with the rows of the fit."""
        if not callable(self.kernel):
            return rows_of(self, X)
        X = validate_data(self, filled(X), accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return _covary.Rows.dense(self._values(X, self._rows_of_function), None, None)

    def transform(self, X: Table) -> Answer:
        """Coordinates of each row along the components in the feature space.

        Parameters
        ----------
        X : as for `fit`
            With ``kernel="precomputed"``, kernel values with the rows of the fit, of shape (m, n).

        Returns
        -------
        ndarray of shape (n, q)
        """
        model = self._fitted()
        rows = self._rows(X)
        return model.transform(rows, False, is_single(X, rows), self.n_threads)

    def _for_inverse(self):
        model = self._fitted()
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and hence the inverse "
                "transform is not available."
            )
        return model

    def inverse_transform(self, X: Table) -> Answer:
        """Rows whose images in the feature space are near the points with these coordinates (pre-images).

        Parameters
        ----------
        X : array-like of shape (n, q)

        Returns
        -------
        ndarray of shape (n, p)
        """
        model = self._for_inverse()
        single = getattr(X, "dtype", None) == np.float32
        latent = check_array(filled(X), dtype=np.float64, order="C")
        rows = model.inverse_transform(latent, False, single, self.n_threads)
        return as_asked(self, rows, X, feature_names(self))

    def reconstruct(self, X: Table) -> Answer:
        """Each row rebuilt from its coordinates: denoised.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, p)
        """
        model = self._for_inverse()
        rows = rows_of(self, X)
        return in_features(self, model.reconstruct(rows, "orthogonal", is_single(X, rows), self.n_threads), X)

    def score_samples(self, X: Table) -> Floats:
        """Novelty: squared distance of each row from the components in the feature space.

        k̃(x, x) − Σ of the squared coordinates, what SPE is for PCA. The larger, the less the row is like those of
        the fit. Not for "precomputed" and functions.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n,)
        """
        model = self._fitted()
        if self._is_matrix():
            raise ValueError("novelty needs k(x, x) of new rows, which a kernel matrix does not tell; give a kernel by its name")
        return model.novelty(rows_of(self, X), self.n_threads)

    # -- manners ---------------------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = isinstance(self.kernel, str) and self.kernel in ("rbf", "linear")
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
