"""scikit-learn's own tests of its KernelPCA, run on ours."""

import pytest
import sklearn.decomposition.tests.test_kernel_pca as original
from support import with_our

import covary

#: Test, the parameters that matter where not all differ, and why.
DIFFERENT = {
    ("test_precomputed_kernel_not_psd", ""): "negative eigenvalues are told, in eigenvalues_ and report_, not refused; and block "
    "Krylov iteration finds the largest eigenvalues also where scikit-learn's randomized solver finds others",
    ("test_kernel_pca_precomputed_non_symmetric", ""): "a kernel matrix that is not symmetric is refused, because it is none: the "
    "error names the cells",
}


def reason_to_differ(name):
    """Why this test is not expected to pass, or None."""
    test, _, parameters = name.partition("[")
    found = (why for (other, some), why in DIFFERENT.items() if test == other and some in "[" + parameters)
    return next(found, None)


_MODULE = with_our(original, KernelPCA=covary.KernelPCA)
globals().update({name: test for name, test in vars(_MODULE).items() if name.startswith("test_")})


@pytest.fixture
def global_random_seed():
    return 42
