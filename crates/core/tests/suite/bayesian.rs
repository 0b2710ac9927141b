//! Bayesian PCA: what it keeps, that its two ways agree, and the textbook's updates done naively.

use crate::common::holes::punched;
use crate::common::{Rng, close, close_matrix, normal_matrix, relative, rows_with_deviations, table};
use covary::linalg::Mat;
use covary::model::Predictive;
use covary::{BayesMethod, BayesianPca, Components, Fit, Ppca, Solver};

fn by(method: BayesMethod, q: usize, x: &Mat<f64>) -> Fit<Predictive> {
    BayesianPca::new(q).method(method).fit(table(x)).unwrap()
}

fn passes(q: usize) -> BayesianPca {
    BayesianPca::of(Ppca::new(q).solver(Solver::Em).tolerance(1e-22))
}

fn objective(fit: &Fit<Predictive>) -> f64 {
    fit.report.bayes().unwrap().objective.unwrap()
}

fn covariance(model: &Predictive) -> Mat<f64> {
    let w = model.gaussian().loadings();
    w * w.transpose()
}

/// PRML figure 12.14 and Bishop (1999): three directions of ten stand out.
#[test]
fn the_directions_that_stand_out_are_kept() {
    let prml = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5];
    let bishop = [5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    for (n, deviations) in [(300, prml), (100, bishop)] {
        for method in [BayesMethod::Variational, BayesMethod::Relevance] {
            let kept = |seed: u64| {
                let x = rows_with_deviations(n, &deviations, 0.0, &mut Rng(seed));
                by(method, 9, &x).model.n_latent()
            };
            let right = (0..100).filter(|seed| kept(*seed) == 3).count();
            assert!(right >= 95, "{method:?} of {n} rows: {right}");
        }
    }
}

#[test]
fn passes_over_complete_rows_end_where_their_spectrum_says() {
    let x = rows_with_deviations(60, &[4.0, 3.0, 2.0, 1.0, 1.0, 1.0], 50.0, &mut Rng(5));
    for method in [BayesMethod::Variational, BayesMethod::Relevance] {
        let spectrum = by(method, 5, &x);
        let iterated = passes(5).method(method).fit(table(&x)).unwrap();
        assert_eq!(iterated.model.n_latent(), 3, "{method:?}");
        relative(objective(&iterated), objective(&spectrum), 1e-10, "objective");
        relative(iterated.model.noise_variance(), spectrum.model.noise_variance(), 1e-10, "noise");
        close_matrix(&covariance(&iterated.model), &covariance(&spectrum.model), 1e-9, "WWᵀ");
        let (ours, theirs) = (iterated.model.gaussian(), spectrum.model.gaussian());
        (0..6).for_each(|j| relative(ours.noise().of(j), theirs.noise().of(j), 1e-10, "predictive noise"));
        relative(
            iterated.report.log_likelihood.unwrap(),
            spectrum.report.log_likelihood.unwrap(),
            1e-10,
            "ℓ",
        );
    }
}

/// The updates of variational Bayes as they are written in Bishop (1999), with (wⱼ, μⱼ) together, loops and all; the means have one more row
/// as their prior, with the same cell everywhere and noise of its own.
struct Naive {
    w: Vec<Vec<f64>>, // (w, μ) of each feature
    s: Vec<Mat<f64>>, // covariance
    noise: f64,
    alpha: Vec<f64>,
    level: f64, // the cell of the row of means
    apart: f64, // its noise
    least: f64, // the smallest that it may be
}

/// The variance of all cells about their features' means, over the number of cells of a feature.
fn error_of_means(x: &Mat<f64>) -> f64 {
    let (mut squares, mut cells) = (0.0, 0.0);
    for j in 0..x.ncols() {
        let seen: Vec<f64> = x.col(j).iter().copied().filter(|v| !v.is_nan()).collect();
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        squares += seen.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        cells += seen.len() as f64;
    }
    squares / cells / (cells / x.ncols() as f64)
}

fn inverse(a: &Mat<f64>) -> Mat<f64> {
    use faer::linalg::solvers::DenseSolveCore;
    a.llt(faer::Side::Lower).unwrap().inverse()
}

impl Naive {
    fn start(x: &Mat<f64>, q: usize, rng: &mut Rng) -> Self {
        let p = x.ncols();
        let w = (0..p).map(|_| (0..=q).map(|_| rng.normal()).collect()).collect();
        let (s, alpha, least) = (vec![Mat::identity(q + 1, q + 1); p], vec![1.0; q], error_of_means(x));
        Self { w, s, noise: 1.0, alpha, level: 0.0, apart: 1.0, least }
    }

