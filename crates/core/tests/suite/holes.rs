//! Fits of rows with holes: at the maximum of the likelihood of the observed cells, wherever the rows come from.
//!
//! `missing_ml.json` was made with L-BFGS on the exact gradient (SciPy), from several starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::holes::*;
use crate::common::*;
use covary::algorithm::{Stop, em_step};
use covary::data::{Block, Cells, Order, Rows, Table};
use covary::error::Error;
use covary::evidence::{Accumulator, Latent, gather};
use covary::expectation::LatentParameters;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::persist::Portable;
use covary::{Components, Control, Event, Fit, Pca, Ppca, Solver};

#[track_caller]
fn same_model(a: &Fit<LinearGaussian>, b: &Fit<LinearGaussian>, tolerance: f64, what: &str) {
    let scale = a.spectrum().unwrap().total_variance();
    let (da, db) = (dense_covariance(&a.model), dense_covariance(&b.model));
    close_matrix(&da, &db, tolerance * scale, (what, "covariance"));
    close_all(a.model.mean(), b.model.mean(), tolerance * scale.sqrt(), (what, "mean"));
    relative(a.report.log_likelihood.unwrap(), b.report.log_likelihood.unwrap(), 1e-9, (what, "likelihood"));
}

// ------------------------------------------------------------------------------------------------- the optimum

/// Parameters as a vector, and back.
fn flat(model: &LinearGaussian) -> Vec<f64> {
    let w = model.loadings();
    let mut out: Vec<f64> = model.mean().to_vec();
    (0..w.ncols()).for_each(|k| out.extend((0..w.nrows()).map(|j| w[(j, k)])));
    out.push(model.noise().of(0).ln());
    out
}

fn unflat(v: &[f64], p: usize, q: usize) -> LinearGaussian {
    let w = Mat::from_fn(p, q, |j, k| v[p + k * p + j]);
    LinearGaussian::new(v[..p].to_vec(), w, Noise::Isotropic(v[p + p * q].exp())).unwrap()
}

/// By central differences of the brute-force likelihood no direction leads up, and the reported value is that likelihood.
#[test]
fn no_direction_leads_up_from_the_optimum() {
    for (n, p, q, share, seed) in [(60, 6, 2, 0.2, 1), (25, 8, 1, 0.4, 2), (200, 5, 3, 0.1, 3)] {
        let x = rows_with_holes(n, p, q, share, seed, false);
        let fit = Ppca::new(q).tolerance(1e-12).fit(&x).unwrap();
        assert_eq!(fit.report.plan.solver, Solver::Em);
        let found = observed_log_likelihood(&fit.model, &x, None);
        relative(fit.report.log_likelihood.unwrap(), found, 1e-11, "reported");
        let at = flat(&fit.model);
        for k in 0..at.len() {
            let h = 1e-4 * at[k].abs().max(1.0);
            let moved = |by: f64| {
                let mut v = at.clone();
                v[k] += by;
                observed_log_likelihood(&unflat(&v, p, q), &x, None)
            };
            let (up, down) = (moved(h), moved(-h));
            let (slope, curvature) = ((up - down) / (2.0 * h), (2.0 * found - up - down) / (h * h));
            assert!(curvature > -1e-3, "{n} × {p}, coordinate {k}: not a maximum, curvature {curvature}");
            // What a Newton step along this coordinate would gain.
            let gain = 0.5 * slope * slope / curvature.max(1e-3);
            assert!(gain < 1e-6, "{n} × {p}, coordinate {k}: {gain} to be gained");
        }
    }
}

