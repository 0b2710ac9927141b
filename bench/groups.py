"""How often mixtures and k-means find what is there: known optima, numbers of groups, missing values.

    python bench/groups.py [--data FOLDER] [--seeds N] [optima] [numbers] [missing] [digits]

Without names, all tables. `optima` and `digits` read iris, wine, crabs and digits from the folder and are left out where
it is not given. Nothing here is about speed; the seconds are there to plan by.
"""

import argparse
import os
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

import covary

#: Log-likelihoods of maximum likelihood (no prior), found by many random starts in NumPy; those of iris agree with
#: mclust where the models coincide. (K, q): total.
IRIS = {
    (1, 1): -470.6695, (1, 2): -404.9628, (2, 1): -250.8794, (2, 2): -234.6028, (2, 3): -214.3547,
    (3, 1): -218.8476, (3, 2): -201.8321, (3, 3): -180.1855, (4, 2): -184.0767,
}  # fmt: skip
WINE = {(3, 2): -2472.6774, (3, 3): -2367.8668}
#: Least known inertias. (set, K): inertia.
INERTIA = {
    ("iris", 2): 152.347952, ("iris", 3): 78.851441, ("iris", 10): 25.849464,
    ("wine", 3): 2370689.686783, ("wine, standardised", 3): 1277.928489, ("usarrests, standardised", 4): 56.403173,
    ("digits", 10): 1165142.0047,
}  # fmt: skip


# -- rows of known groups -------------------------------------------------------------------------------------------------


