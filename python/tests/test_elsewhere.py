"""Rows in parts: whatever carries the evidence, the model is that of all rows."""

import numpy as np
import pytest

import covary
from covary import elsewhere

LINEAR = ["mean_", "loadings_", "noise_variance_"]
MODELS = {
    "ppca": (lambda: covary.PPCA(2), [*LINEAR, "explained_variance_", "log_likelihood_"]),
    "pca": (lambda: covary.PCA(2), ["mean_", "components_", "explained_variance_", "noise_variance_"]),
    "factors": (lambda: covary.FactorAnalysis(2), [*LINEAR, "log_likelihood_"]),
    "bayes": (lambda: covary.BayesianPCA(3), [*LINEAR, "alpha_", "elbo_"]),
    "robust": (lambda: covary.RobustPPCA(2), [*LINEAR, "nu_"]),
}
OTHERS = {
    "kmeans": (lambda: covary.KMeans(3), ["cluster_centers_", "inertia_"]),
    "mixture": (lambda: covary.MixturePPCA(3, 1), ["weights_", "means_", "noise_variance_", "log_likelihood_", "bic_"]),
    "ica": (lambda: covary.ICA(2, n_init=1), ["mean_", "mixing_", "noise_variance_"]),
    "kernel": (lambda: covary.KernelPCA(2, kernel="rbf", gamma=0.01, n_landmarks=30), ["eigenvalues_", "noise_variance_"]),
}


def low_rank(missing=0.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 2)) @ rng.normal(size=(2, 6)) * 2.0 + 0.4 * rng.normal(size=(240, 6)) + 5.0
    x[rng.random(x.shape) < missing] = np.nan
    return x


def groups():
    x = np.random.default_rng(0).normal(size=(240, 6))
    x[np.arange(240), np.arange(240) % 3] += 12.0
    return x


def carried(x, parts):
    """What carries tasks to parts of the rows and merges their answers two by two."""
    pieces = np.array_split(x, parts)
    firsts = np.cumsum([0, *map(len, pieces)])

    def carry(task, numbered):
        found = [elsewhere.fill(task, piece, first_row=int(first)) for piece, first in zip(pieces, firsts)]
        while len(found) > 1:
            found = [elsewhere.merge(found[i : i + 2]) for i in range(0, len(found), 2)]
        return found[0]

    return carry


def check(make, fields, x, parts):
    expected = make().fit(x)
    for count in parts:
        found = elsewhere.fit(make(), carried(x, count), n_features=x.shape[1], n_rows=len(x))
        for field in fields:
            a, b = (np.asarray(getattr(model, field), dtype=float) for model in (found, expected))
            assert np.abs(a - b).max() <= 1e-9 * max(np.abs(b).max(), 1e-300), (field, count)


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", MODELS)
def test_linear_models_of_parts(kind, missing):
    check(*MODELS[kind], low_rank(missing), (1, 2, 7, 64))


@pytest.mark.parametrize("kind", OTHERS)
def test_other_models_of_parts(kind):
    check(*OTHERS[kind], low_rank() ** 3 if kind == "ica" else groups(), (1, 2, 7, 64))


def test_what_the_carrier_raises_arrives():
    class Broken(Exception):
        pass

    def carry(task, numbered):
        raise Broken("no way there")

    with pytest.raises(Broken, match="no way there"):
        elsewhere.fit(covary.PPCA(1), carry, n_features=3)


def test_what_is_wrong_with_rows_arrives():
    x = low_rank()
    x[200, 3] = np.inf
    with pytest.raises(ValueError, match="inf at row 200, column 'd'"):
        elsewhere.fit(covary.PPCA(1), carried(x, 5), n_features=6, feature_names=list("abcdef"))
    with pytest.raises(ValueError, match="rows themselves"):
        elsewhere.fit(covary.GPLVM(1), carried(low_rank(), 2), n_features=6)
    with pytest.raises(ValueError, match="damaged"):
        elsewhere.merge([b"nothing"])