/// Show 2: other software's optimum of the same likelihood.
#[test]
fn the_optimum_of_an_independent_optimiser() {
    let Some(reference) = reference("missing_ml.json") else { return };
    let mut checked = 0;
    for case in reference["results"].as_array().unwrap().iter().filter(|c| c["model"] == "ppca") {
        let text = |key: &str| case[key].as_str().unwrap();
        let Some(x) = incomplete_case(case) else { return };
        let q = case["q"].as_u64().unwrap() as usize;
        let fit = Ppca::new(q).fit(&x).unwrap();
        let what = (text("set"), text("scale"), q);
        close(
            fit.report.log_likelihood.unwrap(),
            case["loglik"].as_f64().unwrap(),
            1e-4,
            (what, "likelihood"),
        );
        relative(fit.model.noise().of(0), case["noise"].as_f64().unwrap(), 1e-4, (what, "noise"));
        let mean: Vec<f64> = case["mu"].as_array().unwrap().iter().map(|m| m.as_f64().unwrap()).collect();
        let deviation = fit.spectrum().unwrap().total_variance().sqrt();
        close_all(fit.model.mean(), &mean, 1e-4 * deviation, (what, "mean"));
        checked += 1;
    }
    assert!(checked >= 8, "{checked} cases");
}

/// More features than rows: the values of `tests/tools/observed_ml.py` (SciPy's L-BFGS on the dense gradient, two starts).
#[test]
fn more_features_than_rows() {
    let expected: serde_json::Value = serde_json::from_str(include_str!("tools/observed_ml.json")).unwrap();
    let Some(csv) = read_csv("metabolite_missing") else { return };
    let x = csv.numbers();
    for case in expected["metabolite_missing"].as_array().unwrap() {
        let q = case["q"].as_u64().unwrap() as usize;
        let fit = Ppca::new(q).fit(&x).unwrap();
        close(
            fit.report.log_likelihood.unwrap(),
            case["log_likelihood"].as_f64().unwrap(),
            1e-4,
            (q, "likelihood"),
        );
        relative(fit.model.noise().of(0), case["noise_variance"].as_f64().unwrap(), 1e-4, (q, "noise"));
    }
}

/// Complete rows by EM are the closed form.
#[test]
fn without_holes_em_is_the_closed_form() {
    let mut rng = Rng(5);
    let x = rows_with_deviations(300, &falling(8, 0.7), 5.0, &mut rng);
    let closed = Ppca::new(3).fit(&x).unwrap();
    assert!(closed.report.holes.is_none() && closed.report.plan.solver == Solver::Eigen);
    let em = Ppca::new(3).solver(Solver::Em).tolerance(1e-13).fit(&x).unwrap();
    same_model(&closed, &em, 1e-6, "closed form");
    assert!(em.report.holes.is_none());
    assert!(closed.report.log_likelihood.unwrap() >= em.report.log_likelihood.unwrap() - 1e-8);
}

/// Show 3: a feature that is missing when another one is high. Its observed mean is far off, the model's is not.
#[test]
fn a_mean_is_recovered_from_what_is_missing_at_random() {
    let n = 4000;
    let truth = LinearGaussian::new(
        vec![10.0, -5.0, 2.0, 0.0],
        Mat::from_fn(4, 1, |j, _| [2.0, 3.0, 1.0, -2.0][j]),
        Noise::Isotropic(0.5),
    )
    .unwrap();
    let full = truth.sample(n, 7);
    let x = Mat::from_fn(n, 4, |i, j| if j == 1 && full[(i, 0)] > 10.5 { f64::NAN } else { full[(i, j)] });
    let seen: Vec<f64> = (0..n).map(|i| x[(i, 1)]).filter(|v| !v.is_nan()).collect();
    let observed_mean = seen.iter().sum::<f64>() / seen.len() as f64;
    let fit = Ppca::new(1).fit(&x).unwrap();
    // At least the deviation of the mean of all n cells, had they been seen.
    let error = (9.5 / n as f64).sqrt();
    assert!((fit.model.mean()[1] + 5.0).abs() < 3.0 * error, "{}", fit.model.mean()[1]);
    assert!((observed_mean + 5.0).abs() > 20.0 * error, "{observed_mean}");
}

// -------------------------------------------------------------------------------------- wherever rows come from

