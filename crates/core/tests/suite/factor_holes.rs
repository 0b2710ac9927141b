//! Factor analysis of rows with holes: at the maximum of the likelihood of the observed cells, wherever the rows come from.
//!
//! `missing_ml.json` was made with L-BFGS on the exact gradient (SciPy) from several starts, `fiml.json` with lavaan (`tools/fiml.R`).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::holes::*;
use crate::common::*;
use covary::algorithm::Stop;
use covary::linalg::Mat;
use covary::model::Factors;
use covary::model::{LinearGaussian, Noise};
use covary::{Control, Event, FactorAnalysis, Fit, Solver};

#[track_caller]
fn same_fit(a: &Fit<Factors>, b: &Fit<Factors>, tolerance: f64, what: &str) {
    let (da, db) = (a.model.gaussian().covariance(), b.model.gaussian().covariance());
    close_matrix(&da, &db, tolerance * max_abs(&da), (what, "covariance"));
    close_all(
        a.model.gaussian().mean(),
        b.model.gaussian().mean(),
        tolerance * max_abs(&da).sqrt(),
        (what, "mean"),
    );
    relative(a.report.log_likelihood.unwrap(), b.report.log_likelihood.unwrap(), 1e-9, (what, "likelihood"));
}

/// (μ, W, log ψ) as a vector, and back.
fn flat(model: &LinearGaussian) -> Vec<f64> {
    let (p, w) = (model.n_features(), model.loadings());
    let noises = (0..p).map(|j| model.noise().of(j).ln());
    model.mean().iter().copied().chain((0..p).flat_map(|j| row(w, j))).chain(noises).collect()
}

fn unflat(v: &[f64], p: usize, q: usize) -> LinearGaussian {
    let noises = v[p + p * q..].iter().map(|x| x.exp()).collect();
    let loadings = Mat::from_fn(p, q, |j, k| v[p + j * q + k]);
    LinearGaussian::new(v[..p].to_vec(), loadings, Noise::Diagonal(noises)).unwrap()
}

/// Brute force: central differences of a dense likelihood vanish at the optimum.
#[test]
fn no_direction_leads_up_from_the_optimum() {
    let (n, p, q) = (150, 7, 2);
    let x = rows_with_holes(n, p, q, 0.2, 3, true);
    let fit = FactorAnalysis::new(q).tolerance(1e-12).fit(&x).unwrap();
    assert!(fit.report.converged());
    assert_eq!(fit.report.plan.solver, Solver::Em);
    let at = flat(fit.model.gaussian());
    let likelihood = |v: &[f64]| observed_log_likelihood(&unflat(v, p, q), &x, None);
    relative(fit.report.log_likelihood.unwrap(), likelihood(&at), 1e-11, "likelihood");
    for k in 0..at.len() {
        let h = 1e-5 * at[k].abs().max(1.0);
        let moved = |h: f64| {
            let mut v = at.clone();
            v[k] += h;
            likelihood(&v)
        };
        let slope = (moved(h) - moved(-h)) / (2.0 * h);
        close(slope, 0.0, 2e-3, ("slope of coordinate", k));
    }
    assert!(fit.report.factor().unwrap().gradient_norm < 1e-5);
}

#[test]
fn the_optimum_of_other_software() {
    let Some(reference) = reference("missing_ml.json") else { return };
    let mut compared = 0;
    for r in reference["results"].as_array().unwrap().iter().filter(|r| r["model"] == "fa") {
        let Some(x) = incomplete_case(r) else { return };
        let q = r["q"].as_u64().unwrap() as usize;
        let fit = FactorAnalysis::new(q).fit(&x).unwrap();
        let what = (r["set"].as_str().unwrap(), q);
        close(fit.report.log_likelihood.unwrap(), r["loglik"].as_f64().unwrap(), 1e-4, what);
        for (j, expected) in r["noise"].as_array().unwrap().iter().enumerate() {
            relative(fit.model.gaussian().noise().of(j), expected.as_f64().unwrap(), 2e-3, (what, j));
        }
        compared += 1;
    }
    assert_eq!(compared, 4);
}

