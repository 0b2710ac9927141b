"""covary.spark beside MLlib on two executors of this machine, in one run: seconds, passes, scaling and traffic.

    python bench/spark.py [--rows 200000] [--features 100] [--folder /tmp/...]

Rows are written as Parquet once; every time that is printed has the reading of it.
"""

import argparse
import os
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet


def session():
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.maxResultSize", "2g")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write(path, n, p, missing, parts=8, seed=0):
    """Rows of five directions and noise, in files of equal size."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(5, p))
    os.makedirs(path)
    for part in range(parts):
        size = n // parts
        x = rng.normal(size=(size, 5)) @ loadings + 0.5 * rng.normal(size=(size, p)) + 3.0
        mask = rng.random(x.shape) < missing if missing else None
        columns = {f"x{j}": pa.array(x[:, j], mask=None if mask is None else mask[:, j]) for j in range(p)}
        pyarrow.parquet.write_table(pa.table(columns), os.path.join(path, f"part-{part}.parquet"))
    return path


def timed(work, times=3):
    """The best of some runs, and what the last gave."""
    seconds = []
    for _ in range(times):
        started = time.monotonic()
        found = work()
        seconds.append(time.monotonic() - started)
    return min(seconds), found


def mllib(spark, path, q):
    from pyspark.ml.feature import PCA, VectorAssembler

    df = spark.read.parquet(path)
    vectors = VectorAssembler(inputCols=df.columns, outputCol="v").transform(df)
    return PCA(k=q, inputCol="v", outputCol="z").fit(vectors.select("v"))


def _nothing(batches):
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--folder")
    options = parser.parse_args()
    n, p, q = options.rows, options.features, 10
    folder = options.folder or tempfile.mkdtemp()
    spark = session()
    import covary.spark as cs

    whole, more, holes, more_holes = (
        write(os.path.join(folder, name), rows, p, missing)
        for name, rows, missing in [("all", n, 0.0), ("more", 4 * n, 0.0), ("holes", n, 0.2), ("more_holes", 4 * n, 0.2)]
    )
    for _ in range(2):  # both sides start warm
        cs.PCA(2).fit(spark.read.parquet(whole))
        mllib(spark, whole, 2)

    theirs, other = timed(lambda: mllib(spark, whole, q), 5)
    ours, fitted = timed(lambda: cs.PCA(q).fit(spark.read.parquet(whole)), 5)
    reading, _ = timed(lambda: spark.read.parquet(whole).mapInArrow(_nothing, "rows long").collect(), 5)
    agree = np.abs(np.abs(other.pc.toArray().T) - np.abs(fitted.model.components_)).max()
    print(f"PCA of {n} x {p}, {q} components, from Parquet: MLlib {theirs:.2f} s, covary {ours:.2f} s: {theirs / ours:.1f} x")
    print(f"  Spark alone, rows from Parquet to Python and nothing done with them: {reading:.2f} s")
    print(f"  directions differ by {agree:.1e}; noise variance {fitted.model.noise_variance_:.6f}")
    likelihood = cs.PPCA(q).fit(spark.read.parquet(whole)).model.log_likelihood_
    print(f"  log-likelihood {likelihood:.1f}")

    large, _ = timed(lambda: cs.PCA(q).fit(spark.read.parquet(more)))
    print(f"rows x 4, complete: {ours:.2f} s to {large:.2f} s: {large / ours:.2f} x")
    seconds = {}
    # As many components as the rows have: with more the likelihood is flat, and the passes are those of a flat likelihood.
    for name, path, limit in [("holes", holes, 1000), ("more_holes", more_holes, 6)]:
        started = time.monotonic()
        fitted = cs.PPCA(5, max_iter=limit).fit(spark.read.parquet(path))
        passes = fitted.passes_["seconds"]
        seconds[name] = float(np.median(passes[2:]))
        print(
            f"PPCA with 20 % missing, {n if name == 'holes' else 4 * n} rows: {time.monotonic() - started:.1f} s, {len(passes)} "
            f"passes: first {passes[0]:.2f} s, second with caching {passes[1]:.2f} s, then {seconds[name]:.2f} s each"
        )
    print(f"rows x 4, a pass of EM: {seconds['more_holes'] / seconds['holes']:.2f} x")

    for width in (100, 1000):
        small = write(os.path.join(folder, f"wide{width}"), 4000, width, 0.2, parts=4)
        fitted = cs.PPCA(q, max_iter=3).fit(spark.read.parquet(small))
        print(f"p = {width}, q = {q}, 4 partitions: bytes to the driver in each pass: {fitted.passes_['bytes']}")
    spark.stop()


if __name__ == "__main__":
    main()