#[test]
fn the_same_model_from_every_kind_of_source() {
    let x = rows_with_holes(700, 9, 2, 0.3, 11, false);
    let reference = Ppca::new(2).tolerance(1e-11).fit(&x).unwrap();
    assert_eq!(reference.report.holes.as_ref().unwrap().missing, x_holes(&x));
    let sparse = observed(&x);
    let by_columns: Vec<f64> = (0..9).flat_map(|j| (0..700).map(move |i| (i, j))).map(|ij| x[ij]).collect();
    let columns = Table::new(Cells::F64(Block::Owned {
        cells: by_columns,
        nrows: 700,
        ncols: 9,
        order: Order::Columns,
    }));
    let cells: Vec<f64> = (0..700).flat_map(|i| row(&x, i)).collect();
    let rows = Ppca::new(2).tolerance(1e-11);
    same_model(&reference, &rows.fit(&sparse).unwrap(), 1e-7, "observed cells only");
    same_model(&reference, &rows.fit(columns).unwrap(), 1e-7, "column after column");
    same_model(&reference, &rows.fit(Rows::from_slice(&cells, 9).unwrap()).unwrap(), 1e-7, "row after row");
    for size in [1, 37, 256] {
        same_model(&reference, &rows.fit(&Cut { x: &x, rows: size }).unwrap(), 1e-7, "other chunks");
    }
    let pca = Pca::new(2).tolerance(1e-11).fit(&x).unwrap();
    close_all(
        &pca.spectrum().unwrap().eigenvalues()[..2],
        &reference.spectrum().unwrap().eigenvalues()[..2],
        1e-9,
        "PCA",
    );
}

fn x_holes(x: &Mat<f64>) -> u64 {
    (0..x.nrows()).map(|i| row(x, i).iter().filter(|v| v.is_nan()).count() as u64).sum()
}

#[test]
fn single_precision_cells_are_those_numbers() {
    let x = narrowed(&rows_with_holes(300, 6, 2, 0.2, 12, false));
    let single = Ppca::new(2).tolerance(1e-11).fit(&x).unwrap();
    let double = Ppca::new(2).tolerance(1e-11).fit(&widened(&x)).unwrap();
    same_model(&single, &double, 1e-7, "single precision");
}

#[test]
fn a_weight_is_a_number_of_copies() {
    let x = rows_with_holes(80, 5, 1, 0.3, 13, false);
    let mut rng = Rng(14);
    let weights: Vec<f64> = (0..80).map(|_| rng.below(4) as f64).collect();
    let copies: Vec<usize> = (0..80).flat_map(|i| vec![i; weights[i] as usize]).collect();
    let repeated = Mat::from_fn(copies.len(), 5, |i, j| x[(copies[i], j)]);
    let weighted = table(&x).with_weights(weights.clone()).unwrap();
    let a = Ppca::new(1).tolerance(1e-11).fit(weighted).unwrap();
    let b = Ppca::new(1).tolerance(1e-11).fit(&repeated).unwrap();
    same_model(&a, &b, 1e-6, "copies");
    close(a.report.weight, repeated.nrows() as f64, 1e-9, "total weight");
    let brute = observed_log_likelihood(&a.model, &x, Some(&weights));
    relative(a.report.log_likelihood.unwrap(), brute, 1e-10, "weighted likelihood");
    let sparse = observed(&x).with_weights(weights).unwrap();
    same_model(&a, &Ppca::new(1).tolerance(1e-11).fit(&sparse).unwrap(), 1e-6, "observed cells only");
}

/// Show 7: bit for bit the same on any number of threads.
#[test]
fn threads_do_not_matter() {
    let x = rows_with_holes(9000, 7, 2, 0.2, 15, false);
    let sparse = observed(&x);
    let of = |threads: usize| {
        let spec = Ppca::new(2).threads(threads);
        let (dense, sparse) = (spec.fit(&x).unwrap(), spec.fit(&sparse).unwrap());
        [dense, sparse].map(|f| (matrix_bits(f.model.loadings()), bits(f.model.mean()), f.report.trace))
    };
    let one = of(1);
    for threads in [2, 3, 7] {
        assert!(one == of(threads), "{threads} threads");
    }
}

