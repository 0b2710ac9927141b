"""The same rows in every form that people have them in."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from support import low_rank

import covary

NAMES = [f"c{j}" for j in range(6)]


@pytest.fixture(scope="module")
def X():
    return low_rank(200, 6, 2)


@pytest.fixture(scope="module")
def model(X):
    return covary.PPCA(2).fit(X)


class Capsule:
    """Something of which nothing is known but that it speaks Arrow."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def layouts(X):
    wide = np.repeat(X, 3, axis=1)
    backwards = np.ascontiguousarray(X[::-1, ::-1])
    odd = np.zeros(len(X), dtype=[("pad", "i1"), ("x", "f8", X.shape[1])])
    odd["x"] = X
    yield "C", X
    yield "Fortran", np.asfortranarray(X)
    yield "every third column", wide[:, ::3]
    yield "every other row", np.repeat(X, 2, axis=0)[::2]
    yield "backwards", backwards[::-1, ::-1]
    yield "not aligned", odd["x"]
    yield "big-endian", X.astype(">f8")
    yield "list", X.tolist()
    yield "objects", X.astype(object)
    yield "matrix of sparse kind", sparse.csr_array(X)


def test_any_order_and_kind_of_array(X, model, tmp_path):
    stored = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=X.shape)
    stored[:] = X
    readonly = X.copy()
    readonly.flags.writeable = False
    for name, Y in [*layouts(X), ("memory map", stored), ("read-only", readonly)]:
        ours = covary.PPCA(2).fit(Y)
        np.testing.assert_allclose(ours.get_covariance(), model.get_covariance(), rtol=1e-11, err_msg=name)
        np.testing.assert_allclose(ours.transform(Y), model.transform(X), atol=1e-9, err_msg=name)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.bool_, np.float16, np.float32])
def test_any_number_type(dtype):
    X = np.maximum(np.random.default_rng(0).normal(size=(100, 4)) * 10, 0).astype(dtype)
    ours, double = covary.PPCA(2).fit(X), covary.PPCA(2).fit(X.astype(float))
    scale = double.get_covariance().max()
    np.testing.assert_allclose(ours.get_covariance(), double.get_covariance(), atol=1e-6 * scale)


def frames(X):
    df = pd.DataFrame(X, columns=NAMES)
    yield df
    yield df.convert_dtypes()
    yield pl.from_pandas(df)
    yield pa.Table.from_pandas(df)
    yield pa.table(df).to_reader()
    yield Capsule(pa.Table.from_pandas(df))


@pytest.mark.parametrize("which", range(6))
def test_frames_keep_their_names(X, model, which):
    ours = covary.PPCA(2).fit(list(frames(X))[which])
    assert list(ours.feature_names_in_) == NAMES
    np.testing.assert_allclose(ours.get_covariance(), model.get_covariance(), rtol=1e-12)
    np.testing.assert_allclose(ours.transform(list(frames(X))[which]), model.transform(X), atol=1e-10)
    np.testing.assert_allclose(ours.marginal(["c4", "c1"]).mean_, model.mean_[[4, 1]])


@pytest.mark.parametrize("which", [0, 2, 3, 5])
def test_a_frame_with_other_names_is_refused(X, which):
    ours = covary.PPCA(2).fit(list(frames(X))[which])
    other = pd.DataFrame(X, columns=[*NAMES[:5], "else"])
    for frame in (other, pl.from_pandas(other), pa.Table.from_pandas(other)):
        with pytest.raises(ValueError, match="feature names should match"):
            ours.transform(frame)
    with pytest.raises(ValueError, match="X has 5 features, but PPCA is expecting 6"):
        ours.transform(pa.table({name: X[:, 0] for name in NAMES[:5]}))


