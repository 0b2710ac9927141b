"""The compiled half: not for use on its own."""

from collections.abc import Callable
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Batches",
    "Evidence",
    "File",
    "Kept",
    "Model",
    "Request",
    "Rotation",
    "Rows",
    "__version__",
    "adequacy",
    "command",
    "fit",
    "fit_elsewhere",
    "merge_evidence",
    "most_factors",
    "select",
    "select_groups",
    "select_kernel",
    "step",
]

__version__: str

_Progress = Callable[[int | None, int | None, int | None, float | None, float | None], object]

@final
class Rows:
    @staticmethod
    def dense(
        array: NDArray[Any], weights: NDArray[np.float64] | None = None, names: list[str] | None = None
    ) -> Rows: ...
    @staticmethod
    def sparse(
        starts: NDArray[np.int64],
        columns: NDArray[np.uint32],
        values: NDArray[np.float64],
        n_features: int,
        weights: NDArray[np.float64] | None = None,
        names: list[str] | None = None,
    ) -> Rows: ...
    @staticmethod
    def observed(
        starts: NDArray[np.int64],
        columns: NDArray[np.uint32],
        values: NDArray[np.float64],
        n_features: int,
        weights: NDArray[np.float64] | None = None,
        names: list[str] | None = None,
    ) -> Rows: ...
    @staticmethod
    def arrow(table: Any, weights: NDArray[np.float64] | None = None) -> Rows: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def single_precision(self) -> bool: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_rows(self) -> int | None: ...
    @property
    def n_counted(self) -> int | None: ...

@final
class File:
    def __new__(
        cls,
        path: str | PathLike[str],
        columns: list[str] | None = None,
        drop: list[str] | None = None,
        weights: str | None = None,
        memory: int | None = None,
        header: bool | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        na: list[str] = ...,
        encoding: str | None = None,
        sheet: str | None = None,
    ) -> File: ...
    def rows(self, features: list[str] | None = None, threads: int | None = None) -> Rows: ...
    @property
    def header_guess(self) -> str | None: ...
    @property
    def recognised(self) -> list[tuple[str, str]]: ...
    @property
    def not_numeric(self) -> list[str]: ...
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def feature_names(self) -> list[str]: ...
    @property
    def named(self) -> bool: ...
    @property
    def n_rows(self) -> int | None: ...

@final
class Request:
    def __new__(
        cls,
        kind: str,
        components: int | float | str,
        *,
        scale: str = "none",
        start: Model | None = None,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        **keywords: Any,
    ) -> Request: ...

@final
class Rotation:
    def __new__(
        cls,
        method: str,
        *,
        parameter: float | None = None,
        target: NDArray[np.float64] | None = None,
        oblique: bool | None = None,
        kaiser: bool | None = None,
        starts: int | None = None,
        seed: int = 0,
        tolerance: float | None = None,
        max_iterations: int | None = None,
    ) -> Rotation: ...
    @property
    def method(self) -> str: ...
    @property
    def parameter(self) -> float | None: ...
    @property
    def kaiser(self) -> bool: ...
    def run(self, loadings: NDArray[np.float64]) -> dict[str, Any]: ...

