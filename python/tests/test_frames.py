"""Frames in, frames out: index and names are those of what was asked."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from support import low_rank, punched

import covary

NAMES = ["rpm", "load", "heat", "flow"]
MODELS = {
    "PPCA": covary.PPCA(1),
    "PCA": covary.PCA(1),
    "FactorAnalysis": covary.FactorAnalysis(1),
    "BayesianPCA": covary.BayesianPCA(1),
    "RobustPPCA": covary.RobustPPCA(1),
    "MixturePPCA": covary.MixturePPCA(2, 1),
    "ICA": covary.ICA(1),
    "GPLVM": covary.GPLVM(1, n_inducing=8, tol=1e-2),
    "Autoencoder": covary.Autoencoder(1, max_iter=10, encoder=False),
}


def table(share=0.1):
    frame = pd.DataFrame(punched(low_rank(40, 4, 1), share), columns=NAMES)
    return frame.set_axis([f"day {i}" for i in range(40)])


@pytest.mark.parametrize("name", MODELS)
def test_pandas_keeps_index_and_names(name):
    X = table()
    model = clone(MODELS[name]).fit(X)
    filled, std = model.impute(X, return_std=True)
    assert filled.equals(model.impute(X))
    for answer in (filled, std, model.reconstruct(X)):
        assert answer.index.equals(X.index) and answer.columns.equals(X.columns)
    seen = X.notna().to_numpy()
    np.testing.assert_array_equal(filled.to_numpy()[seen], X.to_numpy()[seen])
    assert (std.to_numpy()[seen] == 0).all() and (std.to_numpy()[~seen] > 0).all()


@pytest.mark.parametrize("make", [covary.KMeans(2), covary.KernelPCA(1, fit_inverse_transform=True)])
def test_rows_rebuilt_by_models_that_do_not_impute(make):
    X = table(0)
    answer = make.fit(X).reconstruct(X)
    assert answer.index.equals(X.index) and answer.columns.equals(X.columns)


def test_polars_and_arrow_stay_what_they_are():
    frame = pl.from_pandas(table())
    model = covary.PPCA(1).fit(frame)
    assert isinstance(model.impute(frame), pl.DataFrame) and model.impute(frame).columns == NAMES
    arrow = frame.to_arrow()
    filled = model.impute(arrow)
    assert isinstance(filled, pa.Table) and filled.column_names == NAMES
    np.testing.assert_array_equal(np.column_stack([filled[name] for name in NAMES]), model.impute(frame).to_numpy())
    assert filled.schema == arrow.schema


def test_single_precision_stays_single():
    X = table().astype(np.float32)
    assert set(covary.PPCA(1).fit(X).impute(X).dtypes) == {np.dtype(np.float32)}


@pytest.mark.parametrize("kind, frame", [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output_reaches_every_answer_of_a_table(kind, frame):
    X = table()
    model = covary.MixturePPCA(2, 1).set_output(transform=kind).fit(X)
    plain = covary.MixturePPCA(2, 1).fit(X)
    answers = {
        "transform": (model.transform(X), plain.transform(X), ["mixtureppca0"]),
        "impute": (model.impute(X), plain.impute(X), NAMES),
        "an array": (model.impute(X.to_numpy()), plain.impute(X), NAMES),
        "predict_proba": (model.predict_proba(X), plain.predict_proba(X), ["group0", "group1"]),
        "outliers": (model.outliers(X), np.column_stack(list(plain.outliers(X).values())), ["t2", "spe", "p_value"]),
    }
    for answer, expected, names in answers.values():
        assert isinstance(answer, frame) and list(answer.columns) == names
        np.testing.assert_array_equal(answer.to_numpy(), expected)
    if kind == "pandas":
        assert model.outliers(X).index.equals(X.index) and model.predict_proba(X).index.equals(X.index)


def test_set_output_of_the_way_back():
    X = table()
    model = covary.PPCA(2).set_output(transform="pandas").fit(X)
    latent = model.transform(X)
    rows = model.inverse_transform(latent)
    assert rows.index.equals(X.index) and list(rows.columns) == NAMES
    assert isinstance(covary.PPCA(2).fit(X).inverse_transform(latent), np.ndarray)


def test_features_without_names_are_those_of_scikit_learn():
    X = table().to_numpy()
    with config_context(transform_output="pandas"):
        assert list(covary.PPCA(1).fit(X).impute(X).columns) == ["x0", "x1", "x2", "x3"]


def test_pictures_do_not_mind_what_output_is_set():
    X = table()
    model = covary.PPCA(1).set_output(transform="polars").fit(X)
    plain = covary.PPCA(1).fit(X)
    np.testing.assert_array_equal(covary.plot.distances(model, X).t2, covary.plot.distances(plain, X).t2)
    np.testing.assert_array_equal(covary.plot.contributions(model, X).rows, covary.plot.contributions(plain, X).rows)
