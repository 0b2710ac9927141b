"""Handwritten digits as a mixture: what each group looks like, and along which directions it varies.

Run from the folder of the project, with the package installed: python docs/examples/digits_mixture.py
"""

import csv
import gzip
from collections import Counter

import numpy as np

import covary

SIDE = 8
GROUPS, LATENT = 10, 2
SHADES = ["  ", "░░", "▒▒", "▓▓", "██"]


def digits():
    """1797 digits of 8 × 8 pixels with ink from 0 to 16, and what each is meant to be."""
    with gzip.open("crates/cli/data/digits.csv.gz", "rt") as file:
        header, *rows = csv.reader(file)
    at = header.index("digit")
    cells = np.array(rows, dtype=float)
    return np.delete(cells, at, axis=1), cells[:, at].astype(int)


def around_clusters(X):
    """A mixture around the clusters of k-means: where the fit starts, instead of growing group by group."""
    clusters, pooled = covary.KMeans(GROUPS).fit(X), covary.PPCA(LATENT).fit(X)
    within = np.sqrt(clusters.inertia_ / np.sum((X - X.mean(axis=0)) ** 2))
    return {
        "weights": clusters.cluster_weights_,
        "means": clusters.cluster_centers_,
        "loadings": np.repeat([within * pooled.loadings_], GROUPS, axis=0),
        "noise_variance": np.full(GROUPS, pooled.noise_variance_),
    }


def picture(pixels):
    """Lines of two characters for each pixel, as terminals are twice as high as wide."""
    shade = np.searchsorted([2.4, 6.4, 10.4, 13.6], pixels.reshape(SIDE, SIDE), side="right")
    return ["".join(SHADES[s] for s in row) for row in shade]


def beside(pictures):
    return "\n".join("  " + "   ".join(lines).rstrip() for lines in zip(*pictures, strict=True))


def main():
    X, meant = digits()
    model = covary.MixturePPCA(GROUPS, LATENT, init=around_clusters(X)).fit(X)
    groups = model.predict(X)
    one = covary.PPCA(LATENT).fit(X)
    print(f"log-likelihood per digit: {model.score(X):.2f}, of one PPCA: {one.score(X):.2f}\n")
    for k in range(GROUPS):
        most = Counter(meant[groups == k].tolist()).most_common(3)
        members = ", ".join(f"{count} of '{digit}'" for digit, count in most)
        print(f"group {k + 1}, {model.weights_[k]:.1%} of the digits: {members}")
        mean, (first, second) = model.means_[k], model.component(k).loadings_.T
        print(beside([picture(v) for v in (mean, mean - 2 * first, mean + 2 * first, mean - 2 * second, mean + 2 * second)]))
        print()


if __name__ == "__main__":
    main()
