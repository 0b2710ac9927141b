"""Rows of the tests, as arrays and as DataFrames of any number of partitions in the order of the rows."""

import numpy as np

NAMES = ["a", "b", "c", "d", "e", "f"]


def rows(n=240, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, len(NAMES))) * 2.0 + 0.4 * rng.normal(size=(n, len(NAMES))) + 5.0
    x[rng.random(x.shape) < missing] = np.nan
    return x


def groups(n=240, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(NAMES)))
    x[np.arange(n), np.arange(n) % 3] += 12.0
    return x


def frame(spark, x, partitions=2, **more):
    """Rows as columns of doubles with null for NaN, in their order."""
    values = [[None if np.isnan(cell) else float(cell) for cell in row] for row in x]
    for column in more.values():
        values = [[*row, cell] for row, cell in zip(values, column, strict=True)]
    kinds = [f"{name} double" for name in NAMES] + [
        f"{name} {'string' if isinstance(column[0], str) else 'double'}" for name, column in more.items()
    ]
    spread = spark.sparkContext.parallelize(values, partitions)
    return spark.createDataFrame(spread, ", ".join(kinds))


def assert_same(found, expected, names, within=1e-9):
    """Public fields agree, relative to the largest number of each."""
    for name in names:
        a, b = np.asarray(getattr(found, name), dtype=float), np.asarray(getattr(expected, name), dtype=float)
        assert a.shape == b.shape, name
        size = max(np.abs(b).max(initial=0.0), 1e-300)
        assert np.abs(a - b).max(initial=0.0) <= within * size, (name, np.abs(a - b).max() / size)
