"""GP-LVMs through Python: a curve, missing values, new rows, deviations, files, and what is refused."""

import pickle

import numpy as np
import pytest

import covary


def curve(n=80, noise=0.03, seed=0):
    t = np.linspace(0, 4.5, n)
    x = np.column_stack([np.cos(t), np.sin(t), 0.3 * t])
    return x + noise * np.random.default_rng(seed).normal(size=x.shape), t


@pytest.fixture(scope="module")
def fitted():
    x, t = curve()
    return covary.GPLVM(2, n_inducing=12).fit(x), x, t


def test_a_curve_is_found(fitted):
    model, x, t = fitted
    assert model.latent_mean_.shape == model.latent_variance_.shape == (80, 2)
    assert abs(np.corrcoef(model.latent_mean_[:, 0], t)[0, 1]) > 0.97
    assert model.relevance_[0] == 1 and model.relevance_[1] <= 1
    assert model.inducing_.shape == (12, 2)
    assert 0.02 < np.sqrt(model.noise_variance_) < 0.05
    assert model.lower_bound_ == model.report_["gplvm"]["objective"]
    assert model.lower_bound_ == pytest.approx(model.report_["trace"][-1], rel=1e-9)


def test_rows_of_the_fit_are_placed_where_they_lie(fitted):
    model, x, _ = fitted
    z = model.transform(x)
    assert np.abs(z - model.latent_mean_)[:, 0].max() < 0.1 * model.latent_mean_[:, 0].std()
    mean, covariance = model.posterior(x[:3])
    np.testing.assert_array_equal(mean, z[:3])
    placed = model.place(x[:3])
    np.testing.assert_array_equal(np.diagonal(covariance, axis1=1, axis2=2), placed["variance"])
    assert not placed["ambiguous"].any() and np.isfinite(placed["bound"]).all()


def test_rows_come_back_with_deviations(fitted):
    model, x, _ = fitted
    rows, std = model.inverse_transform(model.latent_mean_, return_std=True)
    assert np.abs(rows - x).mean() < 0.05
    np.testing.assert_array_equal(rows, model.inverse_transform(model.latent_mean_))
    far = model.inverse_transform([[30.0, 0.0]], return_std=True)[1]
    assert (far > 5 * std.mean()).all(), "nothing is known of the surface far away"


def test_missing_cells(fitted):
    model, x, _ = fitted
    holes = x[:10].copy()
    holes[:, 1] = np.nan
    filled, std = model.impute(holes, return_std=True)
    np.testing.assert_array_equal(filled[:, [0, 2]], x[:10][:, [0, 2]])
    assert np.abs(filled[:, 1] - x[:10, 1]).max() < 0.2 and (std[:, 1] > 0).all() and not std[:, [0, 2]].any()
    draws = model.sample_missing(holes, 3)
    assert draws.shape == (3, 10, 3)
    indices, mean, covariance = model.conditional(holes[0])
    assert indices.tolist() == [1] and mean[0] == pytest.approx(filled[0, 1])
    assert np.sqrt(covariance[0, 0]) == pytest.approx(std[0, 1])
    with_holes = np.where(np.random.default_rng(1).uniform(size=x.shape) < 0.2, np.nan, x)
    again = covary.GPLVM(1, n_inducing=12).fit(with_holes)
    assert np.abs(again.impute(with_holes) - x).mean() < 0.1


def test_samples_and_files(fitted, tmp_path):
    model, x, _ = fitted
    assert model.sample(5).shape == (5, 3)
    model.save(tmp_path / "m.covary")
    for other in (covary.load(tmp_path / "m.covary"), pickle.loads(pickle.dumps(model))):
        assert isinstance(other, covary.GPLVM)
        np.testing.assert_array_equal(other.transform(x[:2]), model.transform(x[:2]))
        assert other.lower_bound_ == model.lower_bound_
    assert "lower bound on the evidence" in str(model.summary())


def test_dual_ppca_and_exact_positions():
    x, t = curve(40)
    dual = covary.GPLVM(1, method="map", kernel="linear").fit(x)
    scores = covary.PPCA(1).fit(x).transform(x)[:, 0]
    assert abs(np.corrcoef(dual.latent_mean_[:, 0], scores)[0, 1]) == pytest.approx(1, abs=1e-12)
    exact = covary.GPLVM(1, method="map").fit(x)
    assert abs(np.corrcoef(exact.latent_mean_[:, 0], t)[0, 1]) > 0.95
    assert exact.noise_variance_ < dual.noise_variance_


def test_weights_are_repetitions():
    """Of a linear kernel nothing is drawn: what is left is the tolerance of the search, from 0.1 (1e-3) to 1e-7 (1e-12)."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(15, 4)) @ rng.normal(size=(4, 4)), rng.integers(0, 5, 15)
    weighted = covary.GPLVM(2, kernel="linear", tol=1e-12).fit(x, sample_weight=weights)
    repeated = covary.GPLVM(2, kernel="linear", tol=1e-12).fit(np.repeat(x, weights, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-8)
    np.testing.assert_allclose(weighted.transform(x), repeated.transform(x), atol=1e-5)


def test_scaled_features_have_noise_of_their_own():
    x, _ = curve(40)
    model = covary.GPLVM(1, n_inducing=8, scale="unit").fit(x * [1, 1000, 1])
    ratio = np.sqrt(model.noise_variance_) / (x * [1, 1000, 1]).std(0)
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components|latent dimensions"),
        ({"n_components": 9}, "between 1 and 3"),
        ({"kernel": "cosine"}, "rbf or linear"),
        ({"method": "mcmc"}, "bayes or map"),
        ({"init": "random"}, "ppca"),
        ({"n_inducing": 0}, "n_inducing|inducing points"),
    ],
)
def test_bad_options(options, words):
    x, _ = curve(20)
    with pytest.raises(ValueError, match=words):
        covary.GPLVM(**options).fit(x)


def test_too_many_rows_for_the_exact_model():
    x, _ = curve(2001)
    with pytest.raises(ValueError, match="at most 2000.*bayes"):
        covary.GPLVM(1, method="map").fit(x)
