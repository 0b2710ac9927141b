"""Rotations: loadings turned so that they can be read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from covary import _covary
from covary._input import filled, numbers
from covary._types import Seed

#: The core has one parameter; each method calls it by its own name.
_PARAMETERS = {"power": ("promax",), "gamma": ("oblimin",), "delta": ("geomin", "geomin-orthogonal")}


class Rotation:
    """A rotation with its settings, for :class:`FactorAnalysis` and :func:`rotate`.

    A name alone has the usual ones.

    Parameters
    ----------
    method : str
        Orthogonal: "varimax", "quartimax", "equamax", "parsimax", "geomin-orthogonal". Oblique: "promax",
        "oblimin" (also called "quartimin"), "geomin". Towards a matrix: "target", "procrustes". Also R's
        spellings "geominT", "geominQ".
    power : float, optional
        Of promax; 4.
    gamma : float, optional
        Of oblimin, at most 0 for a criterion that has a minimum; 0.
    delta : float, optional
        Of geomin; 0.01.
    target : array-like of shape (p, q), optional
        Of "target", NaN where a loading is free, and of "procrustes".
    oblique : bool, optional
        Whether factors may be correlated, for methods that leave it open: geomin (yes unless told), "target"
        and "procrustes" (no unless told).
    kaiser : bool, optional
        Whether rows of the loadings are brought to length 1 before and back after. On for varimax and promax,
        as in R's stats, off for the others, as in GPArotation.
    n_starts : int, optional
        How many starts, of which the best is kept: the loadings as they are, then random turns. 30 for
        geomin, otherwise 10.
    random_state : int
        Seed of the random turns.
    tol : float, optional
        Length of the projected gradient at which a descent ends; 1e-12.
    max_iter : int, optional
        Most steps of each descent; 10 000.

    Examples
    --------
    >>> from covary import Rotation
    >>> Rotation("geomin", delta=0.001, n_starts=100)
    Rotation('geomin', delta=0.001, n_starts=100)
    """

    def __init__(
        self,
        method: Any,
        *,
        power: Any = None,
        gamma: Any = None,
        delta: Any = None,
        target: Any = None,
        oblique: Any = None,
        kaiser: Any = None,
        n_starts: Any = None,
        random_state: Seed = 0,
        tol: float | None = None,
        max_iter: int | None = None,
    ) -> None:
        self.method = method
        self.power = power
        self.gamma = gamma
        self.delta = delta
        self.target = target
        self.oblique = oblique
        self.kaiser = kaiser
        self.n_starts = n_starts
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter

    def __repr__(self):
        usual = vars(Rotation(self.method))
        given = [f"{name}={value!r}" for name, value in vars(self).items() if value is not usual[name]]
        return f"Rotation({', '.join([repr(self.method), *given])})"

    def _core(self):
        """The rotation as the core takes it."""
        given = {name: getattr(self, name) for name in _PARAMETERS if getattr(self, name) is not None}
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} belong to different rotations")
        target = None if self.target is None else numbers(self.target)
        rotation = _covary.Rotation(
            self.method,
            parameter=next(iter(given.values()), None),
            target=target,
            oblique=self.oblique,
            kaiser=self.kaiser,
            starts=self.n_starts,
            seed=self.random_state,
            tolerance=self.tol,
            max_iterations=self.max_iter,
        )
        for name in given:
            if rotation.method not in _PARAMETERS[name]:
                raise ValueError(f"{name} is of {_PARAMETERS[name][0]}, not of {rotation.method}")
        return rotation


class Rotated(NamedTuple):
    """Rotated loadings; see :func:`rotate`."""

    pattern: np.ndarray
    structure: np.ndarray
    factor_correlation: np.ndarray
    rotation_matrix: np.ndarray
    explained: np.ndarray
    criterion: float
    converged: bool
    n_iter: int
    starts: np.ndarray
    agreeing: int


def rotation_of(rotation):
    """The core's rotation of a name or a :class:`Rotation`; None stays None."""
    if rotation is None:
        return None
    if isinstance(rotation, str):
        rotation = Rotation(rotation)
    if not isinstance(rotation, Rotation):
        raise ValueError(f"rotation must be a name, a covary.Rotation or None, not {rotation!r}")
    return rotation._core()


def rotate(loadings: Any, method: Any = "varimax", **options: Any) -> Rotated:
    """Turn loadings so that they can be read: those of factor analysis, of PPCA, or of anything else.

    The covariance that loadings stand for, ``loadings @ loadings.T``, does not change: it equals
    ``pattern @ factor_correlation @ pattern.T``.

    Parameters
    ----------
    loadings : array-like of shape (p, q)
        On uncorrelated factors.
    method : str or Rotation
        "varimax", "oblimin", …: see :class:`Rotation`.
    **options
        Those of :class:`Rotation`, when `method` is a name.

    Returns
    -------
    Rotated
        A named tuple: `pattern` (p, q), the weights of the factors in each feature; `structure` (p, q),
        covariances of features and factors; `factor_correlation` (q, q); `rotation_matrix` T (q, q), with
        ``structure == loadings @ T`` and ``factor_correlation == T.T @ T``; `explained` (q,), the variance
        that goes with each factor, in descending order; `criterion`, what was minimised; `converged`;
        `n_iter`; `starts`, the criterion at the end of each start; `agreeing`, how many of them ended at the
        same value. The entry of largest magnitude in each column of the pattern is positive.

    Examples
    --------
    >>> import covary
    >>> loadings = [[0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [0.5, -0.5]]
    >>> covary.rotate(loadings, "quartimax").pattern.round(4) + 0.0
    array([[0.7071, 0.    ],
           [0.7071, 0.    ],
           [0.    , 0.7071],
           [0.    , 0.7071]])
    >>> covary.rotate(loadings, "oblimin").factor_correlation.shape
    (2, 2)
    """
    if isinstance(method, str):
        method = Rotation(method, **options)
    elif options:
        raise ValueError("options belong into the Rotation")
    loadings = check_array(filled(loadings), dtype=np.float64, ensure_all_finite=False, input_name="loadings")
    return Rotated(**rotation_of(method).run(loadings))