def test_nulls_are_holes(model):
    columns = {name: [1.0, None, 3.0] for name in NAMES}
    ints = {name: [1, None, 3] for name in NAMES}
    expected = model.score_samples(np.array([[1.0] * 6, [np.nan] * 6, [3.0] * 6]))
    assert expected[1] == 0.0
    fitted = covary.PPCA.from_parameters(
        mean=model.mean_, loadings=model.loadings_, noise_variance=model.noise_variance_
    )
    for table in (pa.table(columns), pa.table(ints), pl.DataFrame(columns), pl.DataFrame(ints), pd.DataFrame(columns)):
        np.testing.assert_allclose(fitted.score_samples(table), expected, rtol=1e-12)
    nullable = pd.DataFrame(ints, dtype="Int64")
    np.testing.assert_allclose(fitted.score_samples(nullable), expected, rtol=1e-12)


def test_columns_that_are_not_numbers_are_named(X):
    table = pa.table({"a": X[:, 0], "word": ["x"] * len(X)})
    with pytest.raises(ValueError, match="column 'word' is not numeric"):
        covary.PPCA(1).fit(table)
    with pytest.raises(ValueError, match="column 'rpm'"):
        frame = pd.DataFrame(X, columns=[*NAMES[:5], "rpm"])
        frame.loc[17, "rpm"] = np.inf
        covary.PPCA(1).fit(frame)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(X, container):
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(200) * 2)
    out = covary.PPCA(2).set_output(transform=container).fit_transform(frame)
    assert type(out).__module__.startswith(container) and list(out.columns) == ["ppca0", "ppca1"]
    if container == "pandas":
        assert list(out.index) == list(frame.index)


