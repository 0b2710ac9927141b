"""How many groups: a table over their number, and what each method chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary import _covary
from covary._select_table import SelectionTable

_SHOWN = ["latent", "groups", "parameters", "log_likelihood", "bic", "icl", "cross_validated", "q2"]


class GroupSelection(SelectionTable):
    """What :func:`select` has found about mixtures.

    Attributes
    ----------
    table : dict of str to ndarray
        One entry for each number of `groups` and of `latent` variables, in ascending number of `parameters`:
        `log_likelihood`, `bic`, `aic`, `icl`, `cross_validated` (mean log density of held-out rows) and
        `cross_validated_error`, its standard error, and `q2` of hidden cells with `q2_error`; NaN where a
        method says nothing.
    choices : dict of str to (int, int)
        The number of groups and of latent variables that each method chooses.
    reasons : dict of str to str
        What each goes by.
    absent : dict of str to str
        Methods that choose nothing here, and why.
    recommended : (int, int)
        What to take, ``covary.MixturePPCA(*found.recommended)``.
    reason : str
        Why.
    n_rows, n_features : int
    holes : dict or None
        What is missing; None for complete rows.
    """

    _columns_shown = _SHOWN

    def __init__(self, found: Any) -> None:
        lines = found["table"]
        self.table = {name: np.array([line[name] for line in lines], dtype=_type(name)) for name in lines[0]}
        both = lambda choice: (choice["groups"], choice["latent"])  # noqa: E731 - a pair
        self.choices = {choice["method"]: both(choice) for choice in found["choices"]}
        self.reasons = {choice["method"]: choice["reason"] for choice in found["choices"]}
        self.absent = {absent["method"]: absent["reason"] for absent in found["absent"]}
        self.recommended = both(found["recommended"])
        self.reason = f"{found['recommended']['method']}: {found['recommended']['reason']}"
        self.n_rows, self.n_features = found["rows"], found["features"]
        self.holes = found["holes"]

    def _lines_shown(self):
        return np.lexsort((self.table["groups"], self.table["latent"]))

    def _advice(self):
        choices = ", ".join(f"{method} {k} × {q}" for method, (k, q) in self.choices.items())
        groups, latent = self.recommended
        return f"groups × latent variables: {choices}; take {groups} × {latent} ({self.reason})"


class ClusterSelection(SelectionTable):
    """What :func:`select` has found about k-means.

    Attributes
    ----------
    table : dict of str to ndarray
        For each number of `clusters` the `inertia`, the `gap` and its standard `error`.
    recommended : int
        The number to take.
    reason : str
        Why.
    n_rows, n_features : int
    """

    _columns_shown = ["clusters", "inertia", "gap", "error"]

    def __init__(self, found: Any) -> None:
        lines = found["table"]
        self.table = {name: np.array([line[name] for line in lines], dtype=_type(name)) for name in lines[0]}
        self.recommended, self.reason = found["recommended"], found["reason"]
        self.n_rows, self.n_features = found["rows"], found["features"]

    def _advice(self):
        return f"take {self.recommended} ({self.reason})"


def _type(name):
    return np.int64 if name in ("groups", "latent", "parameters", "clusters") else np.float64


def select_groups(model, rows, **options):
    """The numbers of groups of a mixture or of k-means."""
    found = _covary.select_groups(model, rows, **options)
    return GroupSelection(found) if model == "mixture" else ClusterSelection(found)
