"""Memory that is not there: an error that tells how much is needed, before anything is taken."""

import numpy as np
import pytest
from scipy import sparse

import covary

MANY = 10**6  # features; their covariance takes 8 TB


@pytest.fixture(scope="module")
def wide():
    return covary.PPCA.from_parameters(mean=np.zeros(MANY), loadings=np.ones((MANY, 1)), noise_variance=1.0)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(3, MANY))


QUESTIONS = {
    "get_covariance": (lambda m: m.get_covariance(), "the covariance of all features needs 8.0 TB"),
    "get_precision": (lambda m: m.get_precision(), "the precision matrix of all features needs 16.0 TB"),
    "conditional": (
        lambda m: m.conditional(np.full(MANY, np.nan)),
        "the covariance of the missing cells needs 16.0 TB",
    ),
    "sample": (lambda m: m.sample(10**12), "the sample needs 16.0 EB"),
    "sample beyond all integers": (lambda m: m.sample(10**40), "the sample needs"),
    "sample_missing": (
        lambda m: m.sample_missing(np.full((1, MANY), np.nan), 10**10),
        "the table of draws needs 160.0 PB",
    ),
}


@pytest.mark.parametrize("question, words", QUESTIONS.values(), ids=QUESTIONS)
def test_answers_that_do_not_fit(wide, question, words):
    with pytest.raises(MemoryError, match=f"{words}.* of memory, and .* are free; ask for less"):
        question(wide)


FITS = {
    "partial_fit": lambda X: covary.PPCA(1).partial_fit(X),
    "PPCA": lambda X: covary.PPCA(1, solver="eigen").fit(X),
    "PCA": lambda X: covary.PCA(1, svd_solver="covariance_eigh").fit(X),
    "BayesianPCA": lambda X: covary.BayesianPCA(1, solver="eigen").fit(X),
    "FactorAnalysis": lambda X: covary.FactorAnalysis(1, solver="newton").fit(X),
    "kmo": lambda X: covary.kmo(X),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_fits_that_do_not_fit(rows, fit):
    with pytest.raises(MemoryError, match=r"needs \d+\.\d TB of memory"):
        fit(rows)


def test_what_fits_is_not_refused(rows):
    model = covary.PPCA(1).fit(rows)
    assert model.report_["solver"] == "dual" and model.transform(rows).shape == (3, 1)


@pytest.mark.parametrize("number", [-1, 2.5, "two", None])
def test_numbers_of_rows_and_draws_are_whole(number):
    model = covary.PPCA.from_parameters(mean=[0, 0], loadings=[[1], [1]], noise_variance=1)
    with pytest.raises(ValueError, match="n=.* must be a whole number that is not negative"):
        model.sample(number)
    with pytest.raises(ValueError, match="n_draws=.* must be a whole number that is not negative"):
        model.sample_missing([[0, np.nan]], number)


def _many(*shape):
    """A view of one number that takes no memory itself, but 80 GB and more as a copy."""
    return np.broadcast_to(1.0, shape)


N, SIDE = 10**12, 10**6
GIVEN = {
    "PPCA": lambda: covary.PPCA.from_parameters(mean=_many(N), loadings=[[1]], noise_variance=1),
    "PPCA, loadings": lambda: covary.PPCA.from_parameters(mean=[0], loadings=_many(SIDE, SIDE), noise_variance=1),
    "PPCA, noise": lambda: covary.PPCA.from_parameters(mean=[0], loadings=[[1]], noise_variance=_many(N)),
    "FactorAnalysis": lambda: covary.FactorAnalysis.from_parameters(
        mean=_many(N), loadings=_many(N, 1), noise_variance=1.0
    ),
    "FactorAnalysis, correlation": lambda: covary.FactorAnalysis.from_parameters(
        mean=[0], loadings=[[1]], noise_variance=[1], factor_correlation=_many(SIDE, SIDE)
    ),
    "BayesianPCA": lambda: covary.BayesianPCA.from_parameters(
        mean=[0], loadings=[[1]], noise_variance=1, loadings_std=_many(SIDE, SIDE), mean_std=[0]
    ),
    "RobustPPCA": lambda: covary.RobustPPCA.from_parameters(mean=_many(N), loadings=[[1]], noise_variance=1, nu=4),
    "MixturePPCA": lambda: covary.MixturePPCA.from_parameters(
        weights=[1], means=[[0]], loadings=_many(1, SIDE, SIDE), noise_variance=[1]
    ),
    "MixturePPCA, weights": lambda: covary.MixturePPCA.from_parameters(
        weights=_many(N), means=[[0]], loadings=[[[1]]], noise_variance=[1]
    ),
    "from_covariance": lambda: covary.FactorAnalysis.from_covariance(_many(SIDE, SIDE), 100, 1),
    "from_covariance, mean": lambda: covary.FactorAnalysis.from_covariance(np.eye(4), 100, 1, mean=_many(N)),
    "kmo": lambda: covary.kmo(covariance=_many(SIDE, SIDE)),
    "rotate": lambda: covary.rotate(_many(SIDE, SIDE)),
    "target": lambda: covary.rotate(np.eye(3), "target", target=_many(SIDE, SIDE)),
    "conditional": lambda: covary.PPCA.from_parameters(mean=[0], loadings=[[1]], noise_variance=1).conditional(_many(N)),
    "init": lambda: covary.KMeans(SIDE, init=_many(SIDE, SIDE)).fit(np.zeros((3, SIDE))),
    "sample_weight": lambda: covary.PPCA(1).fit(covary.observed(sparse.csr_array(np.eye(3))), sample_weight=_many(N)),
}


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
def test_views_whose_copy_does_not_fit(make):
    with pytest.raises(MemoryError):
        make()
