"""FastICA with a contrast function that is given in Python.

The function sees the sources of all rows at once, which is scikit-learn's contract; so the search is here, on whitened rows
in memory, and the core makes a model of what it finds.
"""

import numpy as np


def _evaluated(function, sources):
    """g of each source and the mean of its derivative along the last axis."""
    found = function(sources)
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError("fun must return two things: g of its argument, and the mean of its derivative along the last axis")
    g, slope = np.asarray(found[0], dtype=np.float64), np.asarray(found[1], dtype=np.float64)
    if g.shape != sources.shape or slope.shape != sources.shape[:-1]:
        raise ValueError(
            f"fun returned arrays of shapes {g.shape} and {slope.shape} for sources of shape {sources.shape}; g must have "
            f"that shape, and its derivative be averaged along the last axis, {sources.shape[:-1]}"
        )
    if not (np.isfinite(g).all() and np.isfinite(slope).all()):
        raise ValueError("fun returned NaN or infinity")
    return g, slope


def _orthogonal(w):
    """The nearest orthogonal matrix."""
    left, _, right = np.linalg.svd(w)
    return left @ right


def all_at_once(u, function, start, tol, limit):
    """Unmixing matrix (q, q) of whitened rows (n, q), the number of steps, and whether the last was small [H99]."""
    w = _orthogonal(start)
    for step in range(1, limit + 1):
        g, slope = _evaluated(function, w @ u.T)
        after = _orthogonal(g @ u / len(u) - slope[:, None] * w)
        turned = np.max(np.abs(np.abs(np.einsum("ij,ij->i", after, w)) - 1.0))
        w = after
        if turned < tol:
            return w, step, True
    return w, limit, False


def one_by_one(u, function, start, tol, limit):
    """The same, one source after the other; steps are those of the source that took most."""
    q = u.shape[1]
    found, most, all_converged = np.zeros((q, q)), 0, True
    for k in range(q):
        w = start[k] / np.linalg.norm(start[k])
        converged = False
        for step in range(1, limit + 1):
            g, slope = _evaluated(function, u @ w)
            after = g @ u / len(u) - slope * w
            after -= found[:k].T @ (found[:k] @ after)
            after /= np.linalg.norm(after)
            turned = abs(abs(after @ w) - 1.0)
            w = after
            if turned < tol:
                converged = True
                break
        found[k], most, all_converged = w, max(most, step), all_converged and converged
    return found, most, all_converged
