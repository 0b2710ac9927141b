"""The summary of a fit is what the command prints for the saved file."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from support import low_rank

import covary

X = low_rank(120, 6, 2)
FITS = {
    "ppca": lambda: covary.PPCA(2).fit(X),
    "missing values": lambda: covary.PPCA(2).fit(np.where(np.arange(X.size).reshape(X.shape) % 11 == 3, np.nan, X)),
    "pca": lambda: covary.PCA(2).fit(X),
    "factors": lambda: covary.FactorAnalysis(2, rotation="oblimin").fit(X),
    "bayes": lambda: covary.BayesianPCA(4).fit(X),
    "no components": lambda: covary.BayesianPCA(2).fit(np.random.default_rng(5).normal(size=(300, 4))),
    "batches": lambda: covary.PPCA(2).partial_fit(X[:60]).partial_fit(X[60:]),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_the_command_prints_the_summary_of_the_saved_file(fit, command, tmp_path):
    model = fit()
    model.save(tmp_path / "m.covary")
    summary = model.summary()
    assert summary == command("inspect", tmp_path / "m.covary")
    assert repr(summary) == str(summary)


def test_advice_names_arguments():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    with pytest.warns(ConvergenceWarning):
        model = covary.PPCA(2, max_iter=1, tol=1e-12).fit(holes)
    assert "increase max_iter or tol" in model.summary() and "--" not in model.summary()


def test_a_notebook_shows_the_same_lines_and_tables():
    summary = covary.FactorAnalysis(2).fit(X).summary()
    html = summary._repr_html_()
    for line in summary.splitlines():
        for word in line.split():
            assert word.replace("'", "&#x27;").replace("<", "&lt;") in html
    assert '<td style="text-align:right">' in html


def test_it_can_be_sent_elsewhere():
    summary = covary.PPCA(1).fit(X).summary()
    again = pickle.loads(pickle.dumps(summary))
    assert again == summary and again._repr_html_() == summary._repr_html_()
