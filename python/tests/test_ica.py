"""Independent components: what is found, beside python-picard's and scikit-learn's answers, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import FastICA as Theirs
from sklearn.exceptions import ConvergenceWarning
from support import punched

import covary


def mixed(n=5000, p=6, q=4, noise=0.0, seed=0):
    """Rows, sources and mixing matrix: Laplace and uniform sources in turn."""
    rng = np.random.default_rng(seed)
    S = np.column_stack([rng.laplace(size=n) / np.sqrt(2) if k % 2 else rng.uniform(-1, 1, size=n) * np.sqrt(3) for k in range(q)])
    A = rng.normal(size=(p, q))
    return S @ A.T + 5.0 * np.arange(p) + noise * rng.normal(size=(n, p)), S, A


def amari(mixing, true):
    """Distance of two mixing matrices whatever the order, sign and scale of their columns."""
    P = np.abs(np.linalg.pinv(mixing) @ true)
    q = len(P)
    excess = (P.sum(1) / P.max(1) - 1).sum() + (P.sum(0) / P.max(0) - 1).sum()
    return excess / (2 * q * (q - 1))


@pytest.mark.parametrize("method", ["picard", "infomax", "fastica"])
@pytest.mark.parametrize("noise", [True, False])
def test_sources_are_found_and_have_their_rules(method, noise):
    X, S, A = mixed(noise=0.05)
    model = covary.ICA(4, method=method, noise=noise, n_init=3).fit(X)
    assert model.converged_ and amari(model.mixing_, A) < 0.05
    assert (model.stability_ > 0.99).all() and not model.gaussian_.any()
    found = model.transform(X)
    corr = np.abs(np.corrcoef(found.T, S.T)[:4, 4:])
    assert (corr.max(axis=1) > 0.99).all()
    lengths = (model.mixing_**2).sum(axis=0)
    assert (np.diff(lengths) <= 0).all()
    np.testing.assert_allclose(model.explained_variance_, lengths)
    assert (model.mixing_[np.abs(model.mixing_).argmax(axis=0), range(4)] > 0).all()
    np.testing.assert_allclose((X - model.mean_) @ model.components_.T, found, atol=1e-10)
    assert (model.noise_variance_ > 0) == noise and np.isfinite(model.log_likelihood_) == noise
    if not noise:
        np.testing.assert_allclose(model.components_, np.linalg.pinv(model.mixing_), atol=1e-10)
        np.testing.assert_allclose(found.std(axis=0), 1.0, atol=1e-3 if method == "infomax" else 1e-10)
    if method != "infomax":
        np.testing.assert_allclose(model.correlation_, np.eye(4), atol=1e-12)


def test_answers_are_those_of_ppca():
    X = punched(mixed(800, noise=0.3)[0], 0.1)
    model, ppca = covary.ICA(4).fit(X), covary.PPCA(4).fit(X)
    assert model.log_likelihood_ == ppca.log_likelihood_
    for ours, theirs in zip(model.impute(X, return_std=True), ppca.impute(X, return_std=True)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.score_samples(X), ppca.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(model.outliers(X)["p_value"], ppca.outliers(X)["p_value"], atol=1e-9)
    np.testing.assert_allclose(model.get_covariance(), ppca.get_covariance(), atol=1e-9)
    np.testing.assert_allclose(model.mixing_ @ model.mixing_.T, ppca.loadings_ @ ppca.loadings_.T, atol=1e-9)


def test_the_fixed_point_is_that_of_python_picard():
    picard = pytest.importorskip("picard").picard
    X = mixed(4000, 4, 4)[0]
    W0 = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    K, W, _ = picard(X.T, ortho=True, extended=True, tol=1e-10, max_iter=1000, w_init=W0)
    theirs = np.linalg.pinv(W @ K)
    ours = covary.ICA(4, noise=False, tol=1e-10).fit(X)
    assert amari(ours.mixing_, theirs) < 1e-7


@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
def test_fastica_ends_where_scikit_learns_does(fun, algorithm):
    X = mixed(3000, 4, 4)[0]
    options = {"fun": fun, "algorithm": algorithm, "tol": 1e-14, "max_iter": 5000}
    start = np.random.default_rng(2).normal(size=(4, 4))
    theirs = Theirs(4, w_init=start, **options).fit(X)
    # The same start: principal components of the two may differ in sign.
    turn = theirs.whitening_ @ np.linalg.pinv(covary.FastICA(4).fit(X).whitening_)
    np.testing.assert_allclose(np.abs(turn), np.eye(4), atol=1e-10)
    ours = covary.FastICA(4, w_init=start @ turn, **options).fit(X)
    assert amari(ours.mixing_, theirs.mixing_) < 1e-6


def test_whiten_scales_sources_as_scikit_learn_does():
    X = mixed(500, 5, 3)[0]
    unit, other = covary.FastICA(3).fit(X), covary.FastICA(3, whiten="arbitrary-variance").fit(X)
    np.testing.assert_allclose(unit.transform(X).var(axis=0), 1.0)
    np.testing.assert_allclose(other.transform(X).var(axis=0), 1 / 500)
    for model in (unit, other):
        np.testing.assert_allclose(model.mixing_, np.linalg.pinv(model.components_), atol=1e-9)
        np.testing.assert_allclose(model.transform(X), (X - model.mean_) @ model.components_.T, atol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)
        np.testing.assert_allclose(((X - X.mean(0)) @ model.whitening_.T).var(axis=0), 1 / 500)
    white = (X - X.mean(0)) @ unit.whitening_.T * np.sqrt(500)
    plain = covary.FastICA(whiten=False).fit(white)
    assert not hasattr(plain, "mean_") and not hasattr(plain, "whitening_")
    np.testing.assert_allclose(plain.transform(white), white @ plain.components_.T, atol=1e-10)


def test_missing_values_weights_and_files(tmp_path):
    X, _, A = mixed(6000, 10, 4, noise=0.1)
    whole = amari(covary.ICA(4).fit(X).mixing_, A)
    assert amari(covary.ICA(4).fit(punched(X, 0.2)).mixing_, A) < 2 * whole
    weights = np.arange(len(X)) % 3
    weighted, repeated = covary.ICA(4).fit(X, sample_weight=weights), covary.ICA(4).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.mixing_, repeated.mixing_, atol=1e-6)
    np.save(tmp_path / "x.npy", X)
    read = covary.ICA(4).fit(covary.read(tmp_path / "x.npy"))
    assert amari(read.mixing_, A) == pytest.approx(whole, rel=1e-6)


def test_a_model_comes_back():
    X = mixed(1000)[0]
    model = covary.ICA(4).fit(X)
    for again in (pickle.loads(pickle.dumps(model)), clone(model).fit(X)):
        np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_saved_models_are_read(tmp_path):
    X = mixed(1000)[0]
    for model in (covary.ICA(3, method="infomax", n_init=2).fit(X), covary.FastICA(3).fit(X)):
        model.save(tmp_path / "m.covary")
        loaded = covary.load(tmp_path / "m.covary")
        assert isinstance(loaded, covary.ICA)
        np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert "stability" in str(covary.ICA(2).fit(X).summary())


def test_normal_sources_are_flagged():
    rng = np.random.default_rng(3)
    S = np.column_stack([rng.normal(size=(4000, 2)), rng.laplace(size=4000)])
    model = covary.ICA(3).fit(S @ rng.normal(size=(3, 3)))
    assert model.gaussian_.sum() == 2


def test_the_number_of_sources_is_chosen():
    X = mixed(500, 8, 3, noise=0.3)[0]
    assert covary.ICA("auto").fit(X).n_components_ == 3
    assert covary.ICA(0.5).fit(X).n_components_ <= 3


def test_bad_requests_are_refused():
    X = mixed(100)[0]
    for options in [{"method": "jade"}, {"n_init": 0}, {"tol": 0}, {"max_iter": 0}, {"n_components": 7}, {"n_components": "some"}]:
        with pytest.raises(ValueError):
            covary.ICA(**{"n_components": 2, **options}).fit(X)
    bad = [{"algorithm": "both"}, {"fun": "abs"}, {"fun": np.tanh}, {"fun_args": {"alpha": 3}}, {"w_init": np.eye(3)}, {"tol": -1}]
    for options in [*bad, {"whiten": True}, {"n_components": 0}, {"n_components": 5}]:
        with pytest.raises(ValueError):
            covary.FastICA(**{"n_components": 2, **options}).fit(X)
    with pytest.raises(ValueError, match="features"):
        covary.ICA(2).fit(X).transform(X[:, :3])
    with pytest.warns(ConvergenceWarning):
        covary.ICA(4, max_iter=1, n_init=1).fit(X)
    for model in (covary.ICA(), covary.FastICA()):
        assert not hasattr(model, "partial_fit") and not hasattr(model, "merge")


def cube(x, power=3):
    """g(x) = x³ and the mean of its derivative, as scikit-learn has it."""
    return x**power, (power * x ** (power - 1)).mean(axis=-1)


@pytest.mark.parametrize("algorithm", ["parallel", "deflation"])
def test_a_function_as_contrast(algorithm):
    rng = np.random.default_rng(3)
    sources = rng.laplace(size=(2000, 3))
    X = sources @ rng.normal(size=(3, 3)).T + 5.0

    options = {"algorithm": algorithm, "whiten": "unit-variance", "tol": 1e-12, "max_iter": 500}
    w_init = np.eye(3)
    named = covary.FastICA(3, fun="cube", w_init=w_init, **options).fit(X)
    own = covary.FastICA(3, fun=cube, fun_args={"power": 3}, w_init=w_init, **options).fit(X)
    assert np.allclose(own.components_, named.components_, rtol=0, atol=1e-6)
    assert own.converged_ and own.n_iter_ > 1
    assert np.allclose(own.inverse_transform(own.transform(X)), X)
    # From a seed, and of rows that are whitened already.
    assert covary.FastICA(2, fun=cube, random_state=0, **options).fit(X).components_.shape == (2, 3)
    white = named.transform(X) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert covary.FastICA(fun=cube, **{**options, "whiten": False}).fit(white).components_.shape == (3, 3)
    again = pickle.loads(pickle.dumps(own))
    assert again.n_iter_ == own.n_iter_ and np.array_equal(again.transform(X), own.transform(X))


def test_a_function_as_contrast_that_makes_no_sense():
    X = np.random.default_rng(4).laplace(size=(100, 2))
    cases = [
        (lambda x: x**3, "two things"),
        (lambda x: (x**3, 3 * x**2), "averaged along the last axis"),
        (lambda x: (x * np.nan, x.mean(axis=-1)), "NaN"),
    ]
    for function, words in cases:
        with pytest.raises(ValueError, match=words):
            covary.FastICA(2, fun=function).fit(X)
    with pytest.raises(ValueError, match="count alike"):
        covary.FastICA(2, fun=cube).fit(X, sample_weight=np.ones(100))
    with pytest.raises(ValueError, match="NaN"):
        covary.FastICA(2, fun=cube).fit(np.where(X > 3, np.nan, X))
    with pytest.warns(ConvergenceWarning):
        covary.FastICA(2, fun=cube, max_iter=1, tol=0).fit(X)
