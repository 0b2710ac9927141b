"""Rows that do not belong, and which of their cells say so."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self, Table
from covary.plot._draw import ACCENT, GREY, MAIN, Display, draw_points, height_of, say, short, table_of_colours, title
from covary.plot._given import colours_of, dense, feature_names, fitted, row_names, rows_for


class DistancesDisplay(Display):
    """T² against SPE of rows, with control limits.

    Attributes
    ----------
    t2, spe, p_value : ndarray of shape (n,)
    t2_limit, spe_limit : float, or ndarray of shape (n,)
        One for each row where rows have missing cells or the model is a mixture; then the picture shows multiples of
        the limits.
    names : list of str
        Of the rows.
    level : float
    """

    def __init__(self, *, t2: Any, spe: Any, p_value: Any, t2_limit: Any, spe_limit: Any, names: Any, level: Any, labels: int = 5, colour: Any = None, colour_name: Any = None) -> None:
        self.t2, self.spe, self.p_value, self.names, self.level = t2, spe, p_value, names, level
        self.t2_limit, self.spe_limit, self.labels = t2_limit, spe_limit, labels
        self.colour, self.colour_name = colour, colour_name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, *, level: float = 0.99, labels: int = 5, color: Any = None, ax: Any = None) -> Self:
        """The picture of a fitted estimator and rows; see :func:`distances`."""
        fitted(estimator, "limits", picture="distances")
        rows = rows_for(estimator, X)
        found = estimator._distances(rows)
        limits = estimator.limits(level, rows)
        same = all(len(v) and (v == v[0]).all() for v in limits.values())
        limits = {name: float(v[0]) if same else v for name, v in limits.items()}
        colour, name = colours_of(color, X, len(found["t2"]))
        return cls(
            **found, t2_limit=limits["t2"], spe_limit=limits["spe"], names=row_names(X, len(found["t2"])), level=level,
            labels=labels, colour=colour, colour_name=name,
        ).plot(ax)

    def _draw(self, ax):
        relative = np.ndim(self.t2_limit) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            t2 = self.t2 / self.t2_limit if relative else self.t2
            spe = self.spe / self.spe_limit if relative else self.spe
        points = np.column_stack([t2, spe])
        positive = points[(points > 0).all(axis=1) & np.isfinite(points).all(axis=1)]
        floor = np.percentile(positive, 0.5, axis=0) / 2 if len(positive) else np.ones(2)
        points = np.maximum(np.where(np.isfinite(points), points, 0.0), floor)
        draw_points(ax, points, self.colour, self.colour_name)
        limits = (1.0, 1.0) if relative else (self.t2_limit, self.spe_limit)
        ax.axvline(limits[0], color=ACCENT, lw=1, ls="--")
        ax.axhline(limits[1], color=ACCENT, lw=1, ls="--")
        ax.set(xscale="log", yscale="log")
        self._label(ax, points, limits)
        of = " / its limit" if relative else ""
        ax.set_xlabel(f"T²{of}")
        ax.set_ylabel(f"SPE{of}")
        outside = int(((points[:, 0] > limits[0]) | (points[:, 1] > limits[1])).sum())
        title(ax, f"{outside} of {len(points)} rows outside a {100 * self.level:g} % limit")

    def _label(self, ax, points, limits):
        outside = np.flatnonzero((points[:, 0] > limits[0]) | (points[:, 1] > limits[1]))
        worst = outside[np.argsort(self.p_value[outside], kind="stable")][: self.labels]
        ax.figure.canvas.draw()
        taken = []
        for i in worst:
            for lift in (3, 12, 21, -9):  # the first place where it lies on no other
                text = ax.annotate(
                    short(self.names[i], 18), points[i], (4, lift), textcoords="offset points", fontsize="small", color="#333333"
                )
                box = text.get_window_extent()
                if not any(box.overlaps(other) for other in taken):
                    break
                text.remove()
            taken.append(box)


def distances(estimator: Any, X: Table, *, level: float = 0.99, labels: int = 5, color: Any = None, ax: Any = None) -> DistancesDisplay:
    """T² against SPE of rows, with control limits: far to the right lie rows that are extreme, high up rows that the
    components cannot express.

    Parameters
    ----------
    estimator : fitted estimator with `outliers` and `limits`
    X : rows
    level : float
        Probability that a row of the model stays below a limit.
    labels : int
        How many rows are named, of those outside.
    color : name of a column of X, or array-like of shape (n,), optional
    ax : matplotlib Axes, optional

    Returns
    -------
    DistancesDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> display = covary.plot.distances(covary.PPCA(2).fit(X), X)
    >>> display.t2.shape, isinstance(display.t2_limit, float)
    ((100,), True)
    >>> display.figure_.clear()
    """
    return DistancesDisplay.from_estimator(estimator, X, level=level, labels=labels, color=color, ax=ax)


class ContributionsDisplay(Display):
    """The cells of the least likely rows, as deviations from what the rest of the row expects.

    Attributes
    ----------
    deviations : ndarray of shape (rows, p)
        (x − expected) / deviation: their squares are `cell` of `contributions` (for a robust model divided by its
        spread). NaN where a cell is missing.
    rows : ndarray of int
        Which rows.
    names, features : list of str
    """

    def __init__(self, *, deviations: Any, rows: Any, names: Any, features: Any) -> None:
        self.deviations, self.rows, self.names, self.features = deviations, rows, names, features

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, *, rows: Any = None, worst: int = 20, ax: Any = None) -> Self:
        """The picture of a fitted estimator and rows; see :func:`contributions`."""
        fitted(estimator, "contributions", picture="contributions")
        given = rows_for(estimator, X)
        table = dense(given)
        if rows is None:
            found = estimator._distances(given)
            rows = np.lexsort((-found["spe"], found["p_value"]))[:worst]
        rows = np.atleast_1d(np.asarray(rows, dtype=int))
        names = row_names(X, len(table))
        return cls(
            deviations=deviations_of(estimator, table[rows])[0], rows=rows, names=[names[i] for i in rows],
            features=feature_names(estimator, X, table.shape[1]),
        ).plot(ax)

    def _size(self):
        return float(np.clip(2.8 + 0.5 * len(self.features), 5, 11)), height_of(self.rows)

    def _draw(self, ax):
        largest = np.nanmax(np.abs(self.deviations)) if np.isfinite(self.deviations).any() else 1.0
        ax.set_facecolor("#F2F2F2")
        table_of_colours(
            ax, self.deviations, self.names, self.features, "deviations from the rest of the row", decimals=1,
            limit=float(np.clip(largest, 3, 10)),
        )
        ax.set_ylabel("row")
        title(ax, "Cells that stand out, least likely row first")


def deviations_of(estimator, table):
    """(x − expected) / deviation of the cells of a table, and the contributions themselves."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        table = named(table, names)
    found = {name: dense(values) for name, values in estimator.contributions(table).items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = (dense(table) - found["expected"]) / found["deviation"]
    return np.where(found["deviation"] > 0, deviations, np.nan), found


def named(table, names):
    """A table with the names of the fit where pandas is there, so that nothing warns; else as it is."""
    try:
        import pandas as pd
    except ImportError:
        return table
    return pd.DataFrame(table, columns=names)


def contributions(estimator: Any, X: Table, *, rows: Any = None, worst: int = 20, ax: Any = None) -> ContributionsDisplay:
    """The cells of the least likely rows, as deviations from what the rest of the row expects.

    Parameters
    ----------
    estimator : fitted estimator with `contributions`
    X : rows
    rows : array-like of int, optional
        Which rows to show, in this order; by default the least likely.
    worst : int
        How many of those.
    ax : matplotlib Axes, optional

    Returns
    -------
    ContributionsDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ np.ones((1, 4)) + 0.1 * rng.normal(size=(200, 4))
    >>> model = covary.PPCA(1).fit(X)
    >>> X[17, 2] += 2
    >>> display = covary.plot.contributions(model, X, worst=5)
    >>> int(display.rows[0]), int(np.abs(display.deviations[0]).argmax())
    (17, 2)
    >>> display.figure_.clear()
    """
    return ContributionsDisplay.from_estimator(estimator, X, rows=rows, worst=worst, ax=ax)


class RowDisplay(Display):
    """One row: each cell beside what the rest of the row expects of it.

    Attributes
    ----------
    values, expected, deviation, cell : ndarray of shape (p,)
        The cells that stand out most first.
    features : list of str
    name : str
        Of the row.
    """

    def __init__(self, *, values: Any, expected: Any, deviation: Any, cell: Any, features: Any, name: str, hidden: int = 0) -> None:
        self.values, self.expected, self.deviation, self.cell = values, expected, deviation, cell
        self.features, self.name, self.hidden = features, name, hidden

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, row: int = 0, *, most: int = 25, ax: Any = None) -> Self:
        """The picture of a fitted estimator and one of the rows; see :func:`row`."""
        fitted(estimator, "contributions", picture="row")
        table = dense(rows_for(estimator, X))
        table = table[None] if table.ndim == 1 else table
        name = row_names(X, len(table))[row]
        deviations, found = deviations_of(estimator, table[[row]])
        features = feature_names(estimator, X, table.shape[1])
        seen = np.flatnonzero(~np.isnan(table[row]))
        size = np.abs(np.nan_to_num(deviations[0], nan=0.0))
        order = seen[np.argsort(-size[seen], kind="stable")]
        shown = order[:most]
        pick = {key: found[key][0][shown] for key in ("expected", "deviation", "cell")}
        return cls(
            values=table[row][shown], features=[features[j] for j in shown], name=name, hidden=len(order) - len(shown), **pick
        ).plot(ax)

    def _size(self):
        return 6.8, height_of(self.features, each=0.3)

    def _draw(self, ax):
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.where(self.deviation > 0, (self.values - self.expected) / self.deviation, np.nan)
        places = np.arange(len(out))
        ax.axvspan(-2, 2, color="#EFEFEF", lw=0, zorder=0)
        ax.axvline(0, color=GREY, lw=0.8)
        ax.hlines(places, 0, out, color=np.where(np.abs(out) > 2, ACCENT, MAIN), lw=2)
        ax.scatter(out, places, color=np.where(np.abs(out) > 2, ACCENT, MAIN), s=28, zorder=3)
        ax.set_yticks(places, [short(name) for name in self.features])
        ax.invert_yaxis()
        for place, sentence in enumerate(self._sentences()):
            ax.annotate(sentence, (1.01, place), xycoords=("axes fraction", "data"), va="center", fontsize="small", color=GREY)
        ax.set_xlabel("deviations from what the rest of the row says")
        title(ax, f"Row {self.name}")
        if self.hidden:
            say(ax, f"\n{self.hidden} cells that stand out less are not shown")

    def _sentences(self):
        """14.8, expected 12.9 ± 0.3."""
        for value, expected, deviation in zip(self.values, self.expected, self.deviation):
            decimals = next((d for d in range(9) if deviation * 10**d >= 1.95), 8) if deviation > 0 else 3
            numbers = [f"{v:.{decimals}f}" if abs(v) < 1e7 else f"{v:.3g}" for v in (value, expected, deviation)]
            yield f"{numbers[0]}, expected {numbers[1]} ± {numbers[2]}".replace("-", "−")


def row(estimator: Any, X: Table, row: int = 0, *, most: int = 25, ax: Any = None) -> RowDisplay:
    """One row: each cell beside what the rest of the row expects of it.

    Parameters
    ----------
    estimator : fitted estimator with `contributions`
    X : rows, or one row
    row : int
        Its position, counted from 0.
    most : int
        Cells that are shown, those that stand out most.
    ax : matplotlib Axes, optional

    Returns
    -------
    RowDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ np.ones((1, 4)) + 0.1 * rng.normal(size=(200, 4))
    >>> model = covary.PPCA(1).fit(X)
    >>> X[17, 2] += 2
    >>> covary.plot.row(model, X, 17).features[0]
    'x3'
    """
    return RowDisplay.from_estimator(estimator, X, row, most=most, ax=ax)
