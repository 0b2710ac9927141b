"""Rows in parts: whatever carries the evidence, the model is that of all rows."""

import numpy as np
import pytest

import covary
from covary import elsewhere

MODELS = {
    "ppca": lambda: covary.PPCA(2),
    "pca": lambda: covary.PCA(2),
    "factors": lambda: covary.FactorAnalysis(2),
    "bayes": lambda: covary.BayesianPCA(3),
    "robust": lambda: covary.RobustPPCA(2),
}
OTHERS = {
    "kmeans": lambda: covary.KMeans(3),
    "mixture": lambda: covary.MixturePPCA(3, 1),
    "ica": lambda: covary.ICA(2, n_init=1),
    "kernel": lambda: covary.KernelPCA(2, kernel="rbf", gamma=0.01, n_landmarks=30),
}
#: What is known of single rows is not brought here.
OF_ROWS = {"labels_": covary.KMeans, "weights_": covary.RobustPPCA}


def public_numbers(model):
    """Every learned number and array of an estimator, by name."""
    names = [name for name in dir(type(model)) + list(vars(model)) if name.endswith("_") and not name.startswith("_")]
    of_rows = [name for name, kind in OF_ROWS.items() if isinstance(model, kind)]
    found = {name: np.asarray(getattr(model, name, None)) for name in names if name not in of_rows}
    return {name: value for name, value in found.items() if value.dtype.kind in "fiub"}


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


def check(make, x, parts):
    """Every public number is that of the fit of all rows."""
    expected = public_numbers(make().fit(x))
    assert len(expected) > 5
    for count in parts:
        found = public_numbers(elsewhere.fit(make(), carried(x, count), n_features=x.shape[1], n_rows=len(x)))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            size = np.max(np.abs(np.nan_to_num(value.astype(float))), initial=0.0)
            told = f"{name} of {count} parts"
            np.testing.assert_allclose(found[name].astype(float), value.astype(float), 0.0, 1e-9 * size, err_msg=told)


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", MODELS)
def test_linear_models_of_parts(kind, missing):
    check(MODELS[kind], low_rank(missing), (1, 2, 7, 64))


@pytest.mark.parametrize("kind", OTHERS)
def test_other_models_of_parts(kind):
    check(OTHERS[kind], low_rank() ** 3 if kind == "ica" else groups(), (1, 2, 7, 64))


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
