"""covary and its peers side by side: one process, the same arrays, in turn, the best of several; quality beside each time.

    python bench/compare.py [--quick] [--json FILE [--keep]] [--repeats N] [--only CASE] [GROUP ...]

Nobody is faster by doing less: each line shows what came out (log-likelihood per row by one formula for all, noise variance, error
of the eigenvalues against the reference), and the ratio is taken to the fastest peer that is right. Peers that are not
installed are left out, and the output says so. Arrays are those of workloads.py.
"""

import argparse
import os

import numpy as np
import workloads
from measuring import Case, Method, machine, measure, save, tell, versions
from quality import bound, log_likelihood
from rscript import RSCRIPT, Prcomp, factanal, prcomp
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.mixture import GaussianMixture

import covary

try:
    import ppca_rs
except ImportError:
    ppca_rs = None
try:
    import ppca as ppca_py
except ImportError:
    ppca_py = None
try:
    import vbpca_py
except ImportError:
    vbpca_py = None
try:
    from picard import picard
except ImportError:
    picard = None

SKLEARN = ["full", "covariance_eigh", "arpack", "randomized"]


# -- quality, by one formula for all ------------------------------------------------------------------------------------


def parameters(model):
    """Mean, W, noise variance of any fitted model here."""
    if isinstance(model, covary.PPCA):
        return model.mean_, model.loadings_, model.noise_variance_
    if isinstance(model, (covary.PCA, PCA, IncrementalPCA)):
        gap = np.maximum(model.explained_variance_ - model.noise_variance_, 0.0)
        return model.mean_, model.components_.T * np.sqrt(gap), model.noise_variance_
    if ppca_rs and isinstance(model, ppca_rs.PPCAModel):
        return np.ravel(model.mean), np.asarray(model.transform), model.isotropic_noise**2
    if vbpca_py and isinstance(model, vbpca_py.VBPCA):
        return np.ravel(model.mean_), model.components_.T, model.noise_variance_
    # ppca-py: its covariance says it without conventions.
    noise, q = model.noise_variance_, model.n_components_
    values, vectors = np.linalg.eigh(model.get_covariance())
    gap = np.maximum(values[-q:] - noise, 0.0)
    return np.ravel(model.mean_), vectors[:, -q:] * np.sqrt(gap), noise


def judged(X, reference=None, rows=20_000):
    """Quality of a fit: likelihood and noise, and the eigenvalues against a reference with divisor n."""

    def judge(model):
        quality = {}
        if isinstance(model, Prcomp):  # no density
            noise = model.noise_variance_
        else:
            mean, W, noise = parameters(model)
        quality["noise_variance"] = float(noise)
        if noise > 0 and not isinstance(model, Prcomp):
            quality["log_likelihood"] = float(log_likelihood(X[:rows], mean, W, noise))
        if reference is not None:
            ours = isinstance(model, covary.PPCA)
            n = 1.0 if ours else (len(X) - 1) / len(X)
            error = np.abs(np.asarray(model.explained_variance_, dtype=float) * n / reference - 1.0).max()
            quality["eigenvalue_error"] = float(error)
        return quality

    return judge


# -- cases --------------------------------------------------------------------------------------------------------------


def leading(X, q):
    """The q largest eigenvalues of the covariance with divisor n, by a dense decomposition of the smaller side."""
    E = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    S = E.T @ E if E.shape[0] >= E.shape[1] else E @ E.T
    return np.linalg.eigvalsh(S)[::-1][:q] / len(X)


def fits(name, what, X, q, solvers, reference, goal, slow=()):
    judge = judged(X, reference)
    methods = [Method("covary PPCA", lambda: covary.PPCA(q).fit(X), judge)]
    for solver in solvers:
        run = lambda solver=solver: PCA(q, svd_solver=solver, random_state=0).fit(X)
        methods.append(Method(f"scikit-learn {solver}", run, judge, 1 if solver in slow else None))
    return Case(name, what, methods, goal)


