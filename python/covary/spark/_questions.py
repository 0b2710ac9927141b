"""Questions to a fitted model as columns that are added to a DataFrame, lazily."""

import copy
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from covary.spark._frames import cells_of, struct_of

_ANSWER = "__answer"


class Questions:
    """Each adds columns and keeps the others; nothing is computed before Spark is asked for rows."""

    def _transform(self, dataset):
        return self._with_array(dataset, "transform", self.getOrDefault("outputCol"))

    def transform(self, dataset, params=None):
        """Add the latent coordinates of each row: a column of arrays, named by `outputCol` ("z")."""
        return super().transform(dataset, params)

    def impute(self, df):
        """Add the features with missing values filled: ``NAME_imputed`` of a column NAME, ``imputed`` of vectors."""
        return self._with_features(df, "impute", "imputed")

    def reconstruct(self, df):
        """Add the features as the model has them: ``NAME_reconstructed`` of a column NAME, ``reconstructed`` of vectors."""
        return self._with_features(df, "reconstruct", "reconstructed")

    def score(self, df):
        """Add ``log_density``: of the observed cells of each row."""
        return self._with_numbers(df, "score_samples", ["log_density"])

    def outliers(self, df):
        """Add ``t2``, ``spe`` and ``p_value``: how unusual each row is."""
        return self._with_numbers(df, "outliers", ["t2", "spe", "p_value"])

    def assign(self, df, probabilities=False):
        """Add ``cluster``, the cluster or mixture component of each row; with `probabilities` a column of those too."""
        df = self._with_numbers(df, "predict", ["cluster"], T.LongType())
        return self._with_array(df, "predict_proba", "probabilities") if probabilities else df

    def _with_numbers(self, df, question, names, kind=None):
        fields = T.StructType([T.StructField(name, kind or T.DoubleType()) for name in names])
        return self._with_fields(df, question, fields, names)

    def _with_features(self, df, question, suffix):
        _, columns = self._columns(df, question)
        if columns.kind == "array":
            return self._with_array(df, question, suffix)
        fields = T.StructType([T.StructField(f"x{j}", T.DoubleType()) for j in range(columns.n_features)])
        return self._with_fields(df, question, fields, [f"{name}_{suffix}" for name in columns.names])

    def _with_fields(self, df, question, fields, names):
        answered = df.withColumn(_ANSWER, self._asked(df, question, fields))
        added = [F.col(_ANSWER)[field.name].alias(name) for field, name in zip(fields, names, strict=True)]
        return answered.select(*[F.col("`" + c.replace("`", "``") + "`") for c in df.columns], *added)

    def _with_array(self, df, question, name):
        return df.withColumn(name, self._asked(df, question, T.ArrayType(T.DoubleType())))

    def _columns(self, df, question):
        if not hasattr(self.model, question):
            raise AttributeError(f"{type(self.model).__name__} has no {question}")
        features = self.getOrDefault("features")
        if features is None:
            features = list(getattr(self.model, "feature_names_in_", ())) or None
        return cells_of(df, features, self.model.n_features_in_)

    def _asked(self, df, question, returned):
        """The answer to a question as a column."""
        cells, columns = self._columns(df, question)
        fields = [field.name for field in returned] if isinstance(returned, T.StructType) else None
        ask = F.arrow_udf(_answerer(_for_executors(self.model), question, columns, fields), returned)
        return ask(struct_of(cells))


def _for_executors(model):
    """The same model for cells without names, with one thread: an executor has as many tasks as cores."""
    model = copy.copy(model)
    model.__dict__.pop("feature_names_in_", None)
    model.n_threads = 1
    return model


def _answerer(model, question, columns, fields):
    """What is done with batches of rows where they are."""

    def answer(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        from covary.spark._worker import answered

        for batch in batches:
            yield answered(model, question, columns, fields, batch)

    return answer
