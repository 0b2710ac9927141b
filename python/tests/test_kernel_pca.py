"""Kernel PCA: scikit-learn's numbers, landmarks, pre-images, novelty, bad input."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import KernelPCA as TheirKernelPCA
from sklearn.decomposition import PCA as TheirPCA
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import covary

KERNELS = [
    ("linear", {}),
    ("rbf", {"gamma": 0.01}),
    ("poly", {"degree": 2, "gamma": 0.01}),
    ("sigmoid", {"gamma": 1e-5, "coef0": 0.1}),
    ("cosine", {}),
    ("laplacian", {"gamma": 0.05}),
]
SETS = {"digits": load_digits, "iris": load_iris, "wine": load_wine}


def theirs(kernel, options, X, q):
    """scikit-learn's, to which the laplacian kernel is given as a matrix."""
    if kernel == "laplacian":
        matrix = laplacian_kernel(X, **options)
        return TheirKernelPCA(q, kernel="precomputed", eigen_solver="dense").fit(matrix), matrix
    return TheirKernelPCA(q, kernel=kernel, eigen_solver="dense", **options).fit(X), X


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("kernel", "options"), KERNELS)
def test_numbers_are_those_of_scikit_learn(name, kernel, options):
    X = SETS[name]().data
    q = 3
    ours = covary.KernelPCA(q, kernel=kernel, **options).fit(X)
    other, given = theirs(kernel, options, X, q)
    scale = other.eigenvalues_[0]
    np.testing.assert_allclose(ours.eigenvalues_, other.eigenvalues_, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(ours.transform(X), other.transform(given), rtol=0, atol=1e-7 * np.sqrt(scale))
    np.testing.assert_allclose(ours.eigenvectors_, other.eigenvectors_, rtol=0, atol=1e-7)


def test_a_function_is_a_kernel():
    X = load_iris().data
    of_function = covary.KernelPCA(2, kernel=lambda x, y, scale: np.exp(-scale * np.sum((x - y) ** 2)), kernel_params={"scale": 0.3})
    of_name = covary.KernelPCA(2, kernel="rbf", gamma=0.3).fit(X)
    z = of_function.fit(X[:100]).transform(X[100:])
    by_name = covary.KernelPCA(2, kernel="rbf", gamma=0.3).fit(X[:100]).transform(X[100:])
    np.testing.assert_allclose(z, by_name, atol=1e-10)
    assert of_function.X_fit_.shape == (100, 4) and of_name.n_components_ == 2
    with pytest.raises(ValueError, match="novelty"):
        of_function.score_samples(X)
    with pytest.raises(ValueError, match="callable"):
        clone(of_function).set_params(fit_inverse_transform=True).fit(X)


def test_landmarks_come_near_to_all_rows():
    X = load_digits().data
    exact = covary.KernelPCA(5, kernel="rbf", gamma=1e-3).fit(X)
    assert exact.landmarks_ is None and exact.approximation_error_ == 0.0
    errors = []
    for m in (50, 200, 600):
        fit = covary.KernelPCA(5, kernel="rbf", gamma=1e-3, n_landmarks=m).fit(X)
        assert fit.landmarks_.shape == (m, 64) and fit.report_["solver"] == "landmarks"
        errors.append(fit.approximation_error_)
        assert (fit.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-9)).all()
        with pytest.raises(AttributeError, match="landmarks"):
            fit.eigenvectors_
    assert errors[0] > errors[1] > errors[2] > 0
    np.testing.assert_allclose(fit.eigenvalues_, exact.eigenvalues_, rtol=0.02)
    given = covary.KernelPCA(2, kernel="rbf", gamma=1e-3, landmarks=X[:40]).fit(X)
    np.testing.assert_array_equal(np.sort(given.landmarks_.sum(axis=1)), np.sort(X[:40].sum(axis=1)))
    centres = covary.KernelPCA(2, kernel="rbf", gamma=1e-3, n_landmarks=30, landmarks="k-means").fit(X)
    assert centres.approximation_error_ < errors[0] * 1.5


@pytest.mark.parametrize("inverse", ["fixed-point", "ridge"])
def test_a_linear_kernel_is_pca_with_its_mean(inverse):
    X = load_wine().data + 100.0
    ours = covary.KernelPCA(3, fit_inverse_transform=True, inverse=inverse).fit(X)
    pca = TheirPCA(3).fit(X)
    np.testing.assert_allclose(ours.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), pca.inverse_transform(pca.transform(X)), rtol=1e-10)
    spe = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
    np.testing.assert_allclose(ours.score_samples(X), spe, rtol=1e-6, atol=1e-8)