def tall(quick):
    n = 20_000 if quick else 200_000
    X = workloads.lowrank(n, 300, 10)[0]
    goal = "1.5× the fastest scikit-learn solver that is right"
    case = fits("tall", f"fit {n} × 300, q 10", X, 10, SKLEARN, leading(X, 10), goal, slow=("full",))
    if RSCRIPT and quick:  # a singular value decomposition by the reference BLAS: minutes at full size
        judge = judged(X, leading(X, 10))
        case.methods.append(Method("R prcomp", lambda: prcomp(X, 10), judge, 1, clocked=True))
    yield case
    theirs, ours = PCA(10, svd_solver="covariance_eigh").fit(X), covary.PPCA(10).fit(X)
    mean = lambda scores: {"log_likelihood": float(scores.mean())}
    yield Case(
        "score_samples",
        f"log density of {n} × 300 rows, q 10",
        [
            Method("covary PPCA", lambda: ours.score_samples(X), mean),
            Method("scikit-learn PCA", lambda: theirs.score_samples(X), mean),
        ],
        "10×",
    )
    norm = lambda Z: {"shape": list(Z.shape)}
    projection = covary.PCA(10).fit(X)
    yield Case(
        "transform",
        f"project {n} × 300 rows, q 10",
        [
            Method("covary PCA", lambda: projection.transform(X), norm),
            Method("scikit-learn PCA", lambda: theirs.transform(X), norm),
        ],
    )
    yield streaming(X, leading(X, 10))


def streaming(X, reference):
    # Batches as IncrementalPCA would choose them: five rows for each feature.
    size = 5 * X.shape[1]
    parts = [X[i : i + size] for i in range(0, len(X), size)]

    def pieces(model):
        for part in parts:
            model.partial_fit(part)
        model.noise_variance_  # noqa: B018 - what was put off is part of the work
        return model

    judge = judged(X, reference)
    return Case(
        "streaming",
        f"partial_fit of {len(parts)} batches of {size} × {X.shape[1]}, q 10",
        [
            Method("covary PPCA", lambda: pieces(covary.PPCA(10)), judge),
            Method("scikit-learn IncrementalPCA", lambda: pieces(IncrementalPCA(10)), judge, 3),
        ],
        "30×, with the exact noise variance",
    )


def tall32(quick):
    n = 50_000 if quick else 500_000
    X = workloads.lowrank(n, 256, 10, dtype=np.float32)[0]
    solvers = ["covariance_eigh", "randomized"]
    yield fits("tall32", f"fit {n} × 256 in single precision, q 10", X, 10, solvers, leading(X, 10), "1.8×")


def wide(quick):
    p = 4000 if quick else 20_000
    X = workloads.lowrank(500, p, 20)[0]
    solvers = ["full", "arpack", "randomized"]
    yield fits("wide", f"fit 500 × {p}, q 20", X, 20, solvers, leading(X, 20), "2.5×", slow=("full",))


def large(quick):
    n = 1500 if quick else 8000
    X = workloads.lowrank(n, n, 20)[0]
    # A dense decomposition of the whole would take minutes: ARPACK's answer is the reference.
    reference = PCA(20, svd_solver="arpack", random_state=0).fit(X).explained_variance_ * (n - 1) / n
    goal = "3× at equal accuracy"
    yield fits("large", f"fit {n} × {n}, q 20", X, 20, ["arpack", "randomized"], reference, goal)


def holes(quick):
    n = 2000 if quick else 20_000
    X = workloads.punch(workloads.lowrank(n, 50, 5)[0], 0.2)
    judge = judged(X)
    methods = [Method("covary PPCA", lambda: covary.PPCA(5).fit(X), judge)]
    if vbpca_py:
        run = lambda: vbpca_py.VBPCA(5, algorithm="ppca", random_state=0).fit(X)
        methods.append(Method("vbpca_py ppca", run, judge, 3))
    if ppca_rs:
        train = lambda: ppca_rs.PPCATrainer(ppca_rs.Dataset(X)).train(state_size=5, n_iters=100, quiet=True)
        methods.append(Method("ppca_rs, 100 iterations", train, judge, 1))
    if ppca_py and quick:
        run = lambda: ppca_py.PPCA(5, max_iter=100, random_state=0).fit(X)
        methods.append(Method("ppca-py, 100 iterations", run, judge, 1))
    yield Case("holes", f"fit {n} × 50 with a fifth missing, q 5", methods, "40× vbpca_py, 200× ppca_rs")


