"""Through Spark Connect: a server of its own on this machine, and a client that has no JVM."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("grpc", reason="skipped: grpcio is not installed")

SCRIPT = """
import sys
import numpy as np
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert "connect" in type(spark).__module__
import covary
import covary.spark as cs

rng = np.random.default_rng(0)
x = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(120, 4))
x[rng.random(x.shape) < 0.2] = np.nan
names = ["a", "b", "c", "d"]
cells = [[None if np.isnan(cell) else float(cell) for cell in row] for row in x]
df = spark.createDataFrame(cells, "a double, b double, c double, d double")
fitted = cs.PPCA(1).fit(df.repartition(12), features=names)
expected = covary.PPCA(1).fit(x)
assert np.allclose(fitted.model.loadings_, expected.loadings_, rtol=1e-9, atol=1e-9)
z = np.array([row["z"] for row in fitted.transform(df).collect()])
assert np.allclose(z, expected.transform(x), atol=1e-8)
filled = fitted.impute(df).select("d_imputed").collect()
assert np.allclose([row[0] for row in filled], expected.impute(x)[:, 3], atol=1e-8)
for _ in range(2):
    fitted.write().overwrite().save(sys.argv[1])
again = cs.FittedModel.load(sys.argv[1])
assert np.array_equal(again.model.loadings_, fitted.model.loadings_)
groups = cs.KMeans(2).fit(df, features=names)
assert groups.assign(df).select("cluster").distinct().count() == 2
spark.stop()
print("connected")
"""


def test_fits_questions_and_files_work_through_connect(environment, tmp_path):
    known = {**os.environ, **environment}
    known.pop("SPARK_REMOTE", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "model")], env=known, capture_output=True, text=True, timeout=300
    )
    assert "connected" in done.stdout, done.stderr[-4000:]
