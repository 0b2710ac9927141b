"""How every picture looks, and how it is drawn: axes, colours, colours of rows, and tables of colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self

# Okabe and Ito's colours, which people tell apart however they see colours; dark ones first.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
MAIN, ACCENT, GREY, FAINT = COLOURS[0], COLOURS[1], "#666666", "#DDDDDD"
# From blue over white to orange: of numbers with a sign.
SIGNED = "PuOr_r"
ORDERED = "viridis"
# More values than that are a scale, fewer are groups.
MOST_GROUPS = 12
# More cells than that have no number written into them.
MOST_NUMBERS = 160
# More names than that are not written on an axis.
MOST_NAMES = 60


def pyplot():
    """matplotlib, or the sentence that it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("covary.plot draws with matplotlib, which is not installed: pip install covary[plot]") from None
    return plt


class Display:
    """The numbers of a picture, and how it is drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
    """

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Of a new figure by default.

        Returns
        -------
        self
        """
        plt = pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=self._size(), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        plain(ax)
        self._draw(ax)
        return self

    def _size(self):
        """Width and height of a figure of its own, in inches."""
        return 6.0, 4.2

    def _draw(self, ax):
        raise NotImplementedError


def plain(ax):
    """Axes without what says nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor="#333333")


def bare(ax):
    """Axes of a table: no frame, no ticks."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def title(ax, text):
    ax.set_title(text, loc="left", fontsize="medium")


def say(ax, text):
    """A remark under the picture, on the right."""
    ax.annotate(
        text, (1, 0), (0, -34), xycoords="axes fraction", textcoords="offset points", ha="right", va="top",
        fontsize="small", color=GREY, annotation_clip=False,
    )


def height_of(names, least=2.6, each=0.26):
    """Inches for a list of names under each other."""
    return max(least, 1.2 + each * min(len(names), MOST_NAMES))


def name_axis(axis, names, **options):
    """Names at the ticks of an axis: all of them, or where there are too many, some."""
    step = -(-len(names) // MOST_NAMES)
    places = range(0, len(names), step)
    axis.set_ticks(list(places), [short(names[k]) for k in places], **options)


def short(name, most=24):
    """A name that fits on an axis; as it stands, not as matplotlib's mathematics."""
    name = str(name).replace("\n", " ")
    name = name if len(name) <= most else name[: most - 1] + "…"
    return name.replace("$", r"\$")


def table_of_colours(ax, numbers, rows, columns, label, decimals=2, limit=None):
    """A table of numbers with a sign as colours, with the numbers where there is room; symmetric around 0."""
    from matplotlib.colors import Normalize

    finite = np.abs(numbers[np.isfinite(numbers)])
    limit = limit or (finite.max() if finite.size and finite.max() > 0 else 1.0)
    image = ax.imshow(numbers, cmap=SIGNED, norm=Normalize(-limit, limit), aspect="auto", interpolation="nearest")
    bare(ax)
    name_axis(ax.yaxis, rows)
    long = max((len(short(c)) for c in columns), default=0) > 4 and len(columns) > 4
    aslant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    name_axis(ax.xaxis, columns, **(aslant if long else {}))
    if numbers.size <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(numbers):
            if np.isfinite(value):
                ink = "white" if abs(value) > 0.65 * limit else "#222222"
                shown = f"{value:.{decimals}f}".replace("-", "−")
                ax.text(j, i, shown, ha="center", va="center", fontsize="small", color=ink)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.set_label(label, color=GREY, fontsize="small")
    bar.ax.tick_params(labelsize="small")
    return image


def draw_points(ax, points, colour=None, label=None, size=None):
    """Points (n, 2), coloured by groups or by a scale where there is one for each."""
    n = len(points)
    size = size or float(np.clip(4000 / max(n, 1), 5, 26))
    alpha = 0.85 if n <= 2000 else 0.4
    if colour is None:
        ax.scatter(*points.T, s=size, color=MAIN, alpha=alpha, linewidths=0)
        return
    colour = np.asarray(colour)
    groups = groups_of(colour)
    if groups is None:
        shown = ax.scatter(*points.T, s=size, c=colour.astype(float), cmap=ORDERED, alpha=alpha, linewidths=0)
        bar = ax.figure.colorbar(shown, ax=ax, shrink=0.8, pad=0.02, aspect=30)
        bar.outline.set_visible(False)
        bar.set_label(short(label or ""), color=GREY)
        return
    for k, group in enumerate(groups):
        own = np.array([value == group for value in colour])
        style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
        ax.scatter(*points[own].T, s=size, alpha=alpha, linewidths=0, label=short(group), **style)
    ax.legend(
        title=None if label is None else short(label), frameon=False, fontsize="small", loc="upper left",
        bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, markerscale=max(1.0, (20 / size) ** 0.5), alignment="left",
    )


def groups_of(colour):
    """The different values in order where they are few or no numbers, else None."""
    values = set(colour.tolist())
    is_number = colour.dtype.kind in "iuf"
    if is_number and len(values) > MOST_GROUPS:
        return None
    return sorted(values) if is_number else sorted(values, key=str)
