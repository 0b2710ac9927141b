"""What people do with estimators, one example of each."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import low_rank

import covary


def test_a_pipeline_with_a_scaler():
    X = low_rank(200, 6, 2)
    Z = make_pipeline(StandardScaler(), covary.PCA(2)).fit_transform(X)
    standardized = (X - X.mean(axis=0)) / X.std(axis=0)
    values = np.linalg.svd(standardized, compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0), values[:2], rtol=1e-9)


def test_held_out_likelihood_chooses_the_number_of_components():
    X = low_rank(600, 10, 3, noise=0.3)
    search = GridSearchCV(covary.PPCA(), {"n_components": [1, 2, 3, 4, 6]}, cv=5).fit(X)
    assert search.best_params_["n_components"] == 3
    assert search.best_score_ == np.mean(cross_val_score(covary.PPCA(3), X, cv=5))


def test_in_front_of_a_classifier():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=300)
    X = low_rank(300, 8, 2) + 6.0 * np.outer(y, rng.normal(size=8))
    accuracy = cross_val_score(make_pipeline(covary.PPCA(3), LogisticRegression()), X, y)
    assert accuracy.mean() > 0.9


def test_a_pandas_frame_with_holes():
    frame = pd.DataFrame(low_rank(300, 4, 1), columns=["rpm", "load", "heat", "flow"])
    model = covary.PPCA(1).set_output(transform="pandas").fit(frame)
    frame.loc[5, ["load", "flow"]] = np.nan
    latent = model.transform(frame)
    assert list(latent.columns) == ["ppca0"] and latent.notna().all().all()
    indices, mean, covariance = model.conditional(frame.loc[5])
    assert list(model.feature_names_in_[indices]) == ["load", "flow"]
    assert mean.shape == (2,) and covariance.shape == (2, 2)


def test_polars_and_pyarrow():
    X = low_rank(300, 3, 1)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = covary.PPCA(1).set_output(transform="polars").fit(frame)
    assert model.transform(frame).columns == ["ppca0"]
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    np.testing.assert_array_equal(model.transform(table).to_numpy(), model.transform(frame).to_numpy())


def test_a_notebook_shows_a_summary():
    model = covary.PPCA(2)
    assert "covary-summary" not in model._repr_html_()
    html = model.fit(low_rank(50, 4, 2))._repr_html_()
    assert "noise variance" in html and "4 × 4 covariance" in html
    assert "covary-summary" in model._repr_mimebundle_()["text/html"]