    fn step(&mut self, x: &Mat<f64>) {
        let (n, p, q) = (x.nrows(), x.ncols(), self.alpha.len());
        let second = |s: &Mat<f64>, w: &[f64]| Mat::from_fn(q + 1, q + 1, |a, b| s[(a, b)] + w[a] * w[b]);
        let expected: Vec<Mat<f64>> = (0..p).map(|j| second(&self.s[j], &self.w[j])).collect();
        let mut a = vec![Mat::<f64>::zeros(q + 1, q + 1); p];
        let mut b = vec![vec![0.0; q + 1]; p];
        let seen: Vec<Vec<usize>> =
            (0..n).map(|i| (0..p).filter(|j| !x[(i, *j)].is_nan()).collect()).collect();
        for i in 0..n {
            let precision = Mat::from_fn(q, q, |k, l| {
                f64::from(u8::from(k == l))
                    + seen[i].iter().map(|j| expected[*j][(k, l)]).sum::<f64>() / self.noise
            });
            let c = inverse(&precision);
            let h: Vec<f64> = (0..q)
                .map(|k| {
                    seen[i].iter().map(|j| self.w[*j][k] * x[(i, *j)] - expected[*j][(k, q)]).sum::<f64>()
                        / self.noise
                })
                .collect();
            let mut m: Vec<f64> = (0..q).map(|k| (0..q).map(|l| c[(k, l)] * h[l]).sum()).collect();
            m.push(1.0);
            for &j in &seen[i] {
                for k in 0..=q {
                    b[j][k] += x[(i, j)] * m[k];
                    for l in 0..=q {
                        a[j][(k, l)] += m[k] * m[l] + if k < q && l < q { c[(k, l)] } else { 0.0 };
                    }
                }
            }
        }
        let (z0, row) = self.row_of_means(&expected);
        let (mut squares, mut cells) = (0.0, 0.0);
        for j in 0..p {
            let precision = Mat::from_fn(q + 1, q + 1, |k, l| {
                let own = if k == l && k < q { self.alpha[k] } else { 0.0 };
                a[j][(k, l)] / self.noise + row[(k, l)] / self.apart + own
            });
            self.s[j] = inverse(&precision);
            let right = |l: usize| b[j][l] / self.noise + self.level * z0[l] / self.apart;
            self.w[j] = (0..=q).map(|k| (0..=q).map(|l| self.s[j][(k, l)] * right(l)).sum::<f64>()).collect();
            let e = second(&self.s[j], &self.w[j]);
            squares += (0..n).map(|i| x[(i, j)]).filter(|v| !v.is_nan()).map(|v| v * v).sum::<f64>();
            squares -= 2.0 * (0..=q).map(|k| self.w[j][k] * b[j][k]).sum::<f64>();
            squares +=
                (0..=q).flat_map(|k| (0..=q).map(move |l| (k, l))).map(|at| e[at] * a[j][at]).sum::<f64>();
            cells += a[j][(q, q)];
        }
        self.noise = squares / cells;
        let told = |j: usize| (0..=q).map(|k| self.w[j][k] * z0[k]).sum::<f64>();
        self.level = (0..p).map(told).sum::<f64>() / p as f64;
        let rest = (0..p).map(|j| {
            let e = second(&self.s[j], &self.w[j]);
            let product: f64 =
                (0..=q).flat_map(|k| (0..=q).map(move |l| (k, l))).map(|at| e[at] * row[at]).sum();
            product - 2.0 * self.level * told(j) + self.level.powi(2)
        });
        self.apart = (rest.sum::<f64>() / (p as f64 - 1.0)).max(self.least);
        for k in 0..q {
            let length: f64 = (0..p).map(|j| self.s[j][(k, k)] + self.w[j][k].powi(2)).sum();
            self.alpha[k] = p as f64 / length;
        }
    }

