//! Maximum-likelihood factor analysis: against other software, against brute force, and where theory says what must come out.

use crate::common::*;
use covary::evidence::{Accumulator, Moments};
use covary::linalg::Mat;
use covary::model::Factors;
use covary::model::{LinearGaussian, Noise};
use covary::{Error, FactorAnalysis, FactorSolver, Fit};

fn factor(fit: &Fit<Factors>) -> &covary::estimator::FactorReport {
    fit.report.factor().unwrap()
}

/// Rows of a random factor model.
fn generated(n: usize, p: usize, q: usize, seed: u64) -> Mat<f64> {
    random_model(p, q, true, &mut Rng(seed)).sample(n, seed)
}

fn moments_of(x: &Mat<f64>) -> Moments {
    let mut moments = Moments::empty(x.ncols());
    moments.update(&chunk_of(x.as_ref(), 0)).unwrap();
    moments
}

/// A square matrix from a file with a column of names.
fn matrix(name: &str) -> Option<Mat<f64>> {
    read_csv(name).map(|csv| csv.columns(|c| c != "variable"))
}

/// A set of the reference file as moments.
fn reference_moments(set: &str, n: usize) -> Option<Moments> {
    let rows = |name: &str| data_set(name).map(|x| moments_of(&x));
    match set {
        "hs9" => rows("holzinger_swineford1939_9"),
        "decathlon" => rows("decathlon"),
        _ => matrix(set).map(|s| Moments::from_covariance(s.as_ref(), None, n).unwrap()),
    }
}

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn equals_factanal() {
    let Some(reference) = reference("factanal.json") else { return };
    for result in reference["results"].as_array().unwrap() {
        let (set, q) = (result["set"].as_str().unwrap(), result["q"].as_u64().unwrap() as usize);
        let Some(moments) = reference_moments(set, result["n"].as_u64().unwrap() as usize) else { continue };
        let fit = FactorAnalysis::new(q).fit_moments(&moments).unwrap();
        let (found, what) = (factor(&fit), (set, q));
        let expected: Vec<f64> =
            result["uniquenesses"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).collect();
        let mut sorted = fit.model.uniquenesses();
        let mut theirs = expected;
        sorted.sort_by(f64::total_cmp); // the file's objects have lost their order
        theirs.sort_by(f64::total_cmp);
        close_all(&sorted, &theirs, 1e-4, what);
        close(found.discrepancy.unwrap(), result["discrepancy"].as_f64().unwrap(), 1e-8, what);
        assert_eq!(found.dof, result["dof"].as_i64().unwrap());
        let loglik = result["loglik_on_correlation_scale"].as_f64().unwrap();
        close(found.correlation_log_likelihood, loglik, 1e-6, what);
        assert!(found.gradient_norm < 1e-8 && found.iterations <= 12, "{what:?} {found:?}");
        assert!(fit.report.converged() && found.heywood.is_empty(), "{what:?} {found:?}");
    }
}

#[test]
fn equals_factanal_on_rows() {
    let made: serde_json::Value = serde_json::from_str(include_str!("tools/factor.json")).unwrap();
    for result in made["results"].as_array().unwrap() {
        let (set, q) = (result["set"].as_str().unwrap(), result["q"].as_u64().unwrap() as usize);
        let Some(csv) = read_csv(set) else { continue };
        let item = |c: &str| match set {
            "bfi_train" => c.len() == 2 && "ACENO".contains(&c[..1]),
            _ => c.starts_with('t') && !c.starts_with("t25") && !c.starts_with("t26"),
        };
        let all = csv.columns(item);
        let whole: Vec<usize> =
            (0..all.nrows()).filter(|&i| (0..all.ncols()).all(|j| !all[(i, j)].is_nan())).collect();
        let x = Mat::from_fn(whole.len(), all.ncols(), |i, j| all[(whole[i], j)]);
        assert_eq!(x.nrows() as u64, result["n"].as_u64().unwrap());
        let fit = FactorAnalysis::new(q).fit(&x).unwrap();
        close_all(&fit.model.uniquenesses(), &numbers(&result["uniquenesses"]), 1e-4, set);
        close(factor(&fit).discrepancy.unwrap(), result["discrepancy"].as_f64().unwrap(), 1e-8, set);
        assert_eq!(factor(&fit).dof, result["dof"].as_i64().unwrap());
        assert!(factor(&fit).gradient_norm < 1e-8);
    }
}

