"""Standard errors and intervals of PPCA, against dense formulas and simulation."""

import pickle

import numpy as np
import pytest
from scipy import stats
from support import closed_form, low_rank, punched

import covary
from covary import PPCA


@pytest.fixture(scope="module")
def X():
    return low_rank(150, 5, 2)


def test_errors_of_mean_and_variances(X):
    n, p, q = *X.shape, 2
    model = PPCA(q).fit(X)
    errors = model.standard_errors()
    np.testing.assert_allclose(errors.mean, np.sqrt(np.diag(model.get_covariance()) / n), rtol=1e-12)
    _, values, noise, _ = closed_form(X, q)
    np.testing.assert_allclose(errors.explained_variance, values[:q] * np.sqrt(2 / n), rtol=1e-10)
    assert errors.noise_variance == pytest.approx(noise * np.sqrt(2 / (n * (p - q))), rel=1e-10)


def test_errors_of_loadings_are_those_of_many_samples(X):
    truth = PPCA(2).fit(X)
    samples = [PPCA(2).fit(truth.sample(2000, seed)).loadings_ for seed in range(400)]
    claimed = truth.standard_errors().loadings * np.sqrt(len(X) / 2000)
    # A standard deviation of 400 errs by 1/sqrt(800) of itself.
    np.testing.assert_allclose(np.std(samples, axis=0), claimed, rtol=4 / np.sqrt(800))


def test_intervals(X):
    n, p, q = *X.shape, 2
    model = PPCA(q).fit(X)
    found = model.intervals()
    assert [part.shape for part in found] == [(2, p), (2,), (2, q), (2, p, q)]
    half = stats.t.ppf(0.975, n - 1) * np.sqrt(np.diag(model.get_covariance()) / (n - 1))
    np.testing.assert_allclose(found.mean, [model.mean_ - half, model.mean_ + half], rtol=1e-9)
    ends = stats.chi2.ppf([0.975, 0.025], (n - 1 - q) * (p - q))
    np.testing.assert_allclose(found.noise_variance, n * (p - q) * model.noise_variance_ / ends, rtol=1e-9)
    half = stats.norm.ppf(0.95) * model.standard_errors().loadings
    low, high = model.intervals(0.9).loadings
    np.testing.assert_allclose((low, high), (model.loadings_ - half, model.loadings_ + half), rtol=1e-9, atol=1e-12)


def test_they_travel_with_the_model(X, tmp_path):
    model = PPCA(2).fit(X)
    model.save(tmp_path / "m.covary")
    batches = PPCA(2).partial_fit(X[:70]).partial_fit(X[70:])
    for other in (pickle.loads(pickle.dumps(model)), covary.load(tmp_path / "m.covary"), batches):
        np.testing.assert_allclose(other.standard_errors().loadings, model.standard_errors().loadings, rtol=1e-9)


def test_all_components_leave_no_noise(X):
    model = PPCA(5).fit(X)
    assert np.isnan(model.standard_errors().noise_variance) and np.isnan(model.intervals().noise_variance).all()
    assert np.isfinite(model.standard_errors().loadings).all()


def test_a_circle_has_no_direction():
    X = np.array([[3.0, 0, 0], [-3, 0, 0], [0, 3, 0], [0, -3, 0], [0, 0, 1], [0, 0, -1]])
    model = PPCA(2).fit(X)
    assert np.isposinf(model.standard_errors().loadings).all()
    assert np.isneginf(model.intervals().loadings[0]).all()


def test_what_has_none_says_why(X):
    for model, why in (
        (PPCA(2).fit(punched(X, 0.1)), "missing values"),
        (PPCA.from_parameters(mean=[0, 0], loadings=[[1], [2]], noise_variance=1), "given"),
        (PPCA(2).fit(X[:3]), "rows"),
    ):
        with pytest.raises(ValueError, match=why):
            model.standard_errors()
        with pytest.raises(ValueError, match=why):
            model.intervals()
    with pytest.raises(ValueError, match="between 0 and 1"):
        PPCA(2).fit(X).intervals(95)
