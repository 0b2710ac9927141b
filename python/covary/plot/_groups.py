"""Groups of rows: how large they are, and in what they differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self, Table
from covary.plot._draw import Display, height_of, table_of_colours, title
from covary.plot._given import dense, feature_names, fitted, rows_for


class ClustersDisplay(Display):
    """Profiles of the groups of a mixture or of k-means.

    Attributes
    ----------
    profiles : ndarray of shape (K, p)
        Mean of each group minus that of all rows, in standard deviations of all rows.
    sizes : ndarray of int of shape (K,)
        Rows of each.
    labels : ndarray of int of shape (n,)
    features : list of str
    """

    def __init__(self, *, profiles: Any, sizes: Any, labels: Any, features: Any) -> None:
        self.profiles, self.sizes, self.labels, self.features = profiles, sizes, labels, features

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, *, ax: Any = None) -> Self:
        """The picture of a fitted estimator and rows; see :func:`clusters`."""
        fitted(estimator, "cluster_centers_", "means_", picture="clusters")
        rows = rows_for(estimator, X)
        labels, table = np.asarray(estimator.predict(rows)), dense(rows)
        centres = np.asarray(estimator.cluster_centers_ if hasattr(estimator, "cluster_centers_") else estimator.means_)
        deviations = np.nanstd(table, axis=0)
        profiles = (centres - np.nanmean(table, axis=0)) / np.where(deviations > 0, deviations, np.inf)
        sizes = np.bincount(labels, minlength=len(centres))
        return cls(profiles=profiles, sizes=sizes, labels=labels, features=feature_names(estimator, X, table.shape[1])).plot(ax)

    def _size(self):
        return float(np.clip(2.8 + 0.5 * len(self.features), 5, 11)), height_of(self.sizes, least=3.2, each=0.4)

    def _draw(self, ax):
        names = [f"{k}  ({size} rows)" for k, size in enumerate(self.sizes)]
        table_of_colours(ax, self.profiles, names, self.features, "deviations from the mean", decimals=1)
        ax.set_ylabel("group")
        title(ax, "In what groups differ")


def clusters(estimator: Any, X: Table, *, ax: Any = None) -> ClustersDisplay:
    """Profiles of the groups of a mixture or of k-means: in which features they lie above or below all rows.

    Parameters
    ----------
    estimator : fitted estimator with `predict` and `cluster_centers_` or `means_`
    X : rows
    ax : matplotlib Axes, optional

    Returns
    -------
    ClustersDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(30, 3)), rng.normal(size=(20, 3)) + [9, 0, 0]])
    >>> display = covary.plot.clusters(covary.KMeans(2).fit(X), X)
    >>> sorted(display.sizes.tolist())
    [20, 30]
    >>> display.figure_.clear()
    """
    return ClustersDisplay.from_estimator(estimator, X, ax=ax)
