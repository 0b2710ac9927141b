"""Stages as files: what pyspark.ml writes of its own, and the model's file beside it, on whatever Spark can reach."""

import os
import tempfile

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

import covary


class Writer(MLWriter):
    """Writes a stage, on classic Spark and through Spark Connect."""

    def __init__(self, instance):
        super().__init__()
        self.instance = instance

    def _handleOverwrite(self, path):
        """Nothing: each part is overwritten as it is written, which needs no JVM."""

    def saveImpl(self, path):
        session = self.sparkSession
        text = DefaultParamsWriter._get_metadata_to_save(self.instance, session)
        self._write(session.createDataFrame([(text,)], "value string"), "text", os.path.join(path, "metadata"))
        model = getattr(self.instance, "model", None)
        if model is not None:
            frame = session.createDataFrame([(bytearray(_bytes_of(model)),)], "model binary")
            self._write(frame, "parquet", os.path.join(path, "model"))

    def _write(self, frame, form, path):
        mode = "overwrite" if self.shouldOverwrite else "error"
        frame.coalesce(1).write.mode(mode).format(form).save(path)


class Reader(MLReader):
    """Reads a stage."""

    def __init__(self, cls):
        super().__init__()
        self.cls = cls

    def load(self, path):
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        name = metadata["class"].rsplit(".", 1)[-1]
        if name != self.cls.__name__:
            raise ValueError(f"{path} holds a {name}, not a {self.cls.__name__}")
        stage = self.cls()
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        if hasattr(stage, "model"):
            row = self.sparkSession.read.parquet(os.path.join(path, "model")).first()
            stage.model = _model_of(bytes(row["model"]))
        return stage


def _bytes_of(model):
    """The file of a model, the same as `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.covary")
        model.save(path)
        with open(path, "rb") as file:
            return file.read()


def _model_of(data):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.covary")
        with open(path, "wb") as file:
            file.write(data)
        return covary.load(path)
