"""Rows in batches, for models whose evidence depends on the model: each batch is a step."""

from __future__ import annotations

from typing import Any

from covary import _covary
from covary._input import features_restored_on_failure, rows_of
from covary._types import Self, Table, Weights


class Steps:
    """Adds `partial_fit` to an estimator."""

    def partial_fit(self, X: Table, y: Any = None, sample_weight: Weights = None) -> Self:
        """Take in a batch of rows: the first is fitted, each other is one step of online EM [CM09]_.

        The rows of a batch are weighted by the model so far, and what they say is averaged with what is kept of
        the batches before, with a share that falls as t^-0.6. This comes near the maximum of the likelihood,
        nearer when the batches are given several times; the first should have rows of every kind, because it
        decides where the steps start. ``report_["exact"]`` is then False, and its trace holds the mean log density
        of each batch under the model that it met. For the exact answer, `fit` all rows, from files with
        :func:`covary.read`.

        A model from `fit`, :func:`covary.load` or `from_parameters` goes on from there: it stands for the rows that
        it was fitted to. What is kept between batches is pickled with the estimator, but is not part of a file.

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
        before = self.__dict__.get("_model")
        with features_restored_on_failure(self):
            rows = rows_of(self, X, sample_weight=sample_weight, reset=before is None)
            model, kept = _covary.step(rows, self._request(rows), before, self.__dict__.get("_kept"))
            self._take(model)
            self._kept = kept
            self._after_batch(rows)
        return self

    def _after_batch(self, rows):
        """What a class learns about the rows of a batch besides."""

    def _take(self, model):
        super()._take(model)
        self._kept = None
