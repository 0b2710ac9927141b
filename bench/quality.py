"""How good a fit is, by one formula for all programs: the likelihood of the observed cells, and the bound of Bayesian PCA."""

import math

import numpy as np


def log_likelihood(X, mean, W, noise, block=20_000):
    """Mean log density of the observed cells of rows under x = W z + mean + noise, by small systems per row."""
    q, total = W.shape[1], 0.0
    pairs = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
    for start in range(0, len(X), block):
        x = np.asarray(X[start : start + block], dtype=np.float64)
        seen = ~np.isnan(x)
        e = np.where(seen, x - mean, 0.0)
        if seen.all():
            M = np.broadcast_to(W.T @ W, (1, q, q)) + noise * np.eye(q)
        else:
            M = (seen.astype(float) @ pairs).reshape(-1, q, q) + noise * np.eye(q)
        b = e @ W
        z = np.linalg.solve(M, b[..., None])[..., 0]
        k = seen.sum(axis=1)
        quadratic = ((e * e).sum(axis=1) - (b * z).sum(axis=1)) / noise
        total += np.sum(k * np.log(2 * np.pi) + (k - q) * np.log(noise) + np.linalg.slogdet(M)[1] + quadratic)
    return -0.5 * total / len(X)


def bound(X, mean, W, spreads, noise):
    """The lower bound on the log evidence per row that covary maximises, for any posterior of Bayesian PCA: (w, μ) of feature j with covariance
    spreads[j] (q + 1, q + 1), the posterior of z and the precisions of W at their best, noise variance 1/E[τ]."""
    (p, q), seen = W.shape, ~np.isnan(X)
    second = spreads[:, :q, :q] + W[:, :, None] * W[:, None, :]  # E wwᵀ
    e = np.where(seen, X - mean, 0.0)
    M = np.eye(q) + (seen.astype(float) @ second.reshape(p, -1)).reshape(-1, q, q) / noise
    h = (e @ W - seen @ spreads[:, :q, q]) / noise
    squares = (e * e).sum() + (seen @ spreads[:, q, q]).sum()
    cells = seen.sum()
    fit = -0.5 * (cells * np.log(2 * np.pi * noise) + np.linalg.slogdet(M)[1].sum() + squares / noise)
    fit += 0.5 * (h * np.linalg.solve(M, h[..., None])[..., 0]).sum()
    entropy = 0.5 * (np.linalg.slogdet(spreads)[1].sum() + p * (q + 1) * (1 + np.log(2 * np.pi)))
    alpha = p / (W**2 + np.diagonal(spreads, axis1=1, axis2=2)[:, :q]).sum(axis=0)
    prior = 0.5 * p * (np.log(alpha / (2 * np.pi)) - 1).sum()
    c = 0.5 * cells  # τ has a gamma distribution of this shape
    deviations = np.where(seen, X - np.nanmean(X, axis=0), 0.0)
    means = row_of_means(mean, W, spreads, (deviations**2).sum() / cells / (cells / p))
    return (fit + entropy + prior + means + c + math.lgamma(c) - c * np.log(c)) / len(X)


def row_of_means(mean, W, spreads, least):
    """What the prior of μ adds to the bound: one more row with the same cell m everywhere and noise v ≥ least, both at their best, as is z."""
    p, q = W.shape
    G, d = W.T @ W + spreads[:, :q, :q].sum(axis=0), W.T @ mean + spreads[:, :q, q].sum(axis=0)
    squares = mean @ mean + spreads[:, q, q].sum()
    m, v = mean.mean(), mean.var() + least
    for _ in range(1000):
        C = np.linalg.inv(np.eye(q) + G / v)
        z = C @ (m * W.sum(axis=0) - d) / v
        m = (mean + W @ z).mean()
        rest = squares + 2 * z @ d + np.sum((C + np.outer(z, z)) * G) - p * m**2
        v = max(rest / (p - 1), least)
    latent = np.linalg.slogdet(C)[1] + q - np.trace(C) - z @ z
    return 0.5 * (latent - (p - 1) * np.log(v) - rest / v)
