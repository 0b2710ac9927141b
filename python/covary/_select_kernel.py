"""How wide a kernel and how many components: a table over widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from covary import _covary
from covary._select_table import SelectionTable


class KernelSelection(SelectionTable):
    """What :func:`select` has found about kernel PCA.

    Attributes
    ----------
    table : dict of str to ndarray
        For each width `gamma` (NaN where the kernel has none) the number of `components` whose eigenvalues exceed those of
        rows with permuted columns, by how much they do as a share of Σ k(x, x), `excess`, the share of the trace of the
        centred kernel that they hold, `explained`, and the largest `eigenvalue` divided by the number of rows beside
        what it must exceed, `noise_eigenvalue`.
    recommended : dict
        What to take, ``covary.KernelPCA(kernel=found.kernel, **found.recommended)``: `n_components`, and `gamma` where the
        kernel has one.
    reason : str
        Why.
    kernel : str
    n_rows, n_features : int
    n_sampled : int
        Rows that were looked at.
    holes : dict or None
        What is missing; None for complete rows.
    """

    _columns_shown = ["gamma", "components", "excess", "explained", "eigenvalue", "noise_eigenvalue"]

    def __init__(self, found: Any) -> None:
        lines = found["table"]
        self.table = {name: np.array([line[name] for line in lines], dtype=np.float64) for name in lines[0]}
        self.table["components"] = self.table["components"].astype(np.int64)
        best = found["recommended"]
        width = {} if best["gamma"] is None else {"gamma": best["gamma"]}
        self.recommended = {"n_components": best["components"], **width}
        self.reason, self.kernel = found["reason"], found["kernel"]
        self.n_rows, self.n_features, self.n_sampled = found["rows"], found["features"], found["sampled"]
        self.holes = found["holes"]

    def _advice(self):
        return f"take {self.recommended} ({self.reason})"


def select_kernel(rows, **options):
    """The width of a kernel and the number of components."""
    return KernelSelection(_covary.select_kernel(rows, **options))
