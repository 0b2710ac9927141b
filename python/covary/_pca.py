"""Classical PCA under scikit-learn's names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from covary import _covary
from covary._base import LinearGaussianEstimator, learned
from covary._input import fixed_seed_of
from covary._types import Components, Floats, Seed

# scikit-learn's names for what the core calls otherwise.
_SOLVERS = {"full": "svd", "covariance_eigh": "eigen", "arpack": "krylov", "randomized": "krylov"}
_MORE = 1e-12


class PCA(LinearGaussianEstimator):
    """Principal component analysis: a drop-in replacement for scikit-learn's `PCA`.

    Constructor, attributes and meanings are scikit-learn's: an orthogonal projection, variances with divisor
    n − 1. What is added: weights, rows with missing values in every question, sparse matrices with every
    solver but "full", files larger than memory, a `noise_variance_` that is right for fewer rows than
    features too, and the density that goes with the projection.

    Parameters
    ----------
    n_components : int, float in (0, 1), "mle" or None
        How many directions; or the share of the variance that they should explain; or as many as Minka's
        evidence speaks for; or min(n, p), some of which have no variance where rows lie in a plane of fewer.
    copy : bool
        Ignored: X is never changed.
    whiten : bool
        Scale the coordinates to unit variance. `save` keeps it.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized", "eigen", "svd", "dual", "krylov"}
        scikit-learn's names and the core's: "full" is "svd", "covariance_eigh" is "eigen", "arpack" and
        "randomized" are "krylov", which is as accurate as the others.
    tol : float
        When "krylov" has converged; 0 is as far as double precision goes.
    iterated_power, n_oversamples, power_iteration_normalizer
        Ignored: "krylov" goes on until it has converged.
    random_state : int, RandomState or None
        Seed of the random start of "krylov".
    scale : {"none", "unit", "pareto", "range"}
        What each feature is divided by before the fit: nothing, its standard deviation, the square root of
        that, or its range. Every answer is in the units of the data; `explained_variance_` and `components_`
        are those of the divided features.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it.
    verbose : bool
        Show progress.

    Attributes
    ----------
    components_ : ndarray of shape (q, p)
        Orthonormal rows, largest variance first; the entry of largest magnitude in each is positive.
    explained_variance_ : ndarray of shape (q,)
        Divisor n − 1.
    explained_variance_ratio_ : ndarray of shape (q,)
    singular_values_ : ndarray of shape (q,)
        Of the centred rows.
    mean_ : ndarray of shape (p,)
    n_components_ : int
    n_samples_ : int
    noise_variance_ : float
        Mean variance along the p − q directions left out, divisor n − 1.
    loadings_ : ndarray of shape (p, q)
        W of the density that goes with the projection.
    converged_ : bool
    log_likelihood_ : float
    n_iter_ : int
    scale_ : ndarray of shape (p,) or None
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
    report_ : dict

    Notes
    -----
    Weights count rows: n is their sum, where that is more than the number of rows; variances are divided by
    it minus 1.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import PCA
    >>> X = np.array([[-1.0, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> pca = PCA(n_components=2).fit(X)
    >>> pca.explained_variance_ratio_.round(4)
    array([0.9924, 0.0076])
    >>> pca.singular_values_.round(4)
    array([6.3006, 0.5498])
    """

    singular_values_: Floats = learned("singular_values", "ndarray of shape (q,): singular values of the centred rows.")
    n_samples_: int = learned("n_rows", "int: number of rows of positive weight.")

    def __init__(
        self,
        n_components: Components = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: Any = "auto",
        tol: float = 0.0,
        iterated_power: Any = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: Any = "auto",
        random_state: Seed = None,
        scale: str = "none",
        n_threads: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.scale = scale
        self.n_threads = n_threads
        self.verbose = verbose

    def _whitens(self):
        return self.whiten

    _kind = "pca"

    def _request(self, seen):
        return _covary.Request(
            self._kind,
            self._components(seen),
            complete=self._completion(seen),
            scale=self.scale,
            solver=self._solver(),
            tolerance=self.tol or None,
            seed=fixed_seed_of(self.random_state),
            threads=self.n_threads,
        )

    def _solver(self):
        """The core's name of the solver."""
        return _SOLVERS.get(self.svd_solver, self.svd_solver)

    @classmethod
    def _of(cls, model, **parameters):
        return super()._of(model, **{"whiten": model.whiten, **parameters})

    def _components(self, seen):
        """What is asked of the core: of n rows at most the n − 1 directions that they span."""
        q = self._checked_components()
        if q == "mle":
            if seen is not None:
                self._check_evidence(seen.n_counted, seen.n_features)
            return q
        number = self._whole_number(seen)
        if number is not None:
            return min(number, max(_directions(seen), 1))
        if q is None:
            return "all"
        # scikit-learn wants more than the share, the core at least the share: beyond rounding of the sums, the
        # same.
        return q if seen is None or seen.n_rows is None else q + _MORE * (1.0 - q)

    def _completion(self, seen):
        """Directions of no variance, which scikit-learn counts too: up to a number, up to as many as there are
        rows or features (True), or none."""
        if seen is not None and self.n_components is None and self._solver() != "krylov":
            return True
        number = self._whole_number(seen)
        return number if number is not None and number > _directions(seen) else None

    def _whole_number(self, seen):
        """The number of directions within scikit-learn's limits, when it is a number and the rows are known."""
        q, known = self.n_components, seen is not None and seen.n_rows is not None
        if not known or q == "mle" or (q is None and self._solver() != "krylov"):
            return None
        limit = min(seen.n_counted, seen.n_features)
        least, most = (1, limit - 1) if self.svd_solver == "arpack" else (0, limit)
        q = most if q is None else q
        if not isinstance(q, Integral):
            if not 0 <= q <= 1:
                raise ValueError(
                    f"n_components={q} must be a whole number, or a fraction of the variance in (0, 1)"
                )
            return None
        name = "full" if self.svd_solver == "auto" else self.svd_solver
        if self.svd_solver in ("arpack", "randomized") and not 1 <= q <= limit:
            raise ValueError(
                f"n_components={q} must be between 1 and min(n_samples, n_features)={limit} with "
                f"svd_solver='{name}'"
            )
        if self.svd_solver == "arpack" and q == limit:
            raise ValueError(
                f"n_components={q} must be strictly less than min(n_samples, n_features)={limit} with "
                "svd_solver='arpack'"
            )
        if not least <= q <= most:
            raise ValueError(
                f"n_components={q} must be between {least} and min(n_samples, n_features)={limit} with "
                f"svd_solver='{name}'"
            )
        return int(q)

    def _check_evidence(self, n_rows, n_features):
        if self.svd_solver in ("arpack", "randomized"):
            raise ValueError(f"n_components='mle' cannot be a string with svd_solver='{self.svd_solver}'")
        if n_rows is not None and n_rows < n_features:
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features")


def _directions(seen):
    """Directions that rows span."""
    return min(seen.n_rows - 1, seen.n_features)
