"""What PCA adds to scikit-learn's, and where the two meet."""

import numpy as np
import pytest
import sklearn.decomposition
from scipy import sparse
from support import closed_form, low_rank

import covary

NUMBERS = "explained_variance_ explained_variance_ratio_ singular_values_ mean_ noise_variance_ n_components_ n_samples_"


@pytest.mark.parametrize("whiten", [False, True])
def test_tall_data_give_scikit_learns_numbers(whiten):
    X = low_rank(300, 12, 4)
    ours = covary.PCA(4, whiten=whiten).fit(X)
    theirs = sklearn.decomposition.PCA(4, whiten=whiten, svd_solver="full").fit(X)
    for name in NUMBERS.split():
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, err_msg=name)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    np.testing.assert_allclose(ours.components_, theirs.components_ * signs[:, None], atol=1e-10)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X) * signs, atol=1e-10)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), theirs.inverse_transform(theirs.transform(X)))


def test_fewer_rows_than_features_have_the_right_noise():
    X = low_rank(20, 50, 3)
    _, values, noise, _ = closed_form(X, 3)
    assert covary.PCA(3).fit(X).noise_variance_ == pytest.approx(noise * 20 / 19, rel=1e-9)
    # scikit-learn's divides by min(n, p) − q = 17 directions instead of p − q = 47.
    theirs = sklearn.decomposition.PCA(3, svd_solver="full").fit(X).noise_variance_
    assert theirs == pytest.approx(noise * 20 / 19 * 47 / 17, rel=1e-6)


def test_as_many_directions_as_rows_where_scikit_learn_has_them():
    X = low_rank(6, 10, 3)
    ours = covary.PCA().fit(X)
    assert ours.components_.shape == (6, 10) and ours.noise_variance_ == 0.0
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(6), atol=1e-12)
    assert ours.explained_variance_[5] == 0.0
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-10)


def test_weights_count_rows():
    X = low_rank(100, 6, 2)
    weights = np.arange(100) % 4
    ours = covary.PCA(2, whiten=True).fit(X, sample_weight=weights)
    repeated = covary.PCA(2, whiten=True).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(ours.explained_variance_, repeated.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.transform(X), repeated.transform(X), atol=1e-10)
    with pytest.raises(ValueError, match="weight minus 1"):
        covary.PCA(2).fit(X, sample_weight=np.full(100, 0.005))


@pytest.mark.parametrize("make", [covary.PCA, covary.PPCA])
def test_all_components_do_not_depend_on_how_rows_are_repeated(make):
    X = low_rank(12, 30, 4)
    weights = np.arange(12) % 5
    ours, repeated = make().fit(X, sample_weight=weights), make().fit(np.repeat(X, weights, axis=0))
    parts = make().partial_fit(X[:5], sample_weight=weights[:5]).partial_fit(X[5:], sample_weight=weights[5:])
    # Nine rows of positive weight vary in eight directions; they stand for 21 rows, and scikit-learn's PCA has min(n, p).
    expected = {covary.PCA: 21, covary.PPCA: 8}[make]
    assert ours.n_components_ == repeated.n_components_ == parts.n_components_ == expected
    for each in (repeated, parts):
        np.testing.assert_allclose(ours.transform(X), each.transform(X), atol=1e-8)
    if make is covary.PCA:
        np.testing.assert_allclose(make(21).fit(X, sample_weight=weights).transform(X), ours.transform(X), atol=1e-8)
        with pytest.raises(ValueError, match="between 0 and min"):
            make(22).fit(X, sample_weight=weights)


def test_no_components_are_the_mean_and_a_round_noise():
    X = low_rank(40, 3, 1)
    ours, theirs = covary.PCA(0).fit(X), sklearn.decomposition.PCA(0, svd_solver="full").fit(X)
    assert ours.transform(X).shape == (40, 0) and ours.n_components_ == 0
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-12)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), np.tile(X.mean(axis=0), (40, 1)))


def test_rows_with_holes_are_projected_by_least_squares():
    X = low_rank(200, 6, 2)
    pca = covary.PCA(2).fit(X)
    x = X[0].copy()
    x[[1, 4]] = np.nan
    o = ~np.isnan(x)
    expected = np.linalg.lstsq(pca.components_[:, o].T, (x - pca.mean_)[o], rcond=None)[0]
    np.testing.assert_allclose(pca.transform(x[None])[0], expected, atol=1e-10)


@pytest.mark.parametrize("svd_solver", ["auto", "covariance_eigh", "arpack", "randomized"])
def test_sparse_zeros_are_zeros(svd_solver):
    dense = np.where(np.random.default_rng(0).random((300, 20)) < 0.2, low_rank(300, 20, 3), 0.0)
    pca = covary.PCA(3, svd_solver=svd_solver)
    for container in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        ours = pca.fit(container(dense)).transform(container(dense))
        np.testing.assert_allclose(np.abs(ours), np.abs(covary.PCA(3).fit_transform(dense)), atol=1e-7)


def test_single_precision_in_single_precision_out():
    X = low_rank(300, 5, 2).astype(np.float32)
    pca = covary.PCA(2, whiten=True).fit(X)
    Z = pca.transform(X)
    assert Z.dtype == np.float32 and pca.inverse_transform(Z).dtype == np.float32
    np.testing.assert_allclose(pca.inverse_transform(Z), covary.PCA(2).fit(X.astype(float)).reconstruct(X), atol=1e-3)
