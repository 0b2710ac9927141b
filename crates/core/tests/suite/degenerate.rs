//! Bad input: an error that says what and where, or the right answer; never a panic.

use crate::common::*;
use covary::data::{Block, Cells, Rows, Table};
use covary::error::Cell;
use covary::evidence::{Accumulator, Moments};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise, PrincipalComponents, Reconstruction};
use covary::{Components, Error, ErrorClass, Pca, Ppca, Solver};
use proptest::prelude::*;

const ALL: [Solver; 5] = [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Auto];

fn error_of(x: &Mat<f64>, q: usize, solver: Solver) -> Error {
    Ppca::new(q).solver(solver).fit(x).map(|_| ()).expect_err(solver.name())
}

#[test]
fn no_rows() {
    for solver in ALL {
        let error = error_of(&Mat::zeros(0, 3), 1, solver);
        assert!(matches!(error, Error::NoRows), "{}: {error}", solver.name());
        assert_eq!(error.class(), ErrorClass::Data);
    }
    assert!(matches!(Ppca::new(1).fit_moments(&Moments::empty(3)), Err(Error::NoRows)));
}

#[test]
fn no_features() {
    for solver in ALL {
        let error = error_of(&Mat::zeros(3, 0), 1, solver);
        assert!(matches!(error, Error::NoFeatures), "{}: {error}", solver.name());
    }
    assert!(Ppca::new(1).fit_moments(&Moments::empty(0)).is_err());
    assert!(Rows::from_slice(&[1.0, 2.0], 0).is_err());
    assert!(matches!(Rows::from_slice(&[1.0, 2.0, 3.0], 2), Err(Error::Length { .. })));
}

#[test]
fn one_row() {
    for solver in ALL {
        let error = error_of(&Mat::from_fn(1, 3, |_, j| j as f64), 1, solver);
        assert!(matches!(error, Error::TooFewRows { rows: 1, needed: 2 }), "{}: {error}", solver.name());
    }
}

#[test]
fn all_constant() {
    for value in [0.0, 1.0, 0.1, 1e8 + 0.1, -7.7e-9, 1e300] {
        for n in [2, 3, 10, 64, 150, 5000] {
            let x = Mat::from_fn(n, 3, |_, j| value * (1 + j) as f64);
            let w: Vec<f64> = (0..n).map(|i| 0.3 + (i % 7) as f64).collect();
            for solver in ALL {
                if n > 1000 && solver == Solver::Dual {
                    continue;
                }
                let error = error_of(&x, 1, solver);
                assert!(matches!(error, Error::Constant), "{value} {n} {}: {error}", solver.name());
                let weighted = table(&x).with_weights(w.as_slice()).unwrap();
                let error = Ppca::new(1).solver(solver).fit(weighted).map(|_| ()).unwrap_err();
                assert!(matches!(error, Error::Constant), "{value} {n} {} weighted: {error}", solver.name());
            }
        }
    }
}

#[test]
fn impossible_numbers_of_components() {
    let x = normal_matrix(5, 9, &mut Rng(1));
    for solver in ALL {
        for requested in [5, 9, 10, usize::MAX] {
            let error = error_of(&x, requested, solver);
            let Error::Components { requested: r, possible, rows, features } = error else {
                panic!("{}: {error}", solver.name())
            };
            assert_eq!((r, possible, rows, features), (requested, 4, 5, 9), "{}", solver.name());
            assert!(error_of(&x, requested, solver).to_string().contains("allow 1 to 4"));
        }
        let tall = normal_matrix(50, 3, &mut Rng(2));
        assert!(matches!(error_of(&tall, 4, solver), Error::Components { possible: 3, .. }));
    }
    for fraction in [0.0, 1.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        for solver in ALL {
            let error = Ppca::new(fraction).solver(solver).fit(&x).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Parameter { .. }), "{fraction} {}: {error}", solver.name());
        }
    }
    let error = Ppca::new(0.5).solver(Solver::Krylov).fit(&x).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Solver { solver: "krylov", .. }), "{error}");
}

