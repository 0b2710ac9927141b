"""Pictures of fitted models: a function and a Display class for each, drawn by matplotlib.

Every function takes a fitted estimator (of covary and, where it makes sense, of scikit-learn), draws into `ax` or into
a new figure, and gives a Display: the numbers of the picture as attributes, `ax_`, `figure_`, and `plot(ax=None)`, which
draws it once more. matplotlib is imported when something is drawn: ``pip install covary[plot]``.

>>> import numpy as np
>>> import covary
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
>>> model = covary.PPCA(2).fit(X)
>>> display = covary.plot.distances(model, X, level=0.99)
>>> display.t2.shape, bool((display.t2 > display.t2_limit).mean() < 0.05)
((200,), True)
>>> display.ax_.get_xlabel()
'T²'
>>> display.figure_.clear()
"""

from covary.plot._groups import ClustersDisplay, clusters
from covary.plot._loadings import (
    CorrelationCircleDisplay,
    LoadingsDisplay,
    ResidualsDisplay,
    correlation_circle,
    loadings,
    residuals,
)
from covary.plot._missing import MissingDisplay, missing
from covary.plot._plane import (
    BiplotDisplay,
    LatentGridDisplay,
    ScoresDisplay,
    biplot,
    latent_grid,
    scores,
)
from covary.plot._rows import (
    ContributionsDisplay,
    DistancesDisplay,
    RowDisplay,
    contributions,
    distances,
    row,
)
from covary.plot._spectrum import (
    ScreeDisplay,
    SelectionDisplay,
    TraceDisplay,
    scree,
    selection,
    trace,
)

__all__ = [
    "BiplotDisplay",
    "ClustersDisplay",
    "ContributionsDisplay",
    "CorrelationCircleDisplay",
    "DistancesDisplay",
    "LatentGridDisplay",
    "LoadingsDisplay",
    "MissingDisplay",
    "ResidualsDisplay",
    "RowDisplay",
    "ScoresDisplay",
    "ScreeDisplay",
    "SelectionDisplay",
    "TraceDisplay",
    "biplot",
    "clusters",
    "contributions",
    "correlation_circle",
    "distances",
    "latent_grid",
    "loadings",
    "missing",
    "residuals",
    "row",
    "scores",
    "scree",
    "selection",
    "trace",
]