def bayes(quick):
    """Both by the bound that covary maximises: its own as it reports it, vbpca_py's evaluated at its posterior; and by the hidden cells."""
    n = 2000 if quick else 20_000
    whole = workloads.lowrank(n, 50, 5)[0]
    X = workloads.punch(whole, 0.2)
    hidden = np.isnan(X)

    def quality(model, elbo, filled):
        rmse = np.sqrt(np.mean((filled - whole)[hidden] ** 2))
        return {"bound": float(elbo), "noise_variance": float(model.noise_variance_), "rmse": float(rmse)}

    def theirs(model):
        p, q = model.components_.T.shape
        spreads = np.zeros((p, q + 1, q + 1))
        spreads[:, :q, :q], spreads[:, q, q] = np.array(model._av), np.ravel(model._muv)
        elbo = bound(X, np.ravel(model.mean_), model.components_.T, spreads, model.noise_variance_)
        return quality(model, elbo, model.reconstruction_)

    ours = lambda model: quality(model, model.elbo_ / n, model.impute(X))
    methods = [Method("covary BayesianPCA", lambda: covary.BayesianPCA(5).fit(X), ours)]
    if vbpca_py:
        run = lambda: vbpca_py.VBPCA(5, algorithm="vb", random_state=0).fit(X)
        methods.append(Method("vbpca_py vb", run, theirs, 1))
    yield Case("bayes", f"Bayesian fit of {n} × 50 with a fifth missing, at most 5 components", methods, "50×, to the same or a higher bound")


def factor(quick):
    n, p, q = 5000 if quick else 50_000, 100, 5
    X = workloads.lowrank(n, p, q, hetero=True)[0]

    def judge(model):
        mean, W, noise = model if isinstance(model, tuple) else (model.mean_, model.components_.T, model.noise_variance_)
        sd = np.sqrt(noise)  # in units of its noise, every feature has the same
        scaled = log_likelihood(X / sd, mean / sd, W / sd[:, None], 1.0)
        return {"log_likelihood": float(scaled - np.log(sd).sum())}

    theirs = lambda: FactorAnalysis(q, svd_method="lapack", tol=1e-6, max_iter=10_000).fit(X)
    methods = [
        Method("covary FactorAnalysis", lambda: covary.FactorAnalysis(q).fit(X), judge),
        Method("scikit-learn lapack, tol 1e-6", theirs, judge, 2),
    ]
    if RSCRIPT:
        methods.append(Method("R factanal", lambda: factanal(X, q), judge, 3, clocked=True))
    yield Case("factor", f"fit {n} × {p}, q {q}", methods, "80× scikit-learn, 20× R's factanal")


def jester(quick):
    folder = os.environ.get("COVARY_DATA", "")
    path = os.path.join(folder, "jester5k_ratings.csv.gz")
    if not os.path.exists(path):
        print("jester: left out, name the folder of jester5k_ratings.csv.gz in COVARY_DATA\n")
        return
    from scipy import sparse

    train, test = workloads.jester(path)
    first = np.minimum(train[:, :2].min(axis=0), test[:, :2].min(axis=0)).astype(int)
    shape = tuple(np.maximum(train[:, :2].max(axis=0), test[:, :2].max(axis=0)).astype(int) - first + 1)
    rows, columns = (train[:, :2].astype(int) - first).T
    csr = sparse.csr_array((train[:, 2], (rows, columns)), shape=shape)
    seen, table = covary.observed(csr), np.full(shape, np.nan)
    table[rows, columns] = train[:, 2]
    at = (test[:, :2].astype(int) - first).T

    likelihood = judged(table)

    def quality(model, predicted):
        return {**likelihood(model), "rmse": float(np.sqrt(np.mean((predicted - test[:, 2]) ** 2)))}

    for q in (1, 2) if quick else (1, 2, 5, 10):
        methods = [
            Method(
                "covary PPCA",
                lambda q=q: covary.PPCA(q).fit(seen),
                lambda m: quality(m, m.predict_cells(seen, *at)[0]),
            )
        ]
        if vbpca_py:
            run = lambda q=q: vbpca_py.VBPCA(q, algorithm="ppca", random_state=0).fit(table)
            methods.append(Method("vbpca_py ppca", run, lambda m: quality(m, m.reconstruction_[tuple(at)]), 1))
        yield Case(f"jester q {q}", f"{len(train)} ratings of {shape[0]} people, q {q}", methods, "20×")


