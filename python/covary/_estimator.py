"""What every estimator shares, whatever its model: fitting, the report, files, scikit-learn's conventions."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from covary import _covary
from covary._input import features_restored_on_failure, rows_of, seed_of, whole
from covary._page import carried, size
from covary._progress import Progress
from covary._summary import Summary
from covary._types import Path, Seed, Self, Table, Weights
from covary._warn import warn


def learned(name: str, doc: str) -> Any:
    """A property that reads a number of the fitted model, once."""

    def get(self):
        numbers, model = self._remembered()
        if name not in numbers:
            value = getattr(model, name)
            if isinstance(value, np.ndarray):
                # Changing it would not change the model: better an error than silence.
                value.flags.writeable = False
            numbers[name] = value
        return numbers[name]

    return property(get, doc=doc)


def table(name: str, doc: str, missing: Any = None) -> Any:
    """A property that reads an array that only this kind of model has, once; `missing` says why there is none."""

    def get(self):
        numbers, model = self._remembered()
        if name not in numbers:
            tables = model.tables()
            for array in tables.values():
                array.flags.writeable = False
            numbers.update(tables)
        if name not in numbers:
            raise AttributeError(missing)
        return numbers[name]

    return property(get, doc=doc)


class Estimator(BaseEstimator):
    """Holds a fitted model: fitting is forwarded to the core, by the `_request` of the class."""

    _kind: str | None = None
    """The kind of model, as the core calls it."""

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Arrow table or :func:`covary.read` of shape (n, p)
            NaN and masked cells are missing values, infinite cells are an error. C- or Fortran-ordered arrays
            of float64 or float32 are not copied.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        progress = Progress(type(self).__name__) if self.verbose else None
        with features_restored_on_failure(self):
            rows = rows_of(self, X, sample_weight=sample_weight, reset=True)
            self._learn(X, rows, progress)
        if progress is not None:
            report = self.report_
            progress.close(f"{report['rows']} rows, {report['passes']} pass(es), {report['seconds']:.2f} s")
        self._warn_unless_converged()
        return self

    def _learn(self, X, rows, progress):
        """Fits the rows of X."""
        self._take(self._best_model(X, rows, lambda request: _covary.fit(rows, request, progress)))

    def _best_model(self, X, rows, fit):
        """What `fit` makes of the request; of several requests the best."""
        return fit(self._request(rows))

    def _search_options(self):
        """What is asked of the core by parameters that most kinds have."""
        return {
            "scale": self.scale,
            "tolerance": self.tol,
            "max_iterations": whole("max_iter", self.max_iter),
            "seed": seed_of(self.random_state),
            "threads": self.n_threads,
        }

    def _one_of(self, name, allowed):
        """The parameter of this name, which must be one of some words."""
        value = getattr(self, name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}")
        return value

    def _take(self, model):
        self._model = model
        self._numbers = {}
        self._seconds = model.seconds

    def _remembered(self):
        """The numbers of the model that were asked for before, and the model.

        In this order: when another thread fits in between, numbers of the new model are put with those of the old one,
        which nobody asks again, and never the other way round.
        """
        numbers = self.__dict__.get("_numbers", {})
        return numbers, self._fitted()

    def _fitted(self):
        if self.__dict__.get("_model") is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._model

    def __sklearn_is_fitted__(self):
        return self.__dict__.get("_model") is not None

    def _warn_unless_converged(self):
        report = self._report()
        # Steps of online EM are as many as there were batches, and the report says what they are.
        if not self.converged_ and report["exact"]:
            # More iterations do not help where no better point can be found.
            advice = "increase tol" if report["stop"] == "stalled" else "increase max_iter or tol"
            warn(
                f"{type(self).__name__} stopped before it converged ({report['stop']} after {self.n_iter_} "
                f"iterations); {advice}",
                ConvergenceWarning,
            )

    @classmethod
    def _of(cls, model, **parameters):
        """An estimator that holds a model already."""
        estimator = cls(**cls._constructor_of(model), **parameters)
        estimator._take(model)
        estimator.n_features_in_ = model.n_features
        if model.names is not None:
            estimator.feature_names_in_ = np.asarray(model.names, dtype=object)
        return estimator

    @classmethod
    def _constructor_of(cls, model):
        """The arguments of a constructor that would ask for a model of this size."""
        return {"n_components": model.n_components}

    # -- how it went -----------------------------------------------------------------------------------------

    @property
    def report_(self) -> dict[str, Any]:
        """dict: how the fit went: solver, why, exact, passes, seconds, trace, stop, rows, …"""
        return copy.deepcopy(self._report())

    def _report(self):
        """The report, read once."""
        numbers, model = self._remembered()
        if "report" not in numbers:
            report = model.report
            plan = report.pop("plan")
            parts = [report.get(part) or {} for part in ("holes", "mixture", "robust", "clusters")]
            exact = all(part.get("online_steps") is None for part in parts)
            report = {"solver": plan["solver"], "why": plan["reason"], "exact": exact, "memory": plan["memory"], **report}
            numbers["report"] = {**report, "seconds": self._seconds}
        return numbers["report"]

    @property
    def log_likelihood_(self) -> float:
        """float: total log-likelihood of the rows; infinite when they lie in a plane that the model spans,
        NaN when it is not known because batches with missing values have gone by or the fit was
        interrupted."""
        model = self._fitted()
        return float("nan") if model.log_likelihood is None else model.log_likelihood

    @property
    def n_iter_(self) -> int:
        """int: number of iterations, 1 for a closed form."""
        return max(1, len(self._report()["trace"]))

    @property
    def converged_(self) -> bool:
        """bool: whether the method ended by itself."""
        return self._report()["stop"] == "converged"

    def summary(self) -> Summary:
        """What the fit has found, as text: what ``covary inspect`` prints for the saved model.

        Variances have divisor n, as in files. A notebook shows the same as tables.

        Returns
        -------
        str
            Its ``repr`` is the text itself.

        Examples
        --------
        >>> import numpy as np
        >>> from covary import PPCA
        >>> X = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, 1.5], [3.0, 5.0, 2.0], [5.0, 4.0, 3.5], [4.0, 3.0, 0.0]])
        >>> PPCA(1).fit(X).summary()  # doctest: +NORMALIZE_WHITESPACE, +ELLIPSIS
         model                ppca
         rows (n)             5
         features (p)         3
         components (q)       1
         solver               eigen: 5 rows of 3 features: the 3 × 3 covariance is the smaller side
         noise variance (σ²)  0.8387035 by maximum likelihood; ...
         log-likelihood       -23.75691 (-4.75138 per row)
         total variance       5.50000
         features             x1, x2, x3
        <BLANKLINE>
         component  variance   share  cumulative
                z1   3.82259  69.5 %      69.5 %  ████████████████▋
        <BLANKLINE>
         component  largest loadings
                z1  x1 +1.0977, x2 +1.0714, x3 +0.7944
        """
        return Summary(self._fitted().describe())

    def save(self, path: Path) -> None:
        """Write the model to a file that :func:`covary.load` and the command read.

        Parameters
        ----------
        path : str or path-like
            The file appears whole or not at all.
        """
        self._fitted().save(os.fspath(path), bool(self._whitens()))

    def report(
        self,
        X: Table,
        path: Path,
        *,
        columns: Any = None,
        labels: Any = None,
        rows: int | None = None,
        image: tuple[int, int] | None = None,
        stick: list[tuple[str, str]] | None = None,
        title: str | None = None,
        random_state: Seed = 0,
    ) -> None:
        """Write one interactive page about the model and its rows: what ``covary report`` writes.

        The page is a single HTML file that opens by double click, without a network: what the model says in
        words, loadings, a latent plot, a latent explorer that shows the row at any place, the rows that do not
        belong and why, missing values, groups, and how well the model fits.

        Parameters
        ----------
        X : as for `fit`
            Whoever has the page has these rows: cells are kept in 65535 steps of each feature.
        path : str or path-like
            The file appears whole or not at all; its name should end in ``.html``.
        columns : mapping or data frame, optional
            More columns of the rows, numbers or texts, to colour and compare with.
        labels : array-like of shape (n,), optional
            Names of the rows. Without them, the index of a data frame where it has names.
        rows : int, optional
            Most rows that the page holds, 0 for none; 100 000 by default, fewer of wide tables. Of more, the
            1000 most unusual ones are kept and a sample of the others.
        image : (int, int), optional
            The features are the pixels of an image of this height and width, row by row.
        stick : list of (str, str), optional
            The features are coordinates of markers, such as ``HEAD:X``, ``HEAD:Y``, ``HEAD:Z``: the pairs of
            markers that a line joins.
        title : str, optional
        random_state : int, RandomState or None
            Decides which rows are in a sample.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from covary import PPCA
        >>> X = np.array([[1.0, 2.0, 0.5], [2.0, 1.0, 1.5], [3.0, np.nan, 2.0], [5.0, 4.0, 3.5], [4.0, 3.0, 0.0]])
        >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> PPCA(1).fit(X).report(X, path, columns={"kind": ["a", "b", "a", "b", "a"]})
        >>> os.path.getsize(path) < 500_000
        True
        """
        model = self._fitted()
        found, named = carried(X, columns, labels)
        model.page(
            rows_of(self, X),
            os.fspath(path),
            found,
            named,
            None if rows is None else whole("rows", rows),
            size(image),
            None if stick is None else [(str(a), str(b)) for a, b in stick],
            None if title is None else str(title),
            seed_of(random_state),
            bool(self._whitens()),
            self.n_threads,
        )

    def _whitens(self):
        return False

    # -- manners ---------------------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self):
        # What properties remember can be read again.
        state = super().__getstate__()
        return {**state, "_numbers": {}} if "_numbers" in state else state

    def _repr_html_inner(self):
        return super()._repr_html_inner() + self._summary_html()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self):
        return self.summary()._repr_html_() if self.__sklearn_is_fitted__() else ""
