"""Units: `scale` gives what scaling by hand and back gives, in the units of the data."""

import numpy as np
import pytest

import covary

UNITS = np.array([1.0, 1e3, 1e-3, 10.0, 5.0, 0.2])
ESTIMATORS = [
    lambda **more: covary.PPCA(2, **more),
    lambda **more: covary.PCA(2, **more),
    lambda **more: covary.FactorAnalysis(2, **more),
    lambda **more: covary.BayesianPCA(3, **more),
]


def rows(missing):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(90, 6)) + 2.0
    return np.where(rng.random(X.shape) < (0.1 if missing else 0.0), np.nan, X) * UNITS


def factors(X, scale):
    deviation = np.nanstd(X, axis=0)
    return {"unit": deviation, "pareto": np.sqrt(deviation), "range": np.nanmax(X, axis=0) - np.nanmin(X, axis=0)}[scale]


@pytest.mark.parametrize("make", ESTIMATORS, ids=["ppca", "pca", "fa", "bpca"])
@pytest.mark.parametrize("scale", ["unit", "pareto", "range"])
@pytest.mark.parametrize("missing", [False, True])
def test_answers_are_those_of_scaling_by_hand_and_back(make, scale, missing):
    X = rows(missing)
    ours = make(scale=scale).fit(X)
    np.testing.assert_allclose(ours.scale_, factors(X, scale), rtol=1e-12)
    # By the same digits, so that iterations take the same steps.
    d = ours.scale_
    theirs = make().fit(X / d)
    # Some rows have few cells of features whose deviations differ, which costs digits.
    close = {"rtol": 1e-12 if scale == "unit" else 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(ours.mean_ / d, theirs.mean_, **close)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X / d), **close)
    np.testing.assert_allclose(ours.impute(X) / d, theirs.impute(X / d), **close)
    _, std = ours.impute(X, return_std=True)
    np.testing.assert_allclose(std / d, theirs.impute(X / d, return_std=True)[1], **close)
    for kind in ("orthogonal", "posterior"):
        np.testing.assert_allclose(ours.reconstruct(X, kind=kind) / d, theirs.reconstruct(X / d, kind=kind), **close)
    np.testing.assert_allclose(ours.sample(7, random_state=1) / d, theirs.sample(7, random_state=1), **close)
    shift = np.where(np.isnan(X), 0.0, np.log(d)).sum(axis=1)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X / d) - shift, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.log_likelihood_, theirs.log_likelihood_ - shift.sum(), rtol=1e-12)
    np.testing.assert_allclose(ours.outliers(X)["t2"], theirs.outliers(X / d)["t2"], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance() * np.outer(d, d), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-12)
    if make is not ESTIMATORS[2]:
        np.testing.assert_allclose(ours.components_, theirs.components_, **close)
    Z = ours.transform(X)
    np.testing.assert_allclose(ours.inverse_transform(Z) / d, theirs.inverse_transform(Z), **close)
    assert ours.report_["scaled"] == {"scale": scale}


def test_a_file_keeps_the_scale(tmp_path):
    X = rows(True)
    for make in ESTIMATORS[:2] + ESTIMATORS[3:]:
        model = make(scale="unit").fit(X)
        model.save(tmp_path / "m.covary")
        loaded = covary.load(tmp_path / "m.covary")
        np.testing.assert_array_equal(loaded.scale_, model.scale_)
        np.testing.assert_array_equal(loaded.components_, model.components_)
        np.testing.assert_array_equal(loaded.impute(X), model.impute(X))


def test_batches_are_scaled_at_the_end():
    X = rows(False)
    model = covary.PPCA(2, scale="unit")
    for part in np.array_split(X, 4):
        model.partial_fit(part)
    np.testing.assert_allclose(model.mean_, covary.PPCA(2, scale="unit").fit(X).mean_, rtol=1e-12)
    with pytest.raises(ValueError, match="needs complete rows"):
        covary.PPCA(2, scale="unit").partial_fit(rows(True))


def test_unknown_scales_and_no_scale():
    X = rows(False)
    assert covary.PPCA(2).fit(X).scale_ is None
    with pytest.raises(ValueError, match="none, unit, pareto or range"):
        covary.PPCA(2, scale="large").fit(X)
    with pytest.raises(ValueError, match="tolerance"):
        covary.PPCA(2, tol=float("nan")).fit(X)
    with pytest.raises(ValueError, match="tolerance"):
        covary.FactorAnalysis(2, tol=-1.0).fit(X)