def test_ridge_is_the_regression_around_the_mean():
    X = load_iris().data
    ours = covary.KernelPCA(3, kernel="rbf", gamma=0.5, fit_inverse_transform=True, inverse="ridge", alpha=0.1).fit(X)
    Z = ours.transform(X)
    K = rbf_kernel(Z, Z, gamma=0.5)
    dual = np.linalg.solve(K + 0.1 * np.eye(len(X)), X - X.mean(axis=0))
    np.testing.assert_allclose(ours.dual_coef_, dual, atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(Z), K @ dual + X.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(ours.X_transformed_fit_, Z, atol=1e-10)
    theirs = TheirKernelPCA(3, kernel="rbf", gamma=0.5, fit_inverse_transform=True, alpha=0.1).fit(X)
    off = lambda back: np.linalg.norm(back - X)  # noqa: E731
    assert off(ours.inverse_transform(Z)) < off(theirs.inverse_transform(theirs.transform(X)))


def test_the_fixed_point_is_one():
    X = load_iris().data
    model = covary.KernelPCA(4, kernel="rbf", gamma=0.3, fit_inverse_transform=True).fit(X)
    Z = model.transform(X[:20])
    back = model.inverse_transform(Z)
    # x = Σ γ k(x, xᵢ) xᵢ / Σ γ k(x, xᵢ), γ of the projection with the mean in it.
    alphas = model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    weights = Z @ alphas.T + 1 / len(X)
    K = weights * rbf_kernel(back, X, gamma=0.3)
    np.testing.assert_allclose(back, K @ X / K.sum(axis=1, keepdims=True), atol=1e-6)


def test_weights_files_and_copies(tmp_path):
    X = load_iris().data
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    a = covary.KernelPCA(3, kernel="rbf", gamma=0.2).fit(X, sample_weight=weights)
    b = covary.KernelPCA(3, kernel="rbf", gamma=0.2).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(a.transform(X)), np.abs(b.transform(X)), atol=1e-9)
    np.savetxt(tmp_path / "iris.csv", X, delimiter=",")
    of_file = covary.KernelPCA(3, kernel="rbf", gamma=0.2).fit(covary.read(tmp_path / "iris.csv", header=False))
    np.testing.assert_allclose(of_file.eigenvalues_, covary.KernelPCA(3, kernel="rbf", gamma=0.2).fit(X).eigenvalues_)
    a.save(tmp_path / "m.covary")
    again = covary.load(tmp_path / "m.covary")
    assert isinstance(again, covary.KernelPCA) and again.kernel == "rbf" and again.gamma_ == 0.2
    np.testing.assert_array_equal(again.transform(X), a.transform(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(a)).transform(X), a.transform(X))
    assert again.inverse_transform(again.transform(X)).shape == X.shape
    assert "rbf: gamma 0.2" in a.summary() and "holds" in a.summary()


