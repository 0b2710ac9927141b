"""Contributions of cells and control limits: the core's numbers, in NumPy's shapes and in frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from support import low_rank, punched

import covary

KINDS = [
    covary.PPCA(2),
    covary.PCA(2),
    covary.FactorAnalysis(2),
    covary.BayesianPCA(2),
    covary.RobustPPCA(2),
    covary.ICA(2),
]


@pytest.mark.parametrize("estimator", KINDS, ids=lambda e: type(e).__name__)
def test_cells_left_out(estimator):
    X = punched(low_rank(120, 6, 2), 0.1)
    model = estimator.fit(X)
    told, outliers = model.contributions(X), model.outliers(X)
    np.testing.assert_allclose(np.nansum(told["t2"], axis=1), outliers["t2"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.nansum(told["spe"], axis=1), outliers["spe"], rtol=1e-9, atol=1e-9)
    for name, table in told.items():
        assert table.shape == X.shape
        assert (np.isnan(table) == np.isnan(X)).all(), name
    i, j = 3, int(np.flatnonzero(~np.isnan(X[3]))[0])
    x = X[[i]].copy()
    x[0, j] = np.nan
    mean, std = model.impute(x, return_std=True)
    np.testing.assert_allclose([told["expected"][i, j], told["deviation"][i, j]], [mean[0, j], std[0, j]], rtol=1e-10)


def test_the_fall_of_the_distance_by_dense_normals():
    X = low_rank(80, 5, 2)
    model = covary.PPCA(2).fit(X)
    C, mean = model.get_covariance(), model.mean_

    def distance(x, of):
        e = (x - mean)[of]
        return e @ np.linalg.solve(C[np.ix_(of, of)], e)

    told = model.contributions(X)["cell"]
    for i, j in [(0, 0), (7, 3), (41, 4)]:
        rest = [k for k in range(5) if k != j]
        fall = distance(X[i], list(range(5))) - distance(X[i], rest)
        assert told[i, j] == pytest.approx(fall, rel=1e-9)
    # χ² with one degree of freedom for rows of the model.
    new = model.contributions(model.sample(4000, random_state=1))["cell"]
    assert stats.kstest(new[:, 0], stats.chi2(1).cdf).pvalue > 1e-3


def test_frames_in_frames_out():
    X = low_rank(30, 3, 1)
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(30)])
    model = covary.PPCA(1).fit(frame)
    told = model.contributions(frame)["expected"]
    assert list(told.columns) == list("abc") and list(told.index) == list(frame.index)
    plain = covary.PPCA(1).fit(X).contributions(X)["expected"]
    np.testing.assert_allclose(told.to_numpy(), plain, rtol=1e-13)  # columns side by side: another order of sums
    of_polars = pl.DataFrame(X, schema=list("abc"))
    told = covary.PPCA(1).fit(of_polars).contributions(of_polars)["cell"]
    assert isinstance(told, pl.DataFrame) and told.columns == list("abc")


def test_limits():
    X = low_rank(50, 6, 2)
    n, q, level = 50, 2, 0.95
    f = stats.f.ppf(level, q, n - q)
    ours = covary.PPCA(2).fit(X)
    assert ours.limits(level)["t2"] == pytest.approx(q * (n + 1) / (n - q) * f, rel=1e-10)
    assert ours.limits(level)["spe"] == pytest.approx(ours.noise_variance_ * stats.chi2.ppf(level, 4), rel=1e-10)
    # Classical PCA has variances with divisor n − 1.
    classical = covary.PCA(2).fit(X)
    assert classical.limits(level)["t2"] == pytest.approx(q * (n**2 - 1) / (n * (n - q)) * f, rel=1e-10)
    # Nobody knows from how many rows given numbers come.
    given = covary.PPCA.from_parameters(mean=ours.mean_, loadings=ours.loadings_, noise_variance=ours.noise_variance_)
    assert given.limits(level)["t2"] == pytest.approx(stats.chi2.ppf(level, q), rel=1e-10)
    row = X[:1].copy()
    row[0, 1:3] = np.nan
    of_row = ours.limits(level, row)
    assert of_row["spe"][0] == pytest.approx(ours.noise_variance_ * stats.chi2.ppf(level, 2), rel=1e-10)
    robust = covary.RobustPPCA(2, nu=5.0).fit(X)
    assert robust.limits(level)["t2"] == pytest.approx(2 * stats.f.ppf(level, 2, 5), rel=1e-9)
    with pytest.raises(ValueError, match="above 0 and below 1"):
        ours.limits(1.0)


def test_a_mixture_answers_by_components():
    X = np.concatenate([low_rank(80, 4, 1), low_rank(80, 4, 1, seed=2) + 30])
    model = covary.MixturePPCA(2, n_latent=1).fit(X)
    told, outliers = model.contributions(X), model.outliers(X)
    np.testing.assert_allclose(told["t2"].sum(axis=1), outliers["t2"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(told["spe"].sum(axis=1), outliers["spe"], rtol=1e-9, atol=1e-9)
    assert len(np.unique(model.limits(0.9, X)["spe"])) == 2
    with pytest.raises(ValueError, match="component that a row belongs to"):
        model.limits(0.9)


def test_models_without_contributions_say_so():
    X = low_rank(30, 3, 1)
    assert not hasattr(covary.KMeans(2).fit(X), "contributions")
    with pytest.raises(ValueError, match="features"):
        covary.PPCA(1).fit(X).contributions(X[:, :2])