@final
class Batches:
    def __new__(cls, n_features: int) -> Batches: ...
    @staticmethod
    def of_covariance(
        covariance: NDArray[np.float64], n_rows: int, mean: NDArray[np.float64] | None = None
    ) -> Batches: ...
    def adequacy(self, names: list[str] | None = None) -> dict[str, Any]: ...
    def update(self, rows: Rows, request: Request, progress: _Progress | None = None) -> None: ...
    def merge(self, other: Batches) -> None: ...
    def fit(self, request: Request, names: list[str] | None = None) -> Model: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_counted(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def __copy__(self) -> Batches: ...
    def __getnewargs__(self) -> tuple[int]: ...
    def __getstate__(self) -> tuple[bytes, tuple[bytes, str] | None]: ...
    def __setstate__(self, state: tuple[bytes, tuple[bytes, str] | None]) -> None: ...

@final
class Kept:
    @staticmethod
    def from_bytes(bytes: bytes) -> Kept: ...
    def to_bytes(self) -> bytes: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...

@final
class Model:
    @staticmethod
    def given(
        mean: NDArray[np.float64],
        loadings: NDArray[np.float64],
        noise_variance: float | NDArray[np.float64],
        names: list[str] | None = None,
    ) -> Model: ...
    @staticmethod
    def given_factors(
        mean: NDArray[np.float64],
        pattern: NDArray[np.float64],
        noise_variance: NDArray[np.float64],
        correlation: NDArray[np.float64] | None = None,
        names: list[str] | None = None,
    ) -> Model: ...
    @staticmethod
    def given_bayes(
        mean: NDArray[np.float64],
        loadings: NDArray[np.float64],
        noise_variance: float,
        known: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        names: list[str] | None = None,
    ) -> Model: ...
    @staticmethod
    def given_mixture(
        weights: NDArray[np.float64],
        means: NDArray[np.float64],
        loadings: NDArray[np.float64],
        noise_variance: NDArray[np.float64],
        names: list[str] | None = None,
    ) -> Model: ...
    def component(self, k: int) -> Model: ...
    def mixture_posterior(
        self, rows: Rows, threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], list[NDArray[np.float64]]]: ...
    @staticmethod
    def given_ica(
        mean: NDArray[np.float64],
        mixing: NDArray[np.float64],
        noise_variance: NDArray[np.float64],
        names: list[str] | None = None,
    ) -> Model: ...
    @staticmethod
    def given_robust(
        mean: NDArray[np.float64],
        loadings: NDArray[np.float64],
        noise_variance: NDArray[np.float64],
        nu: float,
        names: list[str] | None = None,
    ) -> Model: ...
    def row_weights(self, rows: Rows, threads: int | None = None) -> NDArray[np.float64] | None: ...
    def tables(self) -> dict[str, NDArray[np.float64]]: ...
    def standard_errors(self, threads: int | None = None) -> dict[str, Any]: ...
    def intervals(
        self, level: float | None = None, threads: int | None = None
    ) -> dict[str, NDArray[np.float64]]: ...
    def scores(
        self, rows: Rows, method: str, single_precision: bool = False, threads: int | None = None
    ) -> NDArray[Any]: ...
    def rotated(self, rotation: Rotation | None = None) -> Model: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def load(path: str | PathLike[str]) -> Model: ...
    def save(self, path: str | PathLike[str], whiten: bool = False) -> None: ...
    def page(
        self,
        rows: Rows,
        path: str | PathLike[str],
        columns: list[tuple[str, list[float] | list[str | None]]],
        id: int | None = None,
        most_rows: int | None = None,
        image: tuple[int, int] | None = None,
        stick: list[tuple[str, str]] | None = None,
        title: str | None = None,
        seed: int = 0,
        whiten: bool = False,
        threads: int | None = None,
    ) -> None: ...
    @property
    def whiten(self) -> bool: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_components(self) -> int: ...
    @property
    def names(self) -> list[str] | None: ...
    @property
    def mean(self) -> NDArray[np.float64]: ...
    @property
    def loadings(self) -> NDArray[np.float64]: ...
    @property
    def components(self) -> NDArray[np.float64]: ...
    @property
    def noise_variance(self) -> float | NDArray[np.float64]: ...
    @property
    def explained_variance(self) -> NDArray[np.float64]: ...
    @property
    def explained_variance_ratio(self) -> NDArray[np.float64]: ...
    @property
    def singular_values(self) -> NDArray[np.float64]: ...
    @property
    def log_likelihood(self) -> float | None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def scale(self) -> NDArray[np.float64] | None: ...
    @property
    def report(self) -> dict[str, Any]: ...
    def describe(self) -> dict[str, Any]: ...
    @property
    def seconds(self) -> float: ...
    def transform(
        self, rows: Rows, whiten: bool = False, single_precision: bool = False, threads: int | None = None
    ) -> NDArray[Any]: ...
    def posterior(
        self, rows: Rows, threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def inverse_transform(
        self,
        latent: NDArray[np.float64],
        whiten: bool = False,
        single_precision: bool = False,
        threads: int | None = None,
    ) -> NDArray[Any]: ...
    def reconstruct(
        self, rows: Rows, kind: str, single_precision: bool = False, threads: int | None = None
    ) -> NDArray[Any]: ...
    def assign(self, rows: Rows, threads: int | None = None) -> NDArray[np.int64]: ...
    def nearest(
        self, rows: Rows, threads: int | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
    def novelty(self, rows: Rows, threads: int | None = None) -> NDArray[np.float64]: ...
    def coordinates_of_points(self, threads: int | None = None) -> NDArray[np.float64]: ...
    def inverse_transform_with_std(
        self, latent: NDArray[np.float64], threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def place(
        self, rows: Rows, threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]: ...
    def ridge_weights(self, threads: int | None = None) -> NDArray[np.float64]: ...
    def after_batch(self, rows: Rows, threads: int | None = None) -> Model: ...
    def probabilities(self, rows: Rows, threads: int | None = None) -> NDArray[np.float64]: ...
    def score_samples(self, rows: Rows, threads: int | None = None) -> NDArray[np.float64]: ...
    def impute(self, rows: Rows, single_precision: bool = False, threads: int | None = None) -> NDArray[Any]: ...
    def impute_with_std(
        self, rows: Rows, single_precision: bool = False, threads: int | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def sample_missing(
        self, rows: Rows, n_draws: int, seed: int, threads: int | None = None
    ) -> NDArray[np.float64]: ...
    def predict_cells(
        self, rows: Rows, cells: list[tuple[int, int]], threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def outliers(self, rows: Rows, threads: int | None = None) -> dict[str, NDArray[np.float64]]: ...
    def contributions(self, rows: Rows, threads: int | None = None) -> dict[str, NDArray[np.float64]]: ...
    def limits(
        self, level: float, rows: Rows | None = None, threads: int | None = None
    ) -> dict[str, NDArray[np.float64]]: ...
    def conditional(
        self, row: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]: ...
    def marginal(self, features: list[int]) -> Model: ...
    def covariance(self) -> NDArray[np.float64]: ...
    def precision(self) -> NDArray[np.float64]: ...
    def sample(self, n: int, seed: int, threads: int | None = None) -> NDArray[np.float64]: ...

@final
class Evidence:
    def __new__(cls, task: bytes, first_row: int = 0) -> Evidence: ...
    def add(self, rows: Rows) -> None: ...
    def to_bytes(self) -> bytes: ...

def fit_elsewhere(
    request: Request,
    carry: Callable[[bytes, bool], bytes],
    n_features: int,
    n_rows: int | None = None,
    names: list[str] | None = None,
    observed: bool = False,
) -> Model: ...
def merge_evidence(parts: list[bytes]) -> bytes: ...
def fit(rows: Rows, request: Request, progress: _Progress | None = None) -> Model: ...
def command(argv: list[str]) -> int: ...
def most_factors(n_features: int) -> int: ...
def adequacy(
    covariance: NDArray[np.float64], n_rows: float | None = None, names: list[str] | None = None
) -> str: ...
def select_groups(
    model: str,
    rows: Rows,
    *,
    groups: tuple[int, int] | None = None,
    noise: str | None = None,
    max: int | None = None,
    folds: int | None = None,
    cells: bool = False,
    seed: int = 0,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> dict[str, Any]: ...
def select_kernel(
    rows: Rows,
    *,
    kernel: str = "rbf",
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    max: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> dict[str, Any]: ...
def select(
    rows: Rows,
    *,
    max: int | None = None,
    folds: int | None = None,
    cells: bool = False,
    seed: int = 0,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> dict[str, Any]: ...
def step(
    rows: Rows,
    request: Request,
    model: Model | None = None,
    kept: Kept | None = None,
    progress: _Progress | None = None,
) -> tuple[Model, Kept]: ...
