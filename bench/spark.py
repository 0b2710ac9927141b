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

    whole, quarter, holes, few_holes = (
        write(os.path.join(folder, name), rows, p, missing)
        for name, rows, missing in [("all", n, 0.0), ("quarter", n // 4, 0.0), ("holes", n, 0.2), ("few", n // 4, 0.2)]
    )
    cs.PCA(2).fit(spark.read.parquet(quarter))  # both sides start warm
    mllib(spark, quarter, 2)

    theirs, other = timed(lambda: mllib(spark, whole, q))
    ours, fitted = timed(lambda: cs.PCA(q).fit(spark.read.parquet(whole)))
    agree = np.abs(np.abs(other.pc.toArray().T) - np.abs(fitted.model.components_)).max()
    print(f"PCA of {n} x {p}, {q} components, from Parquet: MLlib {theirs:.2f} s, covary {ours:.2f} s: {theirs / ours:.1f} x")
    print(f"  directions differ by {agree:.1e}; noise variance {fitted.model.noise_variance_:.6f}")
    likelihood = cs.PPCA(q).fit(spark.read.parquet(whole)).model.log_likelihood_
    print(f"  log-likelihood {likelihood:.1f}")

    less, _ = timed(lambda: cs.PCA(q).fit(spark.read.parquet(quarter)))
    print(f"rows x 4, complete: {less:.2f} s to {ours:.2f} s: {ours / less:.2f} x")
    seconds = {}
    for name, path in [("few", few_holes), ("holes", holes)]:
        started = time.monotonic()
        fitted = cs.PPCA(q).fit(spark.read.parquet(path))
        passes = fitted.passes_["seconds"]
        seconds[name] = float(np.median(passes[2:]))
        print(
            f"PPCA with 20 % missing, {n if name == 'holes' else n // 4} rows: {time.monotonic() - started:.1f} s, {len(passes)} "
            f"passes: first {passes[0]:.2f} s, second with caching {passes[1]:.2f} s, then {seconds[name]:.2f} s each"
        )
    print(f"rows x 4, a pass of EM: {seconds['holes'] / seconds['few']:.2f} x")

    for width in (100, 1000):
        small = write(os.path.join(folder, f"wide{width}"), 4000, width, 0.2, parts=4)
        fitted = cs.PPCA(q, max_iter=3).fit(spark.read.parquet(small))
        first, later = fitted.passes_["bytes"][0], fitted.passes_["bytes"][-1]
        print(f"p = {width}, q = {q}, 4 partitions: {first} bytes to the driver in the first pass, {later} in a pass of EM")
    spark.stop()


if __name__ == "__main__":
    main()
