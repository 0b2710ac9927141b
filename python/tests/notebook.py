"""A notebook's worth of pandas and polars code: no conversion by hand, and mypy --strict has nothing to say.

test_notebook.py runs it and gives it to mypy.
"""

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from sklearn.datasets import load_wine

import covary

folder = Path(tempfile.mkdtemp())

# -- a frame of pandas, with an index, names and missing values ------------------------------------------------

wines: pd.DataFrame = load_wine(as_frame=True).data
wines.index = pd.Index([f"wine {i}" for i in range(len(wines))])
wines = wines.mask(np.random.default_rng(0).random(wines.shape) < 0.05)

found = covary.select(wines, max_components=4)
assert 1 <= found.recommended <= 4
model = covary.PPCA(3, scale="unit").fit(wines)
assert model.feature_names_in_.tolist() == wines.columns.tolist()

filled, std = model.impute(wines, return_std=True)
assert filled.index.equals(wines.index) and filled.columns.equals(wines.columns)
assert (std[wines.notna()].fillna(0) == 0).all().all()
assert model.reconstruct(wines).loc["wine 3", "alcohol"] == model.reconstruct(wines.loc[["wine 3"]]).iloc[0, 0]
assert model.contributions(wines)["cell"].loc["wine 3"].notna().sum() == wines.loc["wine 3"].notna().sum()

model.set_output(transform="pandas")
latent = model.transform(wines)
assert latent.columns.tolist() == ["ppca0", "ppca1", "ppca2"] and latent.index.equals(wines.index)
told = model.outliers(wines)
assert told.sort_values("p_value").index[0] == told["p_value"].idxmin()
assert model.inverse_transform(latent).columns.tolist() == wines.columns.tolist()

one: pd.Series = wines.loc["wine 3"]
indices, mean, covariance = model.conditional(one)
assert covariance.shape == (len(indices), len(indices)) == (len(mean), len(mean))
assert model.marginal(["ash", "hue"]).n_features_in_ == 2

weights: pd.Series = pd.Series(1.0, index=wines.index)
assert covary.PPCA(3, scale="unit").fit(wines, sample_weight=weights).score(wines) < 0

factors = covary.FactorAnalysis(2, rotation="varimax").fit(wines)
table = pd.DataFrame(factors.standardised_loadings_, index=factors.feature_names_in_)
assert table.shape == (13, 2)
groups = covary.MixturePPCA(3, 1, scale="unit").set_output(transform="pandas").fit(wines)
assert groups.predict_proba(wines).sum(axis=1).round(6).eq(1).all()
assert pd.Series(groups.predict(wines), index=wines.index).value_counts().sum() == len(wines)

# Nullable integers, categories of numbers and a column that holds nothing in some rows.
nullable = pd.DataFrame({"a": [1, 2, None, 4, 6], "b": [2.0, 4.1, 6.2, None, 12.0], "c": [1, 0, 1, 1, 0]}).convert_dtypes()
assert covary.PPCA(1).fit(nullable).impute(nullable).notna().all().all()

# -- the same in polars ----------------------------------------------------------------------------------------

frame: pl.DataFrame = pl.from_pandas(wines.reset_index(drop=True))
other = covary.PPCA(3, scale="unit").fit(frame)
assert np.allclose(other.loadings_, model.loadings_)
assert other.impute(frame).schema == frame.schema and other.impute(frame).null_count().sum_horizontal().item() == 0
assert other.set_output(transform="polars").transform(frame).columns == ["ppca0", "ppca1", "ppca2"]
assert other.outliers(frame).sort("p_value").height == frame.height
assert other.impute(frame.head(2)).get_column("ash").to_list() == other.impute(frame)["ash"].head(2).to_list()

# -- files, pickles, a pipeline --------------------------------------------------------------------------------

frame.write_parquet(folder / "wines.parquet")
rows = covary.read(folder / "wines.parquet")
again = pickle.loads(pickle.dumps(rows))
assert again.feature_names == frame.columns and again.n_rows == frame.height
assert np.array_equal(covary.PPCA(3, scale="unit").fit(again).loadings_, other.loadings_)
other.save(folder / "wines.covary")
assert np.array_equal(covary.load(folder / "wines.covary").loadings_, other.loadings_)

imputer = covary.Imputer(covary.PPCA(3, scale="unit"), add_indicator=True)
assert imputer.fit(wines).transform(wines).shape[1] == imputer.get_feature_names_out().size
assert "noise variance" in model.summary()
covary.plot.scores(model, wines.assign(kind="red"), color="kind").figure_.savefig(folder / "scores.png")
