"""Mixtures of PPCA: dense formulas, scikit-learn's GaussianMixture as the unrestricted case, missing values."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture
from support import log_normal, punched

import covary
from covary import PPCA, FactorAnalysis, MixturePPCA


def groups(n=150, p=4, seed=0):
    """Rows of two groups with a direction of their own, n of each."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(n, 1)) @ rng.normal(size=(1, p)) * 2 + shift for shift in (0, 6)]
    return np.concatenate(parts) + 0.5 * rng.normal(size=(2 * n, p))


def joint(model, X):
    """log π + log density of each group, by dense normals."""
    out = np.empty((len(X), len(model.weights_)))
    for k, (w, mean, W, s) in enumerate(
        zip(model.weights_, model.means_, model.loadings_, model.noise_variance_, strict=True)
    ):
        C = W @ W.T + s * np.eye(len(mean))
        out[:, k] = [np.log(w) + log_normal(x, mean, C) for x in X]
    return out


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_questions_are_those_of_dense_normals(missing):
    X = punched(groups(), missing)
    model = MixturePPCA(2, 1).fit(X)
    terms = joint(model, X)
    total = logsumexp(terms, axis=1)
    np.testing.assert_allclose(model.score_samples(X), total, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(terms - total[:, None]), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), terms.argmax(axis=1))
    np.testing.assert_allclose(model.log_likelihood_, total.sum(), rtol=1e-10)
    r, z, cov = model.posterior(X)
    assert r.shape == (300, 2) and z.shape == (300, 2, 1) and len(cov) == 2
    for k in range(2):
        np.testing.assert_allclose(z[:, k], model.component(k).transform(X), atol=1e-12)
    assert model.outliers(X)["p_value"].shape == (300,)
    assert model.sample(7, random_state=3).shape == (7, 4)


def test_unrestricted_covariances_are_those_of_scikit_learn():
    X = groups(seed=3)
    theirs = GaussianMixture(2, reg_covar=0, tol=1e-12, max_iter=2000, random_state=0).fit(X)
    ours = MixturePPCA(2, 3, prior=None).fit(X)
    assert abs(ours.log_likelihood_ - theirs.score(X) * len(X)) < 1e-5
    # Both weigh one half, so rounding decides which comes first.
    order = [np.linalg.norm(theirs.means_ - mean, axis=1).argmin() for mean in ours.means_]
    np.testing.assert_allclose(ours.weights_, theirs.weights_[order], atol=1e-6)
    np.testing.assert_allclose(ours.means_, theirs.means_[order], atol=1e-4)
    assert abs(ours.bic(X) - theirs.bic(X)) < 1e-4 + abs(ours._n_parameters() - theirs._n_parameters()) * 10


def test_criteria_are_those_of_the_fit():
    X = groups()
    model = MixturePPCA(2, 1).fit(X)
    # K (p + pq - q (q - 1) / 2 + 1) + K - 1
    assert model._n_parameters() == 2 * (4 + 4 + 1) + 1
    for name in ("bic", "aic", "icl"):
        assert abs(getattr(model, name)(X) - getattr(model, name + "_")) < 1e-6
    assert MixturePPCA("auto", 1).fit(X).n_components_ == 2
    chosen = MixturePPCA((1, 4), "auto").fit(X)
    assert chosen.n_components_ == 2 and chosen.n_latent_.tolist() == [1, 1]


def test_one_group_is_ppca_or_factor_analysis():
    X = groups(seed=5)[:, :4]
    one, ppca = MixturePPCA(1, 2).fit(X), PPCA(2).fit(X)
    assert abs(one.log_likelihood_ - ppca.log_likelihood_) < 1e-7
    np.testing.assert_allclose(one.component(0).get_covariance(), ppca.get_covariance(), rtol=1e-6)
    np.testing.assert_allclose(one.outliers(X)["p_value"], ppca.outliers(X)["p_value"], rtol=1e-5, atol=1e-12)
    one, fa = MixturePPCA(1, 1, noise="diagonal").fit(X), FactorAnalysis(1).fit(X)
    assert abs(one.log_likelihood_ - fa.log_likelihood_) < 1e-6
    assert one.noise_variance_.shape == (1, 4)


