"""One pass after the other: a task goes to all partitions, and their evidence comes back along a tree of merges."""

import sys
import time
import uuid

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from covary import _covary
from covary._warn import warn

_FAN_IN = 8  # parts that an executor merges
_FEW_PARTS = 16  # parts that the driver merges itself
_MUCH = 1 << 30  # bytes of evidence in one pass
_PARTS = "part long, evidence binary, error string"
_ABSENT = "No module named 'covary"


class Passes:
    """The rows of a DataFrame as the core sees them: tasks go out, evidence comes back.

    Attributes
    ----------
    n_features, n_rows, n_counted, names, single_precision
        What an estimator asks of rows; a number is None until it is known.
    seconds, traffic : list
        Time, and bytes of evidence to the driver, of each pass.
    """

    single_precision = False

    def __init__(self, frame, cache=True, verbose=None):
        self.data = frame.data
        self.columns = frame.columns
        self.n_features = frame.columns.n_features
        self.names = None if frame.columns.names is None else [str(name) for name in frame.columns.names]
        self.seconds, self.traffic = [], []
        self._cache = cache
        self._cached = False
        self._verbose = verbose
        self._first_rows = None
        self._warned = self._asked = False
        self._tag = f"covary-{uuid.uuid4()}"

    @property
    def n_rows(self):
        return None if self._first_rows is None else sum(rows for _, rows in self._counted)

    @property
    def n_counted(self):
        return self.n_rows

    def fit(self, request):
        """The model of all rows."""
        observed = self.columns.kind == "cells"
        try:
            return _covary.fit_elsewhere(request, self._carry, self.n_features, self.n_rows, self.names, observed)
        except KeyboardInterrupt:
            self.data.sparkSession.interruptTag(self._tag)
            raise

    def count(self):
        """Number the rows: one look at the partitions, which models that draw rows need."""
        if self._first_rows is None:
            counted = self._collect(self.data.mapInArrow(_count, "part long, rows long"))
            self._counted = sorted((row["part"], row["rows"]) for row in counted)
            first, self._first_rows = 0, {}
            for part, rows in self._counted:
                self._first_rows[part] = first
                first += rows

    def close(self):
        """Give back what was cached."""
        if self._cached:
            self.data.unpersist()

    def _carry(self, task, numbered):
        """The merged evidence of all partitions: what the core calls, from a thread of its own."""
        started = time.monotonic()
        if numbered:
            self.count()
        elif len(self.seconds) == 1:
            self._keep()
        parts = self.data.mapInArrow(_filler(task, self.columns, self._first_rows if numbered else None), _PARTS)
        found = self._collect(_merged(parts, self._n_parts()))
        found = sorted(found, key=lambda row: row["part"])
        for row in found:
            if row["error"] is not None:
                raise ValueError(row["error"])
        self.seconds.append(time.monotonic() - started)
        self.traffic.append(sum(len(row["evidence"]) for row in found))
        self._show()
        if not found:
            return _covary.Evidence(task).to_bytes()
        self._weigh(max(len(row["evidence"]) for row in found))
        return _covary.merge_evidence([bytes(row["evidence"]) for row in found])

    def _keep(self):
        """Cache the rows, once a second pass shows that the fit takes several."""
        level = self.data.storageLevel
        if self._cache and not (level.useMemory or level.useDisk):
            self.data = self.data.persist(StorageLevel.MEMORY_AND_DISK)
            self._cached = True

    def _n_parts(self):
        """Number of partitions; through Spark Connect it is not known."""
        if not self._asked:
            self._asked = True
            try:
                self._parts = self.data.rdd.getNumPartitions()
            except PySparkException:
                self._parts = None
        return self._parts

    def _collect(self, frame):
        session = frame.sparkSession
        session.addTag(self._tag)
        try:
            return frame.collect()
        except Exception as error:
            if _ABSENT in str(error):
                raise RuntimeError(
                    "covary is not installed where the executors run: install the same version there, or ship it with "
                    "spark.archives"
                ) from error
            raise
        finally:
            session.removeTag(self._tag)

    def _weigh(self, size):
        parts = self._n_parts()
        if self._warned or parts is None or size * parts < _MUCH:
            return
        self._warned = True
        warn(
            f"each pass moves about {size * parts >> 20} MiB of evidence, {size >> 10} KiB for each of {parts} partitions; "
            "df.coalesce to a few partitions for each core, or ask for fewer features or components"
        )

    def _show(self):
        if self._verbose:
            sys.stderr.write(
                f"{self._verbose}  pass {len(self.seconds)}: {self.seconds[-1]:.2f} s, {self.traffic[-1]} bytes to the driver\n"
            )


def _merged(parts, count):
    """Evidence of neighbours merged on the executors, level by level, until few are left."""
    while count is None or count > _FEW_PARTS:
        grouped = parts.withColumn("group", F.expr(f"part div {_FAN_IN}")).groupBy("group")
        parts = grouped.applyInArrow(_merge, _PARTS)
        if count is None:
            return parts
        count = -(-count // _FAN_IN)
    return parts


def _filler(task, columns, first_rows):
    """What a partition does with its batches: one row of evidence, or of what is wrong with them."""

    def fill(batches):
        from covary.spark._worker import filled

        yield filled(task, columns, first_rows, batches)

    return fill


def _count(batches):
    from covary.spark._worker import partition

    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"part": [partition()], "rows": [rows]})


def _merge(table):
    from covary.spark._worker import merged

    return merged(table)
