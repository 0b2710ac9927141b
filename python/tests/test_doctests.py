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


WRONG = {
    "output": "```python\nprint(1.5)\n```\n\n```output\n1.6\n```\n",
    "number": "```console\n$ echo about 12.0001 rows\nabout 12.0002 rows\n```\n",
    "command": "```console\n$ false\n```\n",
    "exception": "```python\n1 / 0\n```\n",
    "session": "```python\n>>> 1 + 1\n3\n```\n",
    "language": "```sh\nls\n```\n",
    "reason": "<!-- not run: -->\n```sh\nls\n```\n",
    "rust": "```rust\nfn main() {}\n```\n",
    "picture": "<!-- picture: none.png -->\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_page_that_is_wrong_is_noticed(text, tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(text)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    with pytest.raises((AssertionError, ZeroDivisionError, doctest.DocTestFailure)):
        pages.Page("page.md", tmp_path, COMMAND).run()


def test_what_need_not_agree(tmp_path, monkeypatch):
    page = "```console\n$ printf 'x 0.30000001 of 7 rows\\n seconds   0.02\\n'\nx 0.3 of ... rows\n seconds 1.5\n```\n"
    skipped = "<!-- not run: there is no such program -->\n```console\n$ no-such-program\n```\n"
    (tmp_path / "page.md").write_text(page + skipped)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    pages.Page("page.md", tmp_path, COMMAND).run()
