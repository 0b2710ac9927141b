"""Whatever people call X, as rows that the core can read: looked at where it lies if possible."""

from __future__ import annotations

from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from covary._covary import Rows
from covary._file import File

_REALS = [np.float64, np.float32]
_LARGEST_SEED = 2**32
_LARGEST_COUNT = 2**63 - 1  # beyond any memory
_FEATURES = ("n_features_in_", "feature_names_in_")


class Reader(BaseEstimator):
    """What `rows_of` wants to tell about features, for functions that fit nothing."""

    def __init__(self, n_threads=None):
        self.n_threads = n_threads


class Observed:
    """A sparse matrix of which only the stored cells were seen; see :func:`observed`."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @property
    def shape(self) -> Any:
        return self.matrix.shape

    @property
    def dtype(self) -> Any:
        return self.matrix.dtype

    def __repr__(self):
        n, p = self.shape
        return f"covary.observed: {self.matrix.nnz} cells of {n} rows and {p} features were seen"


def observed(matrix: Any) -> Observed:
    """Mark a sparse matrix as *only the stored cells were seen*.

    A plain sparse matrix means that the cells which are not stored are 0 (word counts). Ratings are another
    matter: a film that nobody rated did not get 0 stars.

    Parameters
    ----------
    matrix : scipy sparse matrix or array of shape (n, p)
        A stored 0 is a cell that was seen and is 0; a stored NaN was not seen.

    Returns
    -------
    Observed
        To be given to `fit` and every question in place of a table.

    Examples
    --------
    >>> import covary, scipy.sparse
    >>> ratings = scipy.sparse.csr_array(([5.0, 3.0, 4.0], ([0, 0, 1], [0, 2, 1])), shape=(2, 3))
    >>> covary.observed(ratings)
    covary.observed: 3 cells of 2 rows and 3 features were seen
    """
    csr = matrix.tocsr()
    if not csr.has_sorted_indices:
        csr = csr.sorted_indices()
    return Observed(csr)


def rows_of(estimator, X, *, sample_weight=None, reset=False):
    """Rows of X for this estimator.

    With `reset` they decide about its features (`n_features_in_`, `feature_names_in_`), otherwise they must
    have them.
    """
    X = filled(X)
    if _is_lazy(X):
        raise ValueError(f"X is a {type(X).__name__}, whose rows are not there yet; give X.collect()")
    if isinstance(X, File):
        return _file(estimator, X, sample_weight, reset)
    if isinstance(X, Observed):
        _features(estimator, None, X.shape[1], reset)
        return _compressed(estimator, Rows.observed, X.matrix, sample_weight)
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
        rows = Rows.arrow(_table(X), weights_of(sample_weight, _n_rows(X)))
        _features(estimator, rows.names, rows.n_features, reset)
        return rows
    return _array(estimator, X, sample_weight, reset)


def is_single(X, rows):
    """Whether X, of which these are the rows, holds single precision, so that answers should too."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):  # of pandas, also with its own missing values
        return all(str(dtype).lower() == "float32" for dtype in np.atleast_1d(X.dtypes))
    return rows.single_precision or getattr(X, "dtype", None) == np.float32