def test_weights_beside_every_kind(X):
    weights = np.arange(200) % 3
    expected = covary.PPCA(2).fit(X, sample_weight=weights).get_covariance()
    for table in [*list(frames(X)), sparse.csr_array(X), np.asfortranarray(X)]:
        ours = covary.PPCA(2).fit(table, sample_weight=weights)
        np.testing.assert_allclose(ours.get_covariance(), expected, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_masked_cells_are_missing_values(dtype):
    X = np.round(10 * low_rank(200, 6, 2)).astype(dtype)
    mask = np.random.default_rng(1).random(X.shape) < 0.1
    reals = np.float32 if dtype == np.float32 else np.float64
    masked, Y = np.ma.array(X, mask=mask), np.where(mask, np.nan, X.astype(reals))
    ours, expected = covary.PPCA(2).fit(masked), covary.PPCA(2).fit(Y)
    assert ours.report_["holes"]["missing"] == mask.sum()
    np.testing.assert_array_equal(ours.get_covariance(), expected.get_covariance())
    for question in ("transform", "score_samples", "impute", "reconstruct"):
        np.testing.assert_array_equal(getattr(ours, question)(masked), getattr(ours, question)(Y))
    row = int(mask.any(axis=1).argmax())
    np.testing.assert_array_equal(ours.conditional(masked[row])[0], np.flatnonzero(mask[row]))
    np.testing.assert_array_equal(
        covary.PPCA(2).partial_fit(masked).mean_, covary.PPCA(2).partial_fit(Y).mean_
    )
    assert covary.select(masked, max_components=2).holes["missing"] == mask.sum()
    with pytest.raises(ValueError, match="needs complete rows"):
        covary.kmo(masked)
    # Nothing masked is an array like any other.
    np.testing.assert_array_equal(covary.PPCA(2).fit(np.ma.array(X)).loadings_, covary.PPCA(2).fit(X).loadings_)


def test_a_masked_weight_is_an_error(X, model):
    weights = np.ma.array(np.ones(200), mask=np.arange(200) == 17)
    for rows in (X, pl.from_numpy(X), covary.observed(sparse.csr_array(X))):
        with pytest.raises(ValueError, match=r"sample_weight\[17\] is masked"):
            covary.PPCA(2).fit(rows, sample_weight=weights)
    with pytest.raises(ValueError, match=r"sample_weight\[17\] is masked"):
        model.score(X, sample_weight=weights)
    covary.PPCA(2).fit(X, sample_weight=np.ma.array(np.ones(200)))


def test_weights_are_one_for_each_row_or_one_for_all(X, model):
    for rows in [*list(frames(X))[:4], X, sparse.csr_array(X), covary.observed(sparse.csr_array(X))]:
        with pytest.raises(ValueError, match=r"1D array or scalar.*shape is \(200, 1\)"):
            covary.PPCA(2).fit(rows, sample_weight=np.ones((200, 1)))
        twice = covary.PPCA(2).fit(rows, sample_weight=2.0)
        assert twice.report_["weight"] == 400
    assert model.score(X, sample_weight=3) == pytest.approx(model.score(X))


def single_precision(X):
    df = pd.DataFrame(X, columns=NAMES, dtype=np.float32)
    table = pa.Table.from_pandas(df)
    return [df, df.convert_dtypes(), pl.from_pandas(df), table, Capsule(table), sparse.csr_array(X.astype(np.float32))]


def cells(answer):
    """The cells of an answer, which is a frame where the question was one."""
    if isinstance(answer, pa.Table):
        return np.column_stack(answer.columns)
    return answer.to_numpy() if hasattr(answer, "to_numpy") else answer


@pytest.mark.parametrize("which", range(6))
def test_answers_about_single_precision_are_in_it(X, which):
    frame, array = single_precision(X)[which], X.astype(np.float32)
    model = covary.PPCA(2).fit(frame)
    for question in ("transform", "impute", "reconstruct"):
        answer = cells(getattr(model, question)(frame))
        assert answer.dtype == getattr(model, question)(array.view(np.ndarray)).dtype == np.float32
    assert all(cells(part).dtype == np.float32 for part in model.impute(frame, return_std=True))
    np.testing.assert_array_equal(cells(model.impute(frame)), array)
    mixed = pd.DataFrame(X, columns=NAMES).astype({"c0": np.float32})
    assert model.transform(mixed).dtype == model.transform(pl.from_pandas(mixed)).dtype == np.float64


def test_features_that_do_not_exist_are_named(X, model):
    with pytest.raises(ValueError, match="there is no feature 'typo': the features have no names"):
        model.marginal(["typo"])
    with pytest.raises(ValueError, match="there is no feature 'typo': the names are 'c0', 'c1'"):
        covary.PPCA(2).fit(pd.DataFrame(X, columns=NAMES)).marginal(["c0", "typo"])


@pytest.mark.parametrize("cell", ["Rome", pd.Timestamp("2020-01-01"), (1, 2)])
def test_columns_of_pandas_that_are_not_numbers_are_named(X, cell):
    frame = pd.DataFrame(X, columns=NAMES).convert_dtypes()
    frame.loc[3, "c0"] = pd.NA
    frame["city"] = pd.Series([cell] * len(X), dtype=object)
    with pytest.raises(ValueError, match="column 'city' is not numeric: it holds"):
        covary.PPCA(1).fit(frame)


def test_columns_without_a_type_are_missing(X, model):
    frame = pl.from_numpy(X, schema=NAMES).with_columns(c2=pl.lit(None))
    assert frame.schema["c2"] == pl.Null
    with pytest.raises(ValueError, match="feature 'c2' was never observed"):
        covary.PPCA(1).fit(frame)
    Y = X.copy()
    Y[:, 2] = np.nan
    np.testing.assert_allclose(model.score_samples(frame), model.score_samples(Y), rtol=1e-12)
    with pytest.raises(ValueError, match="column 'c2' of X has no values and no type"):
        covary.PPCA(1).fit(Capsule(frame))


@pytest.mark.parametrize("column", [pl.Series([1.0, 2.0]), pa.chunked_array([[1.0, 2.0]]), Capsule(pl.Series([1.0, 2.0]))])
def test_a_column_is_not_a_table(column):
    with pytest.raises(ValueError, match="X is not a table of columns; give a frame"):
        covary.PPCA(1).fit(column)


@pytest.mark.parametrize("make", [covary.PPCA, covary.PCA, covary.BayesianPCA, covary.FactorAnalysis])
@pytest.mark.parametrize("number", [[2], (1, 2), {}, "many", np.array([2])])
def test_numbers_of_components_that_are_none(X, make, number):
    with pytest.raises(ValueError, match="^n_components=.* must be a (whole )?number"):
        make(number).fit(X)


def test_the_index_of_a_frame_is_no_feature(X):
    """A table that pandas made holds its index as a column, and a note that it is one."""
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(len(X)) * 3)
    named = frame.rename_axis("id")
    expected = covary.PPCA(2).fit(frame)
    for table in (pa.Table.from_pandas(frame), pa.Table.from_pandas(named), Capsule(pa.Table.from_pandas(frame))):
        ours = covary.PPCA(2).fit(table)
        assert list(ours.feature_names_in_) == NAMES
        np.testing.assert_allclose(ours.transform(table), expected.transform(frame), rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="no numeric column"):
        covary.PPCA(2).fit(pa.Table.from_pandas(frame[[]]))


