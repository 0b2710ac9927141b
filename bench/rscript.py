"""R's prcomp and factanal on the arrays of compare.py, through Rscript, by R's own clock."""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np

RSCRIPT = shutil.which("Rscript")
PRCOMP = """
options(digits = 17); a <- commandArgs(TRUE); n <- as.integer(a[2]); p <- as.integer(a[3]); q <- as.integer(a[4])
X <- matrix(readBin(a[1], "double", n * p), n, p)
seconds <- system.time(m <- prcomp(X, rank. = q))[["elapsed"]]
cat(seconds, m$sdev[1:q]^2, mean(m$sdev[(q + 1):length(m$sdev)]^2), sep = "\n")
"""


@dataclass
class Prcomp:
    """What R's prcomp has found: variances with divisor n − 1, as PCA has them."""

    explained_variance_: np.ndarray
    noise_variance_: float


def prcomp(X, q):
    """R's prcomp on the same array; its own clock, without the start of R and the copying of the array."""
    with tempfile.NamedTemporaryFile(suffix=".f64") as file:
        np.asfortranarray(X, dtype=np.float64).T.tofile(file.name)  # column after column, as R lays them out
        command = [RSCRIPT, "-e", PRCOMP, file.name, *map(str, (*X.shape, q))]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, *variances, noise = map(float, text.split())
    return seconds, Prcomp(np.array(variances), noise)


#: Some features have less noise than factanal's bound of 0.005; with a lower one it finds no optimum ("unable to optimize").
FACTANAL = """
arguments <- commandArgs(TRUE)
n <- as.integer(arguments[2]); p <- as.integer(arguments[3]); q <- as.integer(arguments[4])
x <- matrix(readBin(arguments[1], "double", n * p), n, p)
seconds <- system.time(fit <- factanal(x, q, rotation = "none"))[["elapsed"]]
cat(format(c(seconds, fit$uniquenesses, fit$loadings), digits = 17), sep = "\\n")
"""


def factanal(X, q):
    """R's factanal on the same array: its own clock, then mean, loadings and noise on the scale of the data."""
    with tempfile.NamedTemporaryFile(suffix=".f64") as file:
        np.asfortranarray(X, dtype=np.float64).T.tofile(file.name)
        command = [RSCRIPT, "-e", FACTANAL, file.name, *map(str, (*X.shape, q))]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    numbers = np.array(text.split(), dtype=float)
    p, sd = X.shape[1], X.std(axis=0)
    uniquenesses, loadings = numbers[1 : p + 1], numbers[p + 1 :].reshape(q, p).T
    return numbers[0], (X.mean(axis=0), loadings * sd[:, None], uniquenesses * sd**2)