/// Sets of `tools/fiml.json`: the likelihood of lavaan's optimum, or a better one.
#[test]
fn the_optimum_of_lavaan() {
    let expected: serde_json::Value = serde_json::from_str(include_str!("tools/fiml.json")).unwrap();
    for r in expected["results"].as_array().unwrap() {
        let Some(csv) = read_csv(r["set"].as_str().unwrap()) else { return };
        let names: Vec<&str> = r["columns"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        let mut x = csv.columns(|c| names.contains(&c));
        if r["standardised"] == true {
            standardise_unbiased(&mut x);
        }
        let q = r["q"].as_u64().unwrap() as usize;
        let fit = FactorAnalysis::new(q).fit(&x).unwrap();
        let what = (r["set"].as_str().unwrap(), q);
        let measure = |name: &str| r["measures"][name].as_f64().unwrap();
        close(fit.report.log_likelihood.unwrap(), measure("logl"), 1e-4, what);
        let indices = fit.report.factor().unwrap().assessment.clone().unwrap().fit;
        close(indices.chi2.unwrap(), measure("chisq"), 1e-3, (what, "chi2"));
        close(
            indices.null_chi2.unwrap(),
            measure("baseline.chisq"),
            1e-3,
            (what, "chi2 of uncorrelated features"),
        );
        close(indices.dof as f64, measure("df"), 0.0, (what, "degrees of freedom"));
        close(indices.cfi.unwrap(), measure("cfi"), 1e-5, (what, "cfi"));
        close(indices.tli.unwrap(), measure("tli"), 1e-5, (what, "tli"));
    }
}

/// As R's `scale`: divisor n − 1.
fn standardise_unbiased(x: &mut Mat<f64>) {
    standardise_observed(x);
    for j in 0..x.ncols() {
        let n = (0..x.nrows()).filter(|i| !x[(*i, j)].is_nan()).count() as f64;
        (0..x.nrows()).for_each(|i| x[(i, j)] *= ((n - 1.0) / n).sqrt());
    }
}

/// Features that have more in common with the first than with each other would make its noise negative: it stays at its bound, from where
/// the likelihood rises below, and the report names it.
#[test]
fn a_heywood_case_ends_at_its_bound() {
    let mut rng = Rng(8);
    let (z, e) = (normal_matrix(400, 3, &mut rng), normal_matrix(400, 5, &mut rng));
    let against = [[0.0, 0.0], [0.8, 0.0], [-0.8, 0.0], [0.0, 0.8], [0.0, -0.8]];
    let cell = |i: usize, j: usize| {
        let noise = if j == 0 { 0.1 } else { 0.6 };
        z[(i, 0)] + against[j][0] * z[(i, 1)] + against[j][1] * z[(i, 2)] + noise * e[(i, j)]
    };
    let x = punched(&Mat::from_fn(400, 5, cell), 0.15, &mut rng);
    let fit = FactorAnalysis::new(1).fit(&x).unwrap();
    let factor = fit.report.factor().unwrap();
    assert!(fit.report.converged() && fit.report.trace.len() < 100, "{} iterations", fit.report.trace.len());
    assert_eq!(factor.heywood, vec![0]);
    let cells: Vec<f64> = (0..400).map(|i| x[(i, 0)]).filter(|v| !v.is_nan()).collect();
    let mean = cells.iter().sum::<f64>() / cells.len() as f64;
    let variance = cells.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / cells.len() as f64;
    relative(fit.model.gaussian().noise().of(0), 0.005 * variance, 1e-9, "the bound");
    let moved = |factor: f64| {
        let noises = (0..5).map(|j| fit.model.gaussian().noise().of(j) * if j == 0 { factor } else { 1.0 });
        let (mean, w) = (fit.model.gaussian().mean().to_vec(), fit.model.gaussian().loadings().clone());
        let model = LinearGaussian::new(mean, w, Noise::Diagonal(noises.collect())).unwrap();
        observed_log_likelihood(&model, &x, None)
    };
    assert!(moved(0.99) > moved(1.0) && moved(1.0) > moved(1.01));
}

#[test]
fn the_same_fit_from_every_kind_of_source_and_any_threads() {
    let x = rows_with_holes(500, 8, 2, 0.25, 5, true);
    let whole = FactorAnalysis::new(2).fit(&x).unwrap();
    same_fit(&whole, &FactorAnalysis::new(2).fit(&observed(&x)).unwrap(), 1e-6, "observed cells");
    same_fit(&whole, &FactorAnalysis::new(2).fit(&Cut { x: &x, rows: 37 }).unwrap(), 1e-6, "chunks");
    let one = FactorAnalysis::new(2).threads(1).fit(&x).unwrap();
    for threads in [2, 3, 7] {
        let other = FactorAnalysis::new(2).threads(threads).fit(&x).unwrap();
        assert_eq!(flat(one.model.gaussian()), flat(other.model.gaussian()), "{threads} threads");
    }
    let holes = whole.report.holes.as_ref().unwrap();
    assert_eq!(
        holes.missing as usize,
        (0..500).map(|i| row(&x, i).iter().filter(|v| v.is_nan()).count()).sum::<usize>()
    );
}

/// One hole among many rows changes little: the optimum of complete rows is near.
#[test]
fn a_single_hole_is_nearly_complete() {
    let mut x = rows_with_holes(3000, 6, 1, 0.0, 6, true);
    let complete = FactorAnalysis::new(1).fit(&x).unwrap();
    assert_eq!(complete.report.plan.solver, Solver::Newton);
    x[(17, 3)] = f64::NAN;
    let holey = FactorAnalysis::new(1).fit(&x).unwrap();
    same_covariance(&complete, &holey, 5e-3);
}

fn same_covariance(a: &Fit<Factors>, b: &Fit<Factors>, tolerance: f64) {
    let (da, db) = (a.model.gaussian().covariance(), b.model.gaussian().covariance());
    close_matrix(&da, &db, tolerance * max_abs(&da), "covariance");
}

/// More features than all pairs are worth: another start, the same optimum.
#[test]
fn many_features_start_from_filled_rows() {
    let x = rows_with_holes(300, 40, 2, 0.2, 9, true);
    let pairs = FactorAnalysis::new(2).tolerance(1e-11).fit(&x).unwrap();
    let passes = FactorAnalysis::new(2).tolerance(1e-11).memory(1 << 14).fit(&x).unwrap();
    assert!(pairs.report.holes.as_ref().unwrap().unseen_pairs.is_some());
    assert!(passes.report.holes.as_ref().unwrap().unseen_pairs.is_none());
    same_fit(&pairs, &passes, 1e-4, "filled rows");
}

#[test]
fn a_caller_can_stop() {
    let x = rows_with_holes(400, 10, 3, 0.4, 19, true);
    let flag = AtomicBool::new(false);
    let watch = |event: Event| {
        if let Event::Iteration { number: 3, measure: "log-likelihood", .. } = event {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&watch).cancel(&flag);
    let stopped = FactorAnalysis::new(3).tolerance(1e-14).fit_with(&x, &control).unwrap();
    assert_eq!(stopped.report.stop, Stop::Interrupted);
    let brute = observed_log_likelihood(stopped.model.gaussian(), &x, None);
    relative(stopped.report.log_likelihood.unwrap(), brute, 1e-11, "a usable model");
}