/// The likelihood by its definition.
fn log_likelihood(x: &Mat<f64>, model: &LinearGaussian) -> f64 {
    let dense = Dense::of(model);
    (0..x.nrows()).map(|i| dense.log_density(&row(x, i))).sum()
}

#[test]
fn nothing_near_the_answer_is_more_likely() {
    for (n, p, q, seed) in [(60, 7, 2, 1), (25, 12, 3, 2), (200, 5, 1, 3)] {
        let x = generated(n, p, q, seed);
        let fit = FactorAnalysis::new(q).fit(&x).unwrap();
        let model = fit.model.gaussian();
        let best = log_likelihood(&x, model);
        close(fit.report.log_likelihood.unwrap(), best, 1e-9 * best.abs(), (n, p, q));
        if !factor(&fit).heywood.is_empty() {
            continue;
        }
        let psi: Vec<f64> = (0..p).map(|j| model.noise().of(j)).collect();
        let moved = |j: usize, k: usize, h: f64| {
            let (mut psi, mut w) = (psi.clone(), model.loadings().clone());
            if k == q {
                psi[j] *= h.exp();
            } else {
                w[(j, k)] += h;
            }
            let moved = LinearGaussian::new(model.mean().to_vec(), w, Noise::Diagonal(psi)).unwrap();
            log_likelihood(&x, &moved)
        };
        for j in 0..p {
            for k in 0..=q {
                let h = 1e-4;
                let slope = (moved(j, k, h) - moved(j, k, -h)) / (2.0 * h);
                assert!(slope.abs() < 1e-4 * n as f64 * 1e-1, "{j} {k}: {slope}");
                assert!(moved(j, k, 1e-2) <= best && moved(j, k, -1e-2) <= best, "{j} {k}");
            }
        }
    }
}

/// Every number of two fits.
#[track_caller]
fn same(a: &Fit<Factors>, b: &Fit<Factors>, tolerance: f64, what: &str) {
    close_matrix(&a.model.standardised_pattern(), &b.model.standardised_pattern(), tolerance, what);
    close_all(&a.model.uniquenesses(), &b.model.uniquenesses(), tolerance, what);
    let per_row = |fit: &Fit<Factors>| factor(fit).correlation_log_likelihood / fit.report.weight;
    close(per_row(a), per_row(b), tolerance, what);
    assert_eq!(factor(a).heywood, factor(b).heywood, "{what}");
}

#[test]
fn solvers_agree() {
    for (n, p, q, seed) in [(300, 20, 3, 1), (80, 60, 2, 2), (40, 60, 2, 3), (150, 30, 4, 4)] {
        let x = generated(n, p, q, seed);
        let of =
            |solver| FactorAnalysis::new(q).solver(solver).starts(1).max_iterations(100_000).fit(&x).unwrap();
        let newton = of(FactorSolver::Newton);
        let krylov = of(FactorSolver::Krylov);
        let gathered = FactorAnalysis::new(q)
            .solver(FactorSolver::Krylov)
            .starts(1)
            .fit_moments(&moments_of(&x))
            .unwrap();
        let em = FactorAnalysis::new(q)
            .solver(FactorSolver::Em)
            .starts(1)
            .tolerance(1e-11)
            .max_iterations(100_000)
            .fit(&x)
            .unwrap();
        for (fit, name) in [(&newton, "newton"), (&krylov, "krylov"), (&gathered, "krylov of moments")] {
            assert!(fit.report.converged() && factor(fit).gradient_norm < 1e-8, "{name} {:?}", factor(fit));
        }
        same(&newton, &krylov, 1e-6, &format!("krylov {n} {p}"));
        same(&newton, &gathered, 1e-6, &format!("krylov of moments {n} {p}"));
        let apart = newton.report.log_likelihood.unwrap() - em.report.log_likelihood.unwrap();
        assert!((0.0..1e-6 * n as f64).contains(&(apart + 1e-9)), "em {n} {p}: {apart}");
        if n > p {
            close(
                factor(&newton).discrepancy.unwrap(),
                factor(&gathered).discrepancy.unwrap(),
                1e-9,
                "discrepancy",
            );
        }
    }
}