def test_missing_cells_are_imputed_by_group():
    X = groups(n=400, seed=7)
    Y = punched(X, 0.2)
    model = MixturePPCA(2, 1).fit(Y)
    filled, std = model.impute(Y, return_std=True)
    hidden = np.isnan(Y)
    assert np.array_equal(filled[~hidden], X[~hidden])
    inside = np.abs(filled - X)[hidden] < 1.96 * std[hidden]
    assert 0.93 < inside.mean() < 0.97
    pooled = PPCA(1).fit(Y).impute(Y)
    error = lambda filled: np.sqrt(np.mean((filled - X)[hidden] ** 2))  # noqa: E731
    assert error(filled) < 0.9 * error(pooled)
    draws = model.sample_missing(Y, 3)
    assert draws.shape == (3, *X.shape) and not np.isnan(draws).any()
    indices, mean, cov = model.conditional(Y[hidden.any(axis=1)][0])
    assert len(indices) == len(mean) == len(cov)


def test_files_pickles_and_given_numbers(tmp_path):
    X = groups()
    model = MixturePPCA(2, 1).fit(X)
    model.save(tmp_path / "m.covary")
    for again in (covary.load(tmp_path / "m.covary"), pickle.loads(pickle.dumps(model))):
        assert isinstance(again, MixturePPCA)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    given = MixturePPCA.from_parameters(
        weights=model.weights_, means=model.means_, loadings=model.loadings_, noise_variance=model.noise_variance_
    )
    np.testing.assert_allclose(given.score_samples(X), model.score_samples(X), rtol=1e-12)
    with pytest.raises(AttributeError, match="given"):
        given.bic_
    part = model.marginal([2, 0])
    assert isinstance(part, MixturePPCA) and part.means_.shape == (2, 2)
    assert "groups (K)" in str(model.summary())


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_variational_bayes_keeps_what_is_there(missing, tmp_path):
    X = punched(groups(), missing)
    model = MixturePPCA(5, method="vb").fit(X)
    assert (model.n_components_, model.n_latent_.tolist()) == (2, [1, 1])
    np.testing.assert_allclose(model.weights_, 0.5, atol=0.01)
    found = model.report_["mixture"]["variational"]
    assert found["bound"] == model.elbo_ and model.elbo_ < model.log_likelihood_
    # What is not known of means and loadings is part of the noise of an answer.
    noise = np.reshape(model.noise_variance_, (2, -1))
    assert (noise > np.reshape(found["noise"], (2, 1))).all()
    np.testing.assert_allclose(model.score_samples(X).sum(), model.log_likelihood_, rtol=1e-9)
    np.testing.assert_allclose(model.bic(X), model.bic_, rtol=1e-9)
    model.save(tmp_path / "model.covary")
    again = covary.load(tmp_path / "model.covary")
    assert (again.method, again.noise, again.elbo_) == ("vb", "isotropic", model.elbo_)
    with pytest.raises(AttributeError, match="method='vb'"):
        MixturePPCA(2, 1).fit(X).elbo_  # noqa: B018 - the attribute is the test


