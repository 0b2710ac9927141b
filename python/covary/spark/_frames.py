"""From what people name as features to a DataFrame of numbers: this half runs on the driver and never sees a row."""

from pyspark.sql import functions as F
from pyspark.sql import types as T

from covary.spark._columns import ARRAY, ITEMS, WEIGHT, Columns

_ROW = "__row"


class Frame:
    """The columns of a DataFrame that a fit or a question needs.

    Attributes
    ----------
    data : DataFrame
        One column for each feature, or one array; and the weights.
    columns : Columns
        How its batches are read.
    """

    def __init__(self, data, columns):
        self.data = data
        self.columns = columns


def frame_of(df, features, weights=None, long=None):
    """The frame of a fit."""
    if long is not None:
        return _of_cells(df, long, weights)
    cells, columns = cells_of(df, features)
    if weights is not None:
        _check_numeric(_types(df), weights, "weights")
        cells = [*cells, _as(weights, "double", WEIGHT)]
        columns = Columns(columns.kind, columns.names, columns.n_features, columns.source, weights)
    return Frame(_select(df, cells), columns)


def cells_of(df, features, n_features=None):
    """The cells of all features, and how they are read: an expression of SQL for each feature, or one array.

    Expressions are text, because Spark takes all of them in one call; a Column is built in several calls of the JVM, which
    together took longer than a pass over 10 000 rows.
    """
    kinds = _types(df)
    if features is None:
        features = [field.name for field in df.schema.fields if _is_numeric(field.dataType)]
        if not features:
            raise ValueError("no column of the DataFrame is numeric; name one with vectors: features='column'")
    if isinstance(features, str):
        if _is_numeric(_type(kinds, features)):
            features = [features]
        else:
            return _vectors(df, features, n_features)
    features = list(features)
    if not features:
        raise ValueError("features=[] names no column")
    for name in features:
        _check_numeric(kinds, name, "features")
    # Single precision is kept where all features have it, as on one machine.
    single = all(isinstance(kinds[name], T.FloatType) for name in features)
    kind = "float" if single else "double"
    cells = [_as(name, kind, f"x{j}") for j, name in enumerate(features)]
    return cells, Columns("columns", tuple(features), len(features), "features")


def _vectors(df, name, n_features):
    """One column of ML vectors or of arrays of numbers."""
    kind = _type(_types(df), name)
    column = F.col(_quoted(name))
    if type(kind).__name__ == "VectorUDT":
        from pyspark.ml.functions import vector_to_array

        column = vector_to_array(column)
    elif not (isinstance(kind, T.ArrayType) and _is_numeric(kind.elementType)):
        raise ValueError(
            f"column '{name}' is of type {kind.simpleString()}; features must be numbers, ML vectors or arrays of numbers"
        )
    column = column.cast("array<double>")
    if n_features is None:
        first = df.select(F.size(column).alias("n")).where(F.col("n") >= 0).first()
        if first is None:
            raise ValueError(f"column '{name}' holds no vector: X has no rows (0 samples)")
        n_features = first["n"]
    return [column.alias(ARRAY)], Columns("array", None, n_features, name)


def _of_cells(df, long, weights):
    """Long format: a row of the DataFrame for each cell (row, feature, value), as lists of the cells of each row."""
    if isinstance(long, str) or len(long) != 3:
        raise ValueError("long=(row, feature, value) names three columns")
    if weights is not None:
        raise ValueError("rows in long format have no weights")
    row, item, value = long
    kinds = _types(df)
    for name in long:
        _type(kinds, name)
    _check_numeric(kinds, value, "long")
    cells = df.select(
        F.col(_quoted(row)).alias(_ROW), F.col(_quoted(item)).alias("item"), F.col(_quoted(value)).cast("double").alias("cell")
    ).where(F.col("cell").isNotNull() & ~F.isnan("cell") & F.col("item").isNotNull() & F.col(_ROW).isNotNull())
    items = [found["item"] for found in cells.select("item").distinct().orderBy("item").collect()]
    if not items:
        raise ValueError("the DataFrame holds no cell: X has no rows (0 samples)")
    # Features are numbered by a join, so that nothing but numbers reaches the passes.
    numbers = df.sparkSession.createDataFrame(
        list(zip(items, range(len(items)))), T.StructType([T.StructField("item", cells.schema["item"].dataType), T.StructField("at", T.IntegerType())])
    )
    lists = (
        cells.join(F.broadcast(numbers), "item")
        .groupBy(_ROW)
        .agg(F.array_sort(F.collect_list(F.struct("at", "cell"))).alias("cells"))
        .select(F.col("cells.at").alias(ITEMS), F.col("cells.cell").alias(ARRAY))
    )
    return Frame(lists, Columns("cells", tuple(str(item) for item in items), len(items), value))


def struct_of(cells):
    """The cells of a row as one column."""
    return F.expr(f"struct({', '.join(cells)})") if _are_texts(cells) else F.struct(*cells)


def _select(df, cells):
    if _are_texts(cells):
        return df.selectExpr(*cells)
    return df.select(*[F.expr(cell) if isinstance(cell, str) else cell for cell in cells])


def _are_texts(cells):
    return all(isinstance(cell, str) for cell in cells)


def _as(name, kind, alias):
    """A column as numbers of a kind, in SQL."""
    return f"CAST({_quoted(name)} AS {kind}) AS {alias}"


def _types(df):
    return {field.name: field.dataType for field in df.schema.fields}


def _type(kinds, name):
    if name not in kinds:
        raise ValueError(f"there is no column '{name}'; the DataFrame has {', '.join(kinds)}")
    return kinds[name]


def _check_numeric(kinds, name, argument):
    kind = _type(kinds, name)
    if not _is_numeric(kind):
        raise ValueError(f"column '{name}' of {argument} is of type {kind.simpleString()}, not a number")


def _is_numeric(kind):
    return isinstance(kind, (T.NumericType, T.BooleanType))


def _quoted(name):
    """A name as it is, also with a dot in it."""
    return "`" + name.replace("`", "``") + "`"
