"""Which columns of a DataFrame are features: checked and brought to numbers by Spark, read here batch by batch."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from covary._covary import Rows

WEIGHT = "__weight"
ARRAY = "__cells"
ITEMS = "__items"


@dataclass(frozen=True)
class Columns:
    """What a batch holds: one column for each feature, or one with all of them, or lists of cells that were seen."""

    kind: str  # columns, array or cells
    names: tuple | None  # of the features, when they have some
    n_features: int
    source: str  # what errors call the column of vectors
    weights: str | None = None  # the column of weights

    def rows(self, batch):
        """The rows of a batch."""
        weights = None if self.weights is None else self._weights(batch.column(WEIGHT))
        names = None if self.names is None else [str(name) for name in self.names]
        if self.kind == "cells":
            return self._observed(batch, weights, names)
        return Rows.dense(self.matrix(batch), weights, names)

    def matrix(self, batch):
        """The cells of a batch, NaN where they are missing."""
        return self._cells(batch.column(ARRAY)) if self.kind == "array" else _table(batch, self.n_features)

    def _weights(self, column):
        weights = _numbers(column)
        bad = ~(np.isfinite(weights) & (weights >= 0.0))
        if bad.any():
            value = column[int(np.argmax(bad))].as_py()
            told = "null" if value is None else value
            raise ValueError(f"a weight in column '{self.weights}' is {told}; weights must be finite and not negative")
        return weights

    def _cells(self, column):
        """Vectors as a matrix; a row without one misses every cell."""
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        there = column.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.diff(column.offsets.to_numpy())[there]
        if (lengths != self.n_features).any():
            other = int(lengths[lengths != self.n_features][0])
            raise ValueError(
                f"the vectors of column '{self.source}' have different lengths: {self.n_features} and {other}; they must "
                "be alike, with NaN for what is missing"
            )
        cells = _numbers(column.flatten()).reshape(-1, self.n_features)
        if there.all():
            return np.ascontiguousarray(cells)
        whole = np.full((len(there), self.n_features), np.nan)
        whole[there] = cells
        return whole

    def _observed(self, batch, weights, names):
        items, values = batch.column(ITEMS), batch.column(ARRAY)
        starts = items.offsets.to_numpy().astype(np.int64)
        columns = np.ascontiguousarray(items.flatten().to_numpy(zero_copy_only=False), dtype=np.uint32)
        return Rows.observed(starts - starts[0], columns, _numbers(values.flatten()), self.n_features, weights, names)


def _table(batch, n_features):
    """Columns as a matrix in their own order: what is null is NaN."""
    single = all(pa.types.is_float32(batch.schema.field(j).type) for j in range(n_features))
    cells = np.empty((batch.num_rows, n_features), np.float32 if single else np.float64, order="F")
    for j in range(n_features):
        cells[:, j] = _numbers(batch.column(j))
    return cells


def _numbers(column):
    """A column of floats as an array; what is null is NaN."""
    return column.to_numpy(zero_copy_only=False) if column.null_count == 0 else column.fill_null(np.nan).to_numpy()