#[test]
fn a_heywood_case_goes_to_its_bound_and_is_named() {
    // One factor would have to explain 0.8·0.8/0.4 = 1.6 of the first feature's variance.
    let r = [[1.0, 0.8, 0.8, 0.7], [0.8, 1.0, 0.4, 0.4], [0.8, 0.4, 1.0, 0.4], [0.7, 0.4, 0.4, 1.0]];
    let r = Mat::from_fn(4, 4, |i, j| r[i][j] * ((1 + i) * (1 + j)) as f64);
    let moments = Moments::from_covariance(r.as_ref(), None, 100).unwrap();
    for (solver, lower) in
        [(FactorSolver::Newton, 0.005), (FactorSolver::Newton, 1e-6), (FactorSolver::Krylov, 0.005)]
    {
        let fit = FactorAnalysis::new(1).solver(solver).lower(lower).fit_moments(&moments).unwrap();
        let found = factor(&fit);
        assert_eq!(found.heywood, [0], "{solver:?} {found:?}");
        assert!(fit.report.converged() && found.iterations < 100, "{found:?}");
        assert!(found.gradient_norm < 1e-8, "{found:?}");
        // The bound is on the scale of the data's variance; the model's differs from it where the bound holds.
        relative(fit.model.gaussian().noise().of(0), lower, 1e-12, "bound");
        assert_eq!(found.starts, 5);
    }
}

#[test]
fn equal_noise_is_ppca() {
    // A covariance that PPCA fits exactly: factors cannot do better, and do the same.
    let (p, q) = (8, 2);
    let model = random_model(p, q, false, &mut Rng(3));
    let s = dense_covariance(&model);
    let moments = Moments::from_covariance(s.as_ref(), Some(model.mean()), 100).unwrap();
    let ppca = covary::Ppca::new(q).fit_moments(&moments).unwrap();
    let fit = FactorAnalysis::new(q).fit_moments(&moments).unwrap();
    let found = fit.model.gaussian();
    (0..p).for_each(|j| relative(found.noise().of(j), model.noise().of(0), 1e-7, j));
    close_matrix(&dense_covariance(found), &s, 1e-7, "covariance");
    relative(fit.report.log_likelihood.unwrap(), ppca.report.log_likelihood.unwrap(), 1e-12, "likelihood");
    close(factor(&fit).discrepancy.unwrap(), 0.0, 1e-12, "discrepancy");
    assert_eq!(found.mean(), model.mean());
}

#[test]
fn the_scale_of_features_does_not_matter() {
    let x = generated(80, 9, 2, 8);
    let fit = FactorAnalysis::new(2).fit(&x).unwrap();
    for scale in [1e-150, 1e150] {
        let unit = |j: usize| if j.is_multiple_of(2) { scale } else { 1.0 };
        let y = Mat::from_fn(80, 9, |i, j| x[(i, j)] * unit(j));
        let other = FactorAnalysis::new(2).fit(&y).unwrap();
        same(&fit, &other, 1e-9, "scaled");
        let shift = 80.0 * (0..9).map(|j| f64::ln(unit(j))).sum::<f64>();
        relative(
            other.report.log_likelihood.unwrap() + shift,
            fit.report.log_likelihood.unwrap(),
            1e-9,
            "likelihood",
        );
        let krylov = FactorAnalysis::new(2).solver(FactorSolver::Krylov).fit(&y).unwrap();
        same(&fit, &krylov, 1e-6, "scaled, in passes");
    }
}

#[test]
fn loadings_are_identified() {
    let x = generated(150, 10, 3, 4);
    let fit = FactorAnalysis::new(3).fit(&x).unwrap();
    let (w, noise) = (fit.model.gaussian().loadings(), fit.model.gaussian().noise());
    let gram = |a: usize, b: usize| (0..10).map(|j| w[(j, a)] * w[(j, b)] / noise.of(j)).sum::<f64>();
    assert!(gram(0, 0) > gram(1, 1) && gram(1, 1) > gram(2, 2));
    (0..3).for_each(|a| (0..a).for_each(|b| close(gram(a, b), 0.0, 1e-10 * gram(0, 0), (a, b))));
    let standard = fit.model.standardised_pattern();
    for k in 0..3 {
        let largest = (0..10).map(|j| standard[(j, k)]).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
        assert!(largest > 0.0);
    }
}

