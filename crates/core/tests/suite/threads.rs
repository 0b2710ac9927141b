//! Bit-identical results for any number of threads.

use crate::common::*;
use covary::data::{Block, Cells, RowSource, Table};
use covary::evidence::{Moments, gather};
use covary::linalg::Mat;
use covary::model::{LatentCovariance, LinearGaussian, Noise, Reconstruction};
use covary::{Components, Fit, Ppca, Solver};

const THREADS: [usize; 4] = [1, 2, 3, 7];

/// All fields of a fit, by bits.
fn fingerprint(fit: &Fit<LinearGaussian>) -> Vec<u64> {
    let s = &fit.spectrum().unwrap();
    let mut all = bits(s.mean());
    all.extend(bits(s.eigenvalues()));
    all.extend(matrix_bits(s.vectors()));
    all.extend(bits(&s.explained_ratio()));
    all.extend(bits(&[
        s.total_variance(),
        s.distortion(),
        s.noise_variance(),
        s.log_likelihood(),
        s.weight(),
    ]));
    all.extend(matrix_bits(fit.model.loadings()));
    let Noise::Isotropic(noise) = fit.model.noise() else { panic!("PPCA has one noise variance") };
    all.extend([noise.to_bits(), fit.report.rows as u64, fit.report.passes as u64]);
    all.extend(bits(&fit.report.trace));
    all
}

/// All answers about some rows, by bits.
fn answers(model: &LinearGaussian, x: &Mat<f64>) -> Vec<u64> {
    let mut all = bits(&model.log_density(x).unwrap());
    let posterior = model.posterior(x).unwrap();
    all.extend(matrix_bits(&posterior.mean));
    match &posterior.covariance {
        LatentCovariance::Shared(c) => all.extend(matrix_bits(c)),
        LatentCovariance::PerPattern { cells, pattern, .. } => {
            all.extend(bits(cells));
            all.extend(pattern.iter().map(|k| *k as u64));
        }
    }
    let outliers = model.outliers(x).unwrap();
    [outliers.t2, outliers.spe, outliers.p_value].iter().for_each(|v| all.extend(bits(v)));
    let cells = model.contributions(x).unwrap();
    for table in [&cells.t2, &cells.spe, &cells.cell, &cells.expected, &cells.deviation] {
        all.extend(matrix_bits(table));
    }
    for kind in [Reconstruction::Orthogonal, Reconstruction::Posterior] {
        all.extend(matrix_bits(&model.reconstruct(x, kind).unwrap()));
    }
    all.extend(matrix_bits(&model.sample(600, 4)));
    all
}

fn in_pool<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

#[track_caller]
fn all_equal(results: &[Vec<u64>], what: &str) {
    for (threads, result) in THREADS.iter().zip(results) {
        assert!(*result == results[0], "{what}: {threads} threads differ from 1");
    }
}

#[test]
fn fits_do_not_depend_on_threads() {
    let mut rng = Rng(1);
    // Many chunks; wide enough for several panels; square and large enough that decompositions are split.
    for (n, p, q) in [(30_000, 8, 3), (60, 3000, 5), (400, 200, 4), (300, 150, 60)] {
        let z = normal_matrix(n, 6, &mut rng);
        let a = normal_matrix(6, p, &mut rng);
        let e = normal_matrix(n, p, &mut rng);
        let x = Mat::from_fn(n, p, |i, j| {
            5.0 + 0.3 * e[(i, j)] + (0..6).map(|k| z[(i, k)] * a[(k, j)]).sum::<f64>()
        });
        let narrow = narrowed(&x);
        let w: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
        let mut solvers = vec![Solver::Eigen, Solver::Krylov, Solver::Auto];
        if n < 1000 {
            solvers.extend([Solver::Svd, Solver::Dual]);
        }
        if p > 1000 {
            solvers.retain(|s| *s != Solver::Eigen); // 3000 × 3000 takes too long here
        }
        for solver in solvers {
            for (single, weighted) in [(false, false), (true, false), (false, true), (true, true)] {
                let fit = |threads: usize| {
                    let cells = if single {
                        Cells::F32(Block::View(narrow.as_ref()))
                    } else {
                        Cells::F64(Block::View(x.as_ref()))
                    };
                    let mut table = Table::new(cells);
                    if weighted {
                        table = table.with_weights(w.as_slice()).unwrap();
                    }
                    Ppca::new(q).solver(solver).threads(threads).fit(table).unwrap()
                };
                let prints = THREADS.map(|t| fingerprint(&fit(t)));
                all_equal(
                    &prints,
                    &format!("{n} × {p}, {}, f32 {single}, weights {weighted}", solver.name()),
                );
            }
        }
    }
}

#[test]
fn whole_spectra_do_not_depend_on_threads() {
    let mut rng = Rng(2);
    let x = rows_with_deviations(260, &falling(170, 0.98), 0.0, &mut rng);
    for solver in [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Auto] {
        for components in [Components::All, Components::Fraction(0.9)] {
            let prints = THREADS
                .map(|t| fingerprint(&Ppca::new(components).solver(solver).threads(t).fit(&x).unwrap()));
            all_equal(&prints, &format!("{components:?} {}", solver.name()));
        }
    }
}

#[test]
fn answers_do_not_depend_on_threads() {
    let mut rng = Rng(3);
    for diagonal in [false, true] {
        let model = random_model(7, 3, diagonal, &mut rng);
        let mut x = normal_matrix(7000, 7, &mut rng);
        for holes in [false, true] {
            if holes {
                (0..7000).for_each(|i| {
                    (0..7).for_each(|j| {
                        if rng.uniform() < 0.2 {
                            x[(i, j)] = f64::NAN;
                        }
                    });
                });
            }
            let prints = THREADS.map(|t| in_pool(t, || answers(&model, &x)));
            all_equal(&prints, &format!("diagonal {diagonal}, holes {holes}"));
        }
    }
}

/// Large products inside a question must not be split by the number of threads either.
#[test]
fn answers_of_a_large_model_do_not_depend_on_threads() {
    let mut rng = Rng(4);
    let model = random_model(300, 80, false, &mut rng);
    let x = normal_matrix(300, 300, &mut rng);
    let prints = THREADS.map(|t| {
        in_pool(t, || {
            let mut all = answers(&model, &x);
            all.extend(matrix_bits(&model.covariance()));
            all.extend(matrix_bits(&model.precision().unwrap()));
            all
        })
    });
    all_equal(&prints, "300 features, 80 latent");
}

#[test]
fn evidence_does_not_depend_on_threads() {
    let x = rows_with_deviations(50_000, &falling(5, 0.7), 1e3, &mut Rng(5));
    let source = table(&x);
    let prints = THREADS.map(|t| {
        in_pool(t, || {
            let m = gather(&source as &dyn RowSource, || Moments::empty(5), &Default::default()).unwrap();
            let mut all = bits(m.mean());
            all.extend(matrix_bits(&m.covariance()));
            all
        })
    });
    all_equal(&prints, "moments");
}
