"""Rotations of any loadings, and the measures of whether they are worth it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from support import low_rank

import covary

NAMES = ["varimax", "quartimax", "equamax", "parsimax", "promax", "oblimin", "geomin", "geomin-orthogonal"]
OBLIQUE = {"promax", "oblimin", "geomin"}


@pytest.fixture(scope="module")
def loadings():
    rng = np.random.default_rng(4)
    simple = np.kron(np.eye(3), [[0.9], [0.8], [0.7], [0.6]]) + 0.1 * rng.normal(size=(12, 3))
    return simple @ np.linalg.qr(rng.normal(size=(3, 3)))[0]


@pytest.mark.parametrize("name", NAMES)
def test_everything_belongs_together(loadings, name):
    found = covary.rotate(loadings, name)
    T, phi = found.rotation_matrix, found.factor_correlation
    np.testing.assert_allclose(found.pattern @ phi @ found.pattern.T, loadings @ loadings.T, atol=1e-12)
    np.testing.assert_allclose(found.structure, loadings @ T, atol=1e-12)
    np.testing.assert_allclose(found.pattern, loadings @ np.linalg.inv(T).T, atol=1e-12)
    np.testing.assert_allclose(phi, T.T @ T, atol=1e-12)
    np.testing.assert_allclose(found.explained, np.diag(phi @ found.pattern.T @ found.pattern), rtol=1e-12)
    assert found.converged and found.agreeing >= 1
    if name not in OBLIQUE:
        np.testing.assert_allclose(phi, np.eye(3), atol=1e-12)
    assert (found.pattern[np.abs(found.pattern).argmax(axis=0), range(3)] > 0).all()


def test_varimax_has_no_better_angle(loadings):
    # Two factors: the criterion by its definition (Kaiser's normalisation off) over all angles.
    A = loadings[:, :2]
    found = covary.rotate(A, "varimax", kaiser=False).pattern
    criterion = lambda L: (L**2).var(axis=0).sum()
    turn = lambda t: A @ [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
    assert criterion(found) >= max(criterion(turn(t)) for t in np.linspace(0, np.pi / 2, 2000)) - 1e-12


def test_towards_a_target(loadings):
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    found = covary.rotate(loadings, "procrustes", target=loadings @ Q)
    np.testing.assert_allclose(found.pattern, loadings @ Q, atol=1e-10)
    target = np.where(np.kron(np.eye(3), np.ones((4, 1))) == 1, np.nan, 0.0)
    orthogonal, oblique = (covary.rotate(loadings, "target", target=target, oblique=o) for o in (False, True))
    assert oblique.criterion <= orthogonal.criterion + 1e-12


def test_settings():
    rotation = covary.Rotation("geomin", delta=0.001, oblique=False, n_starts=5)
    assert repr(rotation) == "Rotation('geomin', delta=0.001, oblique=False, n_starts=5)"
    assert repr(clone(covary.FactorAnalysis(2, rotation=rotation)).rotation) == repr(rotation)
    for bad, words in [
        (dict(method="varimax", power=4), "power is of promax|varimax has no parameter"),
        (dict(method="promax", gamma=0.0), "gamma is of oblimin, not of promax"),
        (dict(method="varimax", oblique=True), "always orthogonal"),
        (dict(method="oblimin", delta=1, gamma=0), "different rotations"),
        (dict(method="turnaround"), "turnaround.*varimax, quartimax"),
        (dict(method="target"), "need the matrix"),
        (dict(method="varimax", target=[[1.0]]), "a target is for"),
    ]:
        with pytest.raises(ValueError, match=words):
            covary.rotate(np.eye(4, 2), **bad)
    with pytest.raises(ValueError, match="Kaiser"):
        covary.rotate([[1.0, 0], [0, 1], [0, 0]], "varimax")
    with pytest.raises(ValueError, match="nan"):
        covary.rotate([[1.0, np.nan], [0, 1]], "quartimax")


def test_loadings_of_any_model(loadings):
    X = low_rank(300, 8, 3)
    W = covary.PPCA(3).fit(X).loadings_
    found = covary.rotate(pd.DataFrame(W), covary.Rotation("varimax"))
    np.testing.assert_allclose(found.pattern @ found.pattern.T, W @ W.T, atol=1e-10)
    one = covary.rotate(-W[:, :1], "oblimin")
    np.testing.assert_allclose(np.abs(one.pattern), np.abs(W[:, :1]))


@pytest.fixture(scope="module")
def rows():
    return low_rank(200, 6, 2, noise=1.0)


def test_adequacy_is_the_definition(rows):
    R = np.corrcoef(rows.T)
    P = np.linalg.inv(R)
    partial = P / np.sqrt(np.outer(P.diagonal(), P.diagonal()))
    off = ~np.eye(6, dtype=bool)
    r, u = np.where(off, R, 0) ** 2, np.where(off, partial, 0) ** 2
    for found in (covary.kmo(rows), covary.kmo(covariance=np.cov(rows.T))):
        assert found.overall == pytest.approx(r.sum() / (r + u).sum(), rel=1e-10)
        np.testing.assert_allclose(found.features, r.sum(axis=0) / (r + u).sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(covary.smc(rows), 1 - 1 / P.diagonal(), rtol=1e-10)
    chi2 = -(200 - 1 - 17 / 6) * np.linalg.slogdet(R)[1]
    for found in (covary.bartlett(rows), covary.bartlett(covariance=R, n_samples=200)):
        assert found.chi2 == pytest.approx(chi2, rel=1e-10) and found.dof == 15
        assert found.p_value == pytest.approx(stats.chi2.sf(chi2, 15), rel=1e-6, abs=1e-300)


def test_adequacy_takes_frames_and_weights_and_names_trouble(rows):
    frame = pd.DataFrame(rows, columns=list("abcdef"))
    np.testing.assert_array_equal(covary.kmo(frame).features, covary.kmo(rows).features)
    weights = np.arange(200) % 3
    weighted = covary.kmo(rows, sample_weight=weights).overall
    assert weighted == pytest.approx(covary.kmo(np.repeat(rows, weights, axis=0)).overall, rel=1e-10)
    frame["g"] = 2 * frame["a"]
    with pytest.raises((ValueError, np.linalg.LinAlgError), match="singular.*'?a'?.*'?g'?"):
        covary.kmo(frame)
    with pytest.raises(ValueError, match="one of the two"):
        covary.kmo()
    with pytest.raises(ValueError, match="n_samples"):
        covary.bartlett(covariance=np.eye(3))
    with pytest.raises(ValueError, match="too few rows"):
        covary.bartlett(covariance=np.eye(3), n_samples=2)
    holes = rows.copy()
    holes[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 2"):
        covary.kmo(holes)