    /// (z₀, 1) and its second moments.
    fn row_of_means(&self, expected: &[Mat<f64>]) -> (Vec<f64>, Mat<f64>) {
        let q = self.alpha.len();
        let sum = |k: usize, l: usize| expected.iter().map(|e| e[(k, l)]).sum::<f64>() / self.apart;
        let c = inverse(&Mat::from_fn(q, q, |k, l| f64::from(u8::from(k == l)) + sum(k, l)));
        let w = |k: usize| self.w.iter().map(|w| w[k]).sum::<f64>();
        let h: Vec<f64> = (0..q).map(|k| self.level * w(k) / self.apart - sum(k, q)).collect();
        let mut z: Vec<f64> = (0..q).map(|k| (0..q).map(|l| c[(k, l)] * h[l]).sum()).collect();
        z.push(1.0);
        let open = |k: usize, l: usize| if k < q && l < q { c[(k, l)] } else { 0.0 };
        let second = Mat::from_fn(q + 1, q + 1, |k, l| open(k, l) + z[k] * z[l]);
        (z, second)
    }
}

#[test]
fn with_holes_it_ends_where_the_textbook_updates_end() {
    let mut rng = Rng(11);
    let x = rows_with_deviations(40, &[3.0, 2.0, 0.5, 0.5, 0.5], 1.0, &mut rng);
    let x = punched(&x, 0.2, &mut rng);
    let fit = BayesianPca::of(Ppca::new(2).tolerance(1e-22)).fit(table(&x)).unwrap();
    assert_eq!(fit.model.n_latent(), 2);
    let mut naive = Naive::start(&x, 2, &mut rng);
    (0..20_000).for_each(|_| naive.step(&x));
    let w = Mat::from_fn(5, 2, |j, k| naive.w[j][k]);
    close_matrix(&covariance(&fit.model), &(&w * w.transpose()), 1e-9, "WWᵀ");
    relative(fit.model.noise_variance(), naive.noise, 1e-9, "noise");
    let mut alpha = naive.alpha.clone();
    alpha.sort_by(f64::total_cmp); // the longest column first
    alpha.iter().zip(fit.model.precisions()).for_each(|(a, b)| relative(*b, *a, 1e-9, "α"));
    for j in 0..5 {
        close(fit.model.mean()[j], naive.w[j][2], 1e-9, "mean");
        let known = (0..3).map(|k| naive.s[j][(k, k)]).sum::<f64>();
        relative(fit.model.gaussian().noise().of(j), naive.noise + known, 1e-9, "predictive noise");
    }
}

#[test]
fn the_bound_never_falls() {
    for seed in 0..10 {
        let mut rng = Rng(seed);
        let x = rows_with_deviations(80, &[3.0, 2.0, 1.5, 1.0, 1.0, 1.0, 1.0], 2.0, &mut rng);
        let x = punched(&x, 0.5, &mut rng);
        let trace = by(BayesMethod::Variational, 4, &x).report.trace;
        assert!(trace.windows(2).all(|t| t[1] >= t[0] - 1e-12 * t[0].abs()), "{trace:?}");
    }
}

/// Items with two ratings, of which one says little: the others tell where their means lie.
#[test]
fn a_feature_of_few_cells_borrows_from_the_others() {
    let (n, p) = (200, 20);
    let mut rng = Rng(71);
    let level: Vec<f64> = (0..p).map(|_| 10.0 + 0.2 * rng.normal()).collect();
    let mut x = Mat::from_fn(n, p, |_, j| level[j] + 3.0 * rng.normal());
    (0..4).for_each(|j| (2..n).for_each(|i| x[(i, j)] = f64::NAN));
    let model = by(BayesMethod::Variational, 2, &x).model;
    let error = |of: &dyn Fn(usize) -> f64| (0..4).map(|j| (of(j) - level[j]).powi(2)).sum::<f64>().sqrt();
    let alone = error(&|j| 0.5 * (x[(0, j)] + x[(1, j)]));
    // Two cells are known to 3/√2 = 2.1, the means of the others lie within 0.2 of each other.
    assert!(error(&|j| model.mean()[j]) < 0.25 * alone, "{} {alone}", error(&|j| model.mean()[j]));
    let known = &model.uncertainty().unwrap().mean;
    assert!(known[0] < 0.5 && known[0] > known[10], "{known:?}");
}

