"""Types of what people give and get, for type checkers.

A table may be an array, a frame of pandas or polars, an Arrow table, a sparse matrix of SciPy, :func:`covary.read` or
:func:`covary.observed`; no type says that, so it is Any. So are answers that are frames where the question was one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

Table = Any
Answer = Any
Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]
Weights = Union[ArrayLike, None]
Path = Union[str, os.PathLike[str]]
Seed = Union[int, np.random.RandomState, None]
Components = Union[int, float, str, None]

if TYPE_CHECKING:
    from typing_extensions import Self as Self
else:
    Self = Any
