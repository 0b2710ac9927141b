"""What all estimators share besides their questions: fitting, the report, and scikit-learn's conventions."""

import copy
import os
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from covary import _covary
from covary._input import features_restored_on_failure, rows_of, seed_of, whole
from covary._progress import Progress
from covary._questions import Questions
from covary._summary import Summary
from covary._warn import warn


def learned(name, doc):
    """A property that reads a number of the fitted model, once."""

    def get(self):
        model = self._fitted()
        if name not in self._numbers:
            value = getattr(model, name)
            if isinstance(value, np.ndarray):
                # Changing it would not change the model: better an error than silence.
                value.flags.writeable = False
            self._numbers[name] = value
        return self._numbers[name]

    return property(get, doc=doc)


def table(name, doc, missing=None):
    """A property that reads an array that only this kind of model has, once; `missing` says why there is none."""

    def get(self):
        model = self._fitted()
        if name not in self._numbers:
            tables = model.tables()
            for array in tables.values():
                array.flags.writeable = False
            self._numbers.update(tables)
        if name not in self._numbers:
            raise AttributeError(missing)
        return self._numbers[name]

    return property(get, doc=doc)


class Estimator(BaseEstimator):
    """What all estimators share: fitting is forwarded to the core, and so are the report and the file."""

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None):
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
            self._take(_covary.fit(rows, self._request(rows), progress))
        if progress is not None:
            report = self.report_
            progress.close(f"{report['rows']} rows, {report['passes']} pass(es), {report['seconds']:.2f} s")
        self._warn_unless_converged()
        return self

    _kind = None
    """The kind of model, as the core calls it."""

    def _request(self, seen):
        """What is asked of the core, for rows or batches that were seen, or None before all are."""
        return _covary.Request(
            self._kind,
            "all" if self._checked_components() is None else self.n_components,
            scale=self.scale,
            tolerance=self.tol,
            max_iterations=whole("max_iter", self.max_iter),
            seed=seed_of(self.random_state),
            threads=self.n_threads,
            **self._family_options(),
        )

    def _family_options(self):
        """Options that only this kind of model has."""
        return {"solver": self.solver}

    def _checked_components(self):
        """n_components, when it is something that can be asked for."""
        q = self.n_components
        if q is not None and not isinstance(q, Real) and not (isinstance(q, str) and q == "mle"):
            raise ValueError(
                f"n_components={q!r} must be a number, a fraction of the variance in (0, 1), 'mle' or None"
            )
        return q

    def _was_fitted_at_once(self):
        return self.__dict__.get("_evidence") is None and self.__dict__.get("_model") is not None

    def _set_evidence(self, evidence):
        self._evidence = evidence
        self._model = None
        self._numbers = {}

    def _take(self, model):
        self._model = model
        self._evidence = None
        self._numbers = {}
        self._seconds = model.seconds

    def _fitted(self):
        if self.__dict__.get("_model") is None:
            evidence = self.__dict__.get("_evidence")
            if evidence is None:
                raise NotFittedError(
                    f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                    "arguments before using this estimator."
                )
            names = getattr(self, "feature_names_in_", None)
            names = None if names is None else [str(name) for name in names]
            self._model = evidence.fit(self._request(evidence), names)
            self._seconds = self._model.seconds
            self._warn_unless_converged()
        return self._model

    def __sklearn_is_fitted__(self):
        return self.__dict__.get("_model") is not None or self.__dict__.get("_evidence") is not None

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
    def report_(self):
        """dict: how the fit went: solver, why, exact, passes, seconds, trace, stop, rows, …"""
        return copy.deepcopy(self._report())

    def _report(self):
        """The report, read once."""
        model = self._fitted()
        if "report" not in self._numbers:
            report = model.report
            plan = report.pop("plan")
            exact = (report.get("holes") or {}).get("online_steps") is None
            report = {"solver": plan["solver"], "why": plan["reason"], "exact": exact, "memory": plan["memory"], **report}
            self._numbers["report"] = {**report, "seconds": self._seconds}
        return self._numbers["report"]

    @property
    def log_likelihood_(self):
        """float: total log-likelihood of the rows; infinite when they lie in a plane that the model spans,
        NaN when it is not known because batches with missing values have gone by or the fit was
        interrupted."""
        model = self._fitted()
        return float("nan") if model.log_likelihood is None else model.log_likelihood

    @property
    def n_iter_(self):
        """int: number of iterations, 1 for a closed form."""
        return max(1, len(self._report()["trace"]))

    @property
    def converged_(self):
        """bool: whether the method ended by itself."""
        return self._report()["stop"] == "converged"

    @property
    def _n_features_out(self):
        return self._fitted().n_components

    def summary(self):
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

    def save(self, path):
        """Write the model to a file that :func:`covary.load` and the command read.

        Parameters
        ----------
        path : str or path-like
            The file appears whole or not at all.
        """
        self._fitted().save(os.fspath(path), bool(self._whitens()))

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


