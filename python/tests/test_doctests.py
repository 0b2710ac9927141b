"""Every example in a docstring, and every code block of a page, runs."""

import doctest
import importlib
import pkgutil
import re

import matplotlib
import pages
import pytest
from conftest import COMMAND

import covary

matplotlib.use("Agg")

MODULES = ["covary"] + [module.name for module in pkgutil.walk_packages(covary.__path__, "covary.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name.startswith("covary.spark"):
        pytest.importorskip("pyspark")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


#: Pages that need Spark run in python/tests/spark, and a picture of the page about plots is looked for below.
IN_SPARK = {"docs/spark.md"}


@pytest.mark.parametrize("page", [page for page in pages.pages() if page not in IN_SPARK])
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read = pages.Page(page, tmp_path, COMMAND)
    read.run()
    if read.missing:
        pytest.skip(f"commands of {page} are not run: {', '.join(read.missing)} not in {pages.data_folder()}")


def test_the_pictures_of_plots():
    page = pages.ROOT / "docs/plots.md"
    shown = re.findall(r"\(pictures/(\w+)\.png\)", page.read_text())
    functions = [name for name in covary.plot.__all__ if name.islower()]
    assert sorted(shown) == sorted(functions)
