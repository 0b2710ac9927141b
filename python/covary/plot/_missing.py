"""Which cells of a table are missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self, Table
from covary.plot._draw import GREY, Display, name_axis, title
from covary.plot._given import dense, feature_names

# Rows of the picture: more rows of the table share one.
MOST_BANDS = 400


class MissingDisplay(Display):
    """A map of the missing cells.

    Attributes
    ----------
    fraction : ndarray of shape (p,)
        Share of each feature that is missing.
    missing : ndarray of bool of shape (n, p)
    patterns : ndarray of bool of shape (patterns, p)
        Which cells are missing together, the most frequent first.
    counts : ndarray of int of shape (patterns,)
        Rows of each.
    features : list of str
    """

    def __init__(self, *, missing: Any, features: Any, by_pattern: bool = False) -> None:
        self.missing, self.features, self.by_pattern = missing, features, by_pattern
        self.fraction = missing.mean(axis=0) if len(missing) else np.zeros(len(features))
        patterns, counts = np.unique(missing, axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        self.patterns, self.counts = patterns[order], counts[order]

    @classmethod
    def from_data(cls, X: Table, *, by_pattern: bool = False, ax: Any = None) -> Self:
        """The picture of a table; see :func:`missing`."""
        missing = np.isnan(dense(X))
        return cls(missing=missing, features=feature_names(X=X, count=missing.shape[1]), by_pattern=by_pattern).plot(ax)

    def _size(self):
        return float(np.clip(2.0 + 0.42 * len(self.features), 5, 12)), 4.6

    def _draw(self, ax):
        table = np.repeat(self.patterns, self.counts, axis=0) if self.by_pattern else self.missing
        n = len(table)
        edges = np.linspace(0, n, min(n, MOST_BANDS) + 1).astype(int)
        bands = np.zeros((1, table.shape[1]))
        if n:
            bands = np.add.reduceat(table.astype(float), edges[:-1], axis=0) / np.diff(edges)[:, None]
        extent = (-0.5, table.shape[1] - 0.5, max(n, 1), 0)
        ax.imshow(bands, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest", extent=extent)
        ax.spines[:].set_visible(True)
        ax.spines[:].set_color(GREY)
        labels = [f"{name}  {100 * share:.0f} %" if share > 0 else name for name, share in zip(self.features, self.fraction)]
        name_axis(ax.xaxis, labels, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_ylabel("rows, by pattern" if self.by_pattern else "rows")
        share = self.missing.mean() if self.missing.size else 0.0
        title(ax, f"{100 * share:.1f} % of the cells are missing, in {len(self.counts)} patterns")


def missing(X: Table, *, by_pattern: bool = False, ax: Any = None) -> MissingDisplay:
    """A map of the missing cells: dark where cells are missing.

    Parameters
    ----------
    X : table
    by_pattern : bool
        Put rows that miss the same cells side by side, the most frequent pattern at the top.
    ax : matplotlib Axes, optional

    Returns
    -------
    MissingDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.ones((10, 3))
    >>> X[:4, 1] = np.nan
    >>> display = covary.plot.missing(X)
    >>> display.fraction.tolist(), display.counts.tolist()
    ([0.0, 0.4, 0.0], [6, 4])
    >>> display.figure_.clear()
    """
    return MissingDisplay.from_data(X, by_pattern=by_pattern, ax=ax)
