"""What the interactive page is told besides the model and its rows: columns, names of rows, shapes."""

from collections.abc import Mapping

import numpy as np

from covary._input import whole


def carried(X, columns, labels):
    """Columns as (name, list of numbers or texts), and the position of the one that names the rows."""
    found = [(str(name), _cells(values)) for name, values in _named(columns)]
    labels = _index(X) if labels is None else labels
    if labels is None:
        return found, None
    return [("row", [None if text is None else str(text) for text in _texts(labels)])] + found, 0


def size(image):
    """Height and width of an image."""
    if image is None:
        return None
    try:
        height, width = image
    except (TypeError, ValueError):
        raise ValueError(f"image={image!r} must be the height and width of an image, such as (28, 20)") from None
    return whole("image", height), whole("image", width)


def _named(columns):
    if columns is None:
        return []
    if hasattr(columns, "columns") and not isinstance(columns, Mapping):  # a frame of pandas or polars
        return [(name, columns[name]) for name in columns.columns]
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a mapping or a data frame, not {type(columns).__name__}")
    return columns.items()


def _index(X):
    """The index of a frame of pandas, where it says more than the number of the row."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return index


def _cells(values):
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"a column must have one dimension, not {array.ndim}")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64).tolist()
    return [None if text is None else str(text) for text in _texts(array)]


def _texts(values):
    """Values, with None for what is missing: NaN is not equal to itself."""
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return [None if value is None or (isinstance(value, float) and value != value) else value for value in values]
