"""KMeans: a drop-in for scikit-learn's, with missing values, weights, files and a search for the optimum."""

import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans as Theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import covary


def blobs(n=300, p=4, k=5, apart=2.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(k, p)) * apart
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, p))


def by_first(centres):
    return centres[np.lexsort(centres.T[::-1])]


@pytest.mark.parametrize("passes", [1, 2, 5, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_from_an_equal_start_the_centres_are_scikit_learns(passes, weighted):
    X = blobs(500, 6, 5, apart=1.0)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    options = {"n_clusters": 5, "init": X[:5].copy(), "n_init": 1, "max_iter": passes, "tol": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = covary.KMeans(**options).fit(X, sample_weight=w)
        theirs = Theirs(**options).fit(X, sample_weight=w)
    np.testing.assert_allclose(by_first(ours.cluster_centers_), by_first(theirs.cluster_centers_), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-12)
    # The same rows lie together, whatever clusters are called.
    same = ours.labels_[:, None] == ours.labels_
    assert (same == (theirs.labels_[:, None] == theirs.labels_)).all()
    if passes == 300:
        assert ours.n_iter_ == theirs.n_iter_


def test_questions_are_scikit_learns_for_the_same_centres():
    X, new = blobs(seed=2), blobs(50, seed=3)
    ours = covary.KMeans(5).fit(X)
    theirs = Theirs(5, init=ours.cluster_centers_, n_init=1).fit(X)
    order = theirs.predict(ours.cluster_centers_)
    np.testing.assert_array_equal(order[ours.predict(new)], theirs.predict(new))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new)[:, order], rtol=1e-12)
    np.testing.assert_allclose(ours.score(new), theirs.score(new), rtol=1e-12)
    w = np.linspace(0.1, 3, 50)
    np.testing.assert_allclose(ours.score(new, sample_weight=w), theirs.score(new, sample_weight=w), rtol=1e-12)
    assert ours.labels_.dtype == np.int32 and (ours.labels_ == ours.predict(X)).all()
    np.testing.assert_allclose(-ours.score(X), ours.inertia_, rtol=1e-12)
    np.testing.assert_array_equal(ours.reconstruct(new), ours.cluster_centers_[ours.predict(new)])
    assert (ours.fit_predict(X) == ours.labels_).all()
    assert (np.diff(ours.cluster_weights_) <= 0).all() and np.isclose(ours.cluster_weights_.sum(), 1)
    assert ours.get_feature_names_out().tolist() == [f"kmeans{k}" for k in range(5)]


@pytest.mark.parametrize("seed", range(3))
def test_the_inertia_is_not_above_ten_starts_of_scikit_learn(seed):
    X = blobs(400, 3, 12, apart=2.5, seed=seed)
    ours = covary.KMeans(12, random_state=seed).fit(X)
    theirs = Theirs(12, n_init=10, random_state=seed).fit(X)
    assert ours.inertia_ <= theirs.inertia_ * (1 + 1e-9)


def data(name):
    path = Path(os.environ.get("COVARY_DATA", Path(__file__).parents[3] / "shared" / "data")) / name
    if not path.exists():
        pytest.skip(f"{name} is not there; COVARY_DATA names its folder")
    return np.genfromtxt(path, delimiter=",", skip_header=1)


def test_best_known_inertia_of_iris():
    X = data("iris.csv")[:, :4]
    assert covary.KMeans(3).fit(X).inertia_ <= 78.851442
    assert covary.KMeans(2).fit(X).inertia_ <= 152.347953


def test_missing_values_by_definition():
    X = blobs(200, 4, 3, apart=4.0, seed=4)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    X[0] = np.nan
    model = covary.KMeans(3).fit(X)
    squares = np.nansum((X[:, None] - model.cluster_centers_) ** 2, axis=2)
    assert (model.labels_ == squares.argmin(axis=1)).all() and model.labels_[0] == 0
    np.testing.assert_allclose(model.transform(X), np.sqrt(squares), atol=1e-10)
    np.testing.assert_allclose(model.inertia_, squares.min(axis=1).sum(), rtol=1e-12)
    for k in range(3):
        own = (model.labels_ == k) & ~np.isnan(X).all(axis=1)
        np.testing.assert_allclose(np.nanmean(X[own], axis=0), model.cluster_centers_[k], rtol=1e-10)


def test_a_large_mean_and_single_precision_change_no_label():
    X = blobs(200, 3, 4, seed=5)
    labels = covary.KMeans(4).fit_predict(X)
    far = X + 1e8
    assert (covary.KMeans(4).fit_predict(far) == labels).all()
    single = covary.KMeans(4).fit(X.astype(np.float32))
    assert (single.labels_ == labels).all() and single.transform(X.astype(np.float32)).dtype == np.float32


def test_fewer_different_rows_than_clusters_warn_and_give_fewer():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(4\)"):
        model = covary.KMeans(4).fit(X)
    assert model.cluster_centers_.shape == (2, 2) and model.inertia_ == 0


def test_the_number_of_clusters_can_be_chosen():
    X = blobs(150, 2, 4, apart=30.0, seed=11)
    model = covary.KMeans(n_clusters=(1, 6)).fit(X)
    assert len(model.cluster_centers_) == 4
    rows = model.report_["clusters"]["chosen"]["rows"]
    assert [row["clusters"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert len(covary.KMeans("auto").fit(X).cluster_centers_) == 4


def test_batches():
    X = blobs(600, 3, 4, apart=8.0, seed=6)
    model = covary.KMeans(4)
    for batch in np.array_split(X, 3):
        model.partial_fit(batch)
    assert model.report_["clusters"]["online_steps"] == 3 and len(model.labels_) == 200
    whole = covary.KMeans(4).fit(X)
    np.testing.assert_allclose(by_first(model.cluster_centers_), by_first(whole.cluster_centers_), atol=1e-9)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2])


def test_files_frames_sparse_and_pickles(tmp_path):
    pd = pytest.importorskip("pandas")
    X = blobs(120, 3, 3, seed=7)
    model = covary.KMeans(3).fit(X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    from_file = covary.KMeans(3).fit(covary.read(tmp_path / "x.csv"))
    assert (from_file.labels_ == model.labels_).all()
    named = covary.KMeans(3).fit(frame)
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    named.save(tmp_path / "m.covary")
    loaded = covary.load(tmp_path / "m.covary")
    assert isinstance(loaded, covary.KMeans) and (loaded.predict(frame) == named.labels_).all()
    again = pickle.loads(pickle.dumps(named))
    assert (again.labels_ == named.labels_).all() and again.inertia_ == named.inertia_
    counts = scipy.sparse.random(60, 20, 0.2, random_state=0, format="csr")
    dense = covary.KMeans(2).fit(counts.toarray())
    assert (covary.KMeans(2).fit(counts).labels_ == dense.labels_).all()
    text = str(named.summary())
    assert "clusters (K)" in text and "inertia" in text
    assert named.set_output(transform="pandas").transform(frame).shape == (120, 3)


def test_in_a_pipeline_and_by_threads():
    X = blobs(300, 4, 5, seed=8)
    pipeline = make_pipeline(StandardScaler(), covary.KMeans(5, n_threads=1)).fit(X)
    other = make_pipeline(StandardScaler(), covary.KMeans(5, n_threads=2)).fit(X)
    np.testing.assert_array_equal(pipeline[-1].cluster_centers_, other[-1].cluster_centers_)


def test_a_function_gives_the_start():
    X = blobs(100, 2, 3, seed=9)
    calls = []

    def first(X, n_clusters, random_state):
        calls.append(n_clusters)
        return X[random_state.permutation(len(X))[:n_clusters]]

    model = covary.KMeans(3, init=first, n_init=4).fit(X)
    assert calls == [3] * 4
    assert model.report_["clusters"]["starts"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0"),
        ({"n_clusters": 2.5}, "n_clusters=2.5"),
        ({"init": "far"}, "init='far'"),
        ({"init": np.zeros((3, 2))}, "number of clusters"),
        ({"init": np.zeros((8, 3))}, "number of features"),
        ({"n_init": 0}, "n_init=0"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"algorithm": "full"}, "algorithm='full'"),
        ({"max_iter": 0}, "limit on iterations"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        covary.KMeans(**options).fit(blobs(30, 2, 3))


def test_infinite_cells_are_named():
    X = blobs(30, 2, 3)
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match="row 4"):
        covary.KMeans(2).fit(X)
    model = covary.KMeans(2).fit(blobs(30, 2, 3))
    with pytest.raises(ValueError, match="row 4"):
        model.predict(X)
