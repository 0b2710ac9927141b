"""covary.plot: the numbers on each Display, and each picture drawn without a screen."""

import inspect
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import KMeans as TheirKMeans
from sklearn.decomposition import PCA as TheirPCA
from sklearn.exceptions import NotFittedError
from support import low_rank, punched

import covary
from covary import plot

NAMES = ["alcohol", "ash", "hue", "a$b_c$d", "<script>", "very long name of a feature that nobody can read"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def frame():
    X = pd.DataFrame(low_rank(90, 6, 2), columns=NAMES, index=[f"r{i}" for i in range(90)])
    return X.assign(group=np.repeat(["one", "two", "three"], 30), year=np.linspace(1990, 2020, 90))


@pytest.fixture
def model(frame):
    return covary.PPCA(3).fit(frame[NAMES])


def drawn(display):
    """The picture, drawn."""
    display.figure_.canvas.draw()
    assert display.ax_.figure is display.figure_
    return display


def test_every_picture_has_a_function_and_a_display():
    wanted = """scree selection scores biplot loadings correlation_circle distances contributions row latent_grid missing
        trace residuals clusters"""
    for name in wanted.split():
        function = getattr(plot, name)
        assert "ax" in inspect.signature(function).parameters
        display = getattr(plot, "".join(part.title() for part in name.split("_")) + "Display")
        assert hasattr(display, "plot") and (function.__doc__ and display.__doc__)


def test_matplotlib_is_imported_when_something_is_drawn():
    code = "import sys, covary.plot; covary.plot.scree; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; sys.modules['matplotlib'] = None; import covary.plot; covary.plot.missing([[1.0, 2.0]])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install covary[plot]" in done.stderr.splitlines()[-1]


def test_scree(model):
    told = drawn(plot.scree(model))
    np.testing.assert_array_equal(told.ratio, model.explained_variance_ratio_)
    assert told.cumulative[-1] == pytest.approx(model.explained_variance_ratio_.sum())
    assert told.noise == pytest.approx(model.noise_variance_ / (model.explained_variance_[0] / told.ratio[0]))
    theirs = drawn(plot.scree(TheirPCA(2).fit(low_rank(50, 4, 2))))
    assert theirs.names == ["PC1", "PC2"]


def test_selection(frame):
    X = frame[NAMES]
    found = covary.select(X)
    told = drawn(plot.selection(found))
    np.testing.assert_array_equal(told.values["log density of held-out rows"], found.table["cross_validated"])
    assert told.recommended == found.recommended and told.choices == found.choices
    with_holes = drawn(plot.selection(punched(low_rank(60, 5, 2), 0.1), max_components=3))
    assert with_holes.criterion == "Q² of hidden cells"
    clusters = drawn(plot.selection(X, model="kmeans", groups=4))
    assert clusters.of == "clusters" and len(clusters.numbers) == 4
    groups = drawn(plot.selection(X.to_numpy(), model="mixture", groups=2, max_components=1))
    assert {"0 latent", "1 latent"} <= set(groups.values)


def test_scores_and_colours(model, frame):
    told = drawn(plot.scores(model, frame, components=(0, 2), color="group"))
    np.testing.assert_array_equal(told.scores, model.transform(frame[NAMES])[:, [0, 2]])
    assert [text.get_text() for text in told.ax_.get_legend().get_texts()] == ["one", "three", "two"]
    scale = drawn(plot.scores(model, frame, color="year"))
    assert scale.ax_.get_legend() is None and len(scale.figure_.axes) == 2
    of_polars = pl.DataFrame(frame.reset_index(drop=True).to_dict("list"))
    same = drawn(plot.scores(model, of_polars, components=(0, 2), color="group"))
    np.testing.assert_allclose(same.scores, told.scores)
    drawn(plot.scores(TheirPCA(2).fit(frame[NAMES]), frame, color=np.arange(90) % 2))
    with pytest.raises(ValueError, match="not a column"):
        plot.scores(model, frame, color="colour")
    with pytest.raises(ValueError, match="90 rows"):
        plot.scores(model, frame, color=[1, 2])
    with pytest.raises(ValueError, match="0 to 2"):
        plot.scores(model, frame, components=(0, 3))


def test_ellipses_are_posterior_covariances(frame):
    X = punched(frame[NAMES].to_numpy(), 0.2)
    model = covary.PPCA(2).fit(X)
    told = drawn(plot.scores(model, X, ellipses=True))
    assert set(told.ellipses) <= set(np.flatnonzero(np.isnan(X).any(axis=1)))
    row = next(iter(told.ellipses))
    np.testing.assert_array_equal(told.ellipses[row], model.posterior(X)[1][row])


def test_biplot(model, frame):
    told = drawn(plot.biplot(model, frame, color="group"))
    np.testing.assert_array_equal(told.loadings, model.loadings_[:, :2])
    scaled = covary.PPCA(2, scale="unit").fit(frame[NAMES])
    told = drawn(plot.biplot(scaled, frame))
    deviations = np.sqrt(np.diag(scaled.get_covariance()))
    np.testing.assert_allclose(told.loadings, scaled.loadings_ / deviations[:, None])
    theirs = TheirPCA(2).fit(frame[NAMES])
    told = drawn(plot.biplot(theirs, frame))
    np.testing.assert_allclose(told.loadings, theirs.components_.T * np.sqrt(theirs.explained_variance_))


def test_loadings(model, frame):
    np.testing.assert_array_equal(drawn(plot.loadings(model)).loadings, model.loadings_)
    factors = covary.FactorAnalysis(2, rotation="oblimin").fit(frame[NAMES])
    told = drawn(plot.loadings(factors, sort=True))
    assert told.standardised and sorted(told.features) == sorted(NAMES)
    main = np.abs(told.loadings).argmax(axis=1)
    assert (np.diff(main) >= 0).all()
    drawn(plot.loadings(covary.PPCA(1).fit(frame[NAMES])))
    drawn(plot.loadings(covary.ICA(2).fit(frame[NAMES])))
    with pytest.raises(TypeError, match="KMeans has not"):
        plot.loadings(covary.KMeans(2).fit(frame[NAMES]))
    with pytest.raises(TypeError, match="component"):
        plot.loadings(covary.MixturePPCA(2, n_latent=1).fit(frame[NAMES]))


def test_correlation_circle(model, frame):
    told = drawn(plot.correlation_circle(model))
    C = model.get_covariance()
    np.testing.assert_allclose(told.correlations, model.loadings_[:, :2] / np.sqrt(np.diag(C))[:, None])
    theirs = TheirPCA(6).fit(frame[NAMES])
    told = drawn(plot.correlation_circle(theirs))
    # The textbook's numbers: correlations of the columns with the scores.
    scores = theirs.transform(frame[NAMES])
    expected = np.corrcoef(frame[NAMES].to_numpy().T, scores[:, :2].T)[:6, 6:]
    np.testing.assert_allclose(told.correlations, expected, atol=1e-10)
    ours = drawn(plot.correlation_circle(covary.PCA(6).fit(frame[NAMES])))
    np.testing.assert_allclose(np.abs(ours.correlations), np.abs(expected), atol=1e-10)


def test_distances(model, frame):
    X = frame[NAMES].copy()
    X.iloc[7, 2] += 50
    told = drawn(plot.distances(model, X, level=0.95, color=frame["group"]))
    outliers = model.outliers(X)
    np.testing.assert_array_equal(told.t2, outliers["t2"])
    assert told.t2_limit == model.limits(0.95)["t2"] and told.spe_limit == model.limits(0.95)["spe"]
    assert "r7" in [text.get_text() for text in told.ax_.texts]
    holes = punched(X.to_numpy(), 0.1)
    told = drawn(plot.distances(covary.PPCA(2).fit(holes), holes))
    assert told.t2_limit.shape == (90,) and "limit" in told.ax_.get_xlabel()
    apart = X + 20 * (np.arange(90) < 40)[:, None]
    mixture = covary.MixturePPCA(2, n_latent=1).fit(apart)
    assert drawn(plot.distances(mixture, apart)).spe_limit.shape == (90,)
    with pytest.raises(TypeError, match="limits"):
        plot.distances(TheirPCA(2).fit(X), X)


def test_contributions_and_row(model, frame):
    X = frame[NAMES].copy()
    X.iloc[7, 2] += 50
    X.iloc[7, 0] = np.nan
    told = drawn(plot.contributions(model, X, worst=6))
    assert told.names[0] == "r7" and np.abs(np.nan_to_num(told.deviations[0])).argmax() == 2
    cell = model.contributions(X)["cell"].to_numpy()[told.rows]
    np.testing.assert_allclose(told.deviations**2, cell, rtol=1e-8)
    chosen = drawn(plot.contributions(model, X, rows=[3, 1]))
    assert chosen.names == ["r3", "r1"]
    one = drawn(plot.row(model, X, 7))
    assert one.name == "r7" and one.features[0] == "hue" and len(one.values) == 5
    assert one.cell[0] == pytest.approx(cell[0, 2])
    few = drawn(plot.row(model, X, 7, most=2))
    assert len(few.values) == 2 and few.hidden == 3
    drawn(plot.row(covary.RobustPPCA(2).fit(X), X, 7))


def test_latent_grid(model, frame):
    told = drawn(plot.latent_grid(model, side=3, span=1.0))
    assert told.rows.shape == (3, 3, 6)
    # The first row is at the top: the second component is largest there.
    np.testing.assert_allclose(told.rows[0, 2], model.inverse_transform([[1.0, 1.0, 0.0]])[0])
    images = drawn(plot.latent_grid(model, image=(2, 3)))
    assert images.ax_.images
    classical = covary.PCA(2).fit(frame[NAMES])
    told = drawn(plot.latent_grid(classical, side=3, span=2.0))
    assert told.places[0, 2, 0] == pytest.approx(2 * np.sqrt(classical.explained_variance_[0]))
    kernel = covary.KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(frame[NAMES])
    assert drawn(plot.latent_grid(kernel, X=frame, side=3)).rows.shape == (3, 3, 6)
    with pytest.raises(ValueError, match="pixels"):
        plot.latent_grid(model, image=(3, 3))


def test_missing():
    X = punched(low_rank(1000, 5, 2), 0.1)
    told = drawn(plot.missing(X))
    np.testing.assert_allclose(told.fraction, np.isnan(X).mean(axis=0))
    assert told.counts.sum() == 1000 and told.counts[0] == told.counts.max()
    drawn(plot.missing(pd.DataFrame(X), by_pattern=True))
    drawn(plot.missing(np.ones((1, 1))))


def test_trace():
    X = punched(low_rank(60, 5, 2), 0.1)
    model = covary.PPCA(2).fit(X)
    told = drawn(plot.trace(model))
    np.testing.assert_array_equal(told.objective, model.report_["trace"])
    with pytest.raises(ValueError, match="closed form"):
        plot.trace(covary.PPCA(2).fit(low_rank(60, 5, 2)))


def test_residuals(frame):
    X = frame[NAMES].to_numpy()
    model = covary.FactorAnalysis(1).fit(X)
    told = drawn(plot.residuals(model, X))
    C = model.get_covariance()
    d = np.sqrt(np.diag(C))
    np.testing.assert_allclose(told.residuals, np.corrcoef(X.T) - C / np.outer(d, d), atol=1e-10)
    assert told.srmr == pytest.approx(model.fit_indices_["srmr"], rel=0.2)
    holes = punched(X, 0.2)
    told = drawn(plot.residuals(covary.PPCA(2).fit(holes), holes))
    theirs = pd.DataFrame(holes).corr().to_numpy()
    D = covary.PPCA(2).fit(holes).get_covariance()
    np.testing.assert_allclose(told.residuals, theirs - D / np.sqrt(np.outer(np.diag(D), np.diag(D))), atol=1e-9)


def test_clusters(frame):
    X = frame[NAMES].to_numpy() + 8 * (np.arange(90) < 30)[:, None]
    for estimator in (covary.KMeans(2), covary.MixturePPCA(2, n_latent=1), TheirKMeans(2, n_init=3)):
        told = drawn(plot.clusters(estimator.fit(X), X))
        assert sorted(told.sizes.tolist()) == [30, 60]
        small = told.sizes.argmin()
        expected = (X[told.labels == small].mean(axis=0) - X.mean(axis=0)) / X.std(axis=0)
        np.testing.assert_allclose(told.profiles[small], expected, atol=0.05)


def test_pictures_go_where_they_are_wanted(model, frame):
    figure, axes = plt.subplots(1, 2)
    first = plot.scree(model, ax=axes[0])
    assert first.ax_ is axes[0] and first.figure_ is figure
    assert first.plot(axes[1]).ax_ is axes[1]
    assert len(plt.get_fignums()) == 1
    with pytest.raises(NotFittedError):
        plot.scree(covary.PPCA(2))


def test_many_features_and_rows():
    X = low_rank(5000, 120, 3)
    model = covary.PPCA(3).fit(X)
    for display in (
        plot.loadings(model), plot.biplot(model, X), plot.correlation_circle(model), plot.contributions(model, X),
        plot.row(model, X, 4), plot.missing(X), plot.distances(model, X),
    ):
        drawn(display)
