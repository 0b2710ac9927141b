"""Imputer: missing values filled by any model, as scikit-learn's transformers do it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
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


def forms(X):
    """The same table in the forms that tables have."""
    frame = pd.DataFrame(X, columns=list("abcde"))
    polars = pl.from_pandas(frame)
    return {
        "masked": np.ma.masked_invalid(X),
        "pandas": frame,
        "nullable": frame.convert_dtypes(),
        "polars": polars,
        "arrow": polars.to_arrow(),
        "sparse": sparse.csr_array(X),
    }


@pytest.mark.parametrize("form", forms(np.ones((1, 5))))
def test_whatever_the_table_is(X, form):
    imputer = covary.Imputer(covary.PPCA(2), add_indicator=True)
    expected = imputer.fit_transform(X)
    found = imputer.fit_transform(forms(X)[form])
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_in_files_and_rows_that_were_observed_in_part(X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.to_csv(tmp_path / "x.csv", index=False)
    rows = covary.read(tmp_path / "x.csv")
    expected = covary.Imputer(covary.PPCA(2)).fit_transform(frame)
    np.testing.assert_allclose(covary.Imputer(covary.PPCA(2)).fit(rows).transform(rows), expected, rtol=1e-9)
    with pytest.raises(TypeError, match="add_indicator=True needs an array or a frame, not covary.read"):
        covary.Imputer(covary.PPCA(2), add_indicator=True).fit(rows)


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