/// Evidence of parts, through bytes, merged anywhere: the passes of a fit by hand.
#[test]
fn evidence_of_parts_merges_through_bytes() {
    let x = rows_with_holes(300, 6, 2, 0.25, 16, false);
    let names: Vec<String> = (0..6).map(|j| format!("f{j}")).collect();
    let (mean, loadings) = (vec![0.0; 6], normal_matrix(6, 2, &mut Rng(1)));
    let common = LatentParameters::new(mean.clone(), loadings.as_ref(), 2.0).unwrap();
    let noises = [0.5, 2.0, 1.0, 3.0, 0.1, 1.5];
    let each = LatentParameters::with_noises(mean, loadings.as_ref(), &noises).unwrap();
    [common, each].into_iter().for_each(|start| passes_by_hand(&x, &names, start));
}

fn passes_by_hand(x: &Mat<f64>, names: &[String], start: LatentParameters) {
    let mut parameters = Arc::new(start);
    for _ in 0..3 {
        let whole = gather(&table(x), || Latent::empty(parameters.clone()), &Control::new()).unwrap();
        let parts = [0..120, 120..130, 130..300].map(|r| {
            let mut part = Latent::empty(parameters.clone());
            part.update(&chunk_of(x.as_ref().subrows(r.start, r.len()), r.start)).unwrap();
            part.to_bytes(names).unwrap()
        });
        let mut merged = Latent::empty(parameters.clone());
        for bytes in parts.iter().rev() {
            let part = Latent::from_bytes(bytes).unwrap();
            assert_eq!(part.features, names);
            merged.merge(&part.evidence).unwrap();
        }
        relative(merged.log_likelihood(), whole.log_likelihood(), 1e-13, "likelihood");
        let (a, b) = (em_step(&merged).unwrap(), em_step(&whole).unwrap());
        close_all(a.mean(), b.mean(), 1e-12, "mean");
        close_matrix(&a.loadings(), &b.loadings(), 1e-11, "loadings");
        let noises: Vec<f64> = (0..6).map(|j| parameters.noise_variance(j)).collect();
        (0..6).for_each(|j| relative(a.noise_variance(j), b.noise_variance(j), 1e-12, "noise"));
        let (mean, loadings) = (parameters.mean().to_vec(), parameters.loadings());
        let model = LinearGaussian::new(mean, loadings, Noise::Diagonal(noises)).unwrap();
        let brute = observed_log_likelihood(&model, x, None);
        relative(whole.log_likelihood(), brute, 1e-12, "brute force");
        let other = Latent::empty(Arc::new(a.clone()));
        assert!(merged.merge(&other).is_err(), "evidence for other parameters");
        parameters = Arc::new(a);
    }
    let bytes = Latent::empty(parameters).to_bytes(names).unwrap();
    assert!(Latent::from_bytes(&bytes[..bytes.len() - 5]).is_err());
}

// --------------------------------------------------------------------------------------------------- the journey

#[test]
fn the_likelihood_never_falls() {
    for (share, q) in [(0.1, 1), (0.5, 3), (0.7, 2)] {
        let x = rows_with_holes(400, 12, 3, share, 17, false);
        let fit = Ppca::new(q).fit(&x).unwrap();
        assert!(
            fit.report.trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * w[0].abs()),
            "{:?}",
            fit.report.trace
        );
        assert!(fit.report.converged());
        assert_eq!(*fit.report.trace.last().unwrap(), fit.report.log_likelihood.unwrap());
    }
}

#[test]
fn few_iterations_are_said_and_a_warm_start_goes_on() {
    let x = rows_with_holes(500, 10, 3, 0.5, 18, false);
    let cold = Ppca::new(3).tolerance(1e-10).fit(&x).unwrap();
    let short = Ppca::new(3).max_iterations(2).fit(&x).unwrap();
    assert_eq!((short.report.stop, short.report.trace.len()), (Stop::IterationLimit, 2));
    assert!(short.report.log_likelihood.unwrap() < cold.report.log_likelihood.unwrap());
    let warm = Ppca::new(3).tolerance(1e-10).start(cold.model.clone()).fit(&x).unwrap();
    assert!(warm.report.passes < cold.report.passes, "{} {}", warm.report.passes, cold.report.passes);
    same_model(&cold, &warm, 1e-6, "warm start");
    let wrong = Ppca::new(2).start(cold.model).fit(&x).unwrap_err();
    assert!(wrong.to_string().contains("the model to start from"), "{wrong}");
}

