"""scikit-learn's own test of its FactorAnalysis, run on ours.

Its module holds one long test. It is run here as it is, and listed with the reason why ours is right to end where it does; what it checks
before and after that point is checked again below, part by part.
"""

import importlib.util
from itertools import combinations

import numpy as np
import pytest
import sklearn.decomposition.tests.test_factor_analysis as original
from sklearn.exceptions import ConvergenceWarning

import covary

DIFFERENT = {
    "test_factor_analysis": "it sets n_components=0, no factors, and as many as features, for which no uniqueness is left; both are "
    "refused. What else it checks is checked below",
}


def reason_to_differ(name):
    """Why this test is not expected to pass, or None."""
    return DIFFERENT.get(name.partition("[")[0])


def _load():
    """The module once more, under another name, with our class in it."""
    spec = importlib.util.spec_from_file_location("scikit_learn_factor_tests_of_covary", original.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.FactorAnalysis = covary.FactorAnalysis
    return module


_MODULE = _load()
globals().update({name: test for name, test in vars(_MODULE).items() if name.startswith("test_")})


@pytest.fixture
def global_random_seed():
    return 42


def data(seed):
    """As scikit-learn makes it: 20 rows of 5 features from 3 factors."""
    rng = np.random.RandomState(seed)
    W, h = rng.randn(3, 5), rng.randn(20, 3)
    return h @ W + rng.gamma(1, size=5) * rng.randn(20, 5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("method", ["randomized", "lapack"])
def test_the_likelihood_and_the_covariance(seed, method):
    X = data(seed)
    fa = covary.FactorAnalysis(n_components=3, svd_method=method).fit(X)
    assert fa.transform(X).shape == (20, 3)
    np.testing.assert_allclose(fa.loglike_[-1], fa.score_samples(X).sum())
    np.testing.assert_allclose(fa.score_samples(X).mean(), fa.score(X))
    assert (np.diff(fa.loglike_) >= -1e-9).all()
    assert np.abs(np.cov(X, rowvar=False, bias=True) - fa.get_covariance()).sum() / 15 < 0.2
    with pytest.raises(ValueError):
        covary.FactorAnalysis(n_components=3).fit(X[:, :2])


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_stopping_early_is_a_convergence_warning():
    with pytest.warns(ConvergenceWarning):
        covary.FactorAnalysis(n_components=3, max_iter=1).fit(data(0))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_covariance_and_precision_are_inverse(q):
    fa = covary.FactorAnalysis(n_components=q).fit(data(1))
    np.testing.assert_allclose(fa.get_covariance() @ fa.get_precision(), np.eye(5), atol=1e-9)


def test_rotations_differ_and_the_covariance_does_not():
    X, results, projections = data(42), {}, {}
    for method in (None, "varimax", "quartimax"):
        fa = covary.FactorAnalysis(n_components=2, rotation=method)
        results[method] = fa.fit_transform(X)
        projections[method] = fa.get_covariance()
    for one, other in combinations(results, 2):
        assert not np.allclose(results[one], results[other])
        np.testing.assert_allclose(projections[one], projections[other], rtol=1e-12)


def test_varimax_is_that_of_psych_principal():
    loadings = [[0.89421016, -0.35854928], [-0.45081822, -0.89132754], [0.99500666, -0.02031465], [0.96822861, -0.06299656]]
    # R's psych::principal with rotate="varimax", as scikit-learn's test has it.
    expected = [[0.962, 0.052], [-0.141, 0.989], [0.949, -0.300], [0.937, -0.251]]
    ours = covary.rotate(loadings, "varimax").pattern
    np.testing.assert_allclose(np.abs(ours), np.abs(expected), atol=1e-3)
