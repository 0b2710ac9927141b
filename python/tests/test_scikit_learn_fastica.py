"""scikit-learn's own tests of its FastICA, run on ours.

The module comes from the installed scikit-learn; its names ``FastICA`` and ``fastica``, the function that fits the class, are
replaced by ours, and every test it holds is run here. Those below do not pass, each with the reason why ours is right to differ.
"""

import numpy as np
import pytest
import sklearn.decomposition.tests.test_fastica as original
from support import with_our

import covary

#: Test, the parameters that matter where not all differ, and why.
DIFFERENT = {
    ("test_fastica_attributes_dtypes", "float32"): "models are kept in double precision whatever the data",
    ("test_fastica_return_dtypes", "float32"): "models are kept in double precision whatever the data",
    ("test_fastica_eigh_low_rank_warning", ""): "without n_components ours finds as many sources as the rows have directions, "
    "where scikit-learn warns and goes on with the rounding of the others",
}


def reason_to_differ(name):
    """Why this test is not expected to pass, or None."""
    test, _, parameters = name.partition("[")
    found = (why for (other, some), why in DIFFERENT.items() if test == other and some in "[" + parameters)
    return next(found, None)


def fastica(X, n_components=None, *, return_X_mean=False, compute_sources=True, return_n_iter=False, **options):
    """scikit-learn's function, of our class: whitening matrix, unmixing matrix, sources and what else is asked for."""
    est = covary.FastICA(n_components, **options)
    sources = est.fit_transform(X) if compute_sources else est.fit(X) and None
    whiten = est.whiten is not False
    whitening = est.whitening_ if whiten else None
    unmixing = est.components_ @ np.linalg.pinv(est.whitening_) if whiten else est.components_
    found = [whitening, unmixing, sources]
    if return_X_mean:
        found.append(est.mean_ if whiten else None)
    if return_n_iter:
        found.append(est.n_iter_)
    return found


_MODULE = with_our(original, FastICA=covary.FastICA, fastica=fastica)
globals().update({name: test for name, test in vars(_MODULE).items() if name.startswith("test_")})


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(params=["float32", "float64"])
def global_dtype(request):
    return np.dtype(request.param).type
