"""PPCA against the closed form and dense formulas by NumPy."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from support import closed_form, log_normal, low_rank, punched

import covary


@pytest.fixture(scope="module")
def X():
    return low_rank(400, 8, 3)


@pytest.fixture(scope="module")
def model(X):
    return covary.PPCA(3).fit(X)


@pytest.mark.parametrize("solver", ["auto", "eigen", "svd", "dual", "krylov"])
@pytest.mark.parametrize("shape", [(300, 12), (20, 40)])
def test_every_solver_finds_the_closed_form(solver, shape):
    X = low_rank(*shape, 4)
    ours = covary.PPCA(4, solver=solver).fit(X)
    mean, values, noise, W = closed_form(X, 4)
    np.testing.assert_allclose(ours.mean_, mean, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_, values[:4], rtol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio_, values[:4] / values.sum(), rtol=1e-9)
    np.testing.assert_allclose(ours.noise_variance_, noise, rtol=1e-9)
    np.testing.assert_allclose(ours.loadings_, W, atol=1e-6)
    np.testing.assert_allclose(ours.get_covariance(), W @ W.T + noise * np.eye(shape[1]), atol=1e-6)


def test_attributes_fit_together(X, model):
    scale = np.sqrt(model.explained_variance_ - model.noise_variance_)
    np.testing.assert_allclose(model.loadings_, model.components_.T * scale, rtol=1e-12)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    assert (model.components_[range(3), np.abs(model.components_).argmax(axis=1)] > 0).all()
    assert model.n_components_ == 3 and model.n_features_in_ == 8 and model.converged_ and model.n_iter_ == 1
    assert model.log_likelihood_ == pytest.approx(model.score_samples(X).sum(), rel=1e-12)
    assert {"solver", "why", "passes", "seconds", "trace"} <= model.report_.keys()


def test_a_learned_array_cannot_be_changed_by_accident(model):
    with pytest.raises(ValueError, match="read-only"):
        model.components_[0] *= -1
    with pytest.raises(AttributeError):
        model.mean_ = 0


def test_weights_count_rows(X):
    weights = np.arange(len(X)) % 3
    ours = covary.PPCA(2).fit(X, sample_weight=weights)
    repeated = covary.PPCA(2).fit(np.repeat(X, weights, axis=0))
    mean, values, noise, W = closed_form(X, 2, weights)
    np.testing.assert_allclose(ours.get_covariance(), repeated.get_covariance(), rtol=1e-10)
    np.testing.assert_allclose(ours.loadings_, W, rtol=1e-9)
    assert ours.noise_variance_ == pytest.approx(noise)


def test_number_of_components_by_share_and_by_evidence(X):
    shares = closed_form(X, 1)[1].cumsum() / closed_form(X, 1)[1].sum()
    for share in (0.3, 0.8, 0.99):
        assert covary.PPCA(share).fit(X).n_components_ == np.searchsorted(shares, share) + 1
    assert covary.PPCA("mle").fit(X).n_components_ == 3
    assert covary.PPCA().fit(X).n_components_ == 8
    assert covary.PPCA().fit(X[:5]).n_components_ == 4


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_questions_are_the_dense_formulas(X, model, share):
    X = punched(X, share)[:50]
    X[7] = np.nan if share else X[7]
    C, W, mu, s = model.get_covariance(), model.loadings_, model.mean_, model.noise_variance_
    np.testing.assert_allclose(model.get_precision(), np.linalg.inv(C), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(X), [log_normal(x, mu, C) for x in X], rtol=1e-9)
    z, cov = model.posterior(X)
    np.testing.assert_array_equal(z, model.transform(X))
    assert cov.shape == ((50, 3, 3) if share else (3, 3))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        M = W[o].T @ W[o] + s * np.eye(3)
        np.testing.assert_allclose(z[i], np.linalg.solve(M, W[o].T @ (x - mu)[o]), atol=1e-10)
        np.testing.assert_allclose(cov[i] if share else cov, s * np.linalg.inv(M), atol=1e-10)
    np.testing.assert_allclose(model.reconstruct(X, "posterior"), mu + z @ W.T, atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(z), mu + z @ W.T, atol=1e-12)


def test_orthogonal_reconstruction_is_the_projection(X, model):
    P = model.components_.T @ model.components_
    np.testing.assert_allclose(model.reconstruct(X), model.mean_ + (X - model.mean_) @ P, atol=1e-10)
    with pytest.raises(ValueError, match="orthogonal"):
        model.reconstruct(X, "nearest")


def test_the_conditional_is_that_of_the_normal_distribution(X, model):
    x = punched(X, 0.4)[3]
    h = np.isnan(x)
    indices, mean, cov = model.conditional(x)
    C = model.get_covariance()
    gain = C[np.ix_(h, ~h)] @ np.linalg.inv(C[np.ix_(~h, ~h)])
    np.testing.assert_array_equal(indices, np.flatnonzero(h))
    np.testing.assert_allclose(mean, model.mean_[h] + gain @ (x - model.mean_)[~h], rtol=1e-9)
    np.testing.assert_allclose(cov, C[np.ix_(h, h)] - gain @ C[np.ix_(~h, h)], atol=1e-9)


def test_outliers(X, model):
    found = model.outliers(X)
    e = X - model.mean_
    P = model.components_.T @ model.components_
    scores = e @ model.components_.T
    np.testing.assert_allclose(found["t2"], (scores**2 / model.explained_variance_).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found["spe"], ((e - e @ P) ** 2).sum(axis=1), rtol=1e-8)
    distance = np.einsum("ij,jk,ik->i", e, np.linalg.inv(model.get_covariance()), e)
    np.testing.assert_allclose(found["p_value"], stats.chi2.sf(distance, 8), rtol=1e-7)


def test_samples_have_the_moments_of_the_model(model):
    n = 100_000
    S = model.sample(n, random_state=5)
    np.testing.assert_array_equal(S[:10], model.sample(10, random_state=5))
    assert not np.array_equal(S[:10], model.sample(10, random_state=6))
    C = model.get_covariance()
    # Five standard errors of a mean, and of a variance (√(2/n) relative) against the largest one.
    np.testing.assert_allclose(S.mean(axis=0), model.mean_, atol=5 * np.sqrt(C.diagonal().max() / n))
    np.testing.assert_allclose(np.cov(S.T), C, atol=5 * np.sqrt(2 / n) * C.diagonal().max())


def test_marginal_by_index_name_and_slice(X, model):
    C = model.get_covariance()
    some = model.marginal([5, 0, 2])
    np.testing.assert_allclose(some.get_covariance(), C[np.ix_([5, 0, 2], [5, 0, 2])], rtol=1e-12)
    np.testing.assert_array_equal(some.mean_, model.mean_[[5, 0, 2]])
    np.testing.assert_allclose(model.marginal(slice(2, 5)).mean_, model.mean_[2:5])
    np.testing.assert_allclose(
        some.score_samples(X[:, [5, 0, 2]]),
        [log_normal(x, some.mean_, some.get_covariance()) for x in X[:, [5, 0, 2]]],
    )


@pytest.mark.parametrize("noise", [0.4, [0.1, 0.2, 0.3, 0.4]])
def test_from_parameters(noise):
    rng = np.random.default_rng(3)
    mean, W = rng.normal(size=4), rng.normal(size=(4, 2))
    model = covary.PPCA.from_parameters(mean=mean, loadings=W, noise_variance=noise)
    C = W @ W.T + np.diag(np.broadcast_to(noise, 4))
    np.testing.assert_allclose(model.get_covariance(), C, rtol=1e-13)
    np.testing.assert_array_equal(model.loadings_, W)
    np.testing.assert_array_equal(model.noise_variance_, noise)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    X = rng.normal(size=(5, 4))
    np.testing.assert_allclose(model.score_samples(X), stats.multivariate_normal(mean, C).logpdf(X), rtol=1e-10)
    assert np.isnan(model.log_likelihood_) and "given" in model.report_["why"]
    with pytest.raises(ValueError, match="rows of the loadings: 4 where 3"):
        covary.PPCA.from_parameters(mean=mean[:3], loadings=W, noise_variance=0.1)


def test_parts_in_any_order_and_split_make_the_same_model(X):
    whole = covary.PPCA(3).fit(X)
    cut, left, right = covary.PPCA(3), covary.PPCA(3), covary.PPCA(3)
    for part in np.array_split(X, 7):
        cut.partial_fit(part)
    for part in np.array_split(X[:300], 2):
        right.partial_fit(part)
    left.partial_fit(X[300:]).merge(right)
    fresh = covary.PPCA(3).merge(left)
    for ours in (cut, left, fresh):
        np.testing.assert_allclose(ours.get_covariance(), whole.get_covariance(), rtol=1e-11)
        np.testing.assert_allclose(ours.mean_, whole.mean_, rtol=1e-12)
        assert ours.report_["rows"] == 400
    assert right.report_["rows"] == 300
    cut.partial_fit(X)
    assert cut.report_["rows"] == 800


def test_partial_fit_says_when_it_forgets(X):
    model = covary.PPCA(2).fit(X)
    with pytest.warns(UserWarning, match="forgotten"):
        model.partial_fit(X[:50])
    assert model.report_["rows"] == 50
    with pytest.raises(ValueError, match="X has 3 features"):
        model.partial_fit(X[:, :3])
    with pytest.raises(NotFittedError):
        covary.PPCA(2).merge(covary.PPCA(2))


def test_merging_needs_what_partial_fit_keeps(X):
    fitted, seen = covary.PPCA(2).fit(X), covary.PPCA(2).partial_fit(X)
    for left, right, which in ((seen, fitted, "other"), (fitted, seen, "this"), (covary.PPCA(2), fitted, "other")):
        with pytest.raises(ValueError, match=f"{which} PPCA was made by fit.*partial_fit"):
            left.merge(right)
    assert fitted.report_["rows"] == seen.report_["rows"] == 400


def test_only_estimators_of_the_same_class_are_merged(X):
    ours = covary.PPCA(2).partial_fit(X)
    for other, name in [(3, "int"), (covary.PCA(2).partial_fit(X), "PCA")]:
        with pytest.raises(TypeError, match=f"merge takes in another PPCA, not {name}"):
            ours.merge(other)


def test_an_estimator_merged_with_itself_has_seen_its_rows_twice(X):
    twice = covary.PPCA(2).partial_fit(X)
    assert twice.merge(twice) is twice
    expected = covary.PPCA(2).fit(np.vstack([X, X]))
    assert twice.report_["rows"] == 800
    np.testing.assert_allclose(twice.get_covariance(), expected.get_covariance(), rtol=1e-11)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_fit_that_fails_changes_nothing(X, method):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = covary.PPCA(2).fit(frame)
    before = model.transform(frame)
    for bad in (np.full((10, 3), np.inf), pd.DataFrame({"x": [1.0, np.inf]}), pd.DataFrame({"x": ["a", "b"]})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that partial_fit would forget
            with pytest.raises(ValueError):
                getattr(model, method)(bad)
        assert model.n_features_in_ == 8 and list(model.feature_names_in_) == list(frame.columns)
        np.testing.assert_array_equal(model.transform(frame), before)
    fresh = covary.PPCA(2)
    with pytest.raises(ValueError):
        fresh.fit(np.full((10, 3), np.inf))
    assert not hasattr(fresh, "n_features_in_")


def line_of(call):
    """File and line that the only warning of a call points at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert len(caught) == 1
    return caught[0].filename, caught[0].lineno


