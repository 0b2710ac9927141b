"""What pictures read from estimators and tables, of covary and of scikit-learn."""

import numpy as np
from sklearn.utils.validation import check_is_fitted


def fitted(estimator, *needed, picture):
    """The estimator, if it is fitted and has one of these attributes or methods."""
    check_is_fitted(estimator)
    if needed and not any(hasattr(estimator, name) for name in needed):
        raise TypeError(f"{picture} needs an estimator with {' or '.join(needed)}, which {type(estimator).__name__} has not")
    return estimator


def rows_for(estimator, X):
    """The features of the estimator, by name where both have names, so that a frame may have other columns too."""
    names = getattr(estimator, "feature_names_in_", None)
    columns = getattr(X, "columns", None)
    if names is None or columns is None or not set(names) <= set(columns) or len(columns) == len(names):
        return X
    return X.select(list(names)) if hasattr(X, "select") and not hasattr(X, "iloc") else X[list(names)]


def dense(X):
    """A table as numbers, with NaN where cells are missing."""
    if np.ma.isMaskedArray(X):
        return X.astype(float).filled(np.nan)
    if hasattr(X, "to_numpy"):
        return np.asarray(X.to_numpy(), dtype=float)
    if hasattr(X, "toarray"):
        return np.asarray(X.toarray(), dtype=float)
    return np.asarray(X, dtype=float)


def feature_names(estimator=None, X=None, count=None):
    """Names of the features: those of the fit, of the frame, or x1, x2, …"""
    for names in (getattr(estimator, "feature_names_in_", None), getattr(X, "columns", None)):
        if names is not None and (count is None or len(names) == count):
            return [str(name) for name in names]
    count = estimator.n_features_in_ if count is None else count
    return [f"x{j + 1}" for j in range(count)]


def row_names(X, count):
    """The index of a frame, or numbers from 0 as NumPy counts."""
    index = getattr(X, "index", None)
    return [str(name) for name in index] if index is not None and not callable(index) else [str(i) for i in range(count)]


def component_names(estimator, count, share=True):
    """z1 (46.2 %), …: f of factors, s of sources, PC of scikit-learn's PCA."""
    kind = type(estimator).__name__
    own = type(estimator).__module__.startswith("covary")
    letter = {"FactorAnalysis": "f", "ICA": "s", "FastICA": "s"}.get(kind, "z" if own else "PC")
    ratio = getattr(estimator, "explained_variance_ratio_", None) if share else None
    known = ratio is not None and len(ratio) == count
    return [f"{letter}{k + 1}" + (f" ({100 * ratio[k]:.1f} %)" if known else "") for k in range(count)]


def shown_loadings(estimator, standardise, picture):
    """Loadings (p, q), and whether they are divided by the standard deviations of the features.

    By default they are where features were scaled for the fit, and of factors: their units say nothing then.
    """
    loadings = loadings_of(estimator, picture)
    if standardise is None:
        scaled = getattr(estimator, "scale_", None) is not None
        standardise = scaled or type(estimator).__name__ == "FactorAnalysis"
    return (loadings / deviations_of_features(estimator, picture)[:, None] if standardise else loadings), bool(standardise)


def deviations_of_features(estimator, picture):
    """Standard deviation of each feature under the model, infinite where there is none."""
    fitted(estimator, "get_covariance", picture=picture)
    deviations = np.sqrt(np.diag(estimator.get_covariance()))
    return np.where(deviations > 0, deviations, np.inf)


def loadings_of(estimator, picture):
    """Loadings (p, q): W, the pattern of factors, the mixing of sources, or of scikit-learn's PCA U√λ."""
    fitted(estimator, "loadings_", "mixing_", "components_", picture=picture)
    for name in ("loadings_", "mixing_"):
        if hasattr(estimator, name):
            return one_table(getattr(estimator, name), estimator, picture)
    lengths = np.sqrt(getattr(estimator, "explained_variance_", 1.0))
    return one_table((estimator.components_.T * lengths), estimator, picture)


def one_table(loadings, estimator, picture):
    """The loadings, unless there are several tables of them."""
    loadings = np.asarray(loadings)
    if loadings.ndim != 2:
        kind = type(estimator).__name__
        raise TypeError(f"{picture} needs one table of loadings, and {kind} has one in each group: use component(k)")
    return loadings


def is_classical(estimator):
    """Whether coordinates are projections with the variances of the components: PCA, of covary or scikit-learn."""
    return type(estimator).__name__ in ("PCA", "IncrementalPCA", "TruncatedSVD")


def correlations_of(estimator, picture):
    """Correlations of features and components (p, q)."""
    loadings = loadings_of(estimator, picture)
    if is_classical(estimator):
        loadings = estimator.components_.T * np.sqrt(estimator.explained_variance_)
    phi = getattr(estimator, "factor_correlation_", None)
    structure = loadings if phi is None else loadings @ phi
    return structure / deviations_of_features(estimator, picture)[:, None]


def pair(components, count):
    """Two components, counted from 0."""
    first, second = (int(k) for k in components)
    if not (0 <= first < count and 0 <= second < count):
        raise ValueError(f"components={components!r} must be two numbers from 0 to {count - 1}: the model has {count}")
    return first, second


def colours_of(color, X, count):
    """What colours rows: a column of the frame by its name, or one value for each row; with what it is called."""
    if color is None:
        return None, None
    if isinstance(color, str):
        if color not in list(getattr(X, "columns", [])):
            raise ValueError(f"color={color!r} is not a column of X; give one, or a value for each row")
        values, name = X[color], color
    else:
        values, name = color, getattr(color, "name", None)
    values = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if values.shape != (count,):
        raise ValueError(f"color has shape {values.shape}, where X has {count} rows")
    return values, name
