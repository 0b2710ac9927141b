"""scikit-learn's own test of its FactorAnalysis, run on ours: all of it passes.

The module comes from the installed scikit-learn; its name ``FactorAnalysis`` is replaced by ours, and every test it holds is run here.
"""

import numpy as np
import pytest
import sklearn.decomposition.tests.test_factor_analysis as original
from support import with_our

import covary


_MODULE = with_our(original, FactorAnalysis=covary.FactorAnalysis)
globals().update({name: test for name, test in vars(_MODULE).items() if name.startswith("test_")})
pytestmark = pytest.mark.filterwarnings("ignore:.*degrees of freedom")


@pytest.fixture
def global_random_seed():
    return 42


def test_varimax_is_theirs():
    loadings = np.random.default_rng(0).normal(size=(10, 3))
    theirs = original._ortho_rotation(loadings, method="varimax", tol=1e-14, max_iter=10_000).T
    ours = covary.rotate(loadings, "varimax", kaiser=False).pattern
    np.testing.assert_allclose(np.sort(np.abs(ours).sum(axis=0)), np.sort(np.abs(theirs).sum(axis=0)), rtol=1e-6)