class LinearGaussianEstimator(Questions, Estimator):
    """x = W z + μ + ε: its numbers, and rows that come in batches."""

    mean_ = learned("mean", "ndarray of shape (p,): mean of the features, μ.")
    loadings_ = learned("loadings", "ndarray of shape (p, q): W.")
    components_ = learned("components", "ndarray of shape (q, p): orthonormal directions, largest variance first.")
    noise_variance_ = learned("noise_variance", "float: σ², the mean variance along the directions left out.")
    explained_variance_ = learned("explained_variance", "ndarray of shape (q,): variance along each direction.")
    explained_variance_ratio_ = learned(
        "explained_variance_ratio", "ndarray of shape (q,): share of the total variance along each direction."
    )
    n_components_ = learned("n_components", "int: number of components, q.")
    scale_ = learned("scale", "ndarray of shape (p,) or None: what each feature was divided by before the fit.")

    # -- batches ---------------------------------------------------------------------------------------------

    def partial_fit(self, X, y=None, sample_weight=None):
        """Take in more rows: exact for complete ones, in any order and split.

        A batch with missing values is one step of online EM [CM09]_, which comes near the maximum of the
        likelihood, nearer when the batches are given several times; ``report_["exact"]`` is then False, and
        its trace holds the mean log density of each such batch under the model before it. The first of them
        should have some rows for each feature: it decides where the steps start. For the exact answer, `fit`
        all rows, from files with :func:`covary.read`.

        The model of all rows so far is computed when something asks for it. What `fit` has seen before is
        forgotten, with a warning: a fitted model does not determine the covariance of its rows.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self

        References
        ----------
        .. [CM09] O. Cappé & E. Moulines (2009). On-line expectation–maximization algorithm for latent data
           models. J. R. Statist. Soc. B 71.
        """
        evidence = self._evidence_to_extend()
        with features_restored_on_failure(self):
            rows = rows_of(self, X, sample_weight=sample_weight, reset=evidence is None)
            evidence = _covary.Batches(rows.n_features) if evidence is None else evidence
            evidence.update(rows, self._request(None))
            self._set_evidence(evidence)
        return self

    def merge(self, other):
        """Take in the rows that another estimator has seen by `partial_fit`.

        Parameters
        ----------
        other : estimator of the same class
            Of the same features; it is not changed. An estimator merged with itself has seen its rows twice.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When one of the two was fitted by `fit`, which keeps no evidence to be merged.
        """
        theirs, mine = other._evidence_to_merge("other"), self._evidence_to_merge("this")
        if theirs is None:
            raise NotFittedError("the other estimator has not seen any rows yet")
        theirs = copy.copy(theirs)
        if mine is None:
            self.n_features_in_ = other.n_features_in_
            if hasattr(other, "feature_names_in_"):
                self.feature_names_in_ = other.feature_names_in_
            mine = theirs
        else:
            names = [list(getattr(each, "feature_names_in_", [])) for each in (self, other)]
            if names[0] != names[1]:
                raise ValueError(f"the features differ: {names[0]} here, {names[1]} in the other")
            mine.merge(theirs)
        self._set_evidence(mine)
        return self

    def _evidence_to_extend(self):
        if self._was_fitted_at_once():
            warn(
                "a model that was made by fit, load or from_parameters keeps no evidence to add to: its rows are "
                "forgotten; give them to partial_fit instead"
            )
        return self.__dict__.get("_evidence")

    def _evidence_to_merge(self, which):
        if self._was_fitted_at_once():
            raise ValueError(
                f"{which} {type(self).__name__} was made by fit, load or from_parameters, which keep no evidence to "
                "merge; give its rows to partial_fit instead"
            )
        return self.__dict__.get("_evidence")
