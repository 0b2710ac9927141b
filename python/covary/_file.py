"""A table in a file, which is read in parts whenever a fit or a question passes over it."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from covary import _covary
from covary._types import Path


class File:
    """Rows in a file; see :func:`covary.read`, which opens one.

    It can be given to several threads, and to other processes (it pickles): they open the file by its path, with the same
    options.

    Attributes
    ----------
    path : pathlib.Path
    feature_names : list of str
        Names of the columns that are modelled.
    named : bool
        Whether the file has names for them.
    n_rows : int or None
        Where it is known before reading.
    not_numeric : list of str
        Columns that are left out, because they are not numeric.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._opened = _covary.File(os.fspath(path), **options)
        # Another process may work in another folder.
        self._again = (os.path.abspath(path), options)

    @property
    def path(self) -> Any:
        return pathlib.Path(self._opened.path)

    @property
    def feature_names(self) -> Any:
        return self._opened.feature_names

    @property
    def named(self) -> Any:
        return self._opened.named

    @property
    def n_rows(self) -> Any:
        return self._opened.n_rows

    @property
    def not_numeric(self) -> Any:
        return self._opened.not_numeric

    @property
    def header_guess(self) -> Any:
        """What was guessed of the first line, where that is not obvious."""
        return self._opened.header_guess

    @property
    def recognised(self) -> Any:
        """What was found of a text or a spreadsheet that nobody said, and the argument that says it."""
        return self._opened.recognised

    def rows(self, features: Any = None, threads: Any = None) -> Any:
        """The rows as the core reads them, for these features of a model."""
        return self._opened.rows(features, threads)

    def __reduce__(self):
        return _opened_again, self._again

    def __repr__(self):
        return repr(self._opened)


def _opened_again(path, options):
    return File(path, **options)