def kmeans(quick):
    """k-means from one start: the defaults of both, and ours without swaps."""
    sizes = [(20_000, 20, 10), (50_000, 20, 50)] if quick else [(200_000, 20, 10), (1_000_000, 20, 100)]

    def judge(model):
        return {"inertia": model.inertia_, "iterations": model.n_iter_}

    def case(n, p, k, goal):
        X = workloads.clusters(n, p, k)
        methods = [
            Method("covary.KMeans", lambda: covary.KMeans(k).fit(X), judge),
            Method("covary.KMeans(polish=False)", lambda: covary.KMeans(k, polish=False).fit(X), judge),
            Method("KMeans(n_init=1)", lambda: KMeans(k, n_init=1, random_state=0).fit(X), judge, times=1 if n > 500_000 else None),
        ]
        return Case(f"kmeans {n} × {p}, K {k}", "clusters that overlap; inertia and iterations", methods, goal)

    return [case(*size, goal) for size, goal in zip(sizes, ("1.5 × scikit-learn", "2 × scikit-learn"))]


def kpca(quick):
    """Exact kernel PCA, and by as many landmarks as Nystroem has."""
    n, p, q = 1000 if quick else 5000, 20, 10
    X = workloads.lowrank(n, p, 5)[0]
    X /= X.std(axis=0)
    gamma = 1.0 / p
    K = KernelPCA(q, kernel="rbf", gamma=gamma, eigen_solver="dense").fit(X)
    judge = lambda model: {"eigenvalue_error": float(np.abs(model.eigenvalues_ / K.eigenvalues_ - 1.0).max())}
    methods = [Method("covary KernelPCA", lambda: covary.KernelPCA(q, kernel="rbf", gamma=gamma).fit(X), judge)]
    for solver in ("arpack", "randomized", "dense"):
        run = lambda solver=solver: KernelPCA(q, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0).fit(X)
        methods.append(Method(f"scikit-learn {solver}", run, judge, 1 if solver == "dense" else None))
    yield Case("kpca", f"fit {n} × {p}, rbf, q {q}", methods, "4× the fastest scikit-learn solver that is right (1e-8)")
    n, m = (20_000, 200) if quick else (200_000, 500)
    X = workloads.lowrank(n, p, 5)[0]
    X /= X.std(axis=0)

    def theirs():
        features = Nystroem(kernel="rbf", gamma=gamma, n_components=m, random_state=0).fit_transform(X)
        return features, PCA(q, svd_solver="covariance_eigh").fit(features)

    def kept(found):
        """The trace that m landmarks hold, and that of q components, per row."""
        if isinstance(found, covary.KernelPCA):
            total = found.report_["total_variance"]
            return {"kept_trace": total * (1.0 - found.approximation_error_), "of_components": found.eigenvalues_.sum() / n}
        features, pca = found
        return {"kept_trace": float(features.var(axis=0).sum()), "of_components": float(pca.explained_variance_.sum() * (n - 1) / n)}

    methods = [
        Method("covary KernelPCA", lambda: covary.KernelPCA(q, kernel="rbf", gamma=gamma, n_landmarks=m).fit(X), kept),
        Method("Nystroem + PCA", theirs, kept),
    ]
    yield Case("nyström", f"fit {n} × {p}, rbf, q {q}, {m} landmarks", methods, "3× scikit-learn, kept trace not below")


