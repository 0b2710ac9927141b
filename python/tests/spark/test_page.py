"""The code blocks of docs/spark.md run."""

import pages


def test_page(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages.Page("docs/spark.md", tmp_path, spark=spark).run()
