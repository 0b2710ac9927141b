"""Autoassociative networks: PCA's limit, curves, missing values, frames, pickles, bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA as TheirPCA
from sklearn.exceptions import ConvergenceWarning

import covary


def curve(n=300, noise=0.02):
    t = np.linspace(0, 5, n)
    return np.c_[np.cos(t), np.sin(t), 0.3 * t] + noise * np.random.default_rng(0).normal(size=(n, 3))


def test_a_linear_network_is_scikit_learns_pca():
    X = load_iris().data
    model = covary.Autoencoder(2, activation="linear").fit(X)
    theirs = TheirPCA(2).fit(X)
    np.testing.assert_allclose(model.reconstruct(X), theirs.inverse_transform(theirs.transform(X)), atol=1e-8)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_ * 149 / 150, rtol=1e-8)
    np.testing.assert_allclose(model.transform(X).std(axis=0), 1, atol=1e-8)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0))
    assert model.converged_ and model.hidden_error_ is None


def test_a_curve_and_its_questions():
    X = curve()
    model = covary.Autoencoder(1, hidden=12).fit(X)
    assert model.explained_ > 0.98 > model.explained_by_pca_
    assert model.hidden_error_[1] < model.hidden_error_[0]
    assert len(model.loss_curve_) == model.n_iter_ and np.all(np.diff(model.loss_curve_) <= 1e-9)
    Z = model.transform(X)
    np.testing.assert_allclose(model.inverse_transform(Z), model.reconstruct(X), atol=1e-10)
    spe = np.sum((X - model.reconstruct(X)) ** 2, axis=1)
    np.testing.assert_allclose(model.outliers(X)["spe"], spe, atol=1e-12)
    np.testing.assert_allclose(model.score(X), -spe.mean(), rtol=1e-10)
    mean, cov = model.posterior(X[:5])
    np.testing.assert_allclose(mean, Z[:5], atol=1e-12)
    assert cov.shape == (5, 1, 1) and np.all(cov > 0)
    assert "hidden units" in str(model.summary())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), Z)


def test_missing_values_are_filled_along_the_curve(tmp_path):
    X = curve(200)
    Y = X.copy()
    where = np.random.default_rng(1).integers(0, 4, 200)
    rows = np.flatnonzero(where < 3)
    Y[rows, where[rows]] = np.nan
    model = covary.Autoencoder(1, hidden=8, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hundred steps are enough here
        model.fit(Y)
    assert not model.report_["network"]["encoder"]
    filled, std = model.impute(Y, return_std=True)
    errors = np.abs(filled - X)[rows, where[rows]]
    assert np.median(errors) < 0.1
    assert np.all(std[rows, where[rows]] > 0) and np.all(std[~np.isnan(Y)] == 0)
    np.testing.assert_array_equal(filled[~np.isnan(Y)], X[~np.isnan(Y)])
    draws = model.sample_missing(Y[:3], 4, random_state=1)
    assert draws.shape == (4, 3, 3)
    indices, mean, cov = model.conditional(Y[rows[0]])
    np.testing.assert_allclose(mean, filled[rows[0], indices])
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std[rows[0], indices])
    model.save(tmp_path / "m.covary")
    again = covary.load(tmp_path / "m.covary")
    assert isinstance(again, covary.Autoencoder) and again.encoder is False
    np.testing.assert_array_equal(again.impute(Y), filled)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_frames_single_precision_and_units():
    frame = pd.DataFrame(curve(60), columns=list("abc"), index=np.arange(60) * 2)
    model = covary.Autoencoder(1, hidden=4, max_iter=20, tol=1e-1, scale="unit").fit(frame)
    rebuilt = model.reconstruct(frame)
    assert list(rebuilt.columns) == list("abc") and list(rebuilt.index) == list(frame.index)
    assert model.set_output(transform="pandas").transform(frame).columns[0] == "autoencoder0"
    single = frame.to_numpy(dtype=np.float32)
    assert covary.Autoencoder(1, hidden=4, max_iter=20, tol=1e-1).fit(single).transform(single).dtype == np.float32


def test_the_limit_on_steps_is_a_warning_and_threads_change_nothing():
    X = curve(120)
    with pytest.warns(ConvergenceWarning):
        model = covary.Autoencoder(1, max_iter=2).fit(X)
    assert model.n_iter_ == 2
    other = covary.Autoencoder(1, max_iter=2, n_threads=1)
    with pytest.warns(ConvergenceWarning):
        np.testing.assert_array_equal(other.fit(X).transform(X), model.transform(X))


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_components": 0},
        {"n_components": 4},
        {"n_components": 1.5},
        {"hidden": 0},
        {"hidden": "many"},
        {"activation": "relu"},
        {"solver": "svd"},
        {"alpha": -1.0},
        {"alpha": None},
        {"tol": 0.0},
        {"max_iter": 0},
        {"activation": "linear", "hidden": 3},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError):
        clone(covary.Autoencoder(1)).set_params(**wrong).fit(curve(30))
