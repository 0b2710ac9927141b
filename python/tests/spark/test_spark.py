"""Fits on a cluster: equal to those of one machine, whatever happens on the way; bad input is one sentence."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from pyspark.sql import functions as F

import covary
import covary.spark as cs
from covary.spark import _passes
from spark_rows import NAMES, assert_same, frame, groups, rows

LINEAR = ["mean_", "loadings_", "components_", "noise_variance_", "explained_variance_", "log_likelihood_"]
MODELS = {
    "ppca": (lambda m: m.PPCA(2), LINEAR),
    "pca": (lambda m: m.PCA(2), ["mean_", "components_", "explained_variance_", "noise_variance_", "singular_values_"]),
    "factors": (lambda m: m.FactorAnalysis(2), ["mean_", "loadings_", "noise_variance_", "log_likelihood_"]),
    "bayes": (lambda m: m.BayesianPCA(3), ["mean_", "loadings_", "noise_variance_", "alpha_", "elbo_"]),
    "robust": (lambda m: m.RobustPPCA(2), ["mean_", "loadings_", "noise_variance_", "nu_"]),
}
OTHERS = {
    "kmeans": (lambda m: m.KMeans(3), ["cluster_centers_", "inertia_"]),
    "mixture": (lambda m: m.MixturePPCA(3, 1), ["weights_", "means_", "noise_variance_", "log_likelihood_", "bic_"]),
    "ica": (lambda m: m.ICA(2, n_init=1), ["mean_", "mixing_", "noise_variance_"]),
    "kernel": (lambda m: m.KernelPCA(2, kernel="rbf", gamma=0.01, n_landmarks=30), ["eigenvalues_", "noise_variance_"]),
}


# -- equal to one machine ------------------------------------------------------------------------------------
# python/tests/test_elsewhere.py has all numbers of parts; here it is the way through Spark.


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", MODELS)
def test_models_are_those_of_one_machine(spark, kind, missing):
    make, fields = MODELS[kind]
    x = rows(missing=missing)
    expected = make(covary).fit(x)
    for partitions in (1, 7, 64) if kind == "ppca" and not missing else (3,):
        found = make(cs).fit(frame(spark, x, partitions), features=NAMES).model
        assert_same(found, expected, fields)
        assert found.report_["rows"] == len(x)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_models_are_those_of_one_machine(spark, kind):
    make, fields = OTHERS[kind]
    x = rows() ** 3 if kind == "ica" else groups()
    expected = make(covary).fit(x)
    found = make(cs).fit(frame(spark, x, 3), features=NAMES).model
    assert_same(found, expected, fields, 1e-7 if kind in ("ica", "kernel") else 1e-9)


def test_weights_scales_vectors_and_single_precision(spark):
    x = rows(missing=0.1)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(x))
    df = frame(spark, x, 3, w=[float(each) for each in w])
    expected = covary.PPCA(2, scale="unit").fit(x, sample_weight=w)
    assert_same(cs.PPCA(2, scale="unit").fit(df, features=NAMES, weights="w").model, expected, LINEAR)
    arrays = df.select(F.array(*NAMES).alias("v"))
    assert_same(cs.PPCA(2).fit(arrays, features="v").model, covary.PPCA(2).fit(x), LINEAR)
    single = df.select(*[F.col(name).cast("float") for name in NAMES])
    assert_same(cs.PPCA(2).fit(single).model, covary.PPCA(2).fit(x.astype(np.float32)), LINEAR)
    whole = df.select(*[F.coalesce(F.col(name), F.lit(0.0)).cast("int") for name in NAMES])
    assert_same(cs.PPCA(2).fit(whole).model, covary.PPCA(2).fit(np.trunc(np.nan_to_num(x))), LINEAR)


def test_vectors_of_ml(spark):
    from pyspark.ml.feature import VectorAssembler

    x = rows()
    df = VectorAssembler(inputCols=NAMES, outputCol="v").transform(frame(spark, x))
    fitted = cs.PCA(2).fit(df, features="v")
    assert_same(fitted.model, covary.PCA(2).fit(x), ["components_", "explained_variance_"])
    z = np.array([row["z"] for row in fitted.transform(df).select("z").collect()])
    assert np.allclose(z, covary.PCA(2).fit(x).transform(x))


def test_ratings_in_long_format(spark):
    import scipy.sparse

    rng = np.random.default_rng(3)
    x = rows(60)
    seen = np.argwhere(rng.random(x.shape) < 0.7)
    cells = [(f"u{i:03}", NAMES[j], float(x[i, j])) for i, j in seen]
    df = spark.createDataFrame(cells, "user string, item string, rating double").repartition(3)
    found = cs.PPCA(1).fit(df, long=("user", "item", "rating")).model
    csr = scipy.sparse.csr_array((x[seen[:, 0], seen[:, 1]], (seen[:, 0], seen[:, 1])), shape=x.shape)
    expected = covary.PPCA(1).fit(covary.observed(csr))
    assert_same(found, expected, ["mean_", "loadings_", "noise_variance_", "log_likelihood_"])
    assert list(found.feature_names_in_) == NAMES


def test_complete_rows_take_one_pass_and_merges_are_a_tree(spark):
    fitted = cs.PPCA(2).fit(frame(spark, rows(), 40), features=NAMES)
    assert len(fitted.passes_["seconds"]) == 1
    assert fitted.model.report_["passes"] == 1
    one = cs.PPCA(2).fit(frame(spark, rows(), 1), features=NAMES).passes_["bytes"][0]
    assert fitted.passes_["bytes"][0] < 8 * one


# -- what happens on the way ---------------------------------------------------------------------------------


def _executors(spark):
    """Process ids of the executors of this application."""
    app, found = spark.sparkContext.applicationId, []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace")
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in words and app in words:
            found.append(int(entry))
    return found


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="skipped: process ids are read from /proc")
def test_an_executor_that_is_killed_changes_nothing(spark, monkeypatch):
    x = rows(2000, missing=0.2)
    df = frame(spark, x, 4)
    expected = cs.PPCA(2).fit(df, features=NAMES).model
    victims, calls, collect = _executors(spark), [], _passes.Passes._collect
    assert len(victims) >= 1

    def killing(self, data):
        calls.append(time.monotonic())
        if len(calls) == 3:
            threading.Timer(0.05, os.kill, (victims[0], signal.SIGKILL)).start()
        return collect(self, data)

    monkeypatch.setattr(_passes.Passes, "_collect", killing)
    found = cs.PPCA(2).fit(df, features=NAMES).model
    assert len(calls) > 3 and victims[0] not in _executors(spark)
    assert_same(found, expected, LINEAR)


def test_rows_that_change_between_passes_are_noticed(spark):
    def drawn(batches):
        import pyarrow as pa

        cells = np.random.default_rng().normal(size=(sum(batch.num_rows for batch in batches), len(NAMES)))
        cells[::3, 0] = np.nan
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in cells.T], names=NAMES)

    df = spark.range(0, 300, 1, 3).mapInArrow(drawn, ", ".join(f"{name} double" for name in NAMES))
    with pytest.raises(ValueError, match="differ from one pass to the next"):
        cs.PPCA(2).fit(df, cache=False)


def test_an_interrupt_cancels_the_job(spark, monkeypatch):
    collect, calls = _passes.Passes._collect, []

    def sleep(batches):
        time.sleep(20)
        yield from batches

    def slow(self, data):
        calls.append(data)
        if len(calls) == 2:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            data = spark.range(1).mapInArrow(sleep, "id long")
        return collect(self, data)

    monkeypatch.setattr(_passes.Passes, "_collect", slow)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cs.PPCA(2).fit(frame(spark, rows(missing=0.2)), features=NAMES)
    tracker = spark.sparkContext.statusTracker()
    while tracker.getActiveJobsIds() and time.monotonic() - started < 15:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()


# -- bad input -----------------------------------------------------------------------------------------------


def test_bad_input_is_one_sentence(spark):
    x = rows(40)
    df = frame(spark, x, 2, word=["text"] * 40, w=[1.0] * 39 + [-1.0], v=[None] * 40)
    lengths = spark.createDataFrame([([1.0, 2.0, 3.0],), ([4.0, 5.0],)], "v array<double>")
    for error, arguments in [
        ("no column 'z'", {"df": df, "features": ["a", "z"]}),
        ("column 'word' of features is of type string", {"df": df, "features": ["a", "word"]}),
        ("column 'word' is of type string", {"df": df, "features": "word"}),
        ("no column 'q'", {"df": df, "features": NAMES, "weights": "q"}),
        ("weight in column 'w' is -1.0", {"df": df, "features": NAMES, "weights": "w"}),
        ("weight in column 'v' is null", {"df": df, "features": NAMES, "weights": "v"}),
        ("different lengths: 3 and 2", {"df": lengths, "features": "v"}),
        ("no rows", {"df": df.where("a > 1e9"), "features": NAMES}),
        ("'v' was never observed", {"df": df, "features": [*NAMES, "v"]}),
        ("names three columns", {"df": df, "long": ("a", "b")}),
    ]:
        with pytest.raises(ValueError, match=error):
            cs.PPCA(1).fit(arguments.pop("df"), **arguments)
    with pytest.raises(TypeError, match="no parameter 'colour'"):
        cs.PPCA(1, colour="red")


def test_an_infinite_cell_is_named(spark):
    x = rows(50)
    x[37, 2] = np.inf
    with pytest.raises(ValueError, match="inf at row 37, column 'c'"):
        cs.PPCA(1).fit(frame(spark, x, 4), features=NAMES)


def test_rows_that_lie_in_one_partition_of_several(spark):
    x = rows(missing=0.2)
    df = frame(spark, x, 1).repartition(5, F.lit(1))
    assert_same(cs.PPCA(2).fit(df, features=NAMES).model, covary.PPCA(2).fit(x), LINEAR)


def test_an_executor_without_covary_is_told(spark, monkeypatch):
    def absent(*_):
        def fill(batches):
            raise ModuleNotFoundError("No module named 'covary'")

        return fill

    monkeypatch.setattr(_passes, "_filler", absent)
    with pytest.raises(RuntimeError, match="covary is not installed where the executors run"):
        cs.PPCA(1).fit(frame(spark, rows(20)), features=NAMES)


def test_much_evidence_is_warned_of(spark, monkeypatch):
    monkeypatch.setattr(_passes, "_MUCH", 1000)
    with pytest.warns(UserWarning, match="each pass moves about"):
        cs.PPCA(1).fit(frame(spark, rows(), 4), features=NAMES)


def test_what_a_cluster_cannot_do_is_one_sentence(spark):
    with pytest.raises(ValueError, match="rows in memory|needs the rows themselves"):
        cs.PPCA(1, solver="svd").fit(frame(spark, rows(30)), features=NAMES)
    with pytest.raises(ValueError, match="missing values"):
        cs.KernelPCA(1, kernel="rbf").fit(frame(spark, rows(40, missing=0.2)), features=NAMES)


# -- questions and stages ------------------------------------------------------------------------------------


def test_questions_add_columns_and_keep_the_others(spark):
    x = rows(60, missing=0.2)
    df = frame(spark, x, 3, name=[f"r{i}" for i in range(60)])
    fitted = cs.PPCA(2).fit(df, features=NAMES)
    model = covary.PPCA(2).fit(x)
    answers = fitted.outliers(fitted.score(fitted.transform(df)))
    assert answers.columns == [*df.columns, "z", "log_density", "t2", "spe", "p_value"]
    found = answers.toPandas()
    assert list(found["name"]) == [f"r{i}" for i in range(60)]
    assert np.allclose(np.stack(found["z"]), model.transform(x))
    assert np.allclose(found["log_density"], model.score_samples(x))
    assert np.allclose(found["p_value"], model.outliers(x)["p_value"])
    fitted.model.set_output(transform="pandas")  # which is for answers on one machine
    assert np.allclose(fitted.outliers(df).toPandas()["p_value"], found["p_value"])
    filled = fitted.impute(df).toPandas()
    assert np.allclose(filled[[f"{name}_imputed" for name in NAMES]], model.impute(x))
    rebuilt = fitted.reconstruct(df).toPandas()
    assert np.allclose(rebuilt[[f"{name}_reconstructed" for name in NAMES]], model.reconstruct(x))
    groups_of = cs.MixturePPCA(2, 1).fit(frame(spark, groups(90), 2), features=NAMES)
    assigned = groups_of.assign(frame(spark, groups(90), 2), probabilities=True).toPandas()
    assert (assigned["cluster"] == [int(np.argmax(each)) for each in assigned["probabilities"]]).all()
    with pytest.raises(AttributeError, match="PPCA has no predict"):
        fitted.assign(df)


def test_a_pipeline_is_fitted_saved_loaded_and_applied(spark, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import SQLTransformer

    df = frame(spark, rows(60), 2)
    double = SQLTransformer(statement="SELECT *, a * 2 AS twice FROM __THIS__")
    stage = cs.PPCA(n_components=2, features=[*NAMES, "twice"], tol=1e-9)
    pipeline = Pipeline(stages=[double, stage])
    pipeline.write().save(str(tmp_path / "pipeline"))
    fitted = Pipeline.load(str(tmp_path / "pipeline")).fit(df)
    fitted.write().save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    z = [row["z"] for row in fitted.transform(df).collect()]
    assert [row["z"] for row in loaded.transform(df).collect()] == z
    assert loaded.stages[1].uid == fitted.stages[1].uid
    loaded.stages[1].write().overwrite().save(str(tmp_path / "fitted" / "again"))
    loaded.stages[1].write().overwrite().save(str(tmp_path / "fitted" / "again"))
    again = cs.FittedModel.load(str(tmp_path / "fitted" / "again"))
    assert np.array_equal(again.model.loadings_, fitted.stages[1].model.loadings_)


def test_parameters_and_copies(spark):
    from pyspark.ml.tuning import ParamGridBuilder

    stage = cs.PPCA(2, features=NAMES)
    other = stage.copy({stage.n_components: 1})
    assert (stage.getOrDefault("n_components"), other.getOrDefault("n_components")) == (2, 1)
    assert "covary.PPCA" in stage.explainParam("n_components")
    grid = ParamGridBuilder().addGrid(stage.n_components, [1, 2]).build()
    df = frame(spark, rows(40))
    assert [fitted.model.n_components_ for fitted in stage.fit(df, grid)] == [1, 2]
    assert stage.fit(df).copy().model.n_components_ == 2


def test_a_model_is_the_file_of_one_machine(spark, tmp_path):
    x = rows(50, missing=0.1)
    fitted = cs.PPCA(1).fit(frame(spark, x), features=NAMES)
    fitted.model.save(tmp_path / "model.covary")
    loaded = covary.load(tmp_path / "model.covary")
    assert np.array_equal(loaded.loadings_, fitted.model.loadings_)
    assert list(loaded.feature_names_in_) == NAMES
