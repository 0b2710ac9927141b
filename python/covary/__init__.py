"""Probabilistic PCA and its family: exact, for data with holes, from a laptop to files larger than memory.

>>> import numpy as np
>>> import covary
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
>>> model = covary.PPCA(2).fit(X)
>>> model.transform(X).shape
(500, 2)
>>> bool(abs(model.noise_variance_ - 0.01) < 0.001)
True
"""

from covary._adequacy import bartlett, kmo, smc
from covary._bayes import BayesianPCA
from covary._covary import __version__
from covary._factor import FactorAnalysis
from covary._files import load, read
from covary._input import observed
from covary._pca import PCA
from covary._ppca import PPCA
from covary._rotate import Rotation, rotate
from covary._select import Selection, select

__all__ = [
    "BayesianPCA",
    "FactorAnalysis",
    "PCA",
    "PPCA",
    "Rotation",
    "Selection",
    "__version__",
    "bartlett",
    "kmo",
    "load",
    "observed",
    "read",
    "rotate",
    "select",
    "smc",
]