#[test]
fn rows_moments_parts_and_weights_are_one() {
    let x = generated(90, 8, 2, 6);
    let fit = FactorAnalysis::new(2).fit(&x).unwrap();
    same(&fit, &FactorAnalysis::new(2).fit_moments(&moments_of(&x)).unwrap(), 1e-10, "moments");
    let (mean, s) = mean_and_covariance(&x, None);
    let given = Moments::from_covariance(s.as_ref(), Some(&mean), 90).unwrap();
    let of_matrix = FactorAnalysis::new(2).fit_moments(&given).unwrap();
    same(&fit, &of_matrix, 1e-9, "matrix");
    relative(fit.report.log_likelihood.unwrap(), of_matrix.report.log_likelihood.unwrap(), 1e-10, "matrix");
    let mut merged = Moments::empty(8);
    merged.update(&chunk_of(x.as_ref().subrows(0, 30), 0)).unwrap();
    let mut rest = Moments::empty(8);
    rest.update(&chunk_of(x.as_ref().subrows(30, 60), 30)).unwrap();
    merged.merge(&rest).unwrap();
    same(&fit, &FactorAnalysis::new(2).fit_moments(&merged).unwrap(), 1e-9, "merged");
    same(&fit, &FactorAnalysis::new(2).fit(&Cut { x: &x, rows: 7 }).unwrap(), 1e-9, "chunks");
    // Weights are copies.
    let weights: Vec<f64> = (0..90).map(|i| f64::from(i % 3)).collect();
    let copies: Vec<usize> = (0..90).flat_map(|i| vec![i; i % 3]).collect();
    let copied = Mat::from_fn(copies.len(), 8, |i, j| x[(copies[i], j)]);
    for solver in [FactorSolver::Newton, FactorSolver::Krylov] {
        let spec = FactorAnalysis::new(2).solver(solver);
        let weighted = spec.fit(table(&x).with_weights(weights.clone()).unwrap()).unwrap();
        same(&weighted, &spec.fit(&copied).unwrap(), 1e-6, "weights");
        assert_eq!(weighted.report.weight, 90.0);
    }
}

/// As many rows as anyone could claim: the cost does not depend on them, and both ends of the RMSEA's
/// interval tend to √(F/d).
#[test]
fn a_huge_number_of_rows_is_assessed() {
    let (mean, s) = mean_and_covariance(&generated(90, 8, 2, 6), None);
    for rows in [1_000_000_000_000, 1_000_000_000_000_000, usize::MAX / 4] {
        let moments = Moments::from_covariance(s.as_ref(), Some(&mean), rows).unwrap();
        let fit = FactorAnalysis::new(2).fit_moments(&moments).unwrap();
        let report = factor(&fit);
        let limit = (report.discrepancy.unwrap() / report.dof as f64).sqrt();
        let indices = &report.assessment.as_ref().unwrap().fit;
        let (low, high) = indices.rmsea_interval.unwrap();
        assert!(low < high);
        // Half the interval is 1.645 · 2√λ of λ = nF, so 1.645/√(nF) of each end.
        let width = 2.0 / (rows as f64 * report.discrepancy.unwrap()).sqrt();
        [low, high, indices.rmsea.unwrap()].iter().for_each(|v| relative(*v, limit, width + 1e-11, rows));
        assert_eq!(indices.p_value, Some(0.0));
    }
}

/// Weights that sum to 1 are shares: indices and standard errors are those of rows without weights.
#[test]
fn shares_as_weights_count_rows() {
    let x = generated(90, 8, 2, 6);
    let plain = FactorAnalysis::new(2).fit(&x).unwrap();
    let shares = FactorAnalysis::new(2).fit(table(&x).with_weights(vec![1.0 / 90.0; 90]).unwrap()).unwrap();
    let indices = |fit: &Fit<Factors>| factor(fit).assessment.as_ref().unwrap().fit.clone();
    let (a, b) = (indices(&plain), indices(&shares));
    let pairs = [(a.chi2, b.chi2), (a.aic, b.aic), (a.bic, b.bic), (a.log_likelihood, b.log_likelihood)];
    pairs.into_iter().for_each(|(a, b)| relative(a.unwrap(), b.unwrap(), 1e-7, "indices"));
    let errors = |fit: &Fit<Factors>| {
        let errors = covary::estimator::standard_errors(&fit.model, &fit.report).unwrap();
        errors.given.loadings
    };
    close_matrix(&errors(&plain), &errors(&shares), 1e-6, "standard errors");
}

