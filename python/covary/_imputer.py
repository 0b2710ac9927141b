"""Missing values filled by a model, as a step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import check_array, check_is_fitted

from covary._bayes import BayesianPCA
from covary._file import File
from covary._frames import feature_names
from covary._input import Observed, filled
from covary._types import Answer, Self, Table, Weights


def _cells(X):
    """The cells of a table with NaN where they are missing, whatever the table is."""
    if isinstance(X, (File, Observed)):
        raise TypeError(f"add_indicator=True needs an array or a frame, not {X!r}; give add_indicator=False")
    X = X.toarray() if hasattr(X, "toarray") else filled(X)
    return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")


class Imputer(TransformerMixin, BaseEstimator):
    """Impute missing values by a model, for scikit-learn's pipelines.

    The model is fitted to the rows as they are, and each missing cell is replaced by what the model expects of it, given
    the cells of its row that are there. Cells that were observed stay as they are.

    Parameters
    ----------
    estimator : estimator of covary that imputes, optional
        PPCA, PCA, FactorAnalysis, BayesianPCA, RobustPPCA, MixturePPCA, ICA, GPLVM or Autoencoder. A copy of it is
        fitted. By default ``BayesianPCA(scale="unit")``, which needs no number of components.
    add_indicator : bool
        Also give a column for each feature that misses values in the rows of the fit: 1 where a cell was missing, as in
        scikit-learn's ``SimpleImputer``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model; it can be asked how sure it is: ``estimator_.impute(X, return_std=True)``.
    indicator_ : sklearn.impute.MissingIndicator or None
        Which features have a column of their own; None without `add_indicator`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (p,)
        When the rows had names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> import covary
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(200, 1))
    >>> X = z @ np.ones((1, 4)) + 0.1 * rng.normal(size=(200, 4))
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> steps = make_pipeline(covary.Imputer(covary.PPCA(1)), LinearRegression()).fit(X, z[:, 0])
    >>> bool(steps.score(X, z[:, 0]) > 0.98)
    True
    """

    def __init__(self, estimator: Any = None, *, add_indicator: bool = False) -> None:
        self.estimator = estimator
        self.add_indicator = add_indicator

    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Arrow table or :func:`covary.read` of shape (n, p)
            NaN and masked cells are missing values.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        model = BayesianPCA(scale="unit") if self.estimator is None else clone(self.estimator)
        if not hasattr(model, "impute"):
            raise TypeError(
                f"estimator={model!r} cannot impute; give PPCA, PCA, FactorAnalysis, BayesianPCA, RobustPPCA, MixturePPCA, "
                "ICA, GPLVM or Autoencoder"
            )
        self.estimator_ = model.fit(X, sample_weight=sample_weight)
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.indicator_ = None
        if self.add_indicator:
            self.indicator_ = MissingIndicator(error_on_new=False, sparse=False).fit(_cells(X))
        return self

    def transform(self, X: Table) -> Answer:
        """Rows without missing values.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, p), with columns of the indicator behind them where they are asked for
        """
        check_is_fitted(self)
        whole = np.asarray(self.estimator_.impute(X))
        if self.indicator_ is None:
            return whole
        return np.hstack([whole, self.indicator_.transform(_cells(X)).astype(whole.dtype)])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns that `transform` gives: those of the features, then those of the indicator.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of features that had none in the fit.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = feature_names(self) if input_features is None else list(input_features)
        if input_features is not None and hasattr(self, "feature_names_in_") and names != list(self.feature_names_in_):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), got {len(names)}"
            )
        if self.indicator_ is not None:
            names += [f"missingindicator_{names[j]}" for j in self.indicator_.features_]
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
