"""How many components: one table over their number, and what each method chooses."""

from html import escape

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covary import _covary
from covary._input import Reader, rows_of, seed_of, whole
from covary._progress import Progress
from covary._warn import warn

_SHOWN = ["components", "explained", "bic", "log_evidence", "cross_validated", "q2", "noise_variance"]
_MOST_LINES = 25


class Selection:
    """What :func:`select` has found.

    Attributes
    ----------
    table : dict of str to ndarray
        One entry for each number of components from 0 on, NaN where a method says nothing;
        ``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` make a frame of it. `components`,
        `eigenvalue`, `explained`, `noise_variance`, `log_likelihood`, `aic`, `bic`, `log_evidence` (Minka's,
        up to a constant), `cross_validated` (mean log density of held-out rows) and `cross_validated_error`,
        `q2` of hidden cells, `q2_error` and `cell_log_density`, `correlation_eigenvalue` and
        `noise_eigenvalue` (parallel analysis).
    choices : dict of str to int
        What each method chooses.
    reasons : dict of str to str
        What it goes by.
    absent : dict of str to str
        Methods that choose nothing here, and why.
    recommended : int
        The number to take, at least 1.
    reason : str
        Why.
    n_rows, n_features : int
    redundant : dict or None
        Features that are left out of all this because they add no direction: `constant`, a list of them,
        `repeated`, pairs of a feature and the earlier one that it repeats, and `combined`, pairs of a feature
        and the earlier ones that it is a linear combination of; by name where `X` has names, else by
        position. None when there are none.
    holes : dict or None
        What is missing; None for complete rows.
    converged : bool
        Whether every fit that this took came to its end.
    """

    def __init__(self, found, names=None):
        self.table = _columns(found["table"])
        self.choices = {choice["method"]: choice["components"] for choice in found["choices"]}
        self.reasons = {choice["method"]: choice["reason"] for choice in found["choices"]}
        self.absent = {absent["method"]: absent["reason"] for absent in found["absent"]}
        self.recommended = found["recommended"]
        self.reason = found["reason"]
        self.n_rows = found["rows"]
        self.n_features = found["features"]
        self.redundant = _named(found.get("redundant"), names)
        self.holes = found["holes"]
        self.converged = found["converged"]

    def __repr__(self):
        header, lines = self._shown()
        widths = [max(map(len, column)) for column in zip(header, *lines)]
        rows = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [header, *lines]]
        return "\n".join([*rows, self._advice()])

    def _repr_html_(self):
        header, lines = self._shown()
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in lines)
        return (
            f'<table class="covary-selection"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
            f"<p>{escape(self._advice())}</p>"
        )

    def _shown(self):
        names = [name for name in _SHOWN if not np.isnan(self.table[name]).all()]
        last = min(max([*self.choices.values(), 1]) + 2, _MOST_LINES, len(self.table["components"]))
        return names, [[_cell(self.table[name][q]) for name in names] for q in range(last)]

    def _advice(self):
        choices = ", ".join(f"{method} {q}" for method, q in self.choices.items())
        advice = f"{choices}; take {self.recommended} ({self.reason})"
        if self.redundant is None:
            return advice
        constant = [f"{name!r} is constant" for name in self.redundant["constant"]]
        repeated = [f"{name!r} repeats {other!r}" for name, other in self.redundant["repeated"]]
        combined = [
            f"{name!r} is a linear combination of {', '.join(map(repr, others))}"
            for name, others in self.redundant["combined"]
        ]
        return f"{advice}; left out: {'; '.join(constant + repeated + combined)}"


def _named(redundant, names):
    if redundant is None or names is None:
        return redundant
    return {
        "constant": [names[j] for j in redundant["constant"]],
        "repeated": [[names[j], names[k]] for j, k in redundant["repeated"]],
        "combined": [[names[j], [names[k] for k in others]] for j, others in redundant["combined"]],
    }


def _columns(lines):
    columns = {name: [line[name] for line in lines] for name in lines[0]}
    numbers = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}  # None is NaN
    return {**numbers, "components": np.array(columns["components"])}


def _cell(value):
    return "" if np.isnan(value) else f"{value:.6g}"


def select(
    X,
    max_components=None,
    *,
    folds=None,
    cells=False,
    sample_weight=None,
    random_state=0,
    n_threads=None,
    verbose=False,
):
    """How many components: what each method would take, and a recommendation that says why.

    Complete rows are looked at once: all numbers of components share one spectrum, from which follow
    likelihood, AIC and BIC, Minka's evidence [Min00]_, parallel analysis [Horn65]_, the optimal hard
    threshold [GD14]_ and, from the moments of ten parts of the rows, the likelihood of held-out rows, by
    which the recommendation goes.

    Rows with missing values are fitted for each number of components, and so is what is left when a fifth of
    the observed cells is hidden: the recommendation goes by how well hidden cells are predicted, Q²
    [Wold78]_. It is the fewest that do no worse than the best within a standard error. The search ends when
    three more components have predicted no better.

    Parameters
    ----------
    X : as for `fit`
        Rows, with missing values or without; :func:`covary.observed` and :func:`covary.read` too.
    max_components : int, optional
        The largest number to look at. By default all that leave noise, and where cells are hidden 10.
    folds : int, optional
        Parts that rows or cells are dealt to; by default 10 of rows and 5 of cells.
    cells : bool, default=False
        Whether cells of complete rows are hidden and predicted too. It takes many fits.
    sample_weight : array-like of shape (n,), optional
        How often each row was seen; the sum is the n of every criterion. Weights that sum to less than the
        number of rows are shares, and n is the number of rows.
    random_state : int, RandomState instance or None, default=0
        Of the folds and of the samples of noise.
    n_threads : int, optional
        All cores by default; -1 too, -2 is all but one. The result does not depend on it.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Selection

    References
    ----------
    .. [Min00] T. P. Minka (2000). Automatic choice of dimensionality for PCA. NIPS 13.
    .. [Horn65] J. L. Horn (1965). A rationale and test for the number of factors in factor analysis.
       Psychometrika 30.
    .. [GD14] M. Gavish & D. L. Donoho (2014). The optimal hard threshold for singular values is 4/√3. IEEE
       Trans. Inf. Theory 60.
    .. [Wold78] S. Wold (1978). Cross-validatory estimation of the number of components in factor and
       principal components models. Technometrics 20.

    Examples
    --------
    >>> import numpy as np
    >>> import covary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
    >>> found = covary.select(X)
    >>> found.recommended, found.choices["bic"]
    (2, 2)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> found = covary.select(X, max_components=4)
    >>> found.recommended, bool(found.table["q2"][2] > 0.9)
    (2, True)
    """
    reader = Reader(n_threads)
    rows = rows_of(reader, X, sample_weight=sample_weight, reset=True)
    progress = Progress("select") if verbose else None
    found = _covary.select(
        rows,
        max=None if max_components is None else whole("max_components", max_components),
        folds=None if folds is None else whole("folds", folds),
        cells=cells,
        seed=seed_of(random_state),
        threads=n_threads,
        progress=progress,
    )
    names = getattr(reader, "feature_names_in_", None)
    selection = Selection(found, None if names is None else list(names))
    if progress is not None:
        progress.close(f"take {selection.recommended}")
    if not selection.converged:
        warn(
            "some fits stopped at their limit of passes; the table is near, not at, what they would give",
            ConvergenceWarning,
        )
    return selection
