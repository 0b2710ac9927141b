//! Bayesian PCA: what it keeps, that its two ways agree, and the textbook's updates done naively.

mod common;

use common::holes::punched;
use common::{Rng, close, close_matrix, normal_matrix, relative, rows_with_deviations, table};
use covary::linalg::Mat;
use covary::model::Predictive;
use covary::{BayesMethod, BayesianPca, Fit, Ppca, Solver};

fn by(method: BayesMethod, q: usize, x: &Mat<f64>) -> Fit<Predictive> {
    BayesianPca::new(q).method(method).fit(table(x)).unwrap()
}

fn passes(q: usize) -> BayesianPca {
    BayesianPca::of(Ppca::new(q).solver(Solver::Em).tolerance(1e-22))
}

fn objective(fit: &Fit<Predictive>) -> f64 {
    fit.report.bayes.as_ref().unwrap().objective.unwrap()
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

/// The updates of variational Bayes as they are written in Bishop (1999), with (wⱼ, μⱼ) together, loops and all.
struct Naive {
    w: Vec<Vec<f64>>, // (w, μ) of each feature
    s: Vec<Mat<f64>>, // covariance
    noise: f64,
    alpha: Vec<f64>,
}

fn inverse(a: &Mat<f64>) -> Mat<f64> {
    use faer::linalg::solvers::DenseSolveCore;
    a.llt(faer::Side::Lower).unwrap().inverse()
}

impl Naive {
    fn start(x: &Mat<f64>, q: usize, rng: &mut Rng) -> Self {
        let p = x.ncols();
        let w = (0..p).map(|_| (0..=q).map(|_| rng.normal()).collect()).collect();
        Self { w, s: vec![Mat::identity(q + 1, q + 1); p], noise: 1.0, alpha: vec![1.0; q] }
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
        let (mut squares, mut cells) = (0.0, 0.0);
        for j in 0..p {
            let precision = Mat::from_fn(q + 1, q + 1, |k, l| {
                a[j][(k, l)] / self.noise + if k == l && k < q { self.alpha[k] } else { 0.0 }
            });
            self.s[j] = inverse(&precision);
            self.w[j] = (0..=q)
                .map(|k| (0..=q).map(|l| self.s[j][(k, l)] * b[j][l]).sum::<f64>() / self.noise)
                .collect();
            let e = second(&self.s[j], &self.w[j]);
            squares += (0..n).map(|i| x[(i, j)]).filter(|v| !v.is_nan()).map(|v| v * v).sum::<f64>();
            squares -= 2.0 * (0..=q).map(|k| self.w[j][k] * b[j][k]).sum::<f64>();
            squares +=
                (0..=q).flat_map(|k| (0..=q).map(move |l| (k, l))).map(|at| e[at] * a[j][at]).sum::<f64>();
            cells += a[j][(q, q)];
        }
        self.noise = squares / cells;
        for k in 0..q {
            let length: f64 = (0..p).map(|j| self.s[j][(k, k)] + self.w[j][k].powi(2)).sum();
            self.alpha[k] = p as f64 / length;
        }
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
