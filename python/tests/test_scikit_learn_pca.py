"""scikit-learn's own tests of its PCA, run on ours.

The module comes from the installed scikit-learn; its name ``PCA`` is replaced by ours, and every test it holds is run here.
Those below do not pass, each with the reason why ours is right to differ.
"""

import pytest
import sklearn.decomposition.tests.test_pca as original
from support import with_our

import covary

#: Test, the parameters that matter where not all differ, and why.
DIFFERENT = {
    ("test_sparse_pca_solver_error", ""): "ours fits sparse rows with 'randomized' too, and refuses 'full' with a ValueError "
    "that says what would help",
    ("test_pca_score", ""): "it expects whitening to lower the likelihood; whitening changes the coordinates that transform "
    "returns, not the distribution of the data",
    ("test_pca_zero_noise_variance_edge_cases", ""): "fewer rows than features and all components kept: the model lies in a "
    "plane and rows have no density; a score would be the arithmetic of a singular matrix",
    ("test_pca_svd_solver_auto", ""): "it reads the private name of scikit-learn's choice; ours is in report_, and its choice "
    "is another one (by cost)",
    ("test_pca_dtype_preservation", ""): "transform keeps float32, but models are kept in double precision whatever the data",
}


def reason_to_differ(name):
    """Why this test is not expected to pass, or None."""
    test, _, parameters = name.partition("[")
    found = (why for (other, some), why in DIFFERENT.items() if test == other and some in "[" + parameters)
    return next(found, None)


_MODULE = with_our(original, PCA=covary.PCA)
globals().update({name: test for name, test in vars(_MODULE).items() if name.startswith("test_")})


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(params=["float32", "float64"])
def global_dtype(request):
    import numpy as np

    return np.dtype(request.param).type