def test_masked_numbers_are_not_known():
    """Everywhere, not in rows alone: NaN where that is allowed, an error where it is not."""
    loadings = np.ma.masked_array([[0.8, 0.1], [0.7, 0.2], [0.1, 0.6], [0.3, 0.9]], mask=False)
    target = np.ma.masked_array(np.round(loadings.data), mask=False)
    target[1, 1] = np.ma.masked
    free = covary.rotate(loadings, "target", target=target.filled(np.nan)).pattern
    np.testing.assert_array_equal(covary.rotate(loadings, "target", target=target).pattern, free)
    loadings[2, 1] = np.ma.masked
    mean, noise, one = np.ma.masked_array([0.0, 1.0], [False, True]), np.ma.masked, [[1.0], [2.0]]
    given = dict(mean=[0.0, 0.0], loadings=one, noise_variance=1.0)
    refused = [
        lambda: covary.rotate(loadings),
        lambda: covary.PPCA.from_parameters(**{**given, "mean": mean}),
        lambda: covary.PPCA.from_parameters(**{**given, "noise_variance": noise}),
        lambda: covary.FactorAnalysis.from_parameters(**{**given, "mean": mean}),
        lambda: covary.BayesianPCA.from_parameters(**{**given, "noise_variance": noise}),
        lambda: covary.RobustPPCA.from_parameters(**{**given, "mean": mean}, nu=4),
        lambda: covary.MixturePPCA.from_parameters(weights=[1], means=mean[None], loadings=[one], noise_variance=[1]),
        lambda: covary.FactorAnalysis.from_covariance(np.eye(2), 9, 1, mean=mean),
        lambda: covary.KMeans(2, init=np.ma.masked_array(np.eye(2), mask=[[0, 1], [0, 0]])).fit(np.eye(2)),
    ]
    for make in refused:
        with pytest.raises(ValueError):
            make()


def test_frames_of_polars_that_arrow_does_not_take(X):
    frame = pl.DataFrame(X, schema=NAMES)
    with pytest.raises(ValueError, match=r"X is a LazyFrame, whose rows are not there yet; give X.collect\(\)"):
        covary.PPCA(2).fit(frame.lazy())
    whole = np.round(10 * X)
    wide = pl.DataFrame(whole, schema=NAMES).cast(pl.Int128)
    np.testing.assert_allclose(covary.PPCA(2).fit(wide).mean_, whole.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("family", [covary.PPCA, covary.BayesianPCA, covary.RobustPPCA, covary.PCA])
def test_numbers_of_components_of_other_types(X, family):
    with pytest.raises(ValueError, match=r"n_components=2\.0 must be a whole number"):
        family(2.0).fit(X)
    with pytest.raises(ValueError, match=f"n_components={10**30} (is more than any|must be between)"):
        family(10**30).fit(X)


def test_more_groups_than_any_rows(X):
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(20\) found smaller"):
        assert len(covary.KMeans(10**30).fit(X[:20]).cluster_centers_) == 20
    assert len(covary.MixturePPCA(10**30, 1).fit(X[:30]).weights_) <= 30
