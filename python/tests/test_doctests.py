"""Every example in a docstring runs."""

import doctest
import importlib
import pkgutil

import pytest

import covary

MODULES = ["covary"] + [f"covary.{module.name}" for module in pkgutil.iter_modules(covary.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
