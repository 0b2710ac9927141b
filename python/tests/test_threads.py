"""Estimators that several threads ask at once, also while another thread fits them anew."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from support import low_rank, punched

import covary

MODELS = [
    covary.PPCA(2, n_threads=2),
    covary.FactorAnalysis(2, n_threads=2),
    covary.MixturePPCA(2, 1, n_threads=2),
    covary.RobustPPCA(2, n_threads=2),
]


@pytest.mark.parametrize("estimator", MODELS, ids=lambda estimator: type(estimator).__name__)
def test_answers_are_those_of_one_thread(estimator):
    X = punched(low_rank(200, 6, 2), 0.1)
    model = clone(estimator).fit(X)
    expected = [model.impute(X), model.score_samples(X), model.transform(X), model.outliers(X)["p_value"]]
    ask = [model.impute, model.score_samples, model.transform, lambda rows: model.outliers(rows)["p_value"]]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda k: (k, ask[k % 4](X)), range(64)))
    for k, answer in answers:
        np.testing.assert_array_equal(answer, expected[k % 4])


def test_fits_side_by_side():
    tables = [low_rank(150, 5, 2, seed=seed) for seed in range(16)]
    expected = [covary.PPCA(2).fit(X).loadings_ for X in tables]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda X: covary.PPCA(2, n_threads=2).fit(X).loadings_, tables))
    for ours, theirs in zip(found, expected):
        np.testing.assert_array_equal(ours, theirs)


def test_numbers_are_of_the_model_that_is_there_after_a_fit_in_another_thread():
    tables = [low_rank(60, 4, 1, seed=seed) for seed in (0, 1)]
    means = [X.mean(axis=0) for X in tables]
    model = covary.PPCA(1).fit(tables[0])
    with ThreadPoolExecutor(4) as pool:
        for k in range(60):
            readers = [pool.submit(lambda: (model.mean_, model.report_["rows"])) for _ in range(3)]
            model.fit(tables[k % 2])
            seen = [reader.result()[0] for reader in readers]
            # Readers see one fit or the other; who asks after the fit sees the last one.
            assert all(any(np.allclose(mean, known) for known in means) for mean in seen)
            np.testing.assert_allclose(model.mean_, means[k % 2])


@pytest.fixture
def path(tmp_path):
    X = low_rank(120, 4, 1)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b,c,d", comments="")
    return tmp_path / "x.csv"


def test_one_file_for_several_threads(path):
    rows = covary.read(path)
    expected = covary.PPCA(1).fit(covary.read(path)).loadings_
    with ThreadPoolExecutor(6) as pool:
        for loadings in pool.map(lambda _: covary.PPCA(1, n_threads=1).fit(rows).loadings_, range(12)):
            np.testing.assert_array_equal(loadings, expected)