def test_bad_input_is_named():
    X = load_iris().data
    cases = [
        ({"kernel": "rbf", "gamma": 0.0}, "gamma"),
        ({"kernel": "rbf", "gamma": -1}, "gamma"),
        ({"kernel": "poly", "degree": 0}, "degree"),
        ({"kernel": "poly", "degree": 2.5}, "degree"),
        ({"kernel": "round"}, "kernel"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": "mle"}, "n_components"),
        ({"eigen_solver": "svd"}, "eigen_solver"),
        ({"kernel": "rbf", "n_landmarks": 0}, "landmarks"),
        ({"kernel": "rbf", "n_landmarks": 2, "n_components": 3}, "landmarks"),
        ({"kernel": "rbf", "landmarks": "grid"}, "landmarks"),
        ({"kernel": "rbf", "landmarks": "k-means"}, "n_landmarks"),
        ({"kernel": "rbf", "landmarks": X[:5, :2]}, "features"),
        ({"kernel": "sigmoid", "n_landmarks": 5}, "semidefinite"),
        ({"kernel": "rbf", "alpha": 0.0}, "alpha"),
        ({"kernel": "rbf", "inverse": "magic"}, "inverse"),
        ({"kernel": "precomputed"}, "square"),
    ]
    for options, words in cases:
        with pytest.raises(ValueError, match=words):
            covary.KernelPCA(**options).fit(X)
    with pytest.raises(ValueError, match="not symmetric"):
        covary.KernelPCA(kernel="precomputed").fit([[1.0, 2.0], [3.0, 40.0]])
    with pytest.raises(ValueError, match="NaN.*laplacian.*rbf or linear"):
        covary.KernelPCA(kernel="laplacian").fit([[0.0, 1.0], [np.nan, 2.0], [3.0, 4.0]])
    model = covary.KernelPCA(2, kernel="rbf").fit(X)
    with pytest.raises(ValueError, match="row 1.*column 0"):
        model.transform([[0.0, 1.0, 2.0, 3.0], [np.nan, 2.0, 3.0, 4.0]])
    with pytest.raises(ValueError, match="features"):
        model.transform(X[:, :2])
    # More components than rows are as many as rows, as in scikit-learn.
    assert covary.KernelPCA(500, kernel="rbf").fit(X).n_components_ == 150


def test_indefinite_kernels_say_so():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(30, 30))
    K = K + K.T
    model = covary.KernelPCA(4, kernel="precomputed").fit(K)
    H = np.eye(30) - 1 / 30
    values = np.linalg.eigvalsh(H @ K @ H)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:4], rtol=1e-9)
    np.testing.assert_allclose(model.report_["kernel"]["negative"], values[0], rtol=1e-9)
    assert "not positive semidefinite" in model.summary()


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 60}])
def test_rows_with_missing_values(options, tmp_path):
    rng = np.random.default_rng(0)
    t = 4 * rng.random(200)
    X = np.c_[np.cos(t), np.sin(t), t / 2] @ rng.normal(size=(3, 6)) + 0.05 * rng.normal(size=(200, 6))
    holes = X.copy()
    holes[rng.random(X.shape) < 0.15] = np.nan
    options = {"kernel": "rbf", "gamma": 0.2, "fit_inverse_transform": True, "random_state": 0, **options}
    whole = covary.KernelPCA(3, **options).fit(X)
    model = covary.KernelPCA(3, **options).fit(holes)
    assert model.report_["holes"]["missing"] == np.isnan(holes).sum()
    assert model.report_["kernel"]["filling_components"] >= 1
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    by_means = covary.KernelPCA(3, **options).fit(filled)

    def apart(z):
        truth = whole.transform(X)
        return np.sum((z @ z.T - truth @ truth.T) ** 2)

    assert apart(model.transform(holes)) < 0.5 * apart(by_means.transform(filled))
    assert np.isfinite(model.score_samples(holes)).all() and np.isfinite(model.reconstruct(holes)).all()
    missing = np.isnan(holes)
    rebuilt = model.reconstruct(holes)
    assert np.sum((rebuilt - X)[missing] ** 2) < 0.5 * np.sum((filled - X)[missing] ** 2)
    # Masked cells are the same, a row without a cell has an answer, and a file and a pickle change no bit.
    masked = np.ma.masked_invalid(holes)
    assert np.array_equal(model.transform(masked), model.transform(holes))
    assert np.isfinite(model.transform(np.full((1, 6), np.nan))).all()
    model.save(tmp_path / "m.covary")
    assert np.array_equal(covary.load(tmp_path / "m.covary").transform(holes), model.transform(holes))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(holes), model.transform(holes))


def test_width_and_number_by_kernel_parallel_analysis():
    rng = np.random.default_rng(1)
    centres = 4 * rng.normal(size=(3, 4))
    X = centres[np.arange(120) % 3] + 0.3 * rng.normal(size=(120, 4))
    found = covary.select(X, model="kpca")
    assert found.recommended["n_components"] >= 2 and len(found.table["gamma"]) == 9
    assert (found.n_rows, found.n_sampled, found.n_features, found.kernel) == (120, 120, 4, "rbf")
    assert found.table["excess"].argmax() == list(found.table["gamma"]).index(found.recommended["gamma"])
    assert "kernel parallel analysis" in repr(found) and "<table" in found._repr_html_()
    model = covary.KernelPCA("auto", kernel="rbf").fit(X)
    assert (model.n_components_, model.gamma_) == (found.recommended["n_components"], found.recommended["gamma"])
    given = covary.KernelPCA("auto", kernel="rbf", gamma=0.1).fit(X)
    assert given.gamma_ == 0.1
    linear = covary.select(X, model="kpca", kernel="linear", max_components=1)
    assert linear.recommended == {"n_components": 1}
    with pytest.raises(ValueError, match="not for model='kpca'"):
        covary.select(X, model="kpca", folds=3)
    with pytest.raises(ValueError, match="are for model='kpca'"):
        covary.select(X, gamma=1.0)
    with pytest.raises(ValueError, match="permuted"):
        covary.select(X, model="kpca", kernel="precomputed")
    with pytest.raises(ValueError, match="n_components='many'"):
        covary.KernelPCA("many").fit(X)
