"""Choosing the number of components from Python: the core's numbers, for all kinds of rows."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from support import low_rank, punched

import covary


@pytest.fixture(scope="module")
def X():
    return low_rank(300, 7, 2, noise=0.3)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_the_evidence_chooses_as_scikit_learn_does(load):
    rows = load().data
    found = covary.select(rows)
    assert found.choices["evidence"] == PCA(n_components="mle").fit(rows).n_components_


def test_likelihoods_are_those_of_fits(X):
    for rows in [X, punched(X, 0.2)]:
        found = covary.select(rows, max_components=3)
        for q in [1, 2, 3]:
            model = covary.PPCA(q).fit(rows)
            np.testing.assert_allclose(found.table["log_likelihood"][q], model.log_likelihood_, rtol=1e-7)
            k = 7 * q - q * (q - 1) / 2 + 8
            np.testing.assert_allclose(found.table["aic"][q], 2 * k - 2 * model.log_likelihood_, rtol=1e-7)
            bic = k * np.log(300) - 2 * model.log_likelihood_
            np.testing.assert_allclose(found.table["bic"][q], bic, rtol=1e-7)
        assert found.recommended == 2


def test_what_is_told_equals_the_command(X, tmp_path, command):
    for name, rows in [("whole", X), ("holes", punched(X, 0.2))]:
        path = tmp_path / f"{name}.csv"
        pd.DataFrame(rows).to_csv(path, index=False)
        told = json.loads(command("select", path, "--json", "--max", 4))
        ours = covary.select(covary.read(path), max_components=4)
        assert (ours.recommended, ours.reason) == (told["recommended"], told["reason"])
        assert ours.choices == {choice["method"]: choice["components"] for choice in told["choices"]}
        for column, values in ours.table.items():
            theirs = np.array([line[column] for line in told["table"]], dtype=float)
            np.testing.assert_array_equal(values, theirs, err_msg=f"{name} {column}")


def test_every_kind_of_rows(X):
    found = covary.select(X)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(7)])
    frames = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    for rows in [np.asfortranarray(X), X.astype(">f8"), sparse.csr_array(X), *frames]:
        ours = covary.select(rows)
        np.testing.assert_allclose(ours.table["bic"], found.table["bic"], rtol=1e-9)
        assert ours.choices == found.choices


def test_observed_cells(X):
    Y = punched(X, 0.3)
    row, column = np.nonzero(~np.isnan(Y))
    seen = sparse.csr_array((Y[row, column], (row, column)), shape=Y.shape)
    ours, dense = covary.select(covary.observed(seen)), covary.select(Y)
    assert (ours.recommended, dense.recommended) == (2, 2)
    np.testing.assert_allclose(ours.table["q2"][:3], dense.table["q2"][:3], atol=1e-3)
    assert ours.holes["missing"] == dense.holes["missing"] == np.isnan(Y).sum()


def test_weights_count_like_repeated_rows(X):
    weights = np.arange(len(X)) % 3
    found = covary.select(X, sample_weight=weights)
    repeated = covary.select(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(found.table["bic"], repeated.table["bic"], rtol=1e-9)
    with pytest.raises(ValueError, match="weight"):
        covary.select(X, sample_weight=-weights)


def test_cells_when_asked(X):
    assert "cells" in covary.select(X).absent
    found = covary.select(X, cells=True, folds=4)
    assert found.choices["cells"] == 2
    assert found.table["q2"][0] == 0 and found.table["q2"][2] > 0.6 > found.table["q2"][1]
    assert "evidence" in covary.select(punched(X, 0.1), max_components=2).absent


def test_a_table_for_people_and_frames(X):
    found = covary.select(X)
    assert len(pd.DataFrame(found.table)) == len(pl.DataFrame(found.table)) == 7
    text = repr(found)
    assert "take 2" in text and "bic" in text.splitlines()[0] and "q2" not in text.splitlines()[0]
    html = found._repr_html_()
    assert html.startswith("<table") and "<th>bic</th>" in html and "take 2" in html


def test_the_number_of_threads_changes_nothing(X):
    Y = punched(X, 0.2)
    one, two = (covary.select(Y, max_components=3, n_threads=n) for n in [1, 2])
    for name in one.table:
        np.testing.assert_array_equal(one.table[name], two.table[name])


def test_what_cannot_be_done_is_said(X):
    with pytest.raises(ValueError, match="folds"):
        covary.select(X, folds=1)
    with pytest.raises(ValueError, match="at least 1"):
        covary.select(X, max_components=0)
    with pytest.raises(ValueError, match="constant"):
        covary.select(np.ones((5, 3)))
    infinite = X.copy()
    infinite[3, 2] = np.inf
    with pytest.raises(ValueError, match="inf"):
        covary.select(infinite)


def test_features_that_add_no_direction_are_left_out_and_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.2 * rng.normal(size=(300, 6))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(g=3.5, h=lambda f: 1 - 2 * f["b"])
    found = covary.select(frame)
    assert found.recommended == 2
    assert found.redundant == {"constant": ["g"], "repeated": [["h", "b"]], "combined": []}
    assert "'g' is constant; 'h' repeats 'b'" in repr(found)
    positions = {"constant": [6], "repeated": [[7, 1]], "combined": []}
    assert covary.select(frame.to_numpy()).redundant == positions
    assert covary.select(X).redundant is None
    model = covary.BayesianPCA().fit(frame)
    assert model.n_components_ == 2
    assert model.report_["redundant"] == positions
    assert covary.PCA("mle").fit(frame).n_components_ == 2
    total = covary.select(frame[list("abc")].assign(total=lambda f: f.sum(axis=1)))
    assert total.redundant["combined"] == [["total", ["a", "b", "c"]]]
    assert "'total' is a linear combination of 'a', 'b', 'c'" in repr(total)


def test_single_precision_chooses_what_double_does():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 3)) @ rng.normal(size=(3, 20)) + 1e-4 * rng.normal(size=(5000, 20))
    X = X.astype(np.float32)
    assert covary.select(X).recommended == covary.select(X.astype(np.float64)).recommended == 3


def test_the_number_of_groups():
    rng = np.random.default_rng(3)
    shift = np.repeat([0.0, 9.0], 60)[:, None]
    X = rng.normal(size=(120, 1)) @ rng.normal(size=(1, 4)) * 2 + shift + 0.4 * rng.normal(size=(120, 4))
    found = covary.select(X, model="mixture", groups=(1, 3), max_components=1, folds=3)
    assert found.recommended == (2, 1) and found.choices["bic"] == (2, 1)
    assert set(found.table["groups"]) == {1, 2, 3} and found.absent.keys() == {"cells"}
    assert "take 2 × 1" in repr(found) and "<table" in found._repr_html_()
    model = covary.MixturePPCA(*found.recommended).fit(X)
    at = np.flatnonzero((found.table["groups"] == 2) & (found.table["latent"] == 1))[0]
    np.testing.assert_allclose(model.bic_, found.table["bic"][at], rtol=1e-4)
    clusters = covary.select(rng.normal(size=(120, 4)) + shift, model="kmeans", groups=4)
    assert clusters.recommended == 2 and list(clusters.table["clusters"]) == [1, 2, 3, 4]
    assert "take 2" in repr(clusters)


def test_options_of_groups_that_make_no_sense():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="'ppca', 'mixture', 'kmeans'"):
        covary.select(X, model="fa")
    with pytest.raises(ValueError, match="groups and noise are for"):
        covary.select(X, groups=3)
    with pytest.raises(ValueError, match="smallest and the largest"):
        covary.select(X, model="mixture", groups=(1, 2, 3))
    with pytest.raises(ValueError, match="isotropic"):
        covary.select(X, model="mixture", noise="white")
    with pytest.raises(ValueError, match="not for model='kmeans'"):
        covary.select(X, model="kmeans", cells=True)
