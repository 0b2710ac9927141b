"""Factor analysis against dense formulas, scikit-learn and R."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis as Theirs
from sklearn.exceptions import NotFittedError
from support import log_normal, punched

import covary
from covary import FactorAnalysis


def factor_rows(n, p, q, seed=0):
    """Rows of a known factor model: noise of different size in each feature, units too."""
    rng = np.random.default_rng(seed)
    W, sd = rng.normal(size=(p, q)), rng.uniform(0.5, 1.5, size=p)
    return (rng.normal(size=(n, q)) @ W.T + sd * rng.normal(size=(n, p))) * rng.uniform(0.1, 10.0, size=p) + 3.0


def covariance(model):
    return model.loadings_ @ model.factor_correlation_ @ model.loadings_.T + np.diag(model.noise_variance_)


@pytest.fixture(scope="module")
def X():
    return factor_rows(400, 8, 2)


@pytest.fixture(scope="module")
def model(X):
    return FactorAnalysis(2, rotation="oblimin").fit(X)


@pytest.mark.parametrize("rotation", [None, "varimax", "promax", "oblimin", covary.Rotation("geomin", n_starts=5)])
def test_attributes_belong_together(X, rotation):
    m = FactorAnalysis(2, rotation=rotation).fit(X)
    C, sd = m.get_covariance(), np.sqrt(m.get_covariance().diagonal())
    np.testing.assert_allclose(covariance(m), C, rtol=1e-12, atol=1e-12 * C.max())
    np.testing.assert_allclose(C, FactorAnalysis(2).fit(X).get_covariance(), rtol=1e-12)
    np.testing.assert_array_equal(m.components_, m.loadings_.T)
    np.testing.assert_allclose(m.structure_, m.loadings_ @ m.factor_correlation_, rtol=1e-10)
    T = m.rotation_matrix_
    np.testing.assert_allclose(m.factor_correlation_, T.T @ T, atol=1e-12)
    np.testing.assert_allclose(m.uniquenesses_, m.noise_variance_ / sd**2, rtol=1e-12)
    np.testing.assert_allclose(m.communalities_, 1 - m.uniquenesses_, rtol=1e-10)
    np.testing.assert_allclose(m.standardised_loadings_, m.loadings_ / sd[:, None], rtol=1e-12)
    np.testing.assert_allclose(m.factor_variances_.sum(), m.communalities_.sum(), rtol=1e-12)
    np.testing.assert_allclose(m.mean_, X.mean(axis=0), rtol=1e-12)
    assert m.n_components_ == 2 and m.converged_ and m.heywood_ == []
    assert m.log_likelihood_ == pytest.approx(m.score_samples(X).sum(), rel=1e-10)
    with pytest.raises(ValueError, match="read-only"):
        m.structure_[0, 0] = 1


def test_the_optimum_is_not_below_scikit_learns(X):
    theirs = Theirs(2, tol=1e-12, max_iter=20_000, svd_method="lapack").fit(X)
    for solver in ("newton", "krylov", "em"):
        ours = FactorAnalysis(2, solver=solver, max_iter=100_000).fit(X)
        assert ours.report_["solver"] == solver
        # EM ends when steps gain little, which near the optimum says little about what is left.
        assert ours.score(X) >= theirs.score(X) - (1e-6 if solver == "em" else 1e-9)
        np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), rtol=1e-3, atol=1e-3)


def test_fit_indices_are_their_definitions(X, model):
    fit, n, p, q = model.fit_indices_, 400, 8, 2
    S, C = np.cov(X.T, bias=True), model.get_covariance()
    F = np.trace(S @ np.linalg.inv(C)) - np.linalg.slogdet(S @ np.linalg.inv(C))[1] - p
    chi2 = (n - 1 - (2 * p + 5) / 6 - 2 * q / 3) * F
    assert fit["chi2"] == pytest.approx(chi2, rel=1e-6) and fit["dof"] == ((p - q) ** 2 - p - q) // 2
    assert fit["p_value"] == pytest.approx(stats.chi2.sf(chi2, fit["dof"]), rel=1e-5)
    low, high = fit["rmsea_ci"]
    assert 0 <= low <= fit["rmsea"] <= high
    k = 2 * p + p * q - q * (q - 1) / 2
    assert fit["aic"] == pytest.approx(2 * k - 2 * model.log_likelihood_)
    assert fit["bic"] == pytest.approx(np.log(n) * k - 2 * model.log_likelihood_)
    R = (S - C) / np.sqrt(np.outer(S.diagonal(), S.diagonal()))
    assert fit["srmr"] == pytest.approx(np.sqrt((R[np.tril_indices(p)] ** 2).mean()), rel=1e-6)
    assert 0.9 < fit["cfi"] <= 1 and 0.9 < fit["tli"]


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_scores_and_posterior_are_the_dense_formulas(X, model, share):
    Y = punched(X, share)[:40]
    L, phi, psi, mu = model.loadings_, model.factor_correlation_, model.noise_variance_, model.mean_
    z, cov = model.posterior(Y)
    np.testing.assert_allclose(model.transform(Y), z, atol=1e-12)
    bartlett = model.transform(Y, method="bartlett")
    for i, y in enumerate(Y):
        o = ~np.isnan(y)
        A = L[o].T / psi[o]
        precision = np.linalg.inv(phi) + A @ L[o]
        np.testing.assert_allclose(z[i], np.linalg.solve(precision, A @ (y - mu)[o]), atol=1e-9)
        np.testing.assert_allclose(cov[i] if share else cov, np.linalg.inv(precision), atol=1e-9)
        if o.sum() > 2:
            np.testing.assert_allclose(bartlett[i], np.linalg.solve(A @ L[o], A @ (y - mu)[o]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(z), mu + z @ L.T, atol=1e-10)
    np.testing.assert_allclose(model.reconstruct(Y, "posterior"), mu + z @ L.T, atol=1e-9)
    with pytest.raises(ValueError, match="'regression' or 'bartlett'"):
        model.transform(Y, method="thurstone")


def test_every_other_question(X, model):
    Y = punched(X, 0.3)[:30]
    C = model.get_covariance()
    np.testing.assert_allclose(model.get_precision(), np.linalg.inv(C), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.score_samples(Y), [log_normal(y, model.mean_, C) for y in Y], rtol=1e-9)
    indices, mean, _ = model.conditional(Y[0])
    filled, std = model.impute(Y, return_std=True)
    np.testing.assert_allclose(filled[0, indices], mean, rtol=1e-9)
    assert (std[~np.isnan(Y)] == 0).all() and (std[np.isnan(Y)] > 0).all()
    draws = model.sample_missing(Y, 3, random_state=1)
    assert draws.shape == (3, 30, 8)
    e = X - model.mean_
    distance = np.einsum("ij,jk,ik->i", e, np.linalg.inv(C), e)
    np.testing.assert_allclose(model.outliers(X)["p_value"], stats.chi2.sf(distance, 8), rtol=1e-6, atol=1e-12)
    assert model.sample(5).shape == (5, 8)
    some = model.marginal([5, 0, 2])
    assert isinstance(some, FactorAnalysis)
    np.testing.assert_allclose(some.get_covariance(), C[np.ix_([5, 0, 2], [5, 0, 2])], rtol=1e-12)
    np.testing.assert_allclose(some.loadings_, model.loadings_[[5, 0, 2]], rtol=1e-12)


def dense_log_likelihood(Y, mean, C):
    return sum(log_normal(y, mean, C) for y in Y)


def test_holes_are_fitted_by_the_likelihood_of_the_observed_cells():
    X = factor_rows(150, 5, 1, seed=3)
    Y = punched(X, 0.15)
    m = FactorAnalysis(1).fit(Y)
    assert m.converged_ and m.report_["holes"]["missing"] == np.isnan(Y).sum()
    assert m.log_likelihood_ == pytest.approx(dense_log_likelihood(Y, m.mean_, m.get_covariance()), rel=1e-10)
    sd = np.nanstd(Y, axis=0)

    def objective(t):
        mean, W, psi = t[:5] * sd, t[5:10] * sd, np.exp(t[10:]) * sd**2
        return -dense_log_likelihood(Y, mean, np.outer(W, W) + np.diag(psi))

    start = np.r_[m.mean_ / sd, m.loadings_[:, 0] / sd, np.log(m.noise_variance_ / sd**2)]
    best = optimize.minimize(objective, start + 0.05, method="BFGS")
    assert m.log_likelihood_ == pytest.approx(-best.fun, abs=1e-4)
    assert np.linalg.norm(optimize.approx_fprime(start, objective, 1e-6)) < 1e-2


def test_from_a_covariance(X):
    rows = FactorAnalysis(2, rotation="varimax").fit(X)
    S = pd.DataFrame(np.cov(X.T, bias=True), columns=list("abcdefgh"))
    matrix = FactorAnalysis.from_covariance(S, 400, 2, rotation="varimax", mean=X.mean(axis=0))
    np.testing.assert_allclose(matrix.loadings_, rows.loadings_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(matrix.log_likelihood_, rows.log_likelihood_, rtol=1e-10)
    assert list(matrix.feature_names_in_) == list("abcdefgh") and matrix.report_["rows"] == 400
    correlations = FactorAnalysis.from_covariance(np.corrcoef(X.T), 400, 2, rotation="varimax")
    np.testing.assert_allclose(correlations.loadings_, rows.standardised_loadings_, rtol=1e-5, atol=1e-6)
    assert correlations.fit_indices_["chi2"] == pytest.approx(rows.fit_indices_["chi2"], rel=1e-6)
    with pytest.raises(ValueError, match="symmetric"):
        FactorAnalysis.from_covariance(np.triu(S), 400, 1)
    with pytest.raises((ValueError, np.linalg.LinAlgError), match="eigenvalue|definite"):
        FactorAnalysis.from_covariance([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], 100, 1)
    with pytest.raises(TypeError, match="n_samples"):
        FactorAnalysis.from_covariance(S)


def test_from_parameters():
    L, phi = np.array([[0.9, 0], [0.8, 0.1], [0, 0.7]]), np.array([[1, 0.4], [0.4, 1]])
    m = FactorAnalysis.from_parameters(mean=[0, 1, 2], loadings=L, noise_variance=[0.2, 0.3, 0.5], factor_correlation=phi)
    np.testing.assert_allclose(m.get_covariance(), L @ phi @ L.T + np.diag([0.2, 0.3, 0.5]), rtol=1e-12)
    np.testing.assert_allclose(m.loadings_, L, atol=1e-14)
    np.testing.assert_allclose(m.factor_correlation_, phi, atol=1e-14)
    same = FactorAnalysis.from_parameters(mean=[0, 1, 2], loadings=L, noise_variance=0.5)
    np.testing.assert_array_equal(same.noise_variance_, [0.5] * 3)
    assert np.isnan(same.fit_indices_["chi2"]) and same.heywood_ == []
    with pytest.raises(ValueError, match="symmetric|mirror"):
        FactorAnalysis.from_parameters(mean=[0, 1, 2], loadings=L, noise_variance=1, factor_correlation=[[1, 0.4], [0, 1]])


def test_weights_parts_and_threads(X):
    weights = np.arange(len(X)) % 3
    ours = FactorAnalysis(2).fit(X, sample_weight=weights)
    repeated = FactorAnalysis(2).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(ours.get_covariance(), repeated.get_covariance(), rtol=1e-6, atol=1e-6)
    whole, left, right = (FactorAnalysis(2, rotation="varimax") for _ in range(3))
    whole.fit(X)
    left.partial_fit(X[:100]).partial_fit(X[100:250])
    left.merge(right.partial_fit(X[250:]))
    np.testing.assert_allclose(left.loadings_, whole.loadings_, rtol=1e-6, atol=1e-6)
    one, three = (FactorAnalysis(2, rotation="geomin", n_threads=n).fit(X).loadings_ for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_standard_errors(X, model):
    errors = model.standard_errors()
    assert errors.loadings.shape == (8, 2) and (errors.loadings > 0).all()
    assert errors.factor_correlation[0, 1] > 0 and errors.factor_correlation[0, 0] == 0
    # Simulated: the spread of estimates over samples of the fitted model.
    spread = []
    for seed in range(60):
        again = FactorAnalysis(2, rotation="oblimin").fit(model.sample(400, random_state=seed))
        match = np.abs(again.standardised_loadings_.T @ model.standardised_loadings_).argmax(axis=0)
        spread.append(np.abs(again.standardised_loadings_[:, match]))
    ratio = np.std(spread, axis=0) / model.standard_errors(standardised=True).loadings
    # Sixty samples know a deviation to 9 %; the median of sixteen ratios is much surer.
    assert 0.85 < np.median(ratio) < 1.15
    with pytest.raises(ValueError, match="missing values"):
        FactorAnalysis(1).fit(punched(X, 0.05)).standard_errors()


def test_fitted_models_are_turned_and_turned_back(X, model):
    plain = FactorAnalysis(2).fit(X)
    turned = plain.rotate("oblimin")
    np.testing.assert_allclose(turned.loadings_, model.loadings_, rtol=1e-8, atol=1e-8)
    assert turned.fit_indices_ == plain.fit_indices_ and "rotation" not in plain.report_
    np.testing.assert_array_equal(turned.rotate(None).loadings_, plain.loadings_)
    np.testing.assert_allclose(clone(turned).fit(X).loadings_, turned.loadings_, rtol=1e-8, atol=1e-8)
    ppca = covary.PPCA(2).fit(X)
    turned = ppca.rotate("varimax", kaiser=False)
    np.testing.assert_allclose(turned.get_covariance(), ppca.get_covariance(), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(turned.noise_variance_, ppca.noise_variance_)


def test_heywood_cases_are_named():
    rng = np.random.default_rng(1)
    f = rng.normal(size=(200, 1))
    frame = pd.DataFrame(f * [1, 0.5, 0.4, 0.3] + rng.normal(size=(200, 4)) * [0.001, 1, 1, 1], columns=list("abcd"))
    m = FactorAnalysis(1).fit(frame)
    assert m.heywood_ == ["a"] and m.converged_
    assert m.uniquenesses_[0] == pytest.approx(m.report_["factor"]["lower"], rel=1e-3)
    assert FactorAnalysis(1).fit(frame.to_numpy()).heywood_ == [0]
    assert FactorAnalysis(1, lower=0.05).fit(frame).uniquenesses_[0] == pytest.approx(0.05, rel=1e-3)


def test_number_of_factors(X):
    none = FactorAnalysis(0).fit(X)
    np.testing.assert_allclose(none.get_covariance(), np.diag(X.var(axis=0)), rtol=1e-8)
    assert none.transform(X).shape == (400, 0)
    # The largest q with (p - q)² ≥ p + q.
    assert FactorAnalysis().fit(X).n_components_ == 1
    assert FactorAnalysis(None).fit(X[:4]).n_components_ == 3
    assert FactorAnalysis(None).fit(X).n_components_ == max(q for q in range(8) if (8 - q) ** 2 >= 8 + q)
    with pytest.warns(UserWarning, match="leave -2 degrees of freedom"):
        m = FactorAnalysis(3).fit(X[:, :5])
    assert m.fit_indices_["dof"] == -2
    np.testing.assert_allclose(m.get_covariance(), np.cov(X[:, :5].T, bias=True), rtol=0.2, atol=0.3)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"n_components": 9}, "n_components=9 is too many for n_features=8"),
        ({"n_components": -1}, "n_components=-1"),
        ({"n_components": 0.5}, "n_components=0.5"),
        ({"n_components": 2, "solver": "magic"}, "unknown variant `magic`"),
        ({"n_components": 2, "rotation": "magic"}, "magic.*varimax"),
        ({"n_components": 2, "rotation": 3}, "a name, a covary.Rotation or None"),
        ({"n_components": 2, "lower": 2.0}, "uniqueness"),
        ({"n_components": 2, "n_starts": 0}, "starts"),
        ({"n_components": 2, "tol": -1.0}, "tolerance"),
    ],
)
def test_bad_parameters_say_what_is_allowed(X, parameters, words):
    with pytest.raises(ValueError, match=words):
        FactorAnalysis(**parameters).fit(X)


def test_bad_rows_are_named(X):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    with pytest.raises(ValueError, match="'?c'?.*constant|constant.*'?c'?"):
        FactorAnalysis(2).fit(frame.assign(c=1.0))
    with pytest.raises(ValueError, match="a.*c.*same"):
        FactorAnalysis(2).fit(frame.assign(c=2 * frame["a"] - 1))
    frame.loc[17, "d"] = np.inf
    with pytest.raises(ValueError, match="X contains inf at row 17, column 'd'"):
        FactorAnalysis(2).fit(frame)
    for question in ("transform", "score_samples"):
        with pytest.raises(NotFittedError):
            getattr(FactorAnalysis(2), question)(X)
    for attribute in ("loadings_", "fit_indices_", "structure_", "heywood_", "noise_variance_", "loglike_"):
        with pytest.raises(NotFittedError):
            getattr(FactorAnalysis(2), attribute)


def test_files_pickles_and_clones(X, model, tmp_path):
    model.save(tmp_path / "fa.covary")
    for again in (covary.load(tmp_path / "fa.covary"), pickle.loads(pickle.dumps(model))):
        assert isinstance(again, FactorAnalysis)
        np.testing.assert_array_equal(again.transform(X, "bartlett"), model.transform(X, "bartlett"))
        np.testing.assert_array_equal(again.factor_correlation_, model.factor_correlation_)
        assert again.fit_indices_ == model.fit_indices_
        np.testing.assert_array_equal(again.standard_errors().loadings, model.standard_errors().loadings)
    # The same options again: a loaded model can be fitted again.
    loaded = covary.load(tmp_path / "fa.covary")
    np.testing.assert_array_equal(clone(loaded).fit(X).loadings_, model.loadings_)


def test_frames_in_and_out_and_a_notebook(X):
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    m = FactorAnalysis(2, rotation="varimax").set_output(transform="pandas").fit(frame)
    assert list(m.transform(frame, method="bartlett").columns) == ["factoranalysis0", "factoranalysis1"]
    html = m._repr_html_()
    assert "varimax" in html and "RMSEA" in html
    single = FactorAnalysis(2).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32


def folder():
    return Path(os.environ.get("COVARY_DATA", Path(__file__).parents[3] / "shared" / "data"))


def test_equals_factanal():
    path = folder().parent / "reference" / "factanal.json"
    if not path.exists():
        pytest.skip(f"{path.name} is not there; COVARY_DATA names the folder of data beside its own")
    for result in json.loads(path.read_text())["results"]:
        table = folder() / f"{result['set']}.csv"
        if not table.exists() or not result["set"].endswith(("_cov", "_cor")):
            continue
        S = pd.read_csv(table)
        S = S.select_dtypes("number")[[c for c in S.select_dtypes("number") if c in result["uniquenesses"]]]
        m = FactorAnalysis.from_covariance(S, result["n"], result["q"], rotation="varimax")
        theirs = [result["uniquenesses"][name] for name in m.feature_names_in_]
        np.testing.assert_allclose(m.uniquenesses_, theirs, atol=1e-4)
        fit = m.fit_indices_
        assert fit["chi2"] == pytest.approx(result["chisq_bartlett"], rel=1e-5) and fit["dof"] == result["dof"]
        assert fit["discrepancy"] == pytest.approx(result["discrepancy"], abs=1e-8)