#[test]
fn single_precision_is_close_and_threads_do_not_matter() {
    let x = generated(600, 15, 3, 7);
    let narrow = narrowed(&x);
    let wide = widened(&narrow);
    same(
        &FactorAnalysis::new(3).fit(&narrow).unwrap(),
        &FactorAnalysis::new(3).fit(&wide).unwrap(),
        1e-5,
        "single",
    );
    for solver in [FactorSolver::Newton, FactorSolver::Krylov, FactorSolver::Em] {
        let bits = |threads: usize| {
            let fit = FactorAnalysis::new(3).solver(solver).threads(threads).fit(&x).unwrap();
            (matrix_bits(fit.model.pattern()), fit.report.log_likelihood.unwrap().to_bits())
        };
        assert_eq!(bits(1), bits(3), "{solver:?}");
    }
}

#[test]
fn more_factors_than_the_data_hold() {
    // One factor fits exactly; the second has nothing to explain.
    let w = Mat::from_fn(6, 1, |i, _| 0.5 + 0.05 * i as f64);
    let noise = (0..6).map(|j| 1.0 - w[(j, 0)] * w[(j, 0)]).collect();
    let model = LinearGaussian::new(vec![0.0; 6], w, Noise::Diagonal(noise)).unwrap();
    let independent = Mat::from_fn(6, 6, |i, j| f64::from(u8::from(i == j)));
    let moments = Moments::from_covariance(independent.as_ref(), None, 50).unwrap();
    let fit = FactorAnalysis::new(1).fit_moments(&moments).unwrap();
    assert_eq!(factor(&fit).unused, 1, "{:?}", factor(&fit));
    assert!(max_abs(fit.model.pattern()) == 0.0 && fit.report.converged());
    let moments = Moments::from_covariance(dense_covariance(&model).as_ref(), None, 50).unwrap();
    let fit = FactorAnalysis::new(2).fit_moments(&moments).unwrap();
    close_matrix(&dense_covariance(fit.model.gaussian()), &dense_covariance(&model), 1e-4, "covariance");
    close(factor(&fit).discrepancy.unwrap(), 0.0, 1e-8, "discrepancy");
}

#[test]
fn more_features_than_rows() {
    for (n, p) in [(12, 30), (30, 30), (31, 30)] {
        let x = generated(n, p, 2, 9);
        let newton = FactorAnalysis::new(2).solver(FactorSolver::Newton).starts(1).fit(&x).unwrap();
        let krylov = FactorAnalysis::new(2).solver(FactorSolver::Krylov).starts(1).fit(&x).unwrap();
        assert!(newton.report.converged() && krylov.report.converged(), "{n}");
        let best = log_likelihood(&x, newton.model.gaussian());
        relative(newton.report.log_likelihood.unwrap(), best, 1e-9, n);
        same(&newton, &krylov, 1e-5, "wide");
        assert_eq!(factor(&newton).discrepancy.is_none(), n <= p, "{n}");
    }
}