def test_a_warm_start_goes_on_from_the_fit_before():
    X = groups()
    model = MixturePPCA(2, 1, warm_start=True).fit(X)
    first = model.log_likelihood_
    assert abs(model.fit(X).log_likelihood_ - first) < 1e-5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_components": 0}, "n_components=0 must be"),
        ({"n_components": "many"}, "n_components='many' must be"),
        ({"n_components": 2, "n_latent": 4}, "below the number of features"),
        ({"n_components": 2, "n_latent": -1}, "n_latent=-1 must be"),
        ({"n_components": 2, "noise": "none"}, "noise must be 'isotropic' or 'diagonal'"),
        ({"n_components": 2, "prior": -1}, "prior=-1 must be"),
        ({"n_components": 2, "method": "ard"}, "method must be 'em' or 'vb'"),
        ({"n_components": 2, "method": "vb", "noise": "diagonal"}, "noise of a mixture by variational Bayes"),
        ({"n_components": 2, "method": "vb", "prior": None}, "prior of a mixture by variational Bayes"),
        ({"n_components": 2, "init": "luck"}, "init='luck' must be"),
        ({"n_components": 2, "n_init": -1}, "n_init=-1 must be"),
    ],
)
def test_what_makes_no_sense_is_said(options, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        MixturePPCA(**options).fit(groups(n=20))


def test_batches_are_for_maximum_likelihood():
    with pytest.raises(ValueError, match="the method of a mixture of batches"):
        MixturePPCA(2, method="vb").partial_fit(groups(n=20))


def test_a_group_that_shrinks_is_named():
    X = np.concatenate([groups(n=30)[:30], np.tile([20.0, 21, 22, 23], (30, 1))])
    with pytest.raises(Exception, match="has shrunk onto"):
        MixturePPCA(2, 1, prior=None).fit(X)
    assert MixturePPCA(2, 1).fit(X).weights_.round(6).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_batches_come_near_the_fit(missing):
    X = punched(np.random.default_rng(1).permutation(groups(600)), missing)
    best, model = MixturePPCA(2, 1).fit(X), MixturePPCA(2, 1)
    for _ in range(6):
        for batch in np.array_split(X, 6):
            # What is kept between batches is pickled too.
            model = pickle.loads(pickle.dumps(model.partial_fit(batch)))
    # 19 free parameters of 1200 rows are worth 19/2400 nats a row: a tenth of that is near.
    assert best.score(X) - model.score(X) < 1.9 / 2400
    # Groups of equal size may stand in either order.
    same = np.mean(best.predict(X) == model.predict(X))
    assert max(same, 1 - same) > 0.995
    report = model.report_
    assert not report["exact"] and "36 online steps" in report["why"]
    assert report["mixture"]["online_steps"] == 36 and report["rows"] == 7200 and model.n_iter_ == 36
    assert np.isnan(model.log_likelihood_) and abs(model.bic_ / (-2 * 7200 * model.score(X)) - 1) < 0.02
    assert best.report_["exact"]


def test_pickling_between_batches_changes_nothing():
    X = groups(200, seed=5)
    plain, pickled = MixturePPCA(2, 1), MixturePPCA(2, 1)
    for batch in [X[::4], X[1::4], punched(X, 0.1), X[2::4]]:
        plain.partial_fit(batch)
        pickled = pickle.loads(pickle.dumps(pickled.partial_fit(batch)))
    np.testing.assert_array_equal(plain.means_, pickled.means_)
    np.testing.assert_array_equal(plain.noise_variance_, pickled.noise_variance_)


def test_a_single_group_in_batches_is_ppca():
    X = groups(100)
    model, ppca = MixturePPCA(1, 2), PPCA(2)
    for batch in np.array_split(X, 3):
        model.partial_fit(batch)
        ppca.partial_fit(batch)
    np.testing.assert_allclose(model.component(0).get_covariance(), ppca.get_covariance(), rtol=1e-9)


def test_weights_of_a_batch_are_repetitions():
    X = groups(100)
    first, batch = X[::2], X[1::2]
    weighted = MixturePPCA(2, 1).partial_fit(first).partial_fit(batch, sample_weight=np.full(len(batch), 3.0))
    repeated = MixturePPCA(2, 1).partial_fit(first).partial_fit(np.repeat(batch, 3, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-9)
    np.testing.assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-9)


def test_batches_that_do_not_fit():
    X = groups(100)
    model = MixturePPCA(2, 1).partial_fit(X)
    means = model.means_
    with pytest.raises(ValueError, match="4 features"):
        model.partial_fit(X[:, :3])
    with pytest.raises(ValueError, match="scale"):
        MixturePPCA(2, 1, scale="unit").partial_fit(X)
    np.testing.assert_array_equal(model.means_, means)
    # A model that was fitted, loaded or given goes on.
    given = MixturePPCA.from_parameters(
        weights=model.weights_, means=means, loadings=model.loadings_, noise_variance=model.noise_variance_
    )
    np.testing.assert_allclose(given.partial_fit(X).means_, means, atol=1e-2)


def test_random_starts_are_a_second_opinion():
    X = groups(25, seed=2)
    grown = MixturePPCA(3, 1).fit(X)
    asked, again = (MixturePPCA(3, 1, n_init=8).fit(X) for _ in range(2))
    assert asked.log_likelihood_ > grown.log_likelihood_ - 1e-6
    np.testing.assert_array_equal(asked.means_, again.means_)
    more = MixturePPCA(3, 1, init="random").fit(X)
    assert more.report_["passes"] > asked.report_["passes"] > grown.report_["passes"]


def test_a_start_can_be_given():
    X = groups()
    best = MixturePPCA(2, 1).fit(X)
    names = ("weights", "means", "loadings", "noise_variance")
    given = {name: getattr(best, f"{name}_") for name in names}
    for init in (best, given):
        model = MixturePPCA(2, 1, init=init).fit(X)
        np.testing.assert_allclose(model.means_, best.means_, atol=1e-3)
        assert model.report_["passes"] < best.report_["passes"]
