"""What estimators can be asked; the answers are the core's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array

from covary._frames import as_asked, columns_as_asked, feature_names, framed, in_features
from covary._input import Observed, filled, is_single, numbers, rows_of, seed_of, weights_of, whole
from covary._types import Answer, Floats, Integers, Seed, Table, Weights

if TYPE_CHECKING:
    from covary._factor import FactorAnalysis

# Names of features in a message.
_SHOWN = 8


def positions(name, given, size):
    """Positions (m,) below `size` as NumPy counts them: those below 0 count from the end."""
    if np.ma.is_masked(given):
        raise ValueError(f"{name} are positions, and one of them is masked")
    places = np.asarray(given)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise IndexError(f"{name} must be a list of whole numbers, not {given!r}")
    outside = np.flatnonzero((places < -size) | (places >= size))
    if outside.size:
        raise IndexError(f"{name}[{outside[0]}] is {places[outside[0]]}, but there are only {size} {name} in X")
    return np.where(places < 0, places + size, places).astype(np.int64)


def estimator_class(model):
    """The class of estimators that hold this kind of model."""
    from covary import _public

    public = (getattr(_public, name) for name in _public.__all__)
    return next(found for found in public if getattr(found, "_kind", None) == model.kind)


class LatentQuestions(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Questions about latent coordinates and missing cells, for estimators with a `_fitted` model and `n_threads`.

    A transformer itself: scikit-learn's `set_output` sees to the methods of the class that defines them.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return self.n_components_

    def transform(self, X: Table) -> Answer:
        """Latent coordinates of each row, given the cells that were observed.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, q)
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return model.transform(rows, self._whitens(), is_single(X, rows), self.n_threads)

    def impute(self, X: Table, return_std: bool = False) -> Answer:
        """Impute the missing values of each row from its observed cells; observed cells stay as they are.

        Parameters
        ----------
        X : as for `fit`
        return_std : bool
            Also give the standard deviation of each filled cell, 0 where a cell was observed.

        Returns
        -------
        ndarray of shape (n, p), or two of them; frames where X is one
        """
        model = self._fitted()
        rows = rows_of(self, X)
        if not return_std:
            return in_features(self, model.impute(rows, is_single(X, rows), self.n_threads), X)
        found = model.impute_with_std(rows, is_single(X, rows), self.n_threads)
        return tuple(in_features(self, table, X) for table in found)

    def sample_missing(self, X: Table, n_draws: int = 1, random_state: Seed = 0) -> Floats:
        """Draw the missing cells of each row given the observed ones: multiple imputation.

        Parameters
        ----------
        X : as for `fit`
        n_draws : int
        random_state : int, RandomState or None

        Returns
        -------
        ndarray of shape (n_draws, n, p)
            Observed cells are the same in every draw.
        """
        model = self._fitted()
        n_draws = whole("n_draws", n_draws)
        return model.sample_missing(rows_of(self, X), n_draws, seed_of(random_state), self.n_threads)

    def conditional(self, x: Table) -> tuple[Integers, Floats, Floats]:
        """Distribution of the missing cells of one row, given the others.

        Parameters
        ----------
        x : array-like of shape (p,)
            With NaN where cells are missing.

        Returns
        -------
        indices : ndarray of int
            Which features are missing.
        mean : ndarray
        covariance : ndarray
        """
        return self._fitted().conditional(numbers(x).reshape(-1))


class DecoderQuestions(LatentQuestions):
    """Questions about a model with one set of latent coordinates, which lead back to rows."""

    def posterior(self, X: Table) -> tuple[Floats, Floats]:
        """Mean and covariance of the latent variables of each row, given the cells that were observed.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        mean : ndarray of shape (n, q)
        covariance : ndarray of shape (n, q, q), or (q, q) where it is the same for all rows
        """
        model = self._fitted()
        return model.posterior(rows_of(self, X), self.n_threads)

    def inverse_transform(self, Z: Table) -> Answer:
        """Rows that latent coordinates stand for.

        Parameters
        ----------
        Z : array-like of shape (n, q)

        Returns
        -------
        ndarray of shape (n, p), or the frame that `set_output` asks for
        """
        model = self._fitted()
        latent = check_array(
            filled(Z), dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_features=0, input_name="Z"
        )
        single = latent.dtype == np.float32
        rows = model.inverse_transform(latent.astype(np.float64), self._whitens(), single, self.n_threads)
        return as_asked(self, rows, Z, feature_names(self))