#[test]
fn bad_requests_are_named() {
    let x = generated(40, 6, 2, 1);
    let fails = |fit: covary::Result<Fit<Factors>>| fit.map(|_| ()).unwrap_err();
    assert!(matches!(fails(FactorAnalysis::new(0).fit(&x)), Error::Parameter { .. }));
    let error = fails(FactorAnalysis::new(4).fit(&x));
    assert!(matches!(error, Error::Factors { requested: 4, possible: 3, features: 6 }), "{error}");
    let two = Mat::from_fn(40, 2, |i, j| x[(i, j)]);
    assert!(matches!(fails(FactorAnalysis::new(1).fit(&two)), Error::Factors { possible: 0, .. }));
    assert!(FactorAnalysis::new(1).fit(&Mat::from_fn(40, 3, |i, j| x[(i, j)])).is_ok());
    let constant = Mat::from_fn(40, 6, |i, j| if j == 3 { 0.1 } else { x[(i, j)] });
    let names: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(String::from).to_vec();
    for solver in [FactorSolver::Auto, FactorSolver::Krylov] {
        let named = table(&constant).with_names(names.clone()).unwrap();
        let error = fails(FactorAnalysis::new(1).solver(solver).fit(named));
        assert!(error.to_string().contains("feature 'd' was constant"), "{error}");
    }
    let twice = Mat::from_fn(40, 6, |i, j| if j == 4 { -3.0 * x[(i, 1)] + 2.0 } else { x[(i, j)] });
    let error = fails(FactorAnalysis::new(1).fit(table(&twice).with_names(names).unwrap()));
    assert!(error.to_string().contains("features 'b' and 'e' were the same"), "{error}");
    for lower in [0.0, 1.0, f64::NAN, -1.0] {
        assert!(matches!(fails(FactorAnalysis::new(1).lower(lower).fit(&x)), Error::Parameter { .. }));
    }
    assert!(matches!(fails(FactorAnalysis::new(1).starts(0).fit(&x)), Error::Parameter { .. }));
    assert!(matches!(fails(FactorAnalysis::new(1).tolerance(f64::NAN).fit(&x)), Error::Parameter { .. }));
    let same = Mat::from_fn(40, 6, |_, j| j as f64);
    assert!(matches!(fails(FactorAnalysis::new(1).fit(&same)), Error::Constant));
    let one = Mat::from_fn(1, 6, |_, j| j as f64);
    assert!(matches!(fails(FactorAnalysis::new(1).fit(&one)), Error::TooFewRows { .. }));
    let infinite = Mat::from_fn(40, 6, |i, j| if (i, j) == (2, 1) { f64::INFINITY } else { x[(i, j)] });
    for solver in [FactorSolver::Auto, FactorSolver::Krylov] {
        let error = fails(FactorAnalysis::new(1).solver(solver).fit(&infinite));
        assert!(matches!(error, Error::Infinite { .. }), "{error}");
    }
}

#[test]
fn a_bad_matrix_is_named() {
    let identity = || Mat::from_fn(3, 3, |i, j| f64::from(u8::from(i == j)));
    let with = |i: usize, j: usize, value: f64| {
        let mut s = identity();
        s[(i, j)] = value;
        Moments::from_covariance(s.as_ref(), None, 10).map(|_| ()).unwrap_err()
    };
    assert!(matches!(with(0, 2, 0.5), Error::Asymmetric { .. }));
    assert!(matches!(with(1, 0, f64::NAN), Error::Missing { .. }));
    assert!(matches!(with(1, 0, f64::INFINITY), Error::Infinite { .. }));
    assert!(matches!(with(1, 1, 0.0), Error::Parameter { .. }));
    assert!(matches!(with(1, 1, -1.0), Error::Parameter { .. }));
    // 1 and 2, 2 and 3 alike, 1 and 3 opposite: eigenvalue 1 − 2·0.9.
    let s = Mat::from_fn(3, 3, |i, j| {
        if i == j {
            1.0
        } else if i + j == 2 {
            -0.9
        } else {
            0.9
        }
    });
    match Moments::from_covariance(s.as_ref(), None, 10).unwrap_err() {
        Error::Indefinite { eigenvalue } => close(eigenvalue, -0.8, 1e-12, "eigenvalue"),
        other => panic!("{other}"),
    }
    assert!(matches!(Moments::from_covariance(identity().as_ref(), None, 0), Err(Error::NoRows)));
    assert!(Moments::from_covariance(identity().as_ref(), Some(&[0.0; 2]), 9).is_err());
    assert!(Moments::from_covariance(Mat::<f64>::zeros(2, 3).as_ref(), None, 9).is_err());
}

#[test]
fn starts_are_counted_and_the_best_is_kept() {
    let x = generated(60, 8, 2, 12);
    let one = FactorAnalysis::new(2).starts(1).fit(&x).unwrap();
    let ten = FactorAnalysis::new(2).starts(10).seed(4).fit(&x).unwrap();
    assert_eq!((factor(&one).starts, factor(&ten).starts), (1, 10));
    assert!(ten.report.log_likelihood.unwrap() >= one.report.log_likelihood.unwrap() - 1e-9);
    assert!(factor(&ten).agreeing >= 1);
    let few = FactorAnalysis::new(2).max_iterations(1).starts(1).fit(&x).unwrap();
    assert!(!few.report.converged());
}