/// The rows that count are those of positive weight.
#[test]
fn weights_decide_what_is_possible() {
    let x = normal_matrix(6, 9, &mut Rng(3));
    let weights = [1.0, 0.0, 2.0, 0.0, 0.5, 0.0];
    for solver in ALL {
        let fit = |q: usize| Ppca::new(q).solver(solver).fit(table(&x).with_weights(&weights[..]).unwrap());
        assert_eq!(fit(2).unwrap().report.rows, 3);
        let error = fit(3).map(|_| ()).unwrap_err();
        assert!(
            matches!(error, Error::Components { possible: 2, rows: 3, .. }),
            "{}: {error}",
            solver.name()
        );
        let all = Ppca::new(Components::All).solver(solver);
        if solver != Solver::Krylov {
            let fit = all.fit(table(&x).with_weights(&weights[..]).unwrap()).unwrap();
            assert_eq!(fit.spectrum().unwrap().n_components(), 2);
        }
        let zeros = table(&x).with_weights(vec![0.0; 6]).unwrap();
        let error = Ppca::new(1).solver(solver).fit(zeros).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NoRows), "{}: {error}", solver.name());
        let one = table(&x).with_weights(vec![0.0, 0.0, 3.0, 0.0, 0.0, 0.0]).unwrap();
        let error = Ppca::new(1).solver(solver).fit(one).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::TooFewRows { rows: 1, .. }), "{}: {error}", solver.name());
    }
}

#[test]
fn bad_weights() {
    let x = normal_matrix(4, 2, &mut Rng(4));
    for bad in [-1.0, f64::NAN, f64::INFINITY, -f64::INFINITY] {
        let error = table(&x).with_weights(vec![1.0, 1.0, bad, 1.0]).map(|_| ()).unwrap_err();
        let Error::Weight { row, value } = error else { panic!("{error}") };
        assert_eq!((row, value.to_bits()), (2, bad.to_bits()));
        let chunk = chunk_of(x.as_ref(), 100);
        let error = chunk.with_weights(vec![1.0, 1.0, bad, 1.0]).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Weight { row: 102, .. }), "counted over the whole source: {error}");
    }
    for count in [0, 3, 5] {
        let error = table(&x).with_weights(vec![1.0; count]).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Length { expected: 4, found, .. } if found == count), "{error}");
    }
    assert!(matches!(
        table(&x).with_names(vec!["a".into()]),
        Err(Error::Length { expected: 2, found: 1, .. })
    ));
}

