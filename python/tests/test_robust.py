"""Robust PPCA: densities by SciPy, outliers that do not move the plane, and PPCA as the limit."""

import pickle

import numpy as np
import pytest
from scipy import stats
from support import punched

import covary
from covary import PPCA, RobustPPCA


def spoilt(n=300, p=8, missing=0.0, seed=0):
    """Rows near a plane of two directions, the first 5 % of them gross errors."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(p, 2)))[0]
    X = 3 + rng.normal(size=(n, 2)) @ (W * [6, 4]).T + 0.5 * rng.normal(size=(n, p))
    X[: n // 20] = 60 * rng.normal(size=(n // 20, p))
    return np.where(rng.random(X.shape) < missing, np.nan, X), W


def angle(model, W):
    return np.degrees(np.arccos(np.linalg.svd(model.components_ @ W)[1].min()))


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_outliers_do_not_move_the_plane(missing):
    X, W = spoilt(missing=missing)
    model = RobustPPCA(2).fit(X)
    assert angle(model, W) < 2 and angle(PPCA(2).fit(X), W) > 30
    assert abs(model.noise_variance_ / 0.25 - 1) < 0.25
    assert model.weights_.shape == (300,) and (model.weights_[:15] < 0.1).all()
    assert np.median(model.weights_) > 0.8
    assert model.report_["robust"]["found"] and model.report_["robust"]["degrees_of_freedom"] == model.nu_


def test_densities_are_scipys():
    X, _ = spoilt(n=60, p=4)
    model = RobustPPCA(2, nu=5).fit(X)
    scale = model.loadings_ @ model.loadings_.T + model.noise_variance_ * np.eye(4)
    theirs = stats.multivariate_t(loc=model.mean_, shape=scale, df=5)
    np.testing.assert_allclose(model.score_samples(X), theirs.logpdf(X), rtol=1e-12)
    np.testing.assert_allclose(model.log_likelihood_, theirs.logpdf(X).sum(), rtol=1e-11)
    np.testing.assert_allclose(model.get_covariance(), scale * 5 / 3, rtol=1e-12)
    np.testing.assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(4), atol=1e-10)
    delta = np.einsum("ij,jk,ik->i", X - model.mean_, np.linalg.inv(scale), X - model.mean_)
    np.testing.assert_allclose(model.outliers(X)["p_value"], stats.f.sf(delta / 4, 4, 5), rtol=1e-9)
    np.testing.assert_allclose(model.weights_, (5 + 4) / (5 + delta), rtol=1e-10)
    # No t distribution of one feature of the model is another than its marginal.
    part = model.marginal([2])
    assert isinstance(part, RobustPPCA) and part.nu_ == 5
    one = stats.t(df=5, loc=model.mean_[2], scale=np.sqrt(scale[2, 2]))
    np.testing.assert_allclose(part.score_samples(X[:, [2]]), one.logpdf(X[:, 2]), rtol=1e-12)


def test_missing_cells_have_the_conditional_t_distribution():
    model = RobustPPCA.from_parameters(mean=[1, 2, 3], loadings=[[2], [1], [-1]], noise_variance=0.5, nu=4)
    scale = model.loadings_ @ model.loadings_.T + 0.5 * np.eye(3)
    row = np.array([[5.0, np.nan, 1.0]])
    seen, hidden = [0, 2], [1]
    inverse = np.linalg.inv(scale[np.ix_(seen, seen)])
    gap = row[0, seen] - model.mean_[seen]
    mean = model.mean_[1] + scale[np.ix_(hidden, seen)] @ inverse @ gap
    schur = scale[1, 1] - scale[np.ix_(hidden, seen)] @ inverse @ scale[np.ix_(seen, hidden)]
    delta = gap @ inverse @ gap
    variance = schur * (4 + delta) / (4 + 2 - 2)
    filled, std = model.impute(row, return_std=True)
    np.testing.assert_allclose([filled[0, 1], std[0, 1] ** 2], [mean[0], variance[0, 0]], rtol=1e-12)
    _, given, covariance = model.conditional(row[0])
    np.testing.assert_allclose([given[0], covariance[0, 0]], [mean[0], variance[0, 0]], rtol=1e-12)
    draws = model.sample_missing(row, 4000, random_state=1)[:, 0, 1]
    t = stats.t(df=6, loc=mean[0], scale=np.sqrt(schur[0, 0] * (4 + delta) / 6))
    assert stats.kstest(draws, t.cdf).pvalue > 1e-3


def test_samples_are_of_the_t_distribution():
    model = RobustPPCA.from_parameters(mean=[0, 0], loadings=[[1], [2]], noise_variance=0.5, nu=3)
    X = model.sample(5000, random_state=2)
    assert stats.kstest(X[:, 0], stats.t(df=3, scale=np.sqrt(1.5)).cdf).pvalue > 1e-3
    np.testing.assert_array_equal(X, model.sample(5000, random_state=2))
    assert stats.kstest(model.outliers(X)["p_value"], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_infinite_nu_is_ppca(missing):
    X, _ = spoilt(missing=missing)
    robust, plain = RobustPPCA(2, nu=float("inf")).fit(X), PPCA(2).fit(X)
    np.testing.assert_allclose(robust.get_covariance(), plain.get_covariance(), rtol=1e-9)
    np.testing.assert_allclose(robust.score_samples(X), plain.score_samples(X), rtol=1e-9)
    assert np.isinf(robust.nu_) and (robust.weights_ == 1).all()


def test_weights_of_rows():
    X, _ = spoilt(n=80)
    weight = np.where(np.arange(80) % 3 == 0, 2.0, 1.0)
    twice = np.vstack([X, X[::3]])
    a, b = RobustPPCA(2, tol=1e-12).fit(X, sample_weight=weight), RobustPPCA(2, tol=1e-12).fit(twice)
    np.testing.assert_allclose(a.log_likelihood_, b.log_likelihood_, rtol=1e-10)
    np.testing.assert_allclose(a.nu_, b.nu_, rtol=1e-4)
    np.testing.assert_allclose(a.row_weights(X), a.weights_)


def test_files_pickles_and_bad_input(tmp_path):
    X, _ = spoilt(n=60)
    model = RobustPPCA(2).fit(X)
    model.save(tmp_path / "m.covary")
    other = covary.load(tmp_path / "m.covary")
    assert isinstance(other, RobustPPCA) and other.nu_ == model.nu_
    np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).weights_, model.weights_)
    with pytest.raises(AttributeError, match="row_weights"):
        other.weights_
    for nu in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="degrees of freedom"):
            RobustPPCA(2, nu=nu).fit(X)
    with pytest.raises(ValueError, match="nu='many'"):
        RobustPPCA(2, nu="many").fit(X)
    with pytest.raises(ValueError, match="no covariance"):
        RobustPPCA(2, nu=2).fit(X).get_covariance()
    with pytest.raises(ValueError, match="components"):
        RobustPPCA(8).fit(X)
    assert not hasattr(model, "merge")
    assert "degrees of freedom" in str(model.summary())


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_batches_come_near_the_fit(missing):
    rng = np.random.default_rng(4)
    W = np.linalg.qr(rng.normal(size=(6, 2)))[0] * [6, 4]
    X = rng.normal(size=(1200, 2)) @ W.T + 0.7 * rng.normal(size=(1200, 6))
    X[::25] += 40 * rng.normal(size=(48, 6))
    X = punched(X, missing)
    best, model = RobustPPCA(2).fit(X), RobustPPCA(2)
    for _ in range(6):
        for batch in np.array_split(X, 6):
            model = pickle.loads(pickle.dumps(model.partial_fit(batch)))
    # 18 free parameters of 1200 rows are worth 18/2400 nats a row: a tenth of that is near.
    assert best.score(X) - model.score(X) < 1.8 / 2400
    report = model.report_
    assert not report["exact"] and report["robust"]["online_steps"] == 36 and report["rows"] == 7200
    assert len(model.weights_) == 200 and np.isnan(model.log_likelihood_)
    with pytest.raises(ValueError, match="6 features"):
        model.partial_fit(X[:, :4])
    # A fit goes on: its rows again hardly move it.
    assert abs(best.score(X) - pickle.loads(pickle.dumps(best)).partial_fit(X).score(X)) < 1e-4