def test_warnings_point_at_the_line_of_the_caller(X):
    model = covary.PPCA(2).fit(X)
    slow = low_rank(300, 200, 3)
    factors = covary.FactorAnalysis(2, max_iter=1).partial_fit(X)
    calls = [
        lambda: model.partial_fit(X),
        lambda: covary.PPCA(3, solver="krylov", max_iter=1).fit(slow),
        lambda: covary.PPCA(3, solver="krylov", max_iter=1).fit_transform(slow),
        lambda: make_pipeline(covary.PPCA(3, solver="krylov", max_iter=1)).fit(slow),
        lambda: factors.transform(X),
        lambda: covary.FactorAnalysis(3).fit(X[:, :4]),
    ]
    for call in calls:
        assert line_of(call) == (__file__, call.__code__.co_firstlineno)


def test_models_made_when_asked_for_say_that_they_did_not_converge(X):
    for read in (lambda m: m.loadings_, lambda m: m.transform(X), lambda m: m.score(X)):
        model = covary.FactorAnalysis(2, max_iter=1).partial_fit(X)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            read(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(model)  # once is enough


def test_shapes_of_nothing(X):
    Y = X.copy()
    Y[3, 1] = np.nan
    model = covary.PPCA(0).fit(X)
    mean, covariance = model.posterior(Y)
    assert (mean.shape, covariance.shape) == ((400, 0), (400, 0, 0))
    assert model.posterior(X)[1].shape == (0, 0)
    assert covary.PPCA(2).fit(X).sample_missing(Y, 0).shape == (0, 400, 8)
    assert model.sample(0).shape == (0, 8)


def test_threads_do_not_matter_to_the_last_bit():
    X = low_rank(20_000, 20, 3)
    one, three = (covary.PPCA(3, n_threads=n).fit(X) for n in (1, 3))
    np.testing.assert_array_equal(one.loadings_, three.loadings_)
    np.testing.assert_array_equal(one.score_samples(X), three.score_samples(X))


def test_stopping_early_is_a_warning():
    X = low_rank(300, 200, 3)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = covary.PPCA(3, solver="krylov", max_iter=1).fit(X)
    assert not model.converged_ and model.report_["stop"] == "iteration_limit"
    assert model.transform(X).shape == (300, 3)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"n_components": 9}, "n_components=9 must be between 1 and 8 for n_samples=400, n_features=8"),
        ({"n_components": 1.5}, r"a fraction of the variance in \(0, 1\)"),
        ({"n_components": "many"}, "'mle'"),
        ({"solver": "magic"}, "unknown variant `magic`.*`eigen`"),
    ],
)
def test_bad_parameters_say_what_is_allowed(X, parameters, words):
    with pytest.raises(ValueError, match=words):
        covary.PPCA(**parameters).fit(X)


def test_bad_rows_are_named(X):
    X = X.copy()
    X[17, 3] = -np.inf
    with pytest.raises(ValueError, match="X contains -inf at row 17, column 3"):
        covary.PPCA(2).fit(X)
    with pytest.raises(ValueError, match="all features of X are constant"):
        covary.PPCA(1).fit(np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"sample_weight\[2\] is -1"):
        covary.PPCA(1).fit(np.eye(4), sample_weight=[1, 1, -1, 1])
    with pytest.raises(ValueError, match="no density"):
        covary.PPCA().fit(low_rank(4, 6, 2)).score_samples(low_rank(4, 6, 2))
    for question in ("transform", "score_samples", "sample", "get_covariance"):
        with pytest.raises(NotFittedError):
            getattr(covary.PPCA(2), question)(*([X] if question not in ("sample", "get_covariance") else []))
    assert not hasattr(covary.PPCA(2), "components_")
