"""What components are made of: loadings, correlations with the features, and what they leave unexplained."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self, Table
from covary.plot._draw import ACCENT, FAINT, GREY, MAIN, Display, height_of, name_axis, short, table_of_colours, title
from covary.plot._given import component_names, correlations_of, dense, feature_names, fitted, pair, rows_for, shown_loadings


class LoadingsDisplay(Display):
    """Loadings as a table of colours, or as bars where there is one component.

    Attributes
    ----------
    loadings : ndarray of shape (p, q)
    standardised : bool
        Whether they are divided by the standard deviations of the features.
    features, components : list of str
    """

    def __init__(self, *, loadings: Any, features: Any, components: Any, standardised: bool = False) -> None:
        self.loadings, self.features, self.components, self.standardised = loadings, features, components, standardised

    @classmethod
    def from_estimator(cls, estimator: Any, *, standardise: Any = None, sort: bool = False, ax: Any = None) -> Self:
        """The picture of a fitted estimator; see :func:`loadings`."""
        W, standardised = shown_loadings(estimator, standardise, "loadings")
        names = feature_names(estimator, count=len(W))
        order = np.arange(len(W))
        if sort and W.shape[1]:
            main = np.abs(W).argmax(axis=1)
            order = np.lexsort((-np.abs(W[order, main]), main))
        return cls(
            loadings=W[order], features=[names[j] for j in order],
            components=component_names(estimator, W.shape[1], share=False), standardised=standardised,
        ).plot(ax)

    def _size(self):
        return float(np.clip(2.6 + 0.62 * len(self.components), 4.2, 11)), height_of(self.features)

    def _draw(self, ax):
        title(ax, "Loadings")
        what = "standardised loading" if self.standardised else "loading"
        if len(self.components) != 1:
            table_of_colours(ax, self.loadings, self.features, self.components, what)
            return
        values = self.loadings[:, 0]
        ax.barh(range(len(values)), values, color=np.where(values < 0, ACCENT, MAIN), height=0.7)
        ax.axvline(0, color=GREY, lw=0.8)
        name_axis(ax.yaxis, self.features)
        ax.invert_yaxis()
        ax.set_xlabel(f"{what} on {self.components[0]}")


def loadings(estimator: Any, *, standardise: Any = None, sort: bool = False, ax: Any = None) -> LoadingsDisplay:
    """Loadings as a table of colours, or as bars where there is one component.

    Parameters
    ----------
    estimator : fitted estimator with `loadings_`, `mixing_` or `components_`
        Of scikit-learn's PCA they are components times standard deviations.
    standardise : bool, optional
        Divide them by the standard deviations of the features. By default where these were scaled for the fit, and of
        factors.
    sort : bool
        Put features that load on the same component side by side, the largest loading first.
    ax : matplotlib Axes, optional

    Returns
    -------
    LoadingsDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> display = covary.plot.loadings(covary.PPCA(2).fit(X), sort=True)
    >>> display.features[0], display.loadings.shape
    ('x1', (4, 2))
    >>> display.figure_.clear()
    """
    return LoadingsDisplay.from_estimator(estimator, standardise=standardise, sort=sort, ax=ax)


class CorrelationCircleDisplay(Display):
    """Correlations of the features with two components.

    Attributes
    ----------
    correlations : ndarray of shape (p, 2)
        Of squared length at most 1 where components are uncorrelated: what both explain of a feature.
    features, components : list of str
    """

    def __init__(self, *, correlations: Any, features: Any, components: Any) -> None:
        self.correlations, self.features, self.components = correlations, features, components

    @classmethod
    def from_estimator(cls, estimator: Any, *, components: Any = (0, 1), ax: Any = None) -> Self:
        """The picture of a fitted estimator; see :func:`correlation_circle`."""
        found = correlations_of(estimator, "correlation_circle")
        two = pair(components, found.shape[1])
        names = component_names(estimator, found.shape[1])
        return cls(
            correlations=found[:, two], features=feature_names(estimator, count=len(found)),
            components=[names[k] for k in two],
        ).plot(ax)

    def _size(self):
        return 5.4, 5.4

    def _draw(self, ax):
        from matplotlib.patches import Circle

        for radius in (0.5, 1.0):
            ax.add_patch(Circle((0, 0), radius, fill=False, color=FAINT if radius < 1 else GREY, lw=1))
        ax.axhline(0, color=FAINT, lw=0.8, zorder=0)
        ax.axvline(0, color=FAINT, lw=0.8, zorder=0)
        arrows(ax, self.correlations, self.features)
        ax.set(xlim=(-1.18, 1.18), ylim=(-1.18, 1.18), aspect="equal")
        ax.set_xlabel(f"correlation with {self.components[0]}")
        ax.set_ylabel(f"correlation with {self.components[1]}")
        title(ax, "Correlation circle")


def arrows(ax, ends, names, most=40):
    """Arrows from the origin, the longest with their names, which keep apart."""
    longest = np.argsort(-np.hypot(*ends.T))[:most]
    for x, y in ends:
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": ACCENT, "lw": 1.1, "shrinkA": 0, "shrinkB": 0,
                                                     "alpha": 0.9 if len(ends) <= most else 0.5})
    labels(ax, ends[longest], [names[j] for j in longest])


def labels(ax, ends, names, colour="#8A3B00"):
    """Names beside points, outwards from the origin; one that would lie on another is left out."""
    figure = ax.figure
    ax.update_datalim(np.vstack([ends, np.zeros((1, 2))]) * 1.12)
    ax.autoscale_view()
    figure.canvas.draw()
    taken = []
    for (x, y), name in zip(ends, names):
        out = np.array([x, y]) / (np.hypot(x, y) or 1.0)
        text = ax.annotate(
            short(name, 18), (x, y), tuple(4 * out), textcoords="offset points", fontsize="small", color=colour,
            ha="left" if out[0] > 0.3 else "right" if out[0] < -0.3 else "center",
            va="bottom" if out[1] > 0.3 else "top" if out[1] < -0.3 else "center",
        )
        box = text.get_window_extent()
        if any(box.overlaps(other) for other in taken):
            text.remove()
        else:
            taken.append(box)


def correlation_circle(estimator: Any, *, components: Any = (0, 1), ax: Any = None) -> CorrelationCircleDisplay:
    """Correlations of the features with two components: an arrow that ends near the circle is explained by them.

    Parameters
    ----------
    estimator : fitted estimator with loadings and `get_covariance`
    components : pair of int
        Which, counted from 0.
    ax : matplotlib Axes, optional

    Returns
    -------
    CorrelationCircleDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> display = covary.plot.correlation_circle(covary.PPCA(2).fit(X))
    >>> bool((np.hypot(*display.correlations.T) <= 1).all())
    True
    >>> display.figure_.clear()
    """
    return CorrelationCircleDisplay.from_estimator(estimator, components=components, ax=ax)


class ResidualsDisplay(Display):
    """Correlations of the features that the model leaves unexplained.

    Attributes
    ----------
    residuals : ndarray of shape (p, p)
        Correlation of the rows minus that of the model, of cells that were observed together.
    srmr : float
        Root of their mean square below the diagonal.
    features : list of str
    """

    def __init__(self, *, residuals: Any, features: Any) -> None:
        self.residuals, self.features = residuals, features
        below = residuals[np.tril_indices(len(residuals), -1)]
        self.srmr = float(np.sqrt(np.nanmean(below**2))) if np.isfinite(below).any() else 0.0

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, *, ax: Any = None) -> Self:
        """The picture of a fitted estimator and rows; see :func:`residuals`."""
        fitted(estimator, "get_covariance", picture="residuals")
        rows = dense(rows_for(estimator, X))
        found = pairwise_correlations(rows) - as_correlations(np.asarray(estimator.get_covariance()))
        return cls(residuals=found, features=feature_names(estimator, X, rows.shape[1])).plot(ax)

    def _size(self):
        side = float(np.clip(2.2 + 0.34 * len(self.features), 4.6, 10))
        return side + 0.8, side

    def _draw(self, ax):
        largest = np.nanmax(np.abs(self.residuals)) if self.residuals.size else 1.0
        table_of_colours(ax, self.residuals, self.features, self.features, "correlation left", limit=max(0.1, float(largest)))
        title(ax, f"Correlations that the model leaves (SRMR {self.srmr:.3f})")


def pairwise_correlations(X):
    """Correlation of each two columns over the rows that have both; NaN where there are none."""
    seen = (~np.isnan(X)).astype(float)
    X = np.nan_to_num(X - np.nanmean(X, axis=0))
    n = seen.T @ seen
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, square = (X.T @ seen) / n, ((X**2).T @ seen) / n
        variance = square - mean**2
        covariance = (X.T @ X) / n - mean * mean.T
        return covariance / np.sqrt(variance * variance.T)


def as_correlations(covariance):
    deviations = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        return covariance / np.outer(deviations, deviations)


def residuals(estimator: Any, X: Table, *, ax: Any = None) -> ResidualsDisplay:
    """Correlations of the features that the model leaves unexplained.

    Parameters
    ----------
    estimator : fitted estimator with `get_covariance`
    X : rows, with missing values or without
    ax : matplotlib Axes, optional

    Returns
    -------
    ResidualsDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) @ np.ones((1, 5)) + rng.normal(size=(500, 5))
    >>> display = covary.plot.residuals(covary.FactorAnalysis(1).fit(X), X)
    >>> bool(display.srmr < 0.05)
    True
    >>> display.figure_.clear()
    """
    return ResidualsDisplay.from_estimator(estimator, X, ax=ax)