class DensityQuestions(LatentQuestions):
    """Questions about a density with latent coordinates."""

    def reconstruct(self, X: Table, kind: str = "orthogonal") -> Answer:
        """Each row rebuilt from its latent coordinates, the missing cells too.

        Parameters
        ----------
        X : as for `fit`
        kind : {"orthogonal", "posterior"}
            The nearest point of the model's plane, or the point of the posterior mean, which lies nearer to
            the centre.

        Returns
        -------
        ndarray of shape (n, p), or a frame where X is one
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return in_features(self, model.reconstruct(rows, kind, is_single(X, rows), self.n_threads), X)

    def score_samples(self, X: Table) -> Floats:
        """Log density of the observed cells of each row; a row with none scores 0.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n,)
        """
        model = self._fitted()
        return model.score_samples(rows_of(self, X), self.n_threads)

    def score(self, X: Table, y: Any = None, sample_weight: Weights = None) -> float:
        """Mean log density of the rows: what cross-validation compares.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        scores = self.score_samples(X)
        return float(np.average(scores, weights=weights_of(sample_weight, len(scores))))

    def predict_cells(self, X: Table, rows: Any, columns: Any) -> tuple[Floats, Floats]:
        """Mean and standard deviation of named cells, given what else was seen of their rows.

        Parameters
        ----------
        X : :func:`covary.observed`
            What was seen: the ratings of the people whose ratings are predicted.
        rows, columns : array-like of int of shape (m,)
            Which cells; as in NumPy, numbers below 0 count from the end.

        Returns
        -------
        mean, std : ndarray
            Of a cell that was seen, its value and 0.
        """
        model, given = self._fitted(), rows_of(self, X)
        if not isinstance(X, Observed):
            return model.predict_cells(given, [], self.n_threads)  # which says what X must be
        rows, columns = positions("rows", rows, X.shape[0]), positions("columns", columns, X.shape[1])
        if len(rows) != len(columns):
            raise ValueError(f"rows and columns name cells in pairs, but there are {len(rows)} and {len(columns)}")
        return model.predict_cells(given, list(zip(rows.tolist(), columns.tolist())), self.n_threads)

    def outliers(self, X: Table) -> Answer:
        """How far each row is from what the model expects, by its observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        dict of ndarrays of shape (n,), or the frame that `set_output` asks for
            `t2`: Hotelling's T², squared distance within the plane in units of its variance; `spe`: squared
            distance from the plane; `p_value`: probability that a row of the model lies at least as far out.
        """
        return columns_as_asked(self, self._distances(X), X)

    def _distances(self, X):
        return self._fitted().outliers(rows_of(self, X), self.n_threads)

    def contributions(self, X: Table) -> dict[str, Any]:
        """What each cell adds to the distance of its row, and what the rest of the row expects of it.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        dict of ndarrays of shape (n, p), or of data frames where X is one
            NaN where a cell is missing.

            - `t2`: shares of Hotelling's T², which add up to that of `outliers`; below 0 where a cell lies towards
              the mean of what the others say.
            - `spe`: shares of the squared distance from the plane, which add up to it.
            - `cell`: by how much the squared Mahalanobis distance of the row would fall if the cell were missing; χ²
              with one degree of freedom for rows of the model, so that one cell in a hundred is above 6.6. NaN where
              the other cells leave no variance, as without noise.
            - `expected`, `deviation`: what the rest of the row expects and the standard deviation of that, as
              `impute` gives them if the cell is missing.

            A mixture answers by the component that a row most probably belongs to. Of a robust model shares and `cell`
            are those of its scale, and deviations those of the t distribution.

        Examples
        --------
        >>> import numpy as np
        >>> from covary import PPCA
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 1)) @ np.ones((1, 4)) + 0.1 * rng.normal(size=(200, 4))
        >>> model = PPCA(1).fit(X)
        >>> x = X[:1].copy()
        >>> x[0, 2] += 2
        >>> told = model.contributions(x)
        >>> int(told["cell"].argmax())
        2
        >>> bool(abs(told["expected"][0, 2] - X[0, 2]) < 4 * told["deviation"][0, 2])
        True
        >>> bool(np.isclose(told["spe"].sum(), model.outliers(x)["spe"][0]))
        True
        """
        model = self._fitted()
        return {name: framed(table, X) for name, table in model.contributions(rows_of(self, X), self.n_threads).items()}

    def limits(self, level: float = 0.99, X: Table = None) -> dict[str, Any]:
        """Control limits of T² and SPE: what new rows of the model stay below with probability `level`.

        Parameters
        ----------
        level : float in (0, 1)
        X : as for `fit`, optional
            Rows whose missing cells are taken into account, each by the cells that it has. Without it, limits of rows
            of which every cell is observed; a mixture needs it, because its components have limits of their own.

        Returns
        -------
        dict of floats, or of ndarrays of shape (n,) where X is given
            `t2`: from the F distribution with q and n − q degrees of freedom, as the model was found from n rows, or
            χ² where n is not known; `spe`: from Box's scaled χ², which is exact where all noise is the same.

        Examples
        --------
        >>> import numpy as np
        >>> from covary import PPCA
        >>> X = np.random.default_rng(0).normal(size=(2000, 5)) * [5, 3, 1, 1, 1]
        >>> model = PPCA(2).fit(X)
        >>> limits = model.limits(0.95)
        >>> alarms = model.outliers(X)["t2"] > limits["t2"]
        >>> bool(0.03 < alarms.mean() < 0.07)
        True
        """
        rows = None if X is None else rows_of(self, X)
        found = self._fitted().limits(float(level), rows, self.n_threads)
        return found if X is not None else {name: float(values[0]) for name, values in found.items()}

    def sample(self, n: int = 1, random_state: Seed = 0) -> Floats:
        """Draw rows from the model.

        Parameters
        ----------
        n : int
        random_state : int, RandomState or None
            The same integer gives the same rows on every machine.

        Returns
        -------
        ndarray of shape (n, p)
        """
        return self._fitted().sample(whole("n", n), seed_of(random_state), self.n_threads)

    def marginal(self, features: Any) -> Any:
        """The model of some of the features.

        Parameters
        ----------
        features : sequence of int or str, slice or mask
            In the order wanted.

        Returns
        -------
        estimator of the same class, but PPCA for PCA
            Fitted.
        """
        model = self._fitted()
        if not isinstance(features, slice):
            features = [self._position(feature) for feature in features]
        indices = np.arange(model.n_features)[features]
        marginal = model.marginal(indices.tolist())
        return estimator_class(marginal)._of(marginal, n_threads=self.n_threads)

    def _position(self, feature):
        """A feature by its name, or whatever else it was called by."""
        if not isinstance(feature, str):
            return feature
        names = list(getattr(self, "feature_names_in_", []))
        if feature not in names:
            known = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
            raise ValueError(
                f"there is no feature {feature!r}: "
                + (f"the names are {known}" if names else "the features have no names, only positions")
            )
        return names.index(feature)

    def get_covariance(self) -> Floats:
        """Covariance of the features under the model, W Wᵀ + noise.

        Returns
        -------
        ndarray of shape (p, p)
        """
        return self._fitted().covariance()

    def get_precision(self) -> Floats:
        """Inverse of the covariance.

        Returns
        -------
        ndarray of shape (p, p)
        """
        return self._fitted().precision()


class Questions(DecoderQuestions, DensityQuestions):
    """Questions about one linear-Gaussian model, x = W z + μ + ε."""

    def rotate(self, method: Any = "varimax", **options: Any) -> FactorAnalysis:
        """The same model with its loadings, on the scale of correlations, turned so that they can be read.

        Parameters
        ----------
        method : str, Rotation or None
            See :class:`covary.Rotation`; None turns them back.
        **options
            Those of :class:`covary.Rotation`, when `method` is a name.

        Returns
        -------
        FactorAnalysis
            Fitted; this estimator stays as it is.
        """
        from covary._factor import FactorAnalysis
        from covary._rotate import Rotation, rotation_of

        rotation = Rotation(method, **options) if isinstance(method, str) else method
        model = self._fitted().rotated(rotation_of(rotation))
        return FactorAnalysis._of(model, n_threads=self.n_threads)
