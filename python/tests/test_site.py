"""The site has every public name, links of pages lead to files, and learned attributes stand in the docstrings of classes."""

import importlib
import inspect
import re

import pages
import pytest
from numpydoc.docscrape import NumpyDocString

import covary

REFERENCE = (pages.ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
CLASSES = [getattr(covary, name) for name in covary.__all__ if inspect.isclass(getattr(covary, name))]


@pytest.mark.parametrize("module", ["covary", "covary.plot", "covary.spark", "covary.elsewhere"])
def test_the_reference_lists_what_is_public(module):
    if module == "covary.spark":
        pytest.importorskip("pyspark")
    public = set(importlib.import_module(module).__all__) - {"__version__"}
    parts = re.findall(r"\.\. currentmodule:: (\S+)\n.*?:nosignatures:\n\n(.*?)```", REFERENCE, re.S)
    listed = [name for current, names in parts if current == module for name in names.split()]
    assert sorted(listed) == sorted(public)


@pytest.mark.parametrize("page", pages.pages())
def test_links_and_pictures_of_a_page_lead_to_files(page):
    text = (pages.ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    local = {(a or b).partition("#")[0] for a, b in links if not (a or b).startswith(("http", "#"))}
    assert [link for link in sorted(local) if not ((pages.ROOT / page).parent / link).exists()] == []


@pytest.mark.parametrize("known", CLASSES, ids=lambda known: known.__name__)
def test_learned_attributes_are_explained_in_the_docstring(known):
    learned = {name for name in dir(known) if name.endswith("_") and isinstance(getattr(known, name), property)}
    explained = {attribute.name for attribute in NumpyDocString(inspect.getdoc(known))["Attributes"]}
    explained = {name.strip() for names in explained for name in names.split(",")}
    assert {name for name in learned if not name.startswith("_")} <= explained
