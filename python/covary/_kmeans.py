"""k-means under scikit-learn's names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from covary import _covary
from covary._estimator import Estimator, table
from covary._frames import in_features
from covary._input import features_restored_on_failure, filled, fixed_seed_of, is_single, rows_of, weights_of, whole
from covary._types import Answer, Floats, Integers, Seed, Self, Table, Weights
from covary._warn import warn

_AUTO = (1, 10)


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """k-means clustering: a drop-in replacement for scikit-learn's `KMeans`.

    Constructor, attributes and meanings are scikit-learn's. What is added: rows with missing values, weights in
    the start too, files larger than memory (:func:`covary.read`), a choice of the number of clusters, results
    that do not depend on the number of threads, and swaps of centres after Lloyd's method, by which nearly every
    start ends at the same, best known optimum.

    Parameters
    ----------
    n_clusters : int, "auto" or pair of int
        How many clusters; or the best number from 1 to 10, or of a range (fewest, most), by the gap statistic.
    init : {"k-means++", "random"}, array-like of shape (n_clusters, p), or callable
        How the first centres are drawn, or the centres themselves, or a function of X, n_clusters and
        random_state that gives them. From centres that are given Lloyd's method goes its way without swaps.
    n_init : int or "auto"
        Starts, of which the best is kept; "auto" is 1, and 10 where `init` is "random" or a function and
        `polish` is off.
    max_iter : int
        Most iterations of Lloyd's method.
    tol : float
        Where Lloyd's method on all rows ends: the sum of squared steps of the centres relative to the mean
        variance of a feature. With 0 it ends when no row changes its cluster.
    verbose : bool
        Show progress.
    random_state : int, RandomState or None
        Seed of the start; None is 0.
    copy_x : bool
        Ignored: X is never changed.
    algorithm : {"lloyd", "elkan"}
        Both are Lloyd's method with bounds that spare distances.
    polish : bool
        Whether swaps of centres follow Lloyd's method.
    n_threads : int or None
        All cores by default; counted from all cores downwards when negative (-1: all, -2: all but one).
        Results do not depend on it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (K, p)
        In descending weight of the clusters. K is less than `n_clusters` where there are fewer different rows.
    labels_ : ndarray of shape (n,), int32
        The cluster of each row of `fit`; of `partial_fit`, of the last batch. A row without any cell belongs to
        the largest cluster and has no weight in it.
    inertia_ : float
        Sum of squared distances of the rows to their centres, by weight.
    cluster_weights_ : ndarray of shape (K,)
        Share of the weight of each cluster.
    n_iter_ : int
    converged_ : bool
    log_likelihood_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
    report_ : dict
        With the table over K under ``report_["clusters"]["chosen"]`` where K was chosen.

    Notes
    -----
    Of rows with missing values the observed cells count, in distances and in means. Where clusters overlap this
    is biased, because a row with few cells goes to whichever centre is near in those; a mixture of densities is
    not.

    With many rows the start is found on a weighted sample of them (a coreset [BLK18]_), and Lloyd's method on all
    rows follows.

    References
    ----------
    .. [BLK18] O. Bachem, M. Lucic & A. Krause (2018). Scalable k-means clustering via lightweight coresets. KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from covary import KMeans
    >>> X = np.array([[1.0, 2], [1, 4], [1, np.nan], [10, 2], [10, 4], [10, 0], [10, 2]])
    >>> kmeans = KMeans(n_clusters=2).fit(X)
    >>> kmeans.labels_
    array([1, 1, 1, 0, 0, 0, 0], dtype=int32)
    >>> kmeans.predict([[0, 0], [12, 3]])
    array([1, 0], dtype=int32)
    >>> kmeans.cluster_centers_
    array([[10.,  2.],
           [ 1.,  3.]])
    """

    _kind = "kmeans"

    cluster_centers_: Floats = table("centres", "ndarray of shape (K, p): the centres, in descending weight.")
    cluster_weights_: Floats = table("shares", "ndarray of shape (K,): share of the weight of each cluster.")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: bool | int = 0,
        random_state: Seed = None,
        copy_x: bool = True,
        algorithm: Any = "lloyd",
        polish: bool = True,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.polish = polish
        self.n_threads = n_threads

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit_predict(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Integers:
        """Fit, and the cluster of each row.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ndarray of shape (n,), int32
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Answer:
        """Fit, and the distances of each row to the centres.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ndarray of shape (n, K)
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        """Take in a batch of rows: the first is fitted, each other moves the centres once.

        Each row goes to its nearest centre, and each centre to the mean of all rows that it was given so far
        [S10]_, as in scikit-learn's `MiniBatchKMeans`. This comes near to a fit of all rows, nearer when the
        batches are given several times. For the exact answer, `fit` all rows, from files with
        :func:`covary.read`. A model from `fit` or :func:`covary.load` goes on from there.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self

        References
        ----------
        .. [S10] D. Sculley (2010). Web-scale k-means clustering. WWW.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, sample_weight=sample_weight)
        with features_restored_on_failure(self):
            rows = rows_of(self, X, sample_weight=sample_weight)
            model = self._fitted().after_batch(rows, self.n_threads)
            self._take(model)
            self.labels_ = model.nearest(rows, self.n_threads)[0]
        return self

    def _learn(self, X, rows, progress):
        super()._learn(X, rows, progress)
        self.labels_ = self._model.nearest(rows, self.n_threads)[0]
        found, asked = len(self.cluster_centers_), self._report()["clusters"]["asked"]
        if found < asked:
            warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters ({asked}). Possibly due to "
                "duplicate points in X.",
                ConvergenceWarning,
            )

    def _best_model(self, X, rows, fit):
        requests = [self._request(rows, centres) for centres in self._first_centres(X)]
        return min((fit(request) for request in requests), key=_inertia)

    def _request(self, seen, centres=None):
        if self.algorithm not in ("lloyd", "elkan"):
            raise ValueError(f"algorithm={self.algorithm!r} must be 'lloyd' or 'elkan'")
        if not np.isscalar(self.tol) or not self.tol >= 0:
            raise ValueError(f"tol={self.tol!r} must be a number that is not negative")
        clusters, between = self._wanted_clusters()
        drawn = centres is None
        return _covary.Request(
            self._kind,
            clusters,
            between=between,
            centres=centres,
            seeding=self.init if drawn else None,
            starts=self._starts() if drawn else None,
            polish=bool(self.polish),
            tolerance=self.tol or None,
            max_iterations=whole("max_iter", self.max_iter),
            seed=fixed_seed_of(self.random_state),
            threads=self.n_threads,
        )

    def _wanted_clusters(self):
        """How many clusters, and the range of which the best number is taken, if it is to be chosen."""
        wanted = self.n_clusters
        if isinstance(wanted, str) and wanted == "auto":
            return _AUTO[1], _AUTO
        if isinstance(wanted, tuple) and len(wanted) == 2:
            return whole("n_clusters", wanted[1]), (whole("n_clusters", wanted[0]), whole("n_clusters", wanted[1]))
        count = whole("n_clusters", wanted)
        if count < 1:
            raise ValueError(f"n_clusters={wanted!r} must be at least 1")
        return count, None

    def _starts(self):
        if isinstance(self.n_init, str) and self.n_init == "auto":
            drawn = not isinstance(self.init, str) or self.init == "random"
            return 10 if drawn and not self.polish else 1
        if not isinstance(self.n_init, Integral) or self.n_init < 1:
            raise ValueError(f"n_init={self.n_init!r} must be 'auto' or a number of starts")
        return int(self.n_init)

    def _first_centres(self, X):
        """None where they are to be drawn; else one array for each start."""
        if isinstance(self.init, str):
            if self.init not in ("k-means++", "random"):
                raise ValueError(f"init={self.init!r} must be 'k-means++', 'random', an array or a function")
            return [None]
        if not callable(self.init):
            return [self._checked_centres(self.init)]
        random_state = check_random_state(fixed_seed_of(self.random_state))
        make = lambda: self.init(X, self.n_clusters, random_state=random_state)  # noqa: E731
        return [self._checked_centres(make()) for _ in range(self._starts())]

    def _checked_centres(self, centres):
        centres = check_array(filled(centres), dtype=np.float64, order="C", input_name="init")
        if isinstance(self.n_clusters, Integral) and len(centres) != self.n_clusters:
            raise ValueError(
                f"The shape of the initial centers {centres.shape} does not match the number of clusters "
                f"{self.n_clusters}."
            )
        if centres.shape[1] != self.n_features_in_:
            raise ValueError(
                f"The shape of the initial centers {centres.shape} does not match the number of features of the "
                f"data {self.n_features_in_}."
            )
        return centres

    @classmethod
    def _constructor_of(cls, model):
        return {"n_clusters": model.n_components}

    # -- questions -------------------------------------------------------------------------------------------

    def predict(self, X: Table) -> Integers:
        """The cluster of each row: the nearest centre, by the observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n,), int32
        """
        model = self._fitted()
        return model.nearest(rows_of(self, X), self.n_threads)[0]

    def transform(self, X: Table) -> Answer:
        """Distances of each row to the centres, over the observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, K)
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return model.transform(rows, False, is_single(X, rows), self.n_threads)

    def reconstruct(self, X: Table) -> Answer:
        """Each row replaced by the centre of its cluster: vector quantisation.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, p)
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return in_features(self, model.reconstruct(rows, "orthogonal", is_single(X, rows), self.n_threads), X)

    def score(self, X: Table, y: Any = None, sample_weight: Weights = None) -> float:
        """The opposite of the sum of squared distances of the rows to their centres.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        squares = self._fitted().nearest(rows_of(self, X), self.n_threads)[1]
        weights = weights_of(sample_weight, len(squares))
        return -float(squares.sum() if weights is None else squares @ weights)

    # -- how it went -----------------------------------------------------------------------------------------

    @property
    def inertia_(self) -> float:
        """float: sum of squared distances of the rows to their centres."""
        return self._report()["clusters"]["inertia"]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return len(self.cluster_centers_)


def _inertia(model):
    return model.report["clusters"]["inertia"]
