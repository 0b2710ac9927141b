"""Imputer: missing values filled by any model, as scikit-learn's transformers do it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from support import low_rank, punched

import covary


@pytest.fixture
def X():
    return punched(low_rank(120, 5, 2), 0.15)


def test_cells_are_those_that_the_model_expects(X):
    imputer = covary.Imputer(covary.PPCA(2)).fit(X)
    np.testing.assert_array_equal(imputer.transform(X), covary.PPCA(2).fit(X).impute(X))
    assert isinstance(imputer.estimator, covary.PPCA) and not hasattr(imputer.estimator, "n_features_in_")


def test_the_default_needs_no_choice(X):
    filled = covary.Imputer().fit_transform(X)
    np.testing.assert_array_equal(filled, covary.BayesianPCA(scale="unit").fit(X).impute(X))


def test_the_indicator_is_that_of_simple_imputer(X):
    X[:, 3] = 1.0 + np.arange(len(X))  # nothing is missing here
    ours = covary.Imputer(covary.PPCA(2), add_indicator=True).fit(X)
    theirs = SimpleImputer(add_indicator=True).fit(X)
    new = punched(low_rank(30, 5, 2, seed=3), 0.3)
    np.testing.assert_array_equal(ours.transform(new)[:, 5:], theirs.transform(new)[:, 5:])
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())


def test_names_and_frames(X):
    frame = pd.DataFrame(X, columns=list("abcde"), index=range(7, 127))
    imputer = covary.Imputer(covary.PPCA(2), add_indicator=True).set_output(transform="pandas")
    filled = imputer.fit_transform(frame)
    assert filled.index.equals(frame.index) and filled.notna().all().all()
    assert list(filled.columns) == [*"abcde", *(f"missingindicator_{name}" for name in "abcde")]
    with pytest.raises(ValueError, match="feature names"):
        imputer.transform(frame[list("edcba")])


def test_parameters_of_the_model_are_searched_for(X):
    y = np.nan_to_num(X).sum(axis=1)
    steps = make_pipeline(covary.Imputer(covary.PPCA(1)), LinearRegression())
    search = GridSearchCV(steps, {"imputer__estimator__n_components": [1, 2]}, cv=3).fit(X, y)
    assert search.best_estimator_[0].estimator_.n_components_ in (1, 2)


@pytest.mark.parametrize("estimator", [covary.KMeans(2), covary.KernelPCA(2), LinearRegression()])
def test_a_model_that_cannot_impute_is_named(X, estimator):
    with pytest.raises(TypeError, match=rf"estimator={type(estimator).__name__}\(.*cannot impute; give PPCA"):
        covary.Imputer(estimator).fit(X)
