"""scikit-learn's own checks of what an estimator must do."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import covary

ESTIMATORS = [
    covary.PCA(),
    covary.PCA(2),
    covary.PCA(1, whiten=True),
    covary.PPCA(),
    covary.PPCA(2),
    covary.BayesianPCA(),
    covary.BayesianPCA(2),
    covary.BayesianPCA(2, method="ard"),
    covary.RobustPPCA(1),
    covary.RobustPPCA(1, nu=30),
    covary.MixturePPCA(),
    covary.MixturePPCA(2, 1),
    covary.FactorAnalysis(),
    covary.FactorAnalysis(2),
    covary.FactorAnalysis(1, rotation="varimax"),
    covary.FactorAnalysis(2, rotation="quartimax"),
    covary.ICA(),
    covary.ICA(2),
    covary.ICA(1, noise=False, method="fastica"),
    covary.ICA(2, method="infomax", n_init=2),
    covary.FastICA(),
    covary.FastICA(2, algorithm="deflation", whiten="arbitrary-variance"),
    covary.KMeans(),
    covary.KMeans(3, polish=False, init="random"),
    covary.KernelPCA(),
    covary.KernelPCA(2, kernel="rbf", fit_inverse_transform=True),
    covary.KernelPCA(2, kernel="laplacian", n_landmarks=4),
    covary.Autoencoder(),
    covary.Autoencoder(1, max_iter=20),
    covary.Autoencoder(1, encoder=False, hidden=3, max_iter=20),
    covary.Autoencoder(1, activation="linear"),
    covary.GPLVM(1, n_inducing=8, tol=1e-3),
    covary.GPLVM(2, kernel="linear", tol=1e-3),
    covary.Imputer(),
    covary.Imputer(covary.PPCA(1), add_indicator=True),
]


# Why some checks cannot pass: of a class, the check and the reason.
_AS_A_CLASSIFIER = "it has probabilities of groups, but no classes that it was taught"
_DRAWS = "rows are drawn at random, and a row of weight 2 is drawn otherwise than two rows, as in scikit-learn's KMeans"
_WEIGHTS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]


_SEARCH = "a search ends within its tolerance (test_gplvm.py has it with a small one)"
_INDUCING = "inducing points are drawn among the rows, and a search ends within its tolerance"
_ROUNDING = "the rounding of sums grows from step to step: 2e-12 after 20, 2e-9 after 50, 2e-3 after 100"


def expected_failures(estimator):
    if isinstance(estimator, covary.Autoencoder) and estimator.max_iter > 20 and estimator.activation == "tanh":
        return dict.fromkeys(_WEIGHTS, _ROUNDING)
    if isinstance(estimator, covary.GPLVM):
        return dict.fromkeys(_WEIGHTS, _SEARCH if estimator.kernel == "linear" else _INDUCING)
    if isinstance(estimator, covary.KMeans) or getattr(estimator, "n_landmarks", None) is not None:
        return dict.fromkeys(_WEIGHTS, _DRAWS)
    if not isinstance(estimator, covary.MixturePPCA):
        return {}
    return {f"check_estimator_sparse_{kind}": _AS_A_CLASSIFIER for kind in ("array", "matrix")}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