/// Noise that is small beside what the components explain, from rows and from moments.
#[test]
fn little_noise_is_found() {
    use covary::evidence::{Moments, gather};
    let mut rng = Rng(3);
    let plane = &normal_matrix(80, 2, &mut rng) * normal_matrix(2, 7, &mut rng);
    let noise = normal_matrix(80, 7, &mut rng);
    for size in [1e-2, 1e-4, 1e-6] {
        let x = Mat::from_fn(80, 7, |i, j| 5.0 + plane[(i, j)] + size * noise[(i, j)]);
        let moments = gather(&table(&x), || Moments::empty(7), &Default::default()).unwrap();
        let svd = BayesianPca::of(Ppca::new(5).solver(Solver::Svd)).fit(table(&x)).unwrap();
        let variance = svd.model.noise_variance();
        relative(variance, size * size, 0.1, size); // 394 degrees of freedom: a deviation of 7 %
        for fit in [by(BayesMethod::Variational, 5, &x), BayesianPca::new(5).fit_moments(&moments).unwrap()] {
            assert!(fit.report.converged() && fit.model.n_latent() == 2, "{size}");
            // Moments know variances to about p·ε of the largest.
            relative(fit.model.noise_variance(), variance, 1e-10 + 1e-14 / size / size, size);
        }
    }
}

