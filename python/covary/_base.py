"""What every linear-Gaussian estimator can be asked; the answers are the core's."""

import copy
import json
import os
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from covary import _covary
from covary._html import summary
from covary._input import is_single, rows_of
from covary._progress import Progress

_LARGEST_SEED = 2**32


def seed_of(random_state):
    """A seed of the core's generator: an integer is itself, a generator is asked for one."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(_LARGEST_SEED, dtype=np.uint64))


def estimator_class(model):
    """The class of estimators that hold this kind of model."""
    import covary

    return {"ppca": covary.PPCA, "pca": covary.PCA, "fa": covary.FactorAnalysis}[model.kind]


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


class LinearGaussianEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """x = W z + μ + ε: fitting is forwarded to the core, and so is every question."""

    mean_ = learned("mean", "ndarray of shape (p,): mean of the features, μ.")
    loadings_ = learned("loadings", "ndarray of shape (p, q): W.")
    components_ = learned("components", "ndarray of shape (q, p): orthonormal directions, largest variance first.")
    noise_variance_ = learned("noise_variance", "float: σ², the mean variance along the directions left out.")
    explained_variance_ = learned("explained_variance", "ndarray of shape (q,): variance along each direction.")
    explained_variance_ratio_ = learned(
        "explained_variance_ratio", "ndarray of shape (q,): share of the total variance along each direction."
    )
    n_components_ = learned("n_components", "int: number of components, q.")

    # -- fitting ---------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Arrow table or :func:`covary.read` of shape (n, p)
            NaN is a hole, infinite cells are an error. C- or Fortran-ordered arrays of float64 or float32 are not copied.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        rows = rows_of(self, X, sample_weight=sample_weight, reset=True)
        progress = Progress(type(self).__name__) if self.verbose else None
        model = _covary.fit(rows, self._options(rows), progress)
        self._take(model)
        if progress is not None:
            report = self.report_
            progress.close(f"{report['rows']} rows, {report['passes']} pass(es), {report['seconds']:.2f} s")
        self._warn_unless_converged()
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Take in more rows: exact for complete ones, in any order and split.

        A batch with holes is one step of online EM [CM09]_, which comes near the maximum of the likelihood, nearer when the batches
        are given several times; ``report_["exact"]`` is then False, and its trace holds the mean log density of each such batch
        under the model before it. The first of them should have some rows for each feature: it decides where the steps start. For
        the exact answer, `fit` all rows, from files with :func:`covary.read`.

        The model of all rows so far is computed when something asks for it. What `fit` has seen before is forgotten, with a
        warning: a fitted model does not determine the covariance of its rows.

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
        .. [CM09] O. Cappé & E. Moulines (2009). On-line expectation–maximization algorithm for latent data models. J. R. Statist. Soc. B 71.
        """
        evidence = self._evidence_to_extend()
        rows = rows_of(self, X, sample_weight=sample_weight, reset=evidence is None)
        evidence = _covary.Seen(rows.n_features) if evidence is None else evidence
        evidence.update(rows, self._options(None))
        self._set_evidence(evidence)
        return self

    def merge(self, other):
        """Take in the rows that another estimator has seen by `partial_fit`.

        Parameters
        ----------
        other : estimator of the same class
            Of the same features; it is not changed.

        Returns
        -------
        self
        """
        theirs = other._evidence_to_extend()
        if theirs is None:
            raise NotFittedError("the other estimator has not seen any rows yet")
        mine = self._evidence_to_extend()
        if mine is None:
            self.n_features_in_ = other.n_features_in_
            if hasattr(other, "feature_names_in_"):
                self.feature_names_in_ = other.feature_names_in_
            mine = copy.copy(theirs)
        else:
            names = [list(getattr(each, "feature_names_in_", [])) for each in (self, other)]
            if names[0] != names[1]:
                raise ValueError(f"the features differ: {names[0]} here, {names[1]} in the other")
            mine.merge(theirs)
        self._set_evidence(mine)
        return self

    def _options(self, seen):
        """What is asked of the core, for rows or evidence that were seen, or None before all are."""
        raise NotImplementedError

    def _evidence_to_extend(self):
        evidence = self.__dict__.get("_evidence")
        if evidence is None and self.__dict__.get("_model") is not None:
            warnings.warn(
                "a model that was made by fit, load or from_parameters keeps no evidence to add to: its rows are "
                "forgotten; give them to partial_fit instead",
                stacklevel=3,
            )
        return evidence

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
            self._model = evidence.fit(self._options(evidence), names)
            self._seconds = self._model.seconds
        return self._model

    def __sklearn_is_fitted__(self):
        return self.__dict__.get("_model") is not None or self.__dict__.get("_evidence") is not None

    def _warn_unless_converged(self):
        if not self.converged_:
            report = self.report_
            warnings.warn(
                f"{type(self).__name__} stopped before it converged ({report['stop']} after {self.n_iter_} "
                "iterations); increase max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    @classmethod
    def _of(cls, model, **parameters):
        """An estimator that holds a model already."""
        estimator = cls(n_components=model.n_components, **parameters)
        estimator._take(model)
        estimator.n_features_in_ = model.n_features
        if model.names is not None:
            estimator.feature_names_in_ = np.asarray(model.names, dtype=object)
        return estimator

    # -- how it went -----------------------------------------------------------------------------------------------

    @property
    def report_(self):
        """dict: how the fit went: solver, why, exact, passes, seconds, trace, stop, rows, …"""
        model = self._fitted()
        report = json.loads(model.report)
        plan = report.pop("plan")
        exact = (report.get("holes") or {}).get("online_steps") is None
        report = {"solver": plan["solver"], "why": plan["reason"], "exact": exact, "memory": plan["memory"], **report}
        return {**report, "seconds": self._seconds}

    @property
    def log_likelihood_(self):
        """float: total log-likelihood of the rows; infinite when they lie in a plane that the model spans, NaN when it is not
        known because batches with holes have gone by."""
        model = self._fitted()
        if model.log_likelihood is None:
            return float("inf") if model.n_rows and self.report_["exact"] else float("nan")
        return model.log_likelihood

    @property
    def n_iter_(self):
        """int: number of iterations, 1 for a closed form."""
        return max(1, len(self.report_["trace"]))

    @property
    def converged_(self):
        """bool: whether the method ended by itself."""
        return self.report_["stop"] == "converged"

    @property
    def _n_features_out(self):
        return self.n_components_

    # -- questions -------------------------------------------------------------------------------------------------

    def transform(self, X):
        """Latent coordinates of each row, given the cells that were observed.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n, q)
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return model.transform(rows, self._whitens(), is_single(X), self.n_threads)

    def inverse_transform(self, Z):
        """Rows that latent coordinates stand for.

        Parameters
        ----------
        Z : array-like of shape (n, q)

        Returns
        -------
        ndarray of shape (n, p)
        """
        model = self._fitted()
        single = is_single(Z)
        Z = check_array(Z, dtype=np.float64, ensure_all_finite=False, ensure_min_features=0, input_name="Z")
        return model.inverse_transform(Z, self._whitens(), single, self.n_threads)

    def posterior(self, X):
        """Mean and covariance of the latent variables of each row, given the cells that were observed.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        mean : ndarray of shape (n, q)
        covariance : ndarray of shape (q, q), or (n, q, q) when rows have holes
        """
        model = self._fitted()
        return model.posterior(rows_of(self, X), self.n_threads)

    def reconstruct(self, X, kind="orthogonal"):
        """Each row rebuilt from its latent coordinates, the missing cells too.

        Parameters
        ----------
        X : as for `fit`
        kind : {"orthogonal", "posterior"}
            The nearest point of the model's plane, or the point of the posterior mean, which lies nearer to the centre.

        Returns
        -------
        ndarray of shape (n, p)
        """
        model = self._fitted()
        return model.reconstruct(rows_of(self, X), kind, self.n_threads)

    def score_samples(self, X):
        """Log density of the observed cells of each row; a row with none scores 0.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n,)
        """
        model = self._fitted()
        return model.score_samples(rows_of(self, X), self.n_threads)

    def score(self, X, y=None, sample_weight=None):
        """Mean log density of the rows: what cross-validation compares.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        return float(np.average(self.score_samples(X), weights=sample_weight))

    def impute(self, X, return_std=False):
        """Fill the holes of each row by what its observed cells say; observed cells stay as they are.

        Parameters
        ----------
        X : as for `fit`
        return_std : bool
            Also give the standard deviation of each filled cell, 0 where a cell was observed.

        Returns
        -------
        ndarray of shape (n, p), or two of them
        """
        model = self._fitted()
        rows = rows_of(self, X)
        return (model.impute_with_std if return_std else model.impute)(rows, self.n_threads)

    def sample_missing(self, X, n_draws=1, random_state=0):
        """Draw the missing cells of each row given the observed ones: multiple imputation.

        Parameters
        ----------
        X : as for `fit`
        n_draws : int
        random_state : int, RandomState or None

        Returns
        -------
        ndarray of shape (n_draws, n, p)
            Observed cells are the same in every draw.
        """
        model = self._fitted()
        return model.sample_missing(rows_of(self, X), n_draws, seed_of(random_state), self.n_threads)

    def predict_cells(self, X, rows, columns):
        """Mean and standard deviation of named cells, given what else was seen of their rows.

        Parameters
        ----------
        X : :func:`covary.observed`
            What was seen: the ratings of the people whose ratings are predicted.
        rows, columns : array-like of int
            Which cells.

        Returns
        -------
        mean, std : ndarray
            Of a cell that was seen, its value and 0.
        """
        model = self._fitted()
        cells = list(zip(np.asarray(rows).tolist(), np.asarray(columns).tolist(), strict=True))
        return model.predict_cells(rows_of(self, X), cells, self.n_threads)

    def outliers(self, X):
        """How far each row is from what the model expects, by its observed cells.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        dict of ndarrays of shape (n,)
            `t2`: Hotelling's T², squared distance within the plane in units of its variance; `spe`: squared distance from the
            plane; `p_value`: probability that a row of the model lies at least as far out.
        """
        model = self._fitted()
        return model.outliers(rows_of(self, X), self.n_threads)

    def conditional(self, x):
        """Distribution of the missing cells of one row, given the others.

        Parameters
        ----------
        x : array-like of shape (p,)
            With NaN where cells are missing.

        Returns
        -------
        indices : ndarray of int
            Which features are missing.
        mean : ndarray
        covariance : ndarray
        """
        return self._fitted().conditional(np.asarray(x, dtype=np.float64).ravel())

    def sample(self, n=1, random_state=0):
        """Draw rows from the model.

        Parameters
        ----------
        n : int
        random_state : int, RandomState or None
            The same integer gives the same rows on every machine.

        Returns
        -------
        ndarray of shape (n, p)
        """
        return self._fitted().sample(n, seed_of(random_state), self.n_threads)

    def marginal(self, features):
        """The model of some of the features.

        Parameters
        ----------
        features : sequence of int or str, slice or mask
            In the order wanted.

        Returns
        -------
        PPCA, or FactorAnalysis of the same factors
            Fitted.
        """
        model = self._fitted()
        names = list(getattr(self, "feature_names_in_", []))
        if not isinstance(features, slice):
            features = [names.index(f) if isinstance(f, str) else f for f in features]
        indices = np.arange(model.n_features)[features]
        marginal = model.marginal(indices.tolist())
        return estimator_class(marginal)._of(marginal, n_threads=self.n_threads)

    def get_covariance(self):
        """Covariance of the features under the model, W Wᵀ + noise.

        Returns
        -------
        ndarray of shape (p, p)
        """
        return self._fitted().covariance()

    def get_precision(self):
        """Inverse of the covariance.

        Returns
        -------
        ndarray of shape (p, p)
        """
        return self._fitted().precision()

    def save(self, path):
        """Write the model to a file that :func:`covary.load` and the command read.

        Parameters
        ----------
        path : str or path-like
            The file appears whole or not at all.
        """
        self._fitted().save(os.fspath(path))

    # -- manners ---------------------------------------------------------------------------------------------------

    def _whitens(self):
        return False

    def _summary(self):
        """What a notebook shows besides."""
        return {}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self):
        # What properties remember can be read again.
        state = super().__getstate__()
        return {**state, "_numbers": {}} if "_numbers" in state else state

    def _repr_html_inner(self):
        return super()._repr_html_inner() + (summary(self) if self.__sklearn_is_fitted__() else "")

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and self.__sklearn_is_fitted__():
            bundle["text/html"] += summary(self)
        return bundle
