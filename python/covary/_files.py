"""Files: models that the command wrote or will read, and rows that do not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Real
from typing import Any

from covary._covary import Model
from covary._file import File
from covary._questions import estimator_class
from covary._types import Path
from covary._warn import warn


def load(path: Path) -> Any:
    """Read a model file, written by `save` or by the command ``covary fit -o``.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    PPCA, PCA, FactorAnalysis, BayesianPCA or RobustPPCA
        Fitted.

    Examples
    --------
    >>> import os, tempfile
    >>> import covary
    >>> model = covary.PPCA.from_parameters(mean=[0.0, 1.0], loadings=[[1.0], [2.0]], noise_variance=0.5)
    >>> path = os.path.join(tempfile.mkdtemp(), "two.covary")
    >>> model.save(path)
    >>> covary.load(path).mean_
    array([0., 1.])
    """
    model = Model.load(os.fspath(path))
    return estimator_class(model)._of(model)


def read(
    path: Path,
    *,
    columns: list[str] | None = None,
    drop: list[str] | None = None,
    weights: str | None = None,
    memory: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    na: str | float | Iterable[str | float] = (),
    encoding: str | None = None,
    sheet: str | int | None = None,
) -> File:
    """Open a file of rows, to be given to `fit` and every question in place of an array.

    The file is loaded when it fits; otherwise it is read in chunks, in as many passes as the method needs:
    one for complete rows.

    Parameters
    ----------
    path : str or path-like
        By its ending: .csv, .tsv (also .gz and .zst), .parquet, .arrow or .feather, .npy, .xlsx or .ods. An empty
        cell, NA, N/A, #N/A, NaN and null are missing values. Columns that are not numeric are left out;
        `not_numeric` of the result names them.
    columns : list of str, optional
        Only these columns, in this order.
    drop : list of str, optional
        Not these.
    weights : str, optional
        The column that holds the weights of the rows.
    memory : int, optional
        Bytes that a fit may take in all; a share of the machine's memory by default.
    header : bool, optional
        Whether the first line of a text file holds names. By default that is guessed, with a warning where it
        is not obvious.
    delimiter : str, optional
        What separates the cells of a text file: a mark such as ``";"``, ``"tab"`` or ``"space"``. By default it is
        recognised, with a warning where the ending promises another one.
    decimal : {".", ","}, optional
        What marks decimals in a text file. By default it is recognised, with a warning where it is a comma.
    na : str, number, or list of them, optional
        What stands for a missing value beside the words above, such as ``["?", -999]``.
    encoding : str, optional
        How the letters of a text file are encoded, such as ``"latin-1"`` or ``"utf-16"``. By default it is
        recognised, with a warning where it is not UTF.
    sheet : str or int, optional
        The sheet of a spreadsheet, by name or by number from 1 on. By default the first, with a warning where
        there are others.

    Returns
    -------
    File
        With `feature_names`, `not_numeric` and, where they are known before reading, `n_rows`.

    Examples
    --------
    >>> import os, tempfile
    >>> import covary
    >>> path = os.path.join(tempfile.mkdtemp(), "three.csv")
    >>> _ = open(path, "w").write("name,a,b\\nx,1,2\\ny,3,3\\nz,5,1\\n")
    >>> rows = covary.read(path)
    >>> rows.feature_names, rows.not_numeric, rows.n_rows
    (['a', 'b'], ['name'], 3)
    >>> covary.PPCA(1).fit(rows).mean_
    array([3., 2.])

    A file with semicolons and decimal commas; without the keywords they would be recognised, with a warning:

    >>> _ = open(path, "w").write("a;b\\n1,5;2\\n3,5;3\\n2,5;1\\n")
    >>> covary.PPCA(1).fit(covary.read(path, delimiter=";", decimal=",")).mean_
    array([2.5, 2. ])
    """
    words = [na] if isinstance(na, (str, Real)) else na
    file = File(
        os.fspath(path),
        columns=columns,
        drop=drop,
        weights=weights,
        memory=memory,
        header=header,
        delimiter=delimiter,
        decimal=decimal,
        na=[str(word) for word in words],
        encoding=encoding,
        sheet=None if sheet is None else str(sheet),
    )
    for what, otherwise in file.recognised:
        warn(f"{file.path}: {what}; {otherwise}", UserWarning)
    if file.header_guess is not None:
        warn(f"{file.path}: {file.header_guess}; header=True or header=False says which", UserWarning)
    return file