/// With ever more copies of each row the posterior narrows around the maximum of the likelihood, as fast as one over their number.
#[test]
fn many_rows_make_it_maximum_likelihood() {
    let x = rows_with_deviations(30, &[4.0, 3.0, 1.0, 1.0, 1.0], 2.0, &mut Rng(3));
    let likely = Ppca::new(2).fit(table(&x)).unwrap().model;
    let w = likely.loadings();
    let apart = |copies: f64| {
        let rows = table(&x).with_weights(vec![copies; 30]).unwrap();
        let found = BayesianPca::new(2).fit(&rows).unwrap().model;
        let means = found.mean().iter().zip(likely.mean()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        [means, crate::common::max_abs(&(covariance(&found) - w * w.transpose()))]
    };
    for copies in [1e4, 1e5] {
        for (few, many) in apart(copies).into_iter().zip(apart(10.0 * copies)) {
            assert!((few / many - 10.0).abs() < 0.1, "{few} {many}");
        }
    }
}

#[test]
fn units_and_origins_do_not_matter() {
    let mut rng = Rng(8);
    let complete = rows_with_deviations(50, &[4.0, 3.0, 1.0, 1.0, 1.0], 2.0, &mut rng);
    let holes = punched(&complete, 0.1, &mut rng);
    for (x, rows) in [(&complete, 50.0), (&holes, 50.0)] {
        for method in [BayesMethod::Variational, BayesMethod::Relevance] {
            let fit = by(method, 4, x);
            let cells = fit.report.holes.as_ref().map_or(5.0 * rows, |h| h.observed as f64);
            for scale in [1e-150_f64, 1e-8, 1e8, 1e150] {
                let other = by(method, 4, &Mat::from_fn(50, 5, |i, j| scale * x[(i, j)]));
                assert_eq!(other.model.n_latent(), fit.model.n_latent(), "{scale}");
                let noise = other.model.noise_variance() / scale / scale;
                relative(noise, fit.model.noise_variance(), 1e-7, (method, scale));
                // A density of the cells; the level of the means has none of its own. Of W too where it is a point.
                let dimensions = match method {
                    BayesMethod::Variational => cells - 1.0,
                    BayesMethod::Relevance => cells + 5.0 * fit.model.n_latent() as f64,
                };
                let expected = objective(&fit) - dimensions * scale.ln();
                relative(objective(&other), expected, 1e-9, (method, scale));
            }
            let far = by(method, 4, &Mat::from_fn(50, 5, |i, j| 1e8 + x[(i, j)]));
            relative(far.model.noise_variance(), fit.model.noise_variance(), 1e-6, (method, "far"));
        }
    }
}

#[test]
fn noise_alone_keeps_nothing() {
    let mut rng = Rng(21);
    let x = normal_matrix(200, 6, &mut rng);
    for x in [&x, &punched(&x, 0.2, &mut rng)] {
        let fit = by(BayesMethod::Variational, 5, x);
        assert_eq!(fit.model.n_latent(), 0);
        assert_eq!(fit.model.gaussian().latent_mean(table(x)).unwrap().ncols(), 0);
        close(fit.model.noise_variance(), 1.0, 0.15, "noise"); // 1200 cells: a deviation of 0.04
        assert!(objective(&fit).is_finite() && fit.report.log_likelihood.is_some());
    }
}

#[test]
fn odd_data_have_an_answer() {
    let mut rng = Rng(31);
    let methods = [BayesMethod::Variational, BayesMethod::Relevance];
    let plane = &normal_matrix(20, 2, &mut rng) * normal_matrix(2, 5, &mut rng);
    let wide = rows_with_deviations(12, &[9.0, 8.0, 7.0, 1.0, 1.0, 1.0], 0.0, &mut rng);
    let wide = Mat::from_fn(6, 12, |i, j| wide[(j, i)]);
    for method in methods {
        let fit = by(method, 4, &plane);
        assert_eq!((fit.model.n_latent(), fit.model.noise_variance()), (2, 0.0), "{method:?}");
        assert_eq!(fit.report.log_likelihood, Some(f64::INFINITY));
        assert_eq!(fit.report.bayes().unwrap().objective, Some(f64::INFINITY));
        let two = Mat::from_fn(2, 3, |i, j| (i * (j + 1)) as f64);
        let mean = by(method, 1, &two).model.mean()[0];
        match method {
            BayesMethod::Relevance => assert!(mean == 0.5),
            // Between the mean of its own cells and that of all.
            BayesMethod::Variational => assert!((0.5..1.0).contains(&mean), "{mean}"),
        }
        let one_feature = normal_matrix(30, 1, &mut rng);
        assert_eq!(by(method, 1, &one_feature).model.n_latent(), 0, "{method:?}");
        let mut constant = rows_with_deviations(40, &[5.0, 4.0, 1.0, 1.0], 0.0, &mut rng);
        (0..40).for_each(|i| constant[(i, 3)] = 7.0);
        assert!(by(method, 3, &constant).model.n_latent() >= 1);
        // Means whose squares, in units of the deviations, are no numbers.
        let tiny = Mat::from_fn(40, 4, |i, j| if j == 3 { 1e8 } else { 1e-150 * constant[(i, j)] });
        for tiny in [&tiny, &punched(&tiny, 0.1, &mut rng)] {
            assert!(by(method, 2, tiny).model.n_latent() >= 1);
        }
    }
    // Rows always lie in a plane of one dimension less than there are of them: that they do says nothing.
    let fit = by(BayesMethod::Variational, 5, &wide);
    assert!(fit.model.n_latent() < 5 && fit.model.noise_variance() > 0.1);
    let none = BayesianPca::new(0).fit(table(&plane)).unwrap_err();
    assert!(none.to_string().contains("at least 1"), "{none}");
}

#[test]
fn the_same_from_every_kind_of_source_and_any_threads() {
    let mut rng = Rng(41);
    let x = rows_with_deviations(300, &[4.0, 3.0, 1.0, 1.0, 1.0, 1.0], 2.0, &mut rng);
    let x = punched(&x, 0.3, &mut rng);
    let fit = |threads: usize| {
        let options = Ppca::new(4).threads(threads).tolerance(1e-20);
        BayesianPca::of(options).fit(table(&x)).unwrap().model
    };
    let bits = |m: &Predictive| crate::common::matrix_bits(m.gaussian().loadings());
    let one = fit(1);
    [2, 3, 7].iter().for_each(|threads| assert_eq!(bits(&fit(*threads)), bits(&one)));
    let free = BayesianPca::of(Ppca::new(Components::All).tolerance(1e-20)).fit(table(&x)).unwrap();
    assert_eq!(free.report.bayes().unwrap().allowed, 5);
    close_matrix(&covariance(&free.model), &covariance(&one), 1e-8, "all allowed");
    let listed = BayesianPca::of(Ppca::new(4).tolerance(1e-20))
        .fit(&crate::common::holes::observed(&x))
        .unwrap()
        .model;
    close_matrix(&covariance(&listed), &covariance(&one), 1e-8, "observed cells only");
}

#[test]
fn a_file_keeps_what_is_known() {
    use covary::persist::SavedModel;
    let x = rows_with_deviations(60, &[4.0, 3.0, 1.0, 1.0], 2.0, &mut Rng(51));
    for method in [BayesMethod::Variational, BayesMethod::Relevance] {
        let fit = by(method, 3, &x);
        let model = fit.model.clone();
        let bytes = SavedModel::new(fit, None).unwrap().to_bytes().unwrap();
        let back = SavedModel::from_bytes(&bytes).unwrap();
        assert_eq!(back.to_bytes().unwrap(), bytes);
        assert_eq!(back.report.bayes().unwrap().method, method);
        let found: &Predictive = back.model.downcast_ref().unwrap();
        assert_eq!(found.precisions(), model.precisions());
        assert_eq!(found.uncertainty().is_some(), method == BayesMethod::Variational);
        let density = |m: &Predictive| m.gaussian().log_density(table(&x)).unwrap();
        assert_eq!(crate::common::bits(&density(found)), crate::common::bits(&density(&model)));
    }
}

/// Imputed cells of data whose true values are known, with three times as many features as rows.
#[test]
fn metabolites_that_are_missing() {
    let (Some(missing), Some(complete)) =
        (crate::common::read_csv("metabolite_missing"), crate::common::read_csv("metabolite_complete"))
    else {
        return;
    };
    let measured = |csv: &crate::common::Csv| csv.columns(|c| c != "sample");
    let (x, truth) = (measured(&missing), measured(&complete));
    let holes: Vec<(usize, usize)> = (0..x.nrows())
        .flat_map(|i| (0..x.ncols()).map(move |j| (i, j)))
        .filter(|at| x[*at].is_nan())
        .collect();
    // vbpca_py 0.5.0, algorithm "vb".
    for (q, theirs) in [(2, 0.195848), (3, 0.184505), (5, 0.156714)] {
        let imputed = by(BayesMethod::Variational, q, &x).model.gaussian().impute(table(&x)).unwrap();
        let squares: f64 = holes.iter().map(|at| (imputed[*at] - truth[*at]).powi(2)).sum();
        let rmse = (squares / holes.len() as f64).sqrt();
        assert!(rmse < theirs, "{q}: {rmse}");
    }
}

/// Images that support well over a hundred components: the updates on rows that stand in for the moments must be
/// affordable and come to their end.
#[test]
fn many_components_of_complete_rows_converge() {
    let Some(csv) = crate::common::read_csv("usps_test") else { return };
    let x = csv.columns(|name| name != "label");
    let x = Mat::from_fn(x.nrows(), 128, |i, j| x[(i, j)]);
    let fit = BayesianPca::new(Components::All).fit(&x).unwrap();
    assert!(fit.report.converged());
    assert!(fit.model.n_latent() > 50 && fit.model.noise_variance() > 0.0);
}

#[test]
fn wide_rows_with_missing_values_are_refused_by_name() {
    let x = Mat::from_fn(5, 5001, |i, j| if (i, j) == (1, 7) { f64::NAN } else { ((i * j) as f64).sin() });
    let error = covary::select::Select::new().run(&x).unwrap_err().to_string();
    assert!(error.contains("5001") && error.contains("missing values"), "{error}");
}

/// Weights that sum to less than the number of rows are shares: whatever they sum to, each row counts as in
/// weights that sum to n.
#[test]
fn weights_that_are_shares_count_rows() {
    use covary::evidence::{Moments, gather};
    let (n, mut rng) = (120, Rng(19));
    let x = rows_with_deviations(n, &[4.0, 3.0, 2.0, 0.5, 0.5, 0.5], 3.0, &mut rng);
    let weights: Vec<f64> = (0..n).map(|_| 0.5 + rng.uniform()).collect();
    let total: f64 = weights.iter().sum();
    let summing_to = |s: f64| weights.iter().map(|w| w / total * s).collect::<Vec<_>>();
    for x in [x.clone(), punched(&x, 0.1, &mut rng)] {
        let complete = !x.col_iter().any(|c| c.iter().any(|v| v.is_nan()));
        for method in [BayesMethod::Variational, BayesMethod::Relevance] {
            let of = |s: f64| {
                let rows = table(&x).with_weights(summing_to(s)).unwrap();
                let moments = complete
                    .then(|| gather(&rows, || Moments::empty(6), &Default::default()).unwrap())
                    .map(|m| BayesianPca::new(5).method(method).fit_moments(&m).unwrap());
                (BayesianPca::new(5).method(method).fit(rows).unwrap(), moments)
            };
            let (counted, _) = of(n as f64);
            assert_eq!(counted.model.n_latent(), 3);
            for s in [1.0, 5.0, 0.9 * n as f64] {
                let (fit, moments) = of(s);
                for fit in std::iter::once(fit).chain(moments) {
                    assert_eq!(fit.model.n_latent(), 3, "{method:?} {s}");
                    close_matrix(&covariance(&fit.model), &covariance(&counted.model), 1e-6, "WWᵀ");
                    let noise = fit.model.noise_variance();
                    relative(noise, counted.model.noise_variance(), 1e-6, "noise");
                    relative(objective(&fit), objective(&counted), 1e-8, "objective");
                    relative(fit.report.weight, s, 1e-12, "weight");
                    let per_row =
                        |fit: &Fit<Predictive>| fit.report.log_likelihood.unwrap() / fit.report.weight;
                    relative(per_row(&fit), per_row(&counted), 1e-8, "ℓ per row");
                }
            }
        }
    }
}
