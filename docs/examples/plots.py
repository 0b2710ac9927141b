"""The pictures of docs/plots.md: every function of covary.plot on data that scikit-learn carries.

Run from the folder of the project, with the package and matplotlib installed: python docs/examples/plots.py [FOLDER]
"""

import io
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits, load_wine

import covary

# Wine's features, as the axes have room for them.
SHORT = {
    "alcalinity_of_ash": "alcalinity",
    "total_phenols": "phenols",
    "nonflavanoid_phenols": "nonflavanoids",
    "proanthocyanins": "proanthocyanins",
    "color_intensity": "colour",
    "od280/od315_of_diluted_wines": "od280/od315",
}


def wine():
    """178 wines of three growers, with 13 measurements each."""
    given = load_wine(as_frame=True)
    return given.data.rename(columns=SHORT).assign(grower=given.target_names[given.target])


def with_holes(frame, share=0.08, seed=0):
    """The same with cells missing: some at random, and a block that was never measured."""
    rng = np.random.default_rng(seed)
    holes = frame.drop(columns="grower").mask(rng.random((len(frame), frame.shape[1] - 1)) < share)
    holes.loc[60:110, ["flavanoids", "nonflavanoids"]] = np.nan
    return holes


def pictures():
    """Name and display of each picture."""
    plot, wines, digits = covary.plot, wine(), load_digits().data
    X = wines.drop(columns="grower")
    holes = with_holes(wines)
    model = covary.PPCA(5, scale="unit").fit(X)
    scaled = (X - X.mean()) / X.std()
    factors = covary.FactorAnalysis(3, rotation="oblimin").fit(X)
    yield "scree", plot.scree(model)
    yield "selection", plot.selection(scaled)
    yield "scores", plot.scores(model, wines, color="grower")
    yield "biplot", plot.biplot(model, wines, color="grower")
    yield "loadings", plot.loadings(factors, sort=True)
    yield "correlation_circle", plot.correlation_circle(model)
    yield "distances", plot.distances(model, X, level=0.95)
    yield "contributions", plot.contributions(model, X, worst=8)
    yield "row", plot.row(model, X, int(model.outliers(X)["p_value"].argmin()))
    yield "latent_grid", plot.latent_grid(covary.PPCA(2).fit(digits), image=(8, 8), side=9)
    yield "missing", plot.missing(holes)
    yield "trace", plot.trace(covary.PPCA(3, scale="unit").fit(holes))
    yield "residuals", plot.residuals(factors, X)
    yield "clusters", plot.clusters(covary.KMeans(3, random_state=0).fit(scaled), scaled)


def save(figure, path):
    """A small file: 64 colours are enough."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80)
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    for name, display in pictures():
        save(display.figure_, folder / f"{name}.png")
        matplotlib.pyplot.close(display.figure_)
    print(f"pictures in {folder}")


if __name__ == "__main__":
    main()