#[test]
fn a_caller_can_watch_and_stop() {
    let x = rows_with_holes(600, 12, 4, 0.6, 19, false);
    let flag = AtomicBool::new(false);
    let watch = |event: Event| {
        if let Event::Iteration { number: 3, .. } = event {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&watch).cancel(&flag);
    let stopped = Ppca::new(4).tolerance(1e-14).fit_with(&x, &control).unwrap();
    assert_eq!((stopped.report.stop, stopped.report.trace.len()), (Stop::Interrupted, 3));
    let brute = observed_log_likelihood(&stopped.model, &x, None);
    relative(stopped.report.log_likelihood.unwrap(), brute, 1e-11, "a usable model");
}

// ------------------------------------------------------------------------------------------------- wide data

/// Too many features for all pairs: the start is another one, the optimum is not.
/// Where most cells are missing components join one by one; a model of those that were there when it was stopped is usable.
#[test]
fn components_that_join_one_by_one() {
    let x = rows_with_holes(600, 20, 3, 0.7, 5, false);
    let passes = std::sync::Mutex::new(Vec::new());
    let watch = |event: Event| {
        if let Event::Iteration { number, .. } = event {
            passes.lock().unwrap().push(number);
        }
    };
    let fit = Ppca::new(3).fit_with(&x, &Control::new().observer(&watch)).unwrap();
    let passes = passes.into_inner().unwrap();
    assert_eq!(passes.iter().filter(|number| **number == 1).count(), 3, "three components joined");
    assert_eq!(fit.report.passes, passes.len() + 1);
    relative(
        fit.report.log_likelihood.unwrap(),
        observed_log_likelihood(&fit.model, &x, None),
        1e-10,
        "whole",
    );
    let begun = AtomicBool::new(false);
    let stop = |event: Event| {
        if matches!(event, Event::Iteration { number: 2, .. }) {
            begun.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&stop).cancel(&begun);
    let stopped = Ppca::new(3).fit_with(&x, &control).unwrap();
    assert_eq!((stopped.report.stop, stopped.report.components), (Stop::Interrupted, 1));
    let expected = observed_log_likelihood(&stopped.model, &x, None);
    relative(stopped.report.log_likelihood.unwrap(), expected, 1e-10, "stopped");
}

#[test]
fn wide_data_start_from_filled_rows() {
    let x = rows_with_holes(150, 300, 2, 0.3, 20, false); // 300 features of observed cells only are wide
    let (dense, sparse) = (Ppca::new(2).fit(&x).unwrap(), Ppca::new(2).fit(&observed(&x)).unwrap());
    assert!(dense.report.holes.as_ref().unwrap().unseen_pairs.is_some());
    assert!(sparse.report.holes.as_ref().unwrap().unseen_pairs.is_none());
    same_model(&dense, &sparse, 1e-5, "two starts");
    let x = rows_with_holes(40, 1100, 2, 0.2, 21, false);
    let fit = Ppca::new(2).fit(&x).unwrap();
    let densities: f64 = fit.model.log_density(&x).unwrap().iter().sum();
    relative(fit.report.log_likelihood.unwrap(), densities, 1e-10, "wide");
    assert!(fit.report.converged());
    let error = Ppca::new(0.9).fit(&x).unwrap_err().to_string();
    assert!(error.contains("number of components"), "{error}");
}

// ------------------------------------------------------------------------------------------- what is not there

#[test]
fn what_is_missing_is_counted() {
    let mut x = rows_with_holes(50, 4, 1, 0.0, 22, false);
    (0..4).for_each(|j| x[(7, j)] = f64::NAN);
    (0..10).for_each(|i| x[(i + 20, 1)] = f64::NAN);
    (0..50).for_each(|i| if i % 2 == 0 { x[(i, 3)] = f64::NAN } else { x[(i, 2)] = f64::NAN });
    let fit = Ppca::new(1).fit(&x).unwrap();
    let holes = fit.report.holes.unwrap();
    assert_eq!((holes.missing, holes.observed), (x_holes(&x), 200 - x_holes(&x)));
    // Without 3, without 2, each with and without 1, and nothing at all.
    assert_eq!((holes.patterns, holes.empty_rows, holes.unseen_pairs), (Some(5), 1, Some(1)));
    assert_eq!(fit.report.rows, 50);
    // A row without a cell changes nothing.
    let without = Mat::from_fn(49, 4, |i, j| x[(if i < 7 { i } else { i + 1 }, j)]);
    let other = Ppca::new(1).fit(&without).unwrap();
    close_matrix(&dense_covariance(&fit.model), &dense_covariance(&other.model), 1e-9, "an empty row");
}

#[test]
fn a_feature_that_was_never_observed_is_named() {
    let mut x = rows_with_holes(50, 4, 1, 0.1, 23, false);
    (0..50).for_each(|i| x[(i, 2)] = f64::NAN);
    let names = ["a", "b", "c", "d"].map(String::from).to_vec();
    let dense = Ppca::new(1).fit(table(&x).with_names(names.clone()).unwrap()).unwrap_err();
    let sparse = Ppca::new(1).fit(&observed(&x).with_names(names).unwrap()).unwrap_err();
    for error in [dense, sparse] {
        assert!(matches!(&error, Error::NeverObserved { features } if features[0].0 == 2));
        assert!(error.to_string().contains("feature 'c' was never observed"), "{error}");
    }
}

#[test]
fn too_few_cells_for_so_many_components() {
    // One cell per row: noise and loadings cannot be told apart.
    let one = Mat::from_fn(30, 3, |i, j| if i % 3 == j { (i * i % 7) as f64 } else { f64::NAN });
    let error = Ppca::new(1).fit(&one).unwrap_err();
    assert!(matches!(error, Error::TooFewCells { possible: 0, .. }), "{error}");
    // Two cells per row are enough for one component, not for two.
    let two = Mat::from_fn(60, 3, |i, j| if i % 3 == j { f64::NAN } else { ((i * 7 + j * 3) % 11) as f64 });
    assert!(Ppca::new(1).fit(&two).is_ok());
    let error = Ppca::new(2).fit(&two).unwrap_err();
    assert!(matches!(error, Error::TooFewCells { requested: 2, possible: 1, .. }), "{error}");
    let all = Ppca::new(Components::All).fit(&two).unwrap();
    assert_eq!(all.model.n_latent(), 1);
}

#[test]
fn bad_cells_and_shapes_are_errors() {
    let mut x = rows_with_holes(50, 4, 1, 0.2, 24, false);
    x[(17, 3)] = f64::NEG_INFINITY;
    let error = Ppca::new(1).fit(&x).unwrap_err();
    assert!(matches!(&error, Error::Infinite { cell, .. } if (cell.row, cell.column) == (17, 3)), "{error}");
    let nothing = Mat::full(5, 3, f64::NAN);
    assert!(matches!(Ppca::new(1).fit(&nothing), Err(Error::NeverObserved { .. })));
    let constant = Mat::from_fn(20, 3, |i, j| if (i + j) % 4 == 0 { f64::NAN } else { 2.5 });
    assert!(matches!(Ppca::new(1).fit(&constant), Err(Error::Constant)));
    let one = Mat::from_fn(1, 3, |_, j| [1.0, f64::NAN, 2.0][j]);
    assert!(Ppca::new(1).fit(&one).is_err());
    let narrow = Mat::from_fn(9, 1, |i, _| if i == 3 { f64::NAN } else { i as f64 });
    assert!(Ppca::new(1).fit(&narrow).is_err());
    // Asked for by name, a closed form says what it needs.
    let y = rows_with_holes(50, 4, 1, 0.2, 25, false);
    for solver in [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov] {
        assert!(
            matches!(Ppca::new(1).solver(solver).fit(&y), Err(Error::Missing { .. })),
            "{}",
            solver.name()
        );
    }
}

/// Means of 1e8 and scales of 1e±150 change what they must and nothing else.
#[test]
fn shifts_and_scales() {
    let x = rows_with_holes(200, 6, 2, 0.2, 26, false);
    let base = Ppca::new(2).tolerance(1e-11).fit(&x).unwrap();
    let cells = (1200 - x_holes(&x)) as f64;
    let shifted = Mat::from_fn(200, 6, |i, j| x[(i, j)] + 1e8);
    let far = Ppca::new(2).tolerance(1e-11).fit(&shifted).unwrap();
    // The cells themselves lose 1e-8 when they are shifted.
    close_matrix(&dense_covariance(&base.model), &dense_covariance(&far.model), 1e-6, "shifted");
    close(far.model.mean()[0] - 1e8, base.model.mean()[0], 1e-6, "mean");
    for scale in [1e150, 1e-150] {
        let scaled = Mat::from_fn(200, 6, |i, j| x[(i, j)] * scale);
        let other = Ppca::new(2).tolerance(1e-11).fit(&scaled).unwrap();
        let w = |k: usize, j: usize| other.model.loadings()[(j, k)] / scale;
        for k in 0..2 {
            (0..6)
                .for_each(|j| close(w(k, j), base.model.loadings()[(j, k)], 1e-6, (scale, "loadings", k, j)));
        }
        let expected = base.report.log_likelihood.unwrap() - cells * scale.ln();
        relative(other.report.log_likelihood.unwrap(), expected, 1e-10, (scale, "likelihood"));
    }
}

/// Rows in a plane: the noise vanishes, and that is said.
#[test]
fn rows_in_a_plane_have_no_noise() {
    let mut rng = Rng(27);
    let (z, w) = (normal_matrix(120, 2, &mut rng), normal_matrix(6, 2, &mut rng));
    let plane = Mat::from_fn(120, 6, |i, j| 3.0 + (0..2).map(|k| z[(i, k)] * w[(j, k)]).sum::<f64>());
    let x = punched(&plane, 0.2, &mut rng);
    let fit = Ppca::new(2).fit(&x).unwrap();
    assert_eq!(
        (fit.spectrum().unwrap().noise_variance(), fit.report.log_likelihood),
        (0.0, Some(f64::INFINITY))
    );
    let filled = fit.model.impute(&x).unwrap();
    close_matrix(&filled, &plane, 1e-4, "the plane fills the holes");
}

/// Duplicate rows, a constant feature and features that are never seen together.
#[test]
fn odd_but_fair_data() {
    let x = rows_with_holes(60, 5, 1, 0.2, 28, false);
    let twice = Mat::from_fn(120, 5, |i, j| x[(i / 2, j)]);
    let (a, b) =
        (Ppca::new(1).tolerance(1e-11).fit(&x).unwrap(), Ppca::new(1).tolerance(1e-11).fit(&twice).unwrap());
    close_matrix(&dense_covariance(&a.model), &dense_covariance(&b.model), 1e-6, "duplicates");
    let constant = Mat::from_fn(60, 5, |i, j| if j == 4 && !x[(i, j)].is_nan() { 7.0 } else { x[(i, j)] });
    let fit = Ppca::new(1).fit(&constant).unwrap();
    close(fit.model.mean()[4], 7.0, 0.2, "a constant feature keeps about its value");
    let apart = Mat::from_fn(60, 5, |i, j| {
        if (i % 2 == 0 && j == 0) || (i % 2 == 1 && j == 1) { f64::NAN } else { x[(i, j)] }
    });
    let fit = Ppca::new(1).fit(&apart).unwrap();
    assert_eq!(fit.report.holes.as_ref().unwrap().unseen_pairs, Some(1));
    relative(
        fit.report.log_likelihood.unwrap(),
        observed_log_likelihood(&fit.model, &apart, None),
        1e-11,
        "apart",
    );
}
