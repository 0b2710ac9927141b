"""What runs where the rows are."""

import numpy as np
import pyarrow as pa

from covary import _covary


def partition():
    """The number of this partition."""
    from pyspark import TaskContext

    return TaskContext.get().partitionId()


def filled(task, columns, first_rows, batches):
    """The evidence of the batches of a partition, or the sentence that says why there is none."""
    part, error = partition(), None
    evidence = _covary.Evidence(task, 0 if first_rows is None else first_rows.get(part, 0))
    for batch in batches:
        if batch.num_rows == 0:
            continue
        try:
            evidence.add(columns.rows(batch))
        except ValueError as wrong:
            error = str(wrong)
            break
    return _row(part, None if error else evidence.to_bytes(), error)


def merged(table):
    """One piece of evidence from those of neighbours, which arrive in any order."""
    rows = sorted(table.to_pylist(), key=lambda row: row["part"])
    errors = [row["error"] for row in rows if row["error"] is not None]
    evidence = None if errors else _covary.merge_evidence([row["evidence"] for row in rows])
    return pa.Table.from_batches([_row(rows[0]["group"], evidence, errors[0] if errors else None)])


def _row(part, evidence, error):
    names = {"part": pa.array([part], pa.int64()), "evidence": pa.array([evidence], pa.binary()), "error": pa.array([error], pa.string())}
    return pa.RecordBatch.from_pydict(names)


def answered(model, question, columns, fields, batch):
    """What a model answers for a batch of rows: a struct of numbers, or an array for each row."""
    cells = columns.matrix(pa.RecordBatch.from_struct_array(batch))
    if len(cells) == 0:
        return pa.array([], pa.list_(pa.float64())) if fields is None else pa.array([], _struct(question, fields))
    found = getattr(model, question)(cells)
    if fields is None:
        return _lists(np.asarray(found, dtype=np.float64))
    # A frame where set_output asks for one.
    found = np.column_stack([found[name] for name in fields]) if isinstance(found, dict) else np.asarray(found)
    found = found.reshape(len(cells), len(fields)).astype(_number(question))
    return pa.StructArray.from_arrays([pa.array(found[:, j]) for j in range(len(fields))], fields)


def _number(question):
    return np.int64 if question == "predict" else np.float64


def _struct(question, fields):
    number = pa.from_numpy_dtype(_number(question))
    return pa.struct([(name, number) for name in fields])


def _lists(matrix):
    starts = np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(starts, np.ascontiguousarray(matrix).ravel())