def mixture(quick):
    """Two comparisons, each model for model: components of low rank beside ppca_rs, and full covariances (q = p − 1) beside GaussianMixture."""
    n, p, q, k = 2000 if quick else 20_000, 20, 3, 5
    X = workloads.mixture(n, p, q, k)[0]
    judge = lambda model: {"log_likelihood": float(model.score(X))}
    methods = [Method("covary MixturePPCA", lambda: covary.MixturePPCA(k, q).fit(X), judge)]
    if ppca_rs:
        rows = ppca_rs.Dataset(X)
        train = lambda: ppca_rs.PPCAMixTrainer(rows).train(n_models=k, state_size=q, n_iters=50, quiet=True)
        methods.append(Method("ppca_rs, 50 iterations", train, lambda m: {"log_likelihood": float(m.llk(rows)) / n}, 1))
    yield Case("mixture", f"fit {n} × {p}, K {k}, q {q}", methods, "200× ppca_rs")
    methods = [
        Method("covary MixturePPCA, q = p − 1", lambda: covary.MixturePPCA(k, p - 1).fit(X), judge),
        Method("covary MixturePPCA, q 3", lambda: covary.MixturePPCA(k, q).fit(X), lambda _: {}),
        Method("GaussianMixture, full", lambda: GaussianMixture(k, random_state=0).fit(X), judge),
    ]
    yield Case("mixture, full", f"fit {n} × {p}, K {k}, full covariances", methods, "2× scikit-learn")


def ica(quick):
    """One start each, to the same end: the mean log cosh of sources of variance 1, the contrast of all of them, beside each time."""
    n, p = 10_000 if quick else 100_000, 20
    X = workloads.sources(n, p)[0]

    def judge(S):
        Y = (S - S.mean(axis=0)) / S.std(axis=0)
        # How far from normal the sources are, all together, and how far the fixed-point equations are from 0.
        T = np.tanh(Y)
        values, G = np.log(np.cosh(Y)).mean(axis=0), T.T @ Y / n
        sign = np.sign((1 - T**2).mean(axis=0) - np.diag(G))[:, None]
        return {"contrast": float(np.abs(values - 0.374567207491438).sum()), "gradient": float(np.abs(sign * G - (sign * G).T).max() / 2)}

    tol = 1e-7
    ours = lambda: covary.ICA(p, noise=False, n_init=1, tol=tol).fit(X).transform(X)
    methods = [
        Method("covary ICA (Picard-O)", ours, judge),
        Method("covary FastICA", lambda: covary.FastICA(p, tol=tol, max_iter=1000).fit_transform(X), judge),
        Method("scikit-learn FastICA", lambda: FastICA(p, tol=tol, max_iter=1000, random_state=0).fit_transform(X), judge, 3),
        Method("scikit-learn FastICA, eigh", lambda: FastICA(p, tol=tol, max_iter=1000, random_state=0, whiten_solver="eigh").fit_transform(X), judge, 3),
    ]
    if picard:
        run = lambda: picard(X.T, ortho=True, extended=True, tol=tol, max_iter=1000, random_state=0)[2].T
        methods.append(Method("python-picard, Picard-O", run, judge, 3))
    yield Case("ica", f"fit and transform {n} × {p}, {p} sources, tol {tol}", methods, "3× scikit-learn, 5× python-picard")


CASES = {"kpca": kpca, "ica": ica, "mixture": mixture, "kmeans": kmeans, "tall": tall, "tall32": tall32, "wide": wide, "large": large, "holes": holes, "bayes": bayes, "factor": factor, "jester": jester}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="GROUP", help=f"of {', '.join(CASES)}; all by default")
    parser.add_argument("--only", metavar="CASE", help="of the groups, only the case of this name, such as streaming")
    parser.add_argument("--quick", action="store_true", help="small sizes: seconds instead of minutes")
    parser.add_argument("--json", metavar="FILE", default="target/compare.json", help="where the numbers go")
    parser.add_argument("--keep", action="store_true", help="keep what the file has of other cases, from the same machine and versions")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    print(machine())
    print("  ".join(f"{name} {version or '(not installed)'}" for name, version in versions().items()), "\n")
    cases = []
    for name in arguments.cases or CASES:
        for case in CASES[name](arguments.quick):
            if arguments.only not in (None, case.name):
                continue
            measure(case, arguments.repeats)
            tell(case)
            cases.append({"case": case.name, "what": case.what, "goal": case.goal, "results": case.results})
            case.methods.clear()
    save(arguments.json, arguments.quick, cases, arguments.keep)
    print(f"numbers: {arguments.json}")


if __name__ == "__main__":
    main()
