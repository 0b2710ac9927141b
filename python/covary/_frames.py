"""Frames in, frames out: answers with the index and the names of what was asked, of pandas, polars or Arrow."""

import numpy as np
from sklearn.utils._set_output import _get_output_config


def framed(table, X):
    """A table (n, p) with the index and the names of X where that is a frame."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return type(X)(table, index=X.index, columns=X.columns)
    package = type(X).__module__.partition(".")[0]
    if package == "polars" and hasattr(X, "columns"):
        return type(X)(table, schema=list(X.columns))
    if package == "pyarrow" and hasattr(X, "column_names"):
        return type(X).from_arrays(list(table.T), names=X.column_names)
    return table


def in_features(estimator, table, X):
    """A table (n, p) of features as a frame, where X is one or `set_output` asks for one."""
    kind = _asked(estimator)
    return framed(table, X) if kind == "default" else _frame(kind, table, feature_names(estimator), X)


def as_asked(estimator, table, X, names):
    """A table (n, m) as a frame with these names, where `set_output` asks for one."""
    kind = _asked(estimator)
    return table if kind == "default" else _frame(kind, table, names, X)


def columns_as_asked(estimator, columns, X):
    """Arrays (n,) by name, or the frame that `set_output` asks for, which is indexed by name too."""
    kind = _asked(estimator)
    if kind == "default":
        return columns
    return _frame(kind, np.column_stack(list(columns.values())), list(columns), X)


def feature_names(estimator):
    """Names of the features, those of scikit-learn where they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else list(names)


def _asked(estimator):
    """What `set_output`, or scikit-learn's configuration, wants of this estimator."""
    return _get_output_config("transform", estimator)["dense"]


def _frame(kind, table, names, X):
    if kind == "polars":
        import polars

        return polars.DataFrame(table, schema=names, orient="row")
    import pandas

    return pandas.DataFrame(table, columns=names, index=X.index if hasattr(X, "iloc") else None)
