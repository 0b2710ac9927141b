//! Maximum-likelihood factor analysis: against other software, against brute force, and where theory says what must come out.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::needless_range_loop)]

mod common;

use common::*;
use covary::evidence::{Accumulator, Moments};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::{Error, FactorAnalysis, FactorFit, FactorSolver};

fn factor(fit: &FactorFit) -> &covary::estimator::FactorReport {
    fit.report.factor.as_ref().unwrap()
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
        assert_eq!(found.dof as u64, result["dof"].as_u64().unwrap());
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
        assert_eq!(factor(&fit).dof as u64, result["dof"].as_u64().unwrap());
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
                psi[j] *= h.exp()
            } else {
                w[(j, k)] += h
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
fn same(a: &FactorFit, b: &FactorFit, tolerance: f64, what: &str) {
    close_matrix(&a.model.standardised_pattern(), &b.model.standardised_pattern(), tolerance, what);
    close_all(&a.model.uniquenesses(), &b.model.uniquenesses(), tolerance, what);
    let per_row = |fit: &FactorFit| factor(fit).correlation_log_likelihood / fit.report.weight;
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