/// ±inf and holes are named by row and column, however late they come and whoever reads them.
#[test]
fn bad_cells_are_named() {
    for (n, p, at) in
        [(10, 3, (0, 0)), (10, 3, (9, 2)), (6000, 4, (5001, 2)), (6000, 4, (4096, 0)), (5, 400, (3, 399))]
    {
        let good = normal_matrix(n, p, &mut Rng(5));
        let names: Vec<String> = (0..p).map(|j| format!("f{j}")).collect();
        for bad in [f64::INFINITY, -f64::INFINITY, f64::NAN] {
            let mut x = good.clone();
            x[at] = bad;
            let narrow = narrowed(&x);
            for solver in ALL {
                if n > 1000 && matches!(solver, Solver::Dual | Solver::Svd) {
                    continue;
                }
                let named = table(&x).with_names(names.clone()).unwrap();
                let single = Table::new(Cells::F32(Block::View(narrow.as_ref())));
                let tables = [(table(&x), None), (named, Some(names[at.1].clone())), (single, None)];
                for (table, name) in tables {
                    let fit = Ppca::new(2).solver(solver).fit(table);
                    if bad.is_nan() && solver == Solver::Auto {
                        assert_eq!(fit.unwrap().report.holes.unwrap().missing, 1); // the fit goes around it
                        continue;
                    }
                    let error = fit.map(|_| ()).unwrap_err();
                    let expected = Cell { row: at.0, column: at.1, name };
                    match error {
                        Error::Infinite { value, cell } if bad.is_infinite() => {
                            assert_eq!((value, cell), (bad, expected), "{}", solver.name());
                        }
                        Error::Missing { cell, .. } if bad.is_nan() => {
                            assert_eq!(cell, expected, "{}", solver.name());
                        }
                        other => panic!("{bad} {}: {other}", solver.name()),
                    }
                }
            }
            let model = Ppca::new(2).fit(&good).unwrap().model;
            let named = table(&x).with_names(names.clone()).unwrap();
            match model.log_density(named) {
                Err(Error::Infinite { cell, .. }) if bad.is_infinite() => {
                    assert_eq!(cell, Cell { row: at.0, column: at.1, name: Some(names[at.1].clone()) });
                }
                Ok(density) if bad.is_nan() => assert!(density.iter().all(|d| d.is_finite())),
                other => panic!("{bad}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_wrong_width() {
    let x = normal_matrix(10, 4, &mut Rng(6));
    let model = Ppca::new(2).fit(&x).unwrap().model;
    let pca = Pca::new(2).fit(&x).unwrap().model;
    for p in [1, 3, 5] {
        let y = normal_matrix(3, p, &mut Rng(7));
        let wrong =
            |e: Error| assert!(matches!(e, Error::FeatureCount { expected: 4, found } if found == p), "{e}");
        wrong(model.log_density(&y).map(|_| ()).unwrap_err());
        wrong(model.posterior(&y).map(|_| ()).unwrap_err());
        wrong(model.latent_mean(&y).map(|_| ()).unwrap_err());
        wrong(model.outliers(&y).map(|_| ()).unwrap_err());
        wrong(model.t2_spe(&y).map(|_| ()).unwrap_err());
        wrong(model.reconstruct(&y, Reconstruction::Posterior).map(|_| ()).unwrap_err());
        wrong(model.conditional(&row(&y, 0)).map(|_| ()).unwrap_err());
        wrong(pca.project(&y).map(|_| ()).unwrap_err());
        wrong(pca.reconstruct(&y).map(|_| ()).unwrap_err());
        wrong(pca.whiten(&y).map(|_| ()).unwrap_err());
        let mut moments = Moments::empty(4);
        wrong(moments.update(&chunk_of(y.as_ref(), 0)).unwrap_err());
    }
    assert!(matches!(model.conditional(&[]), Err(Error::FeatureCount { expected: 4, found: 0 })));
    assert!(matches!(pca.embed(normal_matrix(2, 3, &mut Rng(8)).as_ref()), Err(Error::Length { .. })));
    assert!(matches!(pca.unwhiten(normal_matrix(2, 1, &mut Rng(8)).as_ref()), Err(Error::Length { .. })));
}

#[test]
fn one_feature() {
    let x: Mat<f64> = Mat::from_fn(4, 1, |i, _| [1.0, 2.0, 4.0, 5.0][i]);
    for solver in ALL {
        let fit = Ppca::new(1).solver(solver).fit(&x).unwrap();
        // Mean 3, variance (4 + 1 + 1 + 4)/4 = 2.5, q = p: no noise, and a density all the same.
        assert_eq!(fit.spectrum().unwrap().mean(), [3.0]);
        close(fit.spectrum().unwrap().eigenvalues()[0], 2.5, 1e-15 * 10.0, "variance");
        assert_eq!(fit.spectrum().unwrap().noise_variance(), 0.0);
        let expected: Vec<f64> =
            (0..4).map(|i| -0.5 * (LN_2PI + 2.5f64.ln() + (x[(i, 0)] - 3.0).powi(2) / 2.5)).collect();
        close_all(&fit.model.log_density(&x).unwrap(), &expected, 1e-14 * 10.0, solver.name());
        close(fit.report.log_likelihood.unwrap(), expected.iter().sum(), 1e-13, solver.name());
        let (t2, spe) = fit.model.t2_spe(&x).unwrap();
        close_all(&t2, &[1.6, 0.4, 0.4, 1.6], 1e-14 * 10.0, "T²");
        close_all(&spe, &[0.0; 4], 1e-28, "SPE");
    }
}

#[test]
fn as_many_components_as_features() {
    let x = rows_with_deviations(40, &falling(5, 0.6), 1.0, &mut Rng(9));
    let (mean, c) = mean_and_covariance(&x, None);
    let dense = Dense::new(mean, c);
    let expected: Vec<f64> = (0..40).map(|i| dense.log_density(&row(&x, i))).collect();
    for solver in ALL {
        let fit = Ppca::new(5).solver(solver).fit(&x).unwrap();
        close_all(&fit.model.log_density(&x).unwrap(), &expected, 1e-11 * 10.0, solver.name());
        relative(fit.report.log_likelihood.unwrap(), expected.iter().sum(), 1e-12, solver.name());
        let rebuilt = fit.model.reconstruct(&x, Reconstruction::Orthogonal).unwrap();
        close_matrix(&rebuilt, &x, 1e-12 * 10.0, "nothing is lost");
    }
}

/// q = rank < p: no noise and no density, but everything else works.
#[test]
fn as_many_components_as_the_rank() {
    let z = normal_matrix(30, 2, &mut Rng(10));
    let a = normal_matrix(2, 6, &mut Rng(11));
    let x = Mat::from_fn(30, 6, |i, j| 2.0 + z[(i, 0)] * a[(0, j)] + z[(i, 1)] * a[(1, j)]);
    for solver in ALL {
        for q in [2, 3, 6] {
            let fit = Ppca::new(q).solver(solver).fit(&x).unwrap();
            let what = (solver.name(), q);
            assert_eq!(fit.spectrum().unwrap().noise_variance(), 0.0, "{what:?}");
            assert_eq!(fit.report.log_likelihood, Some(f64::INFINITY), "{what:?}");
            let Err(Error::NoDensity { rank: 2, features: 6 }) = fit.model.log_density(&x) else {
                panic!("{what:?}: {:?}", fit.model.log_density(&x))
            };
            assert!(matches!(fit.model.outliers(&x), Err(Error::NoDensity { .. })), "{what:?}");
            assert!(matches!(fit.model.precision(), Err(Error::NoDensity { .. })), "{what:?}");
            for kind in [Reconstruction::Orthogonal, Reconstruction::Posterior] {
                close_matrix(&fit.model.reconstruct(&x, kind).unwrap(), &x, 1e-12 * 10.0, (what, "rebuilt"));
            }
            let (t2, spe) = fit.model.t2_spe(&x).unwrap();
            close_all(&spe, &[0.0; 30], 1e-24, (what, "SPE"));
            // T² sums to n times the rank: Σ xᵀ S⁺ x.
            close(t2.iter().sum::<f64>(), 60.0, 1e-10, (what, "T²"));
            assert_eq!(fit.model.latent_mean(&x).unwrap().ncols(), q);
            // Two cells of a row say all about the others.
            let mut holey = row(&x, 4);
            (2..6).for_each(|j| holey[j] = f64::NAN);
            let rest = fit.model.conditional(&holey).unwrap();
            for (k, j) in (2..6).enumerate() {
                close(rest.mean[k], x[(4, j)], 1e-9, (what, "conditional mean"));
                close(rest.covariance[(k, k)], 0.0, 1e-9, (what, "conditional variance"));
            }
        }
    }
}

#[test]
fn more_features_than_rows() {
    let x = rows_with_deviations(6, &falling(40, 0.95), 0.0, &mut Rng(12));
    let dense = DensePpca::of(&x, None, 3);
    for solver in ALL {
        let fit = Ppca::new(3).solver(solver).fit(&x).unwrap();
        // σ² counts all p − q directions, also those in which the rows do not vary.
        let rest: f64 = dense.eigenvalues[3..5].iter().sum();
        relative(fit.spectrum().unwrap().noise_variance(), rest / 37.0, 1e-11, solver.name());
        assert!(fit.report.log_likelihood.is_some());
        let error = Ppca::new(6).solver(solver).fit(&x).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Components { possible: 5, .. }), "{error}");
    }
}

#[test]
fn models_that_cannot_be() {
    let w = || Mat::from_fn(2, 1, |_, _| 1.0);
    let bad = f64::NAN;
    assert!(LinearGaussian::new(vec![0.0; 3], w(), Noise::Isotropic(1.0)).is_err());
    assert!(LinearGaussian::new(vec![0.0, bad], w(), Noise::Isotropic(1.0)).is_err());
    assert!(
        LinearGaussian::new(vec![0.0; 2], Mat::from_fn(2, 1, |_, _| bad), Noise::Isotropic(1.0)).is_err()
    );
    for noise in [-1.0, bad, f64::INFINITY] {
        assert!(LinearGaussian::new(vec![0.0; 2], w(), Noise::Isotropic(noise)).is_err());
        assert!(LinearGaussian::new(vec![0.0; 2], w(), Noise::Diagonal(vec![1.0, noise])).is_err());
    }
    assert!(LinearGaussian::new(vec![0.0; 2], w(), Noise::Diagonal(vec![1.0])).is_err());
    assert!(LinearGaussian::new(vec![0.0; 2], w(), Noise::Diagonal(vec![1.0, 0.0])).is_err());
    let unit = || Mat::from_fn(2, 1, |i, _| f64::from(u8::from(i == 0)));
    let pca = |u, v: Vec<f64>, noise| PrincipalComponents::new(vec![0.0; 2], u, v, noise);
    assert!(pca(unit(), vec![1.0], 0.5).is_ok());
    assert!(pca(w(), vec![1.0], 0.5).is_err(), "not of unit length");
    assert!(pca(unit(), vec![1.0, 2.0], 0.5).is_err());
    assert!(pca(unit(), vec![-1.0], 0.5).is_err() && pca(unit(), vec![bad], 0.5).is_err());
    assert!(pca(unit(), vec![1.0], -0.5).is_err() && pca(unit(), vec![1.0], bad).is_err());
}

#[test]
fn a_rotation_must_be_orthogonal() {
    let model = random_model(4, 2, false, &mut Rng(13));
    let of = |cells: [f64; 4]| Mat::from_fn(2, 2, |i, j| cells[2 * i + j]);
    assert!(model.rotate(&of([0.6, -0.8, 0.8, 0.6])).is_ok());
    assert!(model.rotate(&of([0.0, 1.0, 1.0, 0.0])).is_ok(), "a reflection is orthogonal too");
    for bad in
        [[1.0, 0.1, 0.0, 1.0], [2.0, 0.0, 0.0, 2.0], [0.0; 4], [f64::NAN; 4], [1.0, 0.0, 0.0, f64::INFINITY]]
    {
        assert!(matches!(model.rotate(&of(bad)), Err(Error::Parameter { .. })), "{bad:?}");
    }
    assert!(matches!(model.rotate(&Mat::identity(3, 3)), Err(Error::Length { .. })));
    assert!(matches!(model.rotate(&Mat::zeros(2, 3)), Err(Error::Length { .. })));
}

#[test]
fn moments_that_no_rows_have() {
    let scatter = |d: f64| Mat::from_fn(2, 2, |i, j| if i == j { d } else { 0.0 });
    assert!(Moments::from_parts(5, 5.0, vec![0.0; 2], scatter(1.0)).is_ok());
    assert!(Moments::from_parts(5, 5.0, vec![0.0; 3], scatter(1.0)).is_err());
    assert!(Moments::from_parts(5, 5.0, vec![0.0; 2], scatter(-1.0)).is_err());
    assert!(Moments::from_parts(5, 5.0, vec![0.0; 2], scatter(f64::NAN)).is_err());
    assert!(Moments::from_parts(5, -1.0, vec![0.0; 2], scatter(1.0)).is_err());
    assert!(Moments::from_parts(5, f64::INFINITY, vec![0.0; 2], scatter(1.0)).is_err());
    assert!(Moments::from_parts(5, 5.0, vec![0.0, f64::NAN], scatter(1.0)).is_err());
}

/// Cells that ask for trouble.
fn nasty() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![
        0.0,
        1.0,
        -1.0,
        1e-300,
        1e300,
        -1e300,
        1e154,
        5e-324,
        f64::MAX,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ])
}