def groups(seed, k, q, n, p, apart, scale=(2.0, 4.0), noise=0.5):
    """Rows of k groups of equal size with q latent variables, means about `apart` from each other; and their groups."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(k):
        mean = rng.normal(size=p) * apart / np.sqrt(2 * p)
        W = np.linalg.qr(rng.normal(size=(p, q)))[0] * rng.uniform(*scale, size=q)
        parts.append(mean + rng.normal(size=(n // k, q)) @ W.T + noise * rng.normal(size=(n // k, p)))
    return np.concatenate(parts), np.repeat(np.arange(k), n // k)


#: K, q, n, p, distance of the means; noise of deviation ½ and latent variables of deviations 2 to 4, or 1 to 2.
DESIGNS = {
    "apart": dict(k=4, q=2, n=800, p=8, apart=20.0),
    "crossing": dict(k=4, q=2, n=800, p=8, apart=0.0),
    "overlapping": dict(k=4, q=2, n=800, p=8, apart=4.0, scale=(1.0, 2.0)),
    "overlapping, 5 of 3": dict(k=5, q=3, n=1000, p=10, apart=5.0, scale=(1.0, 2.0)),
}


# -- tables ---------------------------------------------------------------------------------------------------------------


def read(folder, name):
    cells = np.genfromtxt(os.path.join(folder, name + ".csv"), delimiter=",", names=True)
    columns = {"iris": slice(0, 4), "crabs": slice(-5, None)}.get(name)
    table = np.array([list(row) for row in cells], dtype=float)
    table = table if columns is None else table[:, columns]
    return table[:, ~np.isnan(table).all(axis=0)]


def optima(folder, seeds):
    """Seeds that reach the best known optimum, with the default options."""
    iris, wine, digits, arrests = (read(folder, name) for name in ("iris", "wine", "digits", "usarrests"))
    wine = wine[:, :13]
    digits = digits[:, :64]
    standard = lambda X, ddof=0: (X - X.mean(0)) / X.std(0, ddof=ddof)
    print("| rows | K | q | known | best found | seeds that reach the known | seconds a fit |\n|---|---|---|---|---|---|---|")
    for name, X, table in (("iris", iris, IRIS), ("wine, standardised", standard(wine), WINE)):
        for (k, q), known in table.items():
            fit = lambda seed: covary.MixturePPCA(k, q, prior=None, random_state=seed).fit(X).log_likelihood_
            line(f"{name} | {k} | {q}", known, fit, seeds, 1e-4)
    for name, design in DESIGNS.items():
        known, found = zip(*(of_truth(seed, **design) for seed in range(seeds)))
        reached = sum(f > k - 1e-4 for k, f in zip(known, found))
        print(f"| {name}, a set for each seed | {design['k']} | {design['q']} | from the true groups | | {reached} of {seeds} | |", flush=True)
    sets = {"iris": iris, "wine": wine, "digits": digits}
    sets |= {"wine, standardised": standard(wine), "usarrests, standardised": standard(arrests[:, -4:], 1)}
    for (name, k), known in INERTIA.items():
        fit = lambda seed: -covary.KMeans(k, random_state=seed).fit(sets[name]).inertia_
        line(f"{name} | {k} | k-means", -known, fit, seeds, 1e-6 * known)


def of_truth(seed, k, q, **design):
    """Log-likelihoods of a fit that starts at the true groups, and of one with the default options."""
    X, labels = groups(seed, k=k, q=q, **design)
    parts = [covary.PPCA(q).fit(X[labels == group]) for group in range(k)]
    start = covary.MixturePPCA.from_parameters(
        weights=np.bincount(labels) / len(X),
        means=np.array([part.mean_ for part in parts]),
        loadings=np.array([part.loadings_ for part in parts]),
        noise_variance=np.array([part.noise_variance_ for part in parts]),
    )
    fit = lambda **options: covary.MixturePPCA(k, q, prior=None, random_state=seed, **options).fit(X).log_likelihood_
    return fit(init=start), fit()


def line(name, known, fit, seeds, near):
    started, found = time.perf_counter(), []
    for seed in range(seeds):
        try:
            found.append(fit(seed))
        except ValueError:  # without a prior a group may shrink onto a few rows
            found.append(-np.inf)
    seconds = (time.perf_counter() - started) / seeds
    reached = sum(value > known - near for value in found)
    print(f"| {name} | {abs(known):.4f} | {abs(max(found)):.4f} | {reached} of {seeds} | {seconds:.2f} |", flush=True)


def numbers(_, seeds):
    """How often each criterion finds the number of groups and of latent variables."""
    print("| rows | truth | seeds | " + " | ".join(CRITERIA) + " | vb, seconds | select, seconds |")
    print("|---" * (len(CRITERIA) + 5) + "|")
    for name, design in DESIGNS.items():
        truth, right, seconds = (design["k"], design["q"]), dict.fromkeys(CRITERIA, 0), [0.0, 0.0]
        wrong = []
        for seed in range(seeds):
            X, _ = groups(seed, **design)
            started = time.perf_counter()
            model = covary.MixturePPCA(8, method="vb").fit(X)
            seconds[0] += time.perf_counter() - started
            latent = model.n_latent_.tolist()
            found = {"vb": (model.n_components_, latent[0] if len(set(latent)) == 1 else tuple(latent))}
            started = time.perf_counter()
            selection = covary.select(X, model="mixture", groups=(2, 6), max_components=4)
            seconds[1] += time.perf_counter() - started
            found |= {method: tuple(choice) for method, choice in selection.choices.items()}
            for criterion in CRITERIA:
                right[criterion] += found.get(criterion) == truth
                if found.get(criterion) != truth:
                    wrong.append((seed, criterion, found.get(criterion)))
        counts = " | ".join(str(right[c]) for c in CRITERIA)
        print(f"| {name} | {truth} | {seeds} | {counts} | {seconds[0] / seeds:.1f} | {seconds[1] / seeds:.1f} |", flush=True)
        print("".join(f"<!-- seed {s}, {c}: {f} -->\n" for s, c, f in wrong), end="", flush=True)


CRITERIA = ["vb", "cross-validation", "bic", "icl"]


def missing(_, seeds):
    """Parameters, labels and intervals where cells are missing, beside complete rows; data from the model."""
    print("| missing | labels (adjusted Rand) | error of means | error of noise | 95 % intervals cover |\n|---|---|---|---|---|")
    for share in (0.0, 0.1, 0.3):
        scores = []
        for seed in range(seeds):
            X, labels = groups(seed, k=3, q=2, n=3000, p=8, apart=12.0)
            Y = np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)
            model = covary.MixturePPCA(3, 2).fit(Y)
            true = np.array([X[labels == k].mean(axis=0) for k in range(3)])
            apart = np.linalg.norm(model.means_[:, None] - true, axis=2).min(axis=1)
            holes, inside = np.isnan(Y), np.nan
            if share:
                filled, std = model.impute(Y, return_std=True)
                inside = np.mean(np.abs(filled - X)[holes] < 1.959964 * std[holes])
            noise = np.abs(model.noise_variance_ / 0.25 - 1).max()
            scores.append((adjusted_rand_score(labels, model.predict(Y)), apart.max(), noise, inside))
        mean = np.mean(scores, axis=0)
        print(f"| {share:.0%} | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.3f} | {mean[3]:.4f} |", flush=True)


def digits(folder, _):
    """Cells of digits that were hidden: the mixture beside PPCA of many numbers of components."""
    X = read(folder, "digits")[:, :64]
    rng = np.random.default_rng(0)
    train = rng.permutation(len(X))
    train, test = X[train[:1200]], X[train[1200:]]
    hidden = rng.random(test.shape) < 0.3
    rows = np.where(hidden, np.nan, test)
    error = lambda model: np.sqrt(np.mean((model.impute(rows) - test)[hidden] ** 2))
    print("| model | root mean square error of hidden cells | seconds |\n|---|---|---|")
    models = [covary.PPCA(q) for q in (5, 10, 15, 20, 25, 30, 35, 40)]
    models += [covary.MixturePPCA(k, q) for k in (5, 10, 20) for q in (2, 4, 8, 12)]
    models += [covary.MixturePPCA(20, method="vb")]
    for model in models:
        started = time.perf_counter()
        model.fit(train)
        seconds = time.perf_counter() - started
        name = repr(model)
        if getattr(model, "method", "") == "vb":
            name += f": K {model.n_components_}, q {model.n_latent_.min()} to {model.n_latent_.max()}"
        print(f"| {name} | {error(model):.4f} | {seconds:.1f} |", flush=True)


TABLES = {"optima": optima, "numbers": numbers, "missing": missing, "digits": digits}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="which (all)")
    parser.add_argument("--data", help="folder of the public data sets")
    parser.add_argument("--seeds", type=int, default=10)
    wanted = parser.parse_args()
    for name in wanted.tables or TABLES:
        if name in ("optima", "digits") and wanted.data is None:
            print(f"{name}: left out, --data was not given\n")
            continue
        print(f"## {name}: {TABLES[name].__doc__}\n")
        TABLES[name](wanted.data, wanted.seeds)
        print()
