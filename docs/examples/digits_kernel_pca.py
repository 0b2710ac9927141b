"""Handwritten digits with noise, denoised by PCA and by kernel PCA.

Run from the folder of the project, with the package installed: python docs/examples/digits_kernel_pca.py
"""

import csv
import gzip

import numpy as np

import covary

SIDE = 8
FITTED, ASKED, NOISE = 300, 100, 4.0
SHADES = ["  ", "░░", "▒▒", "▓▓", "██"]
GAMMA = 1.0 / 2000


def digits():
    """1797 digits of 8 × 8 pixels with ink from 0 to 16."""
    with gzip.open("crates/cli/data/digits.csv.gz", "rt") as file:
        header, *rows = csv.reader(file)
    return np.delete(np.array(rows, dtype=float), header.index("digit"), axis=1)


def picture(pixels):
    """Lines of two characters for each pixel, as terminals are twice as high as wide."""
    shade = np.searchsorted([2.4, 6.4, 10.4, 13.6], pixels.reshape(SIDE, SIDE), side="right")
    return ["".join(SHADES[s] for s in row) for row in shade]


def beside(pictures):
    return "\n".join("  " + "   ".join(lines).rstrip() for lines in zip(*pictures, strict=True))


def best(model, numbers, noisy, clean):
    """The number of components with the least squared error, that error for each pixel, and the denoised digits."""
    found = ((q, model(q).reconstruct(noisy)) for q in numbers)
    error, q, back = min((((back - clean) ** 2).mean(), q, back) for q, back in found)
    return q, error, back


def main():
    X = digits()
    train, clean = X[:FITTED], X[FITTED : FITTED + ASKED]
    noisy = clean + NOISE * np.random.default_rng(0).normal(size=clean.shape)
    kernel = lambda q: covary.KernelPCA(q, kernel="rbf", gamma=GAMMA, fit_inverse_transform=True, alpha=1e-2).fit(train)
    plain = best(lambda q: covary.PCA(q).fit(train), range(1, 64, 2), noisy, clean)
    bent = best(kernel, range(20, 300, 20), noisy, clean)
    print(f"squared error of a pixel: noisy {((noisy - clean) ** 2).mean():.2f}")
    print(f"PCA, at best with {plain[0]} components: {plain[1]:.2f}")
    print(f"kernel PCA, at best with {bent[0]} components: {bent[1]:.2f}\n")
    print("clean, noisy, PCA, kernel PCA:\n")
    for i in (0, 5, 12):
        print(beside([picture(x[i]) for x in (clean, noisy, plain[2], bent[2])]), end="\n\n")


if __name__ == "__main__":
    main()
