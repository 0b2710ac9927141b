"""scikit-learn's own checks of what an estimator must do."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import covary

ESTIMATORS = [
    covary.PCA(),
    covary.PCA(2),
    covary.PCA(1, whiten=True),
    covary.PPCA(),
    covary.PPCA(2),
]


def expected_failures(estimator):
    """Without a number, as many components as n rows allow: repeating a row changes n, giving it weight 2 does not.

    scikit-learn's own PCA has no weights, so nothing there decides which of the two should give way.
    """
    if estimator.n_components is not None:
        return {}
    reason = "n_components=None depends on the number of rows"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
