"""Bayesian PCA: what is kept, what is known of the parameters, and that the answers know it too."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import gammaln
from sklearn.base import clone
from support import log_normal, low_rank, punched

import covary


def bishop(n=100, seed=0):
    """Three of ten independent features stand out."""
    return np.random.default_rng(seed).normal(size=(n, 10)) * [5, 4, 3, 1, 1, 1, 1, 1, 1, 1] + 2.0


def data(name):
    """A table of the public data sets, or the test is skipped."""
    folder = Path(os.environ.get("COVARY_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (folder / name).exists():
        pytest.skip(f"{name} is not there; COVARY_DATA names its folder")
    return pd.read_csv(folder / name)


@pytest.mark.parametrize("method", ["vb", "ard"])
def test_the_examples_of_the_textbook(method):
    """PRML, figure 12.14 (300 points), and Bishop 1999 (100 points)."""
    prml = lambda seed: np.random.default_rng(seed).normal(size=(300, 10)) * ([1.0] * 3 + [0.5] * 7)
    for example in (prml, lambda seed: bishop(seed=seed)):
        kept = [covary.BayesianPCA(9, method=method).fit(example(seed)).n_components_ for seed in range(100)]
        assert np.sum(np.equal(kept, 3)) >= 95


@pytest.mark.parametrize("method", ["vb", "ard"])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_python_and_the_command_agree_to_the_last_bit(tmp_path, command, method, share):
    X = punched(low_rank(400, 8, 2), share)
    np.save(tmp_path / "x.npy", X)
    fit = ("fit", tmp_path / "x.npy", "-q", 4, "--model", "bpca", "--method", method, "--tol", 1e-6, "--json")
    told = json.loads(command(*fit, "-o", tmp_path / "command.covary"))
    model = covary.BayesianPCA(4, method=method, tol=1e-6).fit(X)
    assert model.n_components_ == told["components"] == 2
    assert model.noise_variance_ == told["noise_variance"]
    assert model.log_likelihood_ == told["log_likelihood"]
    assert model.report_["bayes"]["objective"] == told["bayes"]["objective"]
    np.testing.assert_array_equal(model.alpha_, told["bayes"]["precisions"])
    if method == "vb":
        assert model.elbo_ == told["bayes"]["objective"]
        np.testing.assert_array_equal(model.loadings_std_, told["bayes"]["loadings_std"])
        np.testing.assert_array_equal(model.mean_std_, told["bayes"]["mean_std"])
    else:
        assert not any(hasattr(model, name) for name in ("elbo_", "loadings_std_", "mean_std_"))
    model.save(tmp_path / "python.covary")
    assert (tmp_path / "python.covary").read_bytes() == (tmp_path / "command.covary").read_bytes()
    loaded = covary.load(tmp_path / "command.covary")
    assert type(loaded) is covary.BayesianPCA and (loaded.n_components, loaded.method) == (4, method)
    for other in (loaded, pickle.loads(pickle.dumps(model)), clone(model).fit(X)):
        np.testing.assert_array_equal(other.loadings_, model.loadings_)
        np.testing.assert_array_equal(other.alpha_, model.alpha_)
        np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))


def test_the_density_knows_how_well_the_parameters_are_known():
    X = low_rank(40, 6, 2)
    for Y in (X, punched(X, 0.15)):
        model = covary.BayesianPCA(4).fit(Y)
        spread = (model.loadings_std_**2).sum(axis=1) + model.mean_std_**2
        C = model.loadings_ @ model.loadings_.T + np.diag(model.noise_variance_ + spread)
        np.testing.assert_allclose(model.get_covariance(), C, rtol=1e-12)
        expected = [log_normal(y, model.mean_, C) for y in Y]
        np.testing.assert_allclose(model.score_samples(Y), expected, rtol=1e-9)
        assert model.log_likelihood_ == pytest.approx(np.sum(expected), rel=1e-9)
        assert model.score(Y) == pytest.approx(np.mean(expected), rel=1e-9)
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-9)
        square = (model.loadings_**2 + model.loadings_std_**2).mean(axis=0)
        np.testing.assert_allclose(model.alpha_, 1 / square, rtol=1e-9)
        part = model.marginal([4, 1])
        assert type(part) is covary.BayesianPCA
        np.testing.assert_allclose(part.get_covariance(), C[np.ix_([4, 1], [4, 1])], rtol=1e-12)
        assert model.rotate().n_components_ == 2


def test_the_bound_is_that_of_the_posterior():
    """The bound by loops over what it is made of: fit, entropy of W and μ, prior of W at its best α, the row of means, τ."""
    X = bishop(60)
    model = covary.BayesianPCA().fit(X)
    (n, p), q, v = X.shape, model.n_components_, model.noise_variance_
    W, mean = model.loadings_, model.mean_
    theta, S = np.c_[W, mean], np.diag(np.r_[model.loadings_std_[0], model.mean_std_[0]] ** 2)
    m, apart, least = mean.mean(), 1.0, X.var(axis=0).mean() / n
    for _ in range(2000):  # all features have the same covariance S: what the means of the parameters, α and σ² make of it
        E = theta.T @ theta + p * S
        M = np.eye(q) + E[:q, :q] / v
        H = ((X - mean) @ W - p * S[:q, q]) / v
        Z = np.c_[H @ np.linalg.inv(M), np.ones(n)]
        second = Z.T @ Z
        second[:q, :q] += n * np.linalg.inv(M)
        C = np.linalg.inv(np.eye(q) + E[:q, :q] / apart)
        z = np.append(C @ (m * W.sum(axis=0) - E[:q, q]) / apart, 1.0)
        row = np.outer(z, z)
        row[:q, :q] += C
        m = (theta @ z).mean()
        rest = np.sum(E * row) - p * m**2
        apart = max(rest / (p - 1), least)
        S = np.linalg.inv(second / v + row / apart + np.diag(np.append(model.alpha_, 0.0)))
    np.testing.assert_allclose(np.sqrt(np.diag(S)), np.r_[model.loadings_std_[0], model.mean_std_[0]], rtol=1e-9)
    fit = -0.5 * n * (p * np.log(2 * np.pi * v) + np.linalg.slogdet(M)[1])
    for x, h in zip(X, H, strict=True):
        fit -= 0.5 * (((x - mean) ** 2).sum() + p * S[q, q]) / v - 0.5 * h @ np.linalg.solve(M, h)
    entropy = 0.5 * p * (np.linalg.slogdet(S)[1] + (q + 1) * (1 + np.log(2 * np.pi)))
    prior = 0.5 * p * (np.log(model.alpha_ / (2 * np.pi)) - 1).sum()
    latent = np.linalg.slogdet(C)[1] + q - np.trace(C) - z[:q] @ z[:q]
    means = 0.5 * (latent - (p - 1) * np.log(apart) - rest / apart)
    c = 0.5 * n * p
    assert model.elbo_ == pytest.approx(fit + entropy + prior + means + c + gammaln(c) - c * np.log(c), rel=1e-11)


def test_weights_batches_and_merges_are_rows():
    X = bishop(50)
    weights = np.random.default_rng(1).integers(0, 4, size=50)
    weighted = covary.BayesianPCA().fit(X, sample_weight=weights)
    repeated = covary.BayesianPCA().fit(np.repeat(X, weights, axis=0))
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, rel=1e-10)
    np.testing.assert_allclose(weighted.loadings_std_, repeated.loadings_std_, rtol=1e-9)
    whole = covary.BayesianPCA().fit(X)
    first, last = (covary.BayesianPCA().partial_fit(part) for part in (X[:20], X[20:]))
    assert first.merge(last).elbo_ == pytest.approx(whole.elbo_, rel=1e-10)
    with pytest.raises(ValueError, match="row 0"):
        covary.BayesianPCA().partial_fit(np.where(np.eye(50, 10), np.nan, X))


def test_frames_with_holes():
    X = punched(bishop(80), 0.1)
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    model = covary.BayesianPCA(6).set_output(transform="pandas").fit(frame)
    assert model.n_components_ == 3 and model.converged_
    assert list(model.transform(frame).columns) == [f"bayesianpca{k}" for k in range(3)]
    filled, std = (table.to_numpy() for table in model.impute(frame, return_std=True))
    holes = np.isnan(X)
    assert np.isfinite(filled).all() and (std[~holes] == 0).all()
    assert (std[holes] ** 2 > model.noise_variance_).all()
    assert "bound on log evidence" in model._repr_html_()


@pytest.mark.parametrize("method", ["vb", "ard"])
def test_nothing_but_noise(method):
    X = np.random.default_rng(3).normal(size=(200, 5))
    holes = X.copy()
    holes[[3, 8], [2, 0]] = np.nan
    for Y in (X, holes):
        model = covary.BayesianPCA(method=method).fit(Y)
        assert (model.n_components_, model.transform(Y).shape) == (0, (200, 0))
        assert model.alpha_.shape == (0,) and model.components_.shape == (0, 5)
        filled, std = model.impute(holes, return_std=True)
        np.testing.assert_allclose(filled[3, 2], model.mean_[2])
        np.testing.assert_allclose(std[3, 2] ** 2, model.get_covariance()[2, 2])
        np.testing.assert_allclose(model.inverse_transform(np.zeros((3, 0))), np.tile(model.mean_, (3, 1)))
        mean, covariance = model.posterior(holes)
        assert mean.shape == (200, 0) and covariance.shape[-2:] == (0, 0)
        assert model.sample(4).shape == (4, 5) and model.sample_missing(holes, 2).shape == (2, 200, 5)
        assert np.isfinite(model.score_samples(Y)).all() and set(model.outliers(Y)) == {"t2", "spe", "p_value"}
        assert " allowed" in model._repr_html_()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).mean_, model.mean_)


def test_given_parameters():
    given = {"mean": [0.0, 1.0, 2.0], "loadings": [[1.0], [2.0], [0.5]], "noise_variance": 0.5}
    model = covary.BayesianPCA.from_parameters(**given, loadings_std=[[0.1], [0.2], [0.3]])
    np.testing.assert_array_equal(model.mean_std_, np.zeros(3))
    np.testing.assert_allclose(model.alpha_, [3 / (5.25 + 0.14)])
    np.testing.assert_allclose(np.diag(model.get_covariance()), [1.51, 4.54, 0.84])
    point = covary.BayesianPCA.from_parameters(**given)
    assert not hasattr(point, "loadings_std_") and not hasattr(point, "elbo_")
    np.testing.assert_allclose(np.diag(point.get_covariance()), [1.5, 4.5, 0.75])


def test_what_makes_no_sense():
    X = bishop(30)
    with pytest.raises(ValueError, match="method"):
        covary.BayesianPCA(method="gibbs").fit(X)
    with pytest.raises(ValueError, match="at least 1"):
        covary.BayesianPCA(0).fit(X)
    with pytest.raises(ValueError, match="components"):
        covary.BayesianPCA(11).fit(X)
    with pytest.raises(ValueError, match="1 sample|row"):
        covary.BayesianPCA().fit(X[:1])
    with pytest.raises(AttributeError):
        covary.BayesianPCA().elbo_  # noqa: B018 - not fitted


def test_ratings_do_not_overfit():
    """A tenth of the Jester jokes' ratings: maximum likelihood is worse with ten components than with two, VB is not."""
    ratings = data("jester5k_ratings.csv.gz")
    share = np.random.default_rng(11).random(len(ratings))
    user, joke, rating = ratings[share < 0.10].to_numpy().T
    cells = (rating, (user.astype(int) - 1, joke.astype(int) - 1))
    seen = covary.observed(sparse.csr_array(cells, shape=(5000, 100)))
    user, joke, rating = ratings[share > 0.90].to_numpy().T
    errors = {}
    for q in (2, 10):
        model = covary.BayesianPCA(q).fit(seen)
        mean, std = model.predict_cells(seen, user.astype(int) - 1, joke.astype(int) - 1)
        errors[q] = np.sqrt(np.mean((mean - rating) ** 2))
        coverage = np.mean(np.abs(mean - rating) < 1.959964 * std)
        print(f"jester: q {q}, kept {model.n_components_}: RMSE {errors[q]:.4f}, coverage {coverage:.4f}, {model.report_['passes']} passes")
        assert 0.93 < coverage < 0.97
    assert max(errors.values()) < 4.50
    assert errors[10] < errors[2] + 0.005


# Where vbpca_py 0.5.0 (algorithm="vb", converged, the same from three seeds) ends on these cells, by the most components.
METABOLITES = {2: 0.195822, 3: 0.184505, 5: 0.156714}


@pytest.mark.parametrize("q", METABOLITES)
def test_metabolites_that_are_missing(q):
    """Imputed cells of data whose true values are known: nearer than another program's."""
    missing, complete = (data(f"metabolite_{name}.csv").drop(columns="sample").to_numpy() for name in ("missing", "complete"))
    model = covary.BayesianPCA(q).fit(missing)
    holes = np.isnan(missing)
    rmse = np.sqrt(np.mean((model.impute(missing) - complete)[holes] ** 2))
    print(f"metabolites: q {q}, kept {model.n_components_}: RMSE {rmse:.6f}, vbpca_py {METABOLITES[q]}")
    assert rmse < METABOLITES[q]
