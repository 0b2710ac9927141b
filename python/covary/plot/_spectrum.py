"""How much components explain, how many to take, and how a fit went."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary._types import Self
from covary.plot._draw import ACCENT, COLOURS, FAINT, GREY, MAIN, Display, say, title
from covary.plot._given import component_names, fitted

# Criteria of a table over numbers, the first that there is; with the error bars of each and its name.
CRITERIA = [
    ("q2", "q2_error", "Q² of hidden cells"),
    ("cross_validated", "cross_validated_error", "log density of held-out rows"),
    ("gap", "error", "gap statistic"),
    ("bound", None, "lower bound"),
    ("bic", None, "BIC"),
]


class ScreeDisplay(Display):
    """Share of the variance that each component explains, and what they explain together.

    Attributes
    ----------
    variance, ratio, cumulative : ndarray of shape (q,)
    noise : float or None
        Share of the noise of one direction.
    names : list of str
    """

    def __init__(self, *, variance: Any, ratio: Any, noise: Any = None, names: Any) -> None:
        self.variance, self.ratio, self.noise, self.names = variance, ratio, noise, names
        self.cumulative = np.cumsum(ratio)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """The picture of a fitted estimator; see :func:`scree`."""
        fitted(estimator, "explained_variance_ratio_", picture="scree")
        ratio = np.asarray(estimator.explained_variance_ratio_)
        variance = np.asarray(getattr(estimator, "explained_variance_", ratio))
        sigma2 = getattr(estimator, "noise_variance_", None)
        total = variance[0] / ratio[0] if len(ratio) and ratio[0] > 0 else np.nan
        noise = float(sigma2) / total if sigma2 is not None and np.ndim(sigma2) == 0 and np.isfinite(total) else None
        names = component_names(estimator, len(ratio), share=False)
        return cls(variance=variance, ratio=ratio, noise=noise, names=names).plot(ax)

    def _draw(self, ax):
        places = np.arange(len(self.ratio))
        ax.bar(places, 100 * self.ratio, color=MAIN, width=0.7)
        ax.plot(places, 100 * self.cumulative, color=ACCENT, marker="o", markersize=4, lw=1.5)
        last = (places[-1], 100 * self.cumulative[-1])
        ax.annotate("together", last, (0, 7), textcoords="offset points", ha="right", color=ACCENT)
        if self.noise is not None and self.noise > 0:
            ax.axhline(100 * self.noise, color=GREY, ls=":", lw=1)
            ax.annotate("noise of one direction", (1, 100 * self.noise), (0, 3), xycoords=("axes fraction", "data"),
                        textcoords="offset points", ha="right", fontsize="small", color=GREY)
        step = -(-len(places) // 20)
        ax.set_xticks(places[::step], self.names[::step])
        ax.set_ylim(0, 105)
        ax.set_ylabel("share of the variance (%)")
        title(ax, "What components explain")


def scree(estimator: Any, *, ax: Any = None) -> ScreeDisplay:
    """Share of the variance that each component explains, and what they explain together.

    Parameters
    ----------
    estimator : fitted estimator with `explained_variance_ratio_`
    ax : matplotlib Axes, optional

    Returns
    -------
    ScreeDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> display = covary.plot.scree(covary.PPCA(2).fit(X))
    >>> display.names, bool(display.cumulative[-1] > 0.8)
    (['z1', 'z2'], True)
    >>> display.figure_.clear()
    """
    return ScreeDisplay.from_estimator(estimator, ax=ax)


class SelectionDisplay(Display):
    """What numbers of components or groups are worth, and which each method would take.

    Attributes
    ----------
    numbers : ndarray
        Numbers to choose from.
    values, errors : dict of str to ndarray
        The criterion and its standard error, one curve for each number of latent variables of a mixture.
    criterion : str
        What it is.
    choices : dict of str to int
        What each method chooses.
    recommended : int
    """

    def __init__(self, *, numbers: Any, values: Any, errors: Any, criterion: Any, choices: Any, recommended: Any, of: Any = "components") -> None:
        self.numbers, self.values, self.errors, self.criterion = numbers, values, errors, criterion
        self.choices, self.recommended, self.of = choices, recommended, of

    @classmethod
    def from_selection(cls, found: Any, *, ax: Any = None) -> Self:
        """The picture of what :func:`covary.select` has found; see :func:`selection`."""
        table = found.table
        has = lambda name: name in table and not np.isnan(np.asarray(table[name], dtype=float)).all()  # noqa: E731
        value, error, criterion = next(entry for entry in CRITERIA if has(entry[0]))
        of = next(name for name in ("clusters", "groups", "components") if name in table)
        latent = np.asarray(table.get("latent", np.zeros(len(table[of]))))
        values, errors = {}, {}
        numbers = np.unique(table[of])
        for q in np.unique(latent):
            own = latent == q
            name = f"{int(q)} latent" if "latent" in table else criterion
            curve, bars = np.full(len(numbers), np.nan), np.zeros(len(numbers))
            at = np.searchsorted(numbers, np.asarray(table[of])[own])
            curve[at] = np.asarray(table[value], dtype=float)[own]
            if error is not None and has(error):
                bars[at] = np.nan_to_num(np.asarray(table[error], dtype=float)[own])
            values[name], errors[name] = curve, bars
        recommended = found.recommended
        recommended = recommended[0] if isinstance(recommended, (tuple, list)) else recommended
        choices = {k: v for k, v in getattr(found, "choices", {}).items() if np.isscalar(v)}
        return cls(numbers=numbers, values=values, errors=errors, criterion=criterion, choices=choices,
                   recommended=recommended, of=of).plot(ax)

    def _draw(self, ax):
        for k, (name, curve) in enumerate(self.values.items()):
            ax.errorbar(self.numbers, curve, yerr=self.errors[name], color=COLOURS[k % len(COLOURS)], marker="o",
                        markersize=4, lw=1.5, elinewidth=1, label=name)
        ax.axvline(self.recommended, color=FAINT, lw=6, zorder=0)
        ax.annotate(f"take {self.recommended}", (self.recommended, 1), (5, -4), xycoords=("data", "axes fraction"),
                    textcoords="offset points", va="top", color=GREY)
        if len(self.values) > 1:
            ax.legend(frameon=False, fontsize="small")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel(f"number of {self.of}")
        ax.set_ylabel(self.criterion)
        title(ax, f"How many {self.of}")
        if self.choices:
            say(ax, "\n" + ", ".join(f"{method} {q}" for method, q in self.choices.items()))


def selection(found: Any, *, ax: Any = None, **options: Any) -> SelectionDisplay:
    """What numbers of components or groups are worth, and which each method would take.

    Parameters
    ----------
    found : what :func:`covary.select` gave, or rows, for which it is called
    ax : matplotlib Axes, optional
    **options
        Of :func:`covary.select`, for rows.

    Returns
    -------
    SelectionDisplay

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) * [5, 4, 1, 1, 1]
    >>> display = covary.plot.selection(X)
    >>> display.recommended, display.criterion
    (2, 'log density of held-out rows')
    >>> display.figure_.clear()
    """
    if not hasattr(found, "table"):
        from covary import select

        found = select(found, **options)
    return SelectionDisplay.from_selection(found, ax=ax)


class TraceDisplay(Display):
    """The objective after each iteration of a fit.

    Attributes
    ----------
    objective : ndarray
    stop : str
        How it ended.
    """

    def __init__(self, *, objective: Any, stop: Any = "", name: str = "") -> None:
        self.objective, self.stop, self.name = objective, stop, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """The picture of a fitted estimator; see :func:`trace`."""
        fitted(estimator, "report_", "loss_curve_", picture="trace")
        report = getattr(estimator, "report_", {})
        objective = np.asarray(report.get("trace", getattr(estimator, "loss_curve_", [])), dtype=float)
        if len(objective) == 0:
            raise ValueError("this fit was a closed form: there are no iterations to show")
        return cls(objective=objective, stop=report.get("stop", ""), name=type(estimator).__name__).plot(ax)

    def _draw(self, ax):
        steps = np.arange(1, len(self.objective) + 1)
        ax.plot(steps, self.objective, color=MAIN, marker="o", markersize=3 if len(steps) > 30 else 4, lw=1.5)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective")
        title(ax, f"{self.name}: {len(steps)} iteration{'s' * (len(steps) > 1)}, {self.stop}".strip(", "))


def trace(estimator: Any, *, ax: Any = None) -> TraceDisplay:
    """The objective after each iteration of a fit.

    Parameters
    ----------
    estimator : fitted estimator with a `report_`
    ax : matplotlib Axes, optional

    Returns
    -------
    TraceDisplay

    Raises
    ------
    ValueError
        When the fit was a closed form.

    Examples
    --------
    >>> import numpy as np, covary
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [4, 2, 1, 1]
    >>> X[::7, 1] = np.nan
    >>> display = covary.plot.trace(covary.PPCA(1).fit(X))
    >>> display.stop, bool((np.diff(display.objective) >= -1e-9).all())
    ('converged', True)
    >>> display.figure_.clear()
    """
    return TraceDisplay.from_estimator(estimator, ax=ax)
