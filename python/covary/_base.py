"""What linear-Gaussian estimators share besides their questions: their numbers, and rows in batches."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any

from sklearn.exceptions import NotFittedError

from covary import _covary
from covary._estimator import Estimator, learned, table
from covary._input import features_restored_on_failure, rows_of
from covary._questions import Questions
from covary._types import Floats, Self, Table, Weights
from covary._warn import warn

__all__ = ["LinearGaussianEstimator", "learned", "table"]


class LinearGaussianEstimator(Questions, Estimator):
    """x = W z + μ + ε: fitting is forwarded to the core, and so is every question."""

    mean_: Floats = learned("mean", "ndarray of shape (p,): mean of the features, μ.")
    loadings_: Floats = learned("loadings", "ndarray of shape (p, q): W.")
    components_: Floats = learned("components", "ndarray of shape (q, p): orthonormal directions, largest variance first.")
    noise_variance_: float = learned("noise_variance", "float: σ², the mean variance along the directions left out.")
    explained_variance_: Floats = learned("explained_variance", "ndarray of shape (q,): variance along each direction.")
    explained_variance_ratio_: Floats = learned(
        "explained_variance_ratio", "ndarray of shape (q,): share of the total variance along each direction."
    )
    n_components_: int = learned("n_components", "int: number of components, q.")
    scale_: Floats | None = learned("scale", "ndarray of shape (p,) or None: what each feature was divided by before the fit.")

    # -- fitting ---------------------------------------------------------------------------------------------

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
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

    def merge(self, other: Any) -> Self:
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
        TypeError
            When the other is no estimator of the same class.
        ValueError
            When one of the two was fitted by `fit`, which keeps no evidence to be merged.
        """
        if getattr(other, "_kind", None) != self._kind:
            raise TypeError(f"merge takes in another {type(self).__name__}, not {type(other).__name__}")
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

    def _request(self, seen):
        """What is asked of the core, for rows or batches that were seen, or None before all are."""
        return _covary.Request(
            self._kind,
            "all" if self._checked_components() is None else self.n_components,
            **self._search_options(),
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

    def _set_evidence(self, evidence):
        self._evidence = evidence
        self._model = None
        self._numbers = {}

    def _take(self, model):
        super()._take(model)
        self._evidence = None

    def _fitted(self):
        if self.__dict__.get("_model") is None:
            evidence = self.__dict__.get("_evidence")
            if evidence is None:
                return super()._fitted()
            names = getattr(self, "feature_names_in_", None)
            names = None if names is None else [str(name) for name in names]
            self._model = evidence.fit(self._request(evidence), names)
            self._seconds = self._model.seconds
            self._warn_unless_converged()
        return self._model

    def __sklearn_is_fitted__(self):
        return self.__dict__.get("_model") is not None or self.__dict__.get("_evidence") is not None