fn finite_nasty() -> impl Strategy<Value = f64> {
    nasty().prop_map(|v| if v.is_finite() { v } else { 2.0 })
}

/// Whatever it answers, it must answer.
fn ask(model: &LinearGaussian, x: &Mat<f64>) {
    let _ = model.log_density(x);
    let _ = model.posterior(x);
    let _ = model.outliers(x);
    let _ = model.t2_spe(x);
    let _ = model.precision();
    let _ = model.reconstruct(x, Reconstruction::Orthogonal);
    let _ = model.reconstruct(x, Reconstruction::Posterior);
    let _ = (0..x.nrows()).map(|i| model.conditional(&row(x, i))).collect::<Vec<_>>();
    assert_eq!(model.sample(3, 0).nrows(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Ok or Err, never a panic; an Ok fit holds numbers only.
    #[test]
    fn no_panic_in_a_fit(
        n in 0usize..6,
        p in 0usize..5,
        q in 0usize..6,
        cells in prop::collection::vec(nasty(), 30),
        finite: bool,
        single: bool,
        weights in prop::option::of(prop::collection::vec(prop::sample::select(vec![0.0, 1.0, 1e300, 1e-300, 0.5]), 6)),
    ) {
        let value = |i: usize, j: usize| {
            let v = cells[i * 5 + j];
            if finite && !v.is_finite() { 2.0 } else { v }
        };
        let x = Mat::from_fn(n, p, value);
        let narrow = narrowed(&x);
        for solver in ALL {
            for components in [Components::Count(q), Components::Fraction(0.7), Components::All] {
                let cells = if single {
                    Cells::F32(Block::View(narrow.as_ref()))
                } else {
                    Cells::F64(Block::View(x.as_ref()))
                };
                let mut table = Table::new(cells);
                if let Some(w) = &weights {
                    table = table.with_weights(&w[..n]).unwrap();
                }
                if let Ok(fit) = Ppca::new(components).solver(solver).fit(table) {
                    let s = &fit.spectrum().unwrap();
                    prop_assert!(s.eigenvalues().iter().all(|v| v.is_finite() && *v >= 0.0), "{:?}", s);
                    prop_assert!(s.noise_variance().is_finite() && s.noise_variance() >= 0.0);
                    prop_assert!(s.mean().iter().all(|v| v.is_finite()));
                    ask(&fit.model, &x);
                }
            }
        }
    }

    #[test]
    fn no_panic_in_a_question(
        p in 0usize..4,
        q in 0usize..4,
        mean in prop::collection::vec(finite_nasty(), 4),
        w in prop::collection::vec(finite_nasty(), 16),
        noise in finite_nasty(),
        psi in prop::option::of(prop::collection::vec(finite_nasty(), 4)),
        cells in prop::collection::vec(nasty(), 12),
    ) {
        let noise = psi.map_or(Noise::Isotropic(noise), |v| Noise::Diagonal(v[..p].to_vec()));
        let loadings = Mat::from_fn(p, q, |i, j| w[i * 4 + j]);
        if let Ok(model) = LinearGaussian::new(mean[..p].to_vec(), loadings, noise) {
            ask(&model, &Mat::from_fn(3, p, |i, j| cells[i * 4 + j]));
        }
    }
}

#[test]
fn evidence_of_other_features_is_not_merged() {
    use covary::evidence::{Accumulator, Moments, Sketch};
    for (a, b) in [(2, 3), (3, 2)] {
        let error = Moments::empty(a).merge(&Moments::empty(b)).unwrap_err();
        assert!(matches!(error, Error::FeatureCount { expected, found } if (expected, found) == (a, b)));
    }
    let block = |v: f64| std::sync::Arc::new(Mat::from_fn(2, 1, |_, _| v));
    assert!(Sketch::empty(block(1.0)).merge(&Sketch::empty(block(2.0))).is_err());
    assert!(Sketch::empty(block(1.0)).merge(&Sketch::empty(block(1.0))).is_ok());
}

#[test]
fn cells_that_are_not_whole_rows() {
    use covary::data::{Chunk, Order};
    assert!(matches!(Chunk::from_rows(0, vec![1.0; 3], 2, Order::Rows), Err(Error::Length { .. })));
    assert!(Chunk::from_rows(0, vec![], 0, Order::Rows).is_err());
}

/// All is noise: mean, σ² = trace/p and the likelihood of independent normals, whoever finds the spectrum.
#[test]
fn no_components_leave_a_round_normal() {
    let x = rows_with_deviations(60, &falling(5, 0.7), 2.0, &mut Rng(3));
    let (mean, covariance) = mean_and_covariance(&x, None);
    let variance = (0..5).map(|j| covariance[(j, j)]).sum::<f64>() / 5.0;
    let round = Dense::new(mean.clone(), Mat::from_fn(5, 5, |i, j| if i == j { variance } else { 0.0 }));
    let expected: Vec<f64> = (0..60).map(|i| round.log_density(&row(&x, i))).collect();
    for solver in ALL {
        let fit = Ppca::new(0).solver(solver).fit(table(&x)).unwrap();
        assert_eq!((fit.model.n_latent(), fit.report.components), (0, 0));
        relative(fit.spectrum().unwrap().noise_variance(), variance, 1e-12, solver);
        close_all(&fit.model.log_density(table(&x)).unwrap(), &expected, 1e-10, solver);
        relative(fit.report.log_likelihood.unwrap(), expected.iter().sum(), 1e-11, solver);
        let z = fit.model.posterior(table(&x)).unwrap();
        assert_eq!((z.mean.nrows(), z.mean.ncols()), (60, 0));
        let pca = Pca::new(0).solver(solver).fit(table(&x)).unwrap();
        close_all(&row(&pca.model.reconstruct(table(&x)).unwrap(), 7), &mean, 1e-12, solver);
    }
    let mut holes = x.clone();
    holes[(0, 0)] = f64::NAN;
    let error = Ppca::new(0).fit(table(&holes)).unwrap_err();
    assert!(error.to_string().contains("at least 1 when rows have missing values"), "{error}");
}
