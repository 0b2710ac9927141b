"""What ``import covary`` offers."""

from covary._adequacy import bartlett, kmo, smc
from covary._autoencoder import Autoencoder
from covary._bayes import BayesianPCA
from covary._covary import __version__
from covary._factor import FactorAnalysis
from covary._fastica import FastICA
from covary._files import load, read
from covary._gplvm import GPLVM
from covary._ica import ICA
from covary._imputer import Imputer
from covary._input import observed
from covary._kernel_pca import KernelPCA
from covary._kmeans import KMeans
from covary._mixture import MixturePPCA
from covary._pca import PCA
from covary._ppca import PPCA
from covary._robust import RobustPPCA
from covary._rotate import Rotation, rotate
from covary._select import Selection, select
from covary._select_groups import ClusterSelection, GroupSelection
from covary._select_kernel import KernelSelection

__all__ = [
    "Autoencoder",
    "BayesianPCA",
    "ClusterSelection",
    "FactorAnalysis",
    "FastICA",
    "GPLVM",
    "GroupSelection",
    "ICA",
    "Imputer",
    "KMeans",
    "KernelPCA",
    "KernelSelection",
    "MixturePPCA",
    "PCA",
    "PPCA",
    "RobustPPCA",
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
