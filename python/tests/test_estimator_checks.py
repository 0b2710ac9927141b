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
    covary.KMeans(),
    covary.KMeans(3, polish=False, init="random"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