def filled(X):
    """A masked array with NaN for its masked cells, which are missing values; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind in "biu" or X.dtype == np.float16:
        X = X.astype(np.float64)
    return X.filled(np.nan)


def numbers(given):
    """What is given as an array of float64, with NaN for masked cells."""
    return np.asarray(filled(given), dtype=np.float64)


@contextmanager
def features_restored_on_failure(estimator):
    """What an estimator knows of its features is as it was before, when something fails after `rows_of`."""
    before = {name: value for name, value in vars(estimator).items() if name in _FEATURES}
    try:
        yield
    except BaseException:
        for name in _FEATURES:
            vars(estimator).pop(name, None)
        vars(estimator).update(before)
        raise


def _array(estimator, X, sample_weight, reset):
    # The core looks for infinite cells while it works: a pass of its own for that would cost half a fit.
    try:
        X = validate_data(
            estimator, X, accept_sparse="csr", dtype=_REALS, ensure_all_finite=False, reset=reset
        )
    except (TypeError, ValueError) as error:
        _name_text(X, error)
        raise
    if sample_weight is not None:
        # It would refuse zero weights if it were asked to; the core knows what to do with them.
        sample_weight = _check_sample_weight(weights_of(sample_weight, X.shape[0]), X, dtype=np.float64)
    if hasattr(X, "indptr"):
        return _compressed(estimator, Rows.sparse, X, sample_weight)
    if not X.flags.aligned:
        X = X.copy()
    return Rows.dense(X, sample_weight, _names(estimator))


def _compressed(estimator, make, csr, sample_weight):
    return make(
        csr.indptr.astype(np.int64),
        csr.indices.astype(np.uint32),
        csr.data.astype(np.float64),
        csr.shape[1],
        weights_of(sample_weight, csr.shape[0]),
        _names(estimator),
    )


def _file(estimator, file, sample_weight, reset):
    if sample_weight is not None:
        raise ValueError("the weights of a file are a column of it: covary.read(path, weights='column')")
    names = file.feature_names if file.named else None
    if reset:
        _features(estimator, names, len(file.feature_names), reset)
        return file.rows(None, estimator.n_threads)
    # Like the command: the model's features are looked up by name, wherever they stand in the file.
    return file.rows(_names(estimator) if file.named else None, estimator.n_threads)


def weights_of(sample_weight, n_rows):
    """Weights as an array, one for each row; a number is the weight of all."""
    if sample_weight is None:
        return None
    if np.ma.is_masked(sample_weight):
        first = int(np.argmax(np.ma.getmaskarray(sample_weight)))
        raise ValueError(f"sample_weight[{first}] is masked; give it a weight, 0 if the row does not count")
    weights = np.asarray(sample_weight, dtype=np.float64, order="C")
    if weights.ndim == 0 and n_rows is not None:
        return np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar: one for each row, but their shape is {weights.shape}"
        )
    return weights


def _n_rows(X):
    """Number of rows of a frame, when it tells."""
    return getattr(X, "shape", (None,))[0]


def _is_lazy(X):
    """Whether X is a frame of polars that has not been computed."""
    return type(X).__module__.startswith("polars.") and hasattr(X, "collect_schema") and hasattr(X, "collect")


def _table(X):
    """Something that speaks Arrow as it can be passed on.

    Columns of polars get a type that Arrow has: those that hold nothing, and whole numbers of 128 bits.
    """
    if not type(X).__module__.startswith("polars.") or not hasattr(X, "schema"):
        return X
    import polars

    unknown = ["Null", "Int128", "UInt128"]
    return X.cast({name: polars.Float64 for name, kind in X.schema.items() if str(kind) in unknown})


def _name_text(X, error):
    """Names the column of a frame whose cells are not numbers, when that is the trouble."""
    if not hasattr(X, "iloc") or not hasattr(X, "columns"):
        return
    for j, name in enumerate(X.columns):
        for cell in X.iloc[:, j].dropna():
            try:
                float(cell)
            except (TypeError, ValueError):
                raise ValueError(
                    f"column {str(name)!r} is not numeric: it holds {cell!r}; leave it out, or encode it"
                ) from error


def _names(estimator):
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _features(estimator, names, n_features, reset):
    """What `validate_data` does, for rows that it does not know."""
    if reset:
        estimator.n_features_in_ = n_features
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    expected = _names(estimator)
    if names is not None and expected is not None and names != expected:
        first = next(i for i, pair in enumerate(zip(names, expected)) if pair[0] != pair[1])
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"feature {first} is '{names[first]}' where '{expected[first]}' is expected"
        )


def seed_of(random_state):
    """A seed of the core's generator: an integer is itself, a generator is asked for one."""
    if isinstance(random_state, (int, np.integer)):
        return whole("random_state", random_state, largest=2**64 - 1)
    return int(check_random_state(random_state).randint(_LARGEST_SEED, dtype=np.uint64))


def fixed_seed_of(random_state):
    """The same, with 0 for None: estimators that draw alike in every run."""
    return 0 if random_state is None else seed_of(random_state)


def real(name, value):
    """A number, as float."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"{name}={value!r} must be a number")
    return float(value)


def whole(name, value, largest=_LARGEST_COUNT):
    """A whole number that is not negative; one beyond the largest is that."""
    if not isinstance(value, Integral) or value < 0:
        raise ValueError(f"{name}={value!r} must be a whole number that is not negative")
    return min(int(value), largest)
