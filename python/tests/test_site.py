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


def test_the_reference_of_the_command_has_every_flag(monkeypatch):
    pytest.importorskip("sphinx", reason="the site is not built here")
    monkeypatch.syspath_prepend(str(pages.ROOT / "docs/extensions"))
    help_ = importlib.import_module("command_help")
    assert {"fit", "impute", "score", "demo", "man"} <= set(help_.commands())
    for command in help_.commands():
        text = help_.help_of(command)
        drawn = [node for part in help_.parts(text) for node in help_._drawn(*part)]
        explained = " ".join(term.astext() for node in drawn for term in node.findall(help_.nodes.term))
        flags = set(re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)", text, re.M)) - {"--help", "--version"}
        assert [flag for flag in sorted(flags) if not re.search(rf"{flag}(?![a-z-])", explained)] == [], command
        told = re.sub(r"\W+", "", " ".join(node.astext() for node in drawn))
        assert re.sub(r"\W+", "", text.splitlines()[0]) in told
