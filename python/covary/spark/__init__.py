"""The estimators on a Spark DataFrame: whole fits run on the driver, and only evidence travels.

``pip install covary[spark]``; the same version of covary has to be on the executors. Rows may have missing values
(null or NaN) and weights. A fitted model is the same as on one machine, and so is its file.

>>> from covary.spark import PPCA  # doctest: +SKIP
>>> fitted = PPCA(n_components=5).fit(df, features=["a", "b", "c", "d"])  # doctest: +SKIP
>>> fitted.impute(df).write.parquet("filled")  # doctest: +SKIP
>>> fitted.model.save("model.covary")  # doctest: +SKIP
"""

from covary.spark._estimators import (
    ICA,
    PCA,
    PPCA,
    BayesianPCA,
    FactorAnalysis,
    FittedModel,
    KernelPCA,
    KMeans,
    MixturePPCA,
    RobustPPCA,
)

__all__ = [
    "BayesianPCA",
    "FactorAnalysis",
    "FittedModel",
    "ICA",
    "KMeans",
    "KernelPCA",
    "MixturePPCA",
    "PCA",
    "PPCA",
    "RobustPPCA",
]
