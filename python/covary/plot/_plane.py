"""Rows in the plane of two components, features with them, and what places in that plane stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self, Table
from covary.plot._draw import FAINT, GREY, MAIN, Display, draw_points, say, title
from covary.plot._given import (
    colours_of,
    component_names,
    feature_names,
    fitted,
    is_classical,
    pair,
    rows_for,
    shown_loadings,
)
from covary.plot._loadings import arrows


class ScoresDisplay(Display):
    """Latent coordinates of rows on two components.

    Attributes
    ----------
    scores : ndarray of shape (n, 2)
    colour : ndarray of shape (n,) or None
    ellipses : dict of int to ndarray of shape (2, 2)
        Posterior covariance of the rows with missing values.
    components : list of str
    """

    def __init__(self, *, scores: Any, components: Any, colour: Any = None, colour_name: Any = None, ellipses: Any = None) -> None:
        self.scores, self.components, self.colour, self.colour_name = scores, components, colour, colour_name
        self.ellipses = ellipses or {}

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, *, components: Any = (0, 1), color: Any = None, ellipses: bool = False, ax: Any = None) -> Self:
        """The picture of a fitted estimator and rows; see :func:`scores`."""
        return cls(**plane_of(estimator, X, components, color, ellipses)).plot(ax)

    def _size(self):
        return (6.6, 4.6) if self.colour is not None else (5.6, 4.6)

    def _draw(self, ax):
        from matplotlib.patches import Ellipse

        for row, covariance in self.ellipses.items():
            values, vectors = np.linalg.eigh(covariance)
            width, height = 2 * np.sqrt(np.maximum(values[::-1], 0))
            angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
            style = {"facecolor": "none", "edgecolor": GREY, "alpha": 0.5, "lw": 0.8}
            ax.add_patch(Ellipse(self.scores[row], width, height, angle=angle, **style))
        cross(ax)
        draw_points(ax, self.scores, self.colour, self.colour_name)
        ax.set_xlabel(self.components[0])
        ax.set_ylabel(self.components[1])
        title(ax, "Rows on two components")
        if self.ellipses:
            say(ax, "\nellipses: one posterior deviation of rows with missing values")


def cross(ax):
    ax.axhline(0, color=FAINT, lw=0.8, zorder=0)
    ax.axvline(0, color=FAINT, lw=0.8, zorder=0)


def plane_of(estimator, X, components, color, ellipses=False):
    """What is drawn of rows."""
    fitted(estimator, "transform", picture="scores")
    rows = rows_for(estimator, X)
    coordinates = np.asarray(estimator.transform(rows))
    two = pair(components, coordinates.shape[1])
    colour, name = colours_of(color, X, len(coordinates))
    names = component_names(estimator, coordinates.shape[1])
    found = {"scores": coordinates[:, two], "components": [names[k] for k in two], "colour": colour, "colour_name": name}
    if ellipses:
        fitted(estimator, "posterior", picture="ellipses")
        covariance = np.asarray(estimator.posterior(rows)[1])
        if covariance.ndim == 3 and len(covariance) == len(coordinates):
            spread = covariance[:, two][:, :, two]
            least = np.trace(spread, axis1=1, axis2=2)
            wide = np.flatnonzero(least > least.min() * (1 + 1e-9))
            found["ellipses"] = {int(i): spread[i] for i in wide}
    return found


def scores(estimator: Any, X: Table, *, components: Any = (0, 1), color: Any = None, ellipses: bool = False, ax: Any = None) -> ScoresDisplay:
    """Latent coordinates of rows on two components.

    Parameters
    ----------
    estimator : fitted estimator with `transform`
    X : rows
        A frame may have other columns than the features of the fit.
    components : pair of int
        Which, counted from 0.
    color : name of a column of X, or array-like of shape (n,), optional
        Groups, or numbers of which many differ.
    ellipses : bool
        Draw one posterior deviation around rows with missing values.
    ax : matplotlib Axes, optional

    Returns
    -------
    ScoresDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> display = covary.plot.scores(covary.PPCA(2).fit(X), X, color=X[:, 0] > 0)
    >>> display.scores.shape
    (100, 2)
    >>> display.figure_.clear()
    """
    return ScoresDisplay.from_estimator(estimator, X, components=components, color=color, ellipses=ellipses, ax=ax)


class BiplotDisplay(ScoresDisplay):
    """Rows and features in one picture.

    Attributes
    ----------
    scores : ndarray of shape (n, 2)
    loadings : ndarray of shape (p, 2)
    arrow_scale : float
        What loadings are multiplied by to be seen beside the rows.
    features, components : list of str
    """

    def __init__(self, *, loadings: Any, features: Any, standardised: bool = False, **plane: Any) -> None:
        super().__init__(**plane)
        self.loadings, self.features, self.standardised = loadings, features, standardised
        longest = np.abs(loadings).max(initial=0.0)
        reach = np.nanpercentile(np.abs(self.scores), 98) if len(self.scores) else 1.0
        self.arrow_scale = float(0.95 * reach / longest) if longest > 0 else 1.0

    @classmethod
    def from_estimator(cls, estimator: Any, X: Table, *, components: Any = (0, 1), color: Any = None, standardise: Any = None, ax: Any = None) -> Self:
        """The picture of a fitted estimator and rows; see :func:`biplot`."""
        W, standardised = shown_loadings(estimator, standardise, "biplot")
        plane = plane_of(estimator, X, components, color)
        two = pair(components, W.shape[1])
        return cls(loadings=W[:, two], features=feature_names(estimator, count=len(W)), standardised=standardised, **plane).plot(ax)

    def _draw(self, ax):
        super()._draw(ax)
        for points in ax.collections:
            points.set_alpha(0.45)
        arrows(ax, self.arrow_scale * self.loadings, self.features, most=20)
        title(ax, "Rows and features")
        say(ax, f"\narrows: {'standardised ' * self.standardised}loadings × {self.arrow_scale:.3g}")


def biplot(estimator: Any, X: Table, *, components: Any = (0, 1), color: Any = None, standardise: Any = None, ax: Any = None) -> BiplotDisplay:
    """Rows and features in one picture: arrows are loadings on a scale of their own, said beneath.

    Parameters
    ----------
    estimator : fitted estimator with `transform` and loadings
    X : rows
    components : pair of int
    color : name of a column of X, or array-like of shape (n,), optional
    standardise : bool, optional
        Divide loadings by the standard deviations of the features. By default where these were scaled for the fit, and
        of factors.
    ax : matplotlib Axes, optional

    Returns
    -------
    BiplotDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> display = covary.plot.biplot(covary.PPCA(2).fit(X), X)
    >>> display.loadings.shape, display.arrow_scale > 0
    ((4, 2), True)
    >>> display.figure_.clear()
    """
    return BiplotDisplay.from_estimator(
        estimator, X, components=components, color=color, standardise=standardise, ax=ax
    )


class LatentGridDisplay(Display):
    """The rows that places in the plane of two components stand for.

    Attributes
    ----------
    places : ndarray of shape (side, side, 2)
        The first row is at the top.
    rows : ndarray of shape (side, side, p)
    components : list of str
    """

    def __init__(self, *, places: Any, rows: Any, components: Any, image: Any = None) -> None:
        self.places, self.rows, self.components, self.image = places, rows, components, image

    @classmethod
    def from_estimator(cls, estimator: Any, *, components: Any = (0, 1), side: int = 7, span: float = 2.0, image: Any = None, X: Table = None, ax: Any = None) -> Self:
        """The picture of a fitted estimator; see :func:`latent_grid`."""
        fitted(estimator, "inverse_transform", picture="latent_grid")
        centre, deviations = spread_of(estimator, X)
        two = pair(components, len(deviations))
        steps = np.linspace(-span, span, side)
        first, second = np.meshgrid(steps, steps[::-1])
        Z = np.tile(centre, (side * side, 1))
        for k, offsets in zip(two, (first, second)):
            Z[:, k] += deviations[k] * offsets.ravel()
        rows = np.asarray(estimator.inverse_transform(Z), dtype=float).reshape(side, side, -1)
        if image is not None and rows.shape[2] != int(np.prod(image)):
            raise ValueError(f"image={image!r} has {int(np.prod(image))} pixels, where rows have {rows.shape[2]} features")
        names = component_names(estimator, len(deviations))
        return cls(places=Z[:, two].reshape(side, side, 2), rows=rows, components=[names[k] for k in two], image=image).plot(ax)

    def _size(self):
        return 6.0, 6.0 if self.image is None or self.image[0] >= self.image[1] else 5.0

    def _draw(self, ax):
        side = len(self.rows)
        if self.image is None:
            self._draw_curves(ax, side)
        else:
            self._draw_images(ax, side)
        for axis, values, name in (
            (ax.xaxis, self.places[-1, :, 0], self.components[0]),
            (ax.yaxis, self.places[:, 0, 1], self.components[1]),
        ):
            centres = (np.arange(side) + 0.5) / side
            axis.set_ticks(centres, [f"{v:.3g}".replace("-", "−") for v in values])
            axis.set_label_text(name)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        title(ax, "What places in the plane stand for")

    def _draw_images(self, ax, side):
        height, width = self.image
        pictures = self.rows.reshape(side, side, height, width)
        low, high = np.percentile(pictures, [5, 99.5])
        # A pixel of nothing between pictures.
        pictures = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=low)
        height, width = height + 2, width + 2
        sheet = pictures.transpose(0, 2, 1, 3).reshape(side * height, side * width)
        ax.imshow(sheet, cmap="gray_r", vmin=low, vmax=high, extent=(0, 1, 1, 0), aspect="auto", interpolation="nearest")
        ax.set_aspect(height / width)
        for k in range(1, side):
            ax.axhline(k / side, color=FAINT, lw=0.8)
            ax.axvline(k / side, color=FAINT, lw=0.8)

    def _draw_curves(self, ax, side):
        p = self.rows.shape[2]
        low, high = self.rows.min(), self.rows.max()
        heights = (self.rows - low) / (high - low if high > low else 1.0)
        along = (np.linspace(0.08, 0.92, p) if p > 1 else np.array([0.5])) / side
        ax.set(xlim=(0, 1), ylim=(1, 0))
        for i, j in np.ndindex(side, side):
            curve = (i + 0.9 - 0.8 * heights[i, j]) / side
            ax.plot(j / side + along, curve, color=MAIN, lw=1.2, marker="o" if p <= 12 else None, markersize=2)
            ax.axhline((i + 1) / side, color=FAINT, lw=0.6, zorder=0)
            ax.axvline((j + 1) / side, color=FAINT, lw=0.6, zorder=0)


def spread_of(estimator, X):
    """Where rows lie in the latent space: centre and standard deviation of each coordinate."""
    if X is not None:
        coordinates = np.asarray(estimator.transform(rows_for(estimator, X)))
        return coordinates.mean(axis=0), coordinates.std(axis=0)
    variances = getattr(estimator, "explained_variance_", None)
    if is_classical(estimator) and not getattr(estimator, "whiten", False):
        return np.zeros(len(variances)), np.sqrt(variances)
    count = getattr(estimator, "n_components_", None) or np.shape(getattr(estimator, "components_", []))[0]
    if type(estimator).__name__ == "KernelPCA":
        raise ValueError("latent_grid of KernelPCA needs X: its coordinates have no scale of their own")
    return np.zeros(count), np.ones(count)


def latent_grid(estimator: Any, *, components: Any = (0, 1), side: int = 7, span: float = 2.0, image: Any = None, X: Table = None, ax: Any = None) -> LatentGridDisplay:
    """The rows that places in the plane of two components stand for, as images or as curves over the features.

    Parameters
    ----------
    estimator : fitted estimator with `inverse_transform`
    components : pair of int
    side : int
        Places along each component.
    span : float
        How far to go, in standard deviations.
    image : pair of int, optional
        Height and width of rows that are images.
    X : rows, optional
        Around whose coordinates the places lie; by default those that the model expects.
    ax : matplotlib Axes, optional

    Returns
    -------
    LatentGridDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 6)) * [4, 2, 1, 1, 1, 1]
    >>> model = covary.PPCA(2).fit(X)
    >>> display = covary.plot.latent_grid(model, side=3, image=(2, 3))
    >>> bool(np.allclose(display.rows[1, 1], model.mean_))
    True
    >>> display.figure_.clear()
    """
    return LatentGridDisplay.from_estimator(
        estimator, components=components, side=side, span=span, image=image, X=X, ax=ax
    )