#[test]
fn a_rotation_turns_the_standardised_loadings() {
    use covary::rotate::{Method, Rotate};
    let x = generated(200, 9, 3, 2);
    let plain = FactorAnalysis::new(3).fit(&x).unwrap();
    for method in [Method::Varimax, Method::quartimin(), Method::promax()] {
        let rotate = Rotate::new(method);
        let fit = FactorAnalysis::new(3).rotation(rotate.clone()).fit(&x).unwrap();
        let alone = rotate.run(plain.model.standardised_pattern().as_ref()).unwrap();
        close_matrix(&fit.model.standardised_pattern(), &alone.pattern, 1e-9, "pattern");
        close_matrix(&fit.model.correlation(), &alone.correlation, 1e-9, "correlation");
        close_matrix(plain.model.gaussian().loadings(), fit.model.gaussian().loadings(), 0.0, "density");
        let report = fit.report.rotation.as_ref().unwrap();
        assert_eq!((report.method.as_str(), report.converged), (rotate.method().name(), true));
        let saved = covary::persist::SavedModel::new(fit, None).unwrap();
        let read = covary::persist::SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        assert_eq!(
            (read.report.details, read.report.rotation),
            (saved.report.details, saved.report.rotation)
        );
    }
}

#[test]
fn features_of_little_noise_are_not_cut_off() {
    // Six of nine features have a uniqueness of 0.001: more than two factors could make vanish.
    let mut rng = Rng(21);
    let w = normal_matrix(9, 2, &mut rng);
    let common = |j: usize| w[(j, 0)].powi(2) + w[(j, 1)].powi(2);
    let own = |j: usize| if j < 6 { common(j) / 999.0 } else { common(j) };
    let model =
        LinearGaussian::new(vec![0.0; 9], w.clone(), Noise::Diagonal((0..9).map(own).collect())).unwrap();
    let moments = Moments::from_covariance(dense_covariance(&model).as_ref(), None, 100).unwrap();
    for solver in [FactorSolver::Newton, FactorSolver::Krylov] {
        let fit = FactorAnalysis::new(2).solver(solver).fit_moments(&moments).unwrap();
        let found = factor(&fit);
        assert!(found.lower < 0.001 && found.heywood.is_empty() && fit.report.converged(), "{found:?}");
        (0..9).for_each(|j| relative(fit.model.gaussian().noise().of(j), own(j), 1e-4, (solver, j)));
        let held =
            FactorAnalysis::new(2).solver(solver).lower(0.005).starts(1).fit_moments(&moments).unwrap();
        assert!(factor(&held).lower == 0.005 && factor(&held).heywood.len() > 2);
        assert!(held.report.log_likelihood < fit.report.log_likelihood);
    }
}

#[test]
fn a_caller_sees_iterations_and_can_stop() {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    let x = generated(100, 12, 2, 5);
    for solver in [FactorSolver::Newton, FactorSolver::Krylov, FactorSolver::Em] {
        let (seen, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let observer = |event: covary::Event| {
            if matches!(event, covary::Event::Iteration { .. }) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        };
        let spec = FactorAnalysis::new(2).solver(solver);
        let control = covary::Control::new().observer(&observer).cancel(&stop);
        let fit = spec.fit_with(&x, &control).unwrap();
        assert!(seen.load(Ordering::Relaxed) >= factor(&fit).iterations, "{solver:?}");
        assert!(fit.report.trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9), "{solver:?}");
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(spec.fit_with(&x, &control), Err(Error::Interrupted)), "{solver:?}");
    }
}

#[test]
fn factors_beyond_the_degrees_of_freedom_are_fitted_when_allowed() {
    for (p, q, dof) in [(2, 1, -1), (3, 2, -2), (5, 3, -2), (4, 4, -4)] {
        let x = generated(300, p, q.min(p - 1), 8);
        assert!(matches!(FactorAnalysis::new(q).fit(&x), Err(Error::Factors { .. })));
        let fit = FactorAnalysis::new(q).undetermined(true).fit(&x).unwrap();
        assert!(fit.report.converged() && factor(&fit).dof == dof, "{p} {q}: {:?}", factor(&fit));
        // At the likelihood of the data's own covariance, except where a bound is in the way.
        let (mean, s) = mean_and_covariance(&x, None);
        let best = Dense::new(mean, s);
        let best: f64 = (0..x.nrows()).map(|i| best.log_density(&row(&x, i))).sum();
        let close = fit.report.log_likelihood.unwrap() - best;
        assert!(close < 1e-6 && (close > -1e-4 || !factor(&fit).heywood.is_empty()), "{p} {q}: {close}");
    }
}
