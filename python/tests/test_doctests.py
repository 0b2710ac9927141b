"""Every example in a docstring, in the README or on the pages about groups and plots runs."""

import doctest
import importlib
import pathlib
import pkgutil
import re

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse
from support import low_rank, punched

import covary

matplotlib.use("Agg")

MODULES = ["covary"] + [module.name for module in pkgutil.walk_packages(covary.__path__, "covary.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name.startswith("covary.spark"):
        pytest.importorskip("pyspark")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def blocks_of(page):
    text = (pathlib.Path(__file__).parents[2] / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.S)


def test_the_examples_of_groups():
    X = low_rank(150, 4, 1)
    blocks = blocks_of("docs/groups.md")
    assert len(blocks) == 3
    given = {"X": X, "batches": np.array_split(X, 3)}
    for block in blocks:
        exec(block, given)


def test_the_example_of_networks():
    (block,) = blocks_of("docs/networks.md")
    exec(block, {})


def test_the_examples_of_plots(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks_of("docs/plots.md")
    exec(block, {"X": low_rank(60, 5, 2)})
    assert pathlib.Path("distances.png").exists()
    page = pathlib.Path(__file__).parents[2] / "docs/plots.md"
    shown = re.findall(r"\(pictures/(\w+)\.png\)", page.read_text())
    functions = [name for name in covary.plot.__all__ if name.islower()]
    assert sorted(shown) == sorted(functions)
    assert all((page.parent / f"pictures/{name}.png").exists() for name in shown)


def test_the_readme(tmp_path, monkeypatch):
    blocks = blocks_of("README.md")
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    X = low_rank(400, 10, 5)
    pa.parquet.write_table(pa.table({f"c{j}": X[:, j] for j in range(10)}), "larger than memory.parquet")
    given = {
        "X": punched(X, 0.1),
        "ratings": sparse.csr_array(np.where(np.random.default_rng(0).random(X.shape) < 0.8, X, 0.0)),
        "monday": X[:100],
        "tuesday": X[100:200],
        "elsewhere": covary.PPCA(5).partial_fit(X[200:]),
    }
    for block in blocks:
        exec(block, given)
