//! Real data: against a dense brute-force computation, and against the numbers of other software.
//!
//! `ppca_complete.json` was made with NumPy and SciPy (three evaluations of the likelihood), `prcomp.json` with R.

use std::collections::HashMap;

use crate::common::*;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise, Reconstruction};
use covary::{Fit, Ppca, Solver};
use serde_json::Value;

const ALL: [Solver; 5] = [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Auto];

fn fit(x: &Mat<f64>, q: usize, solver: Solver) -> Fit<LinearGaussian> {
    Ppca::new(q).solver(solver).fit(x).unwrap()
}

/// What any algorithm that forms or decomposes a matrix of such a norm can know of its small eigenvalues.
fn rounding(p: usize, first: f64) -> f64 {
    8.0 * p as f64 * f64::EPSILON * first
}

/// Shows 2 of the foundation: σ², eigenvalues and total log-likelihood of one set, for every solver.
fn brute_force(name: &str, x: &Mat<f64>, counts: &[usize], solvers: &[Solver]) {
    let p = x.ncols();
    for &q in counts {
        let truth = DensePpca::of(x, None, q);
        let first = truth.eigenvalues[0];
        let dense = Dense::new(truth.mean.clone(), truth.covariance(q));
        let density: Vec<f64> = (0..x.nrows()).map(|i| dense.log_density(&row(x, i))).collect();
        let total: f64 = density.iter().sum();
        for &solver in solvers {
            let found = fit(x, q, solver);
            let s = &found.spectrum().unwrap();
            let what = (name, q, solver.name());
            relative(s.noise_variance(), truth.noise, 1e-9, (what, "noise variance"));
            for (k, v) in s.eigenvalues().iter().enumerate() {
                // What the model keeps is as good as the noise; beyond it, rounding of the largest is visible.
                let slack = if k < q { 0.0 } else { rounding(p, first) };
                let expected = truth.eigenvalues[k];
                close(*v, expected, 1e-9 * expected.abs() + slack, (what, "eigenvalue", k));
            }
            relative(s.eigenvalues()[0], first, 1e-12, (what, "first eigenvalue"));
            relative(s.total_variance(), truth.total, 1e-12, (what, "total variance"));
            relative(s.log_likelihood(), total, 1e-9, (what, "log-likelihood"));
            let rows = found.model.log_density(x).unwrap();
            relative(rows.iter().sum(), total, 1e-9, (what, "sum over the rows"));
            let size = density.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            close_all(&rows, &density, 1e-8 * size, (what, "each row"));
        }
    }
}

#[test]
fn iris() {
    let Some(x) = data_set("iris") else { return };
    assert_eq!((x.nrows(), x.ncols()), (150, 4));
    brute_force("iris", &x, &[1, 2, 3, 4], &ALL);
}

#[test]
fn wine() {
    let Some(x) = data_set("wine") else { return };
    assert_eq!((x.nrows(), x.ncols()), (178, 13));
    brute_force("wine", &x, &[1, 2, 6, 12], &ALL);
}

#[test]
fn digits() {
    let Some(x) = data_set("digits") else { return };
    assert_eq!((x.nrows(), x.ncols()), (1797, 64));
    brute_force("digits", &x, &[2, 20], &[Solver::Eigen, Solver::Svd, Solver::Krylov, Solver::Auto]);
    // The n × n side of 1797 rows is dear: once.
    brute_force("digits", &x, &[10], &[Solver::Dual]);
}

#[test]
fn breast_cancer() {
    let Some(x) = data_set("breast_cancer") else { return };
    assert_eq!((x.nrows(), x.ncols()), (569, 30));
    brute_force("breast_cancer", &x, &[1, 3, 10], &ALL);
}

#[test]
fn mocap() {
    let Some(x) = data_set("mocap_run1") else { return };
    // The 34 markers that were never lost; every fourth frame, so that there are fewer rows than features.
    assert_eq!((x.nrows(), x.ncols()), (217, 102));
    let few = Mat::from_fn(54, 102, |i, j| x[(4 * i, j)]);
    brute_force("mocap, 54 frames", &few, &[1, 4, 20], &ALL);
    brute_force("mocap, all frames", &x, &[3], &ALL);
}

#[test]
fn mnist() {
    let Some(x) = data_set("mnist2000") else { return };
    assert_eq!((x.nrows(), x.ncols()), (2000, 784));
    brute_force("mnist2000", &x, &[15], &ALL);
}

/// 4096 features: the dense side is the 400 × 400 matrix of inner products, and the density is evaluated in its basis.
#[test]
fn olivetti() {
    let Some(x) = data_set("olivetti_faces") else { return };
    let (n, p, q) = (400, 4096, 20);
    assert_eq!((x.nrows(), x.ncols()), (n, p));
    let mean: Vec<f64> = (0..p).map(|j| (0..n).map(|i| x[(i, j)]).sum::<f64>() / n as f64).collect();
    let d: Vec<Vec<f64>> = (0..n).map(|i| (0..p).map(|j| x[(i, j)] - mean[j]).collect()).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut gram = Mat::zeros(n, n);
    for i in 0..n {
        for k in 0..=i {
            gram[(i, k)] = dot(&d[i], &d[k]) / n as f64;
        }
    }
    let (values, v) = eigen(&gram);
    let total: f64 = (0..n).map(|i| gram[(i, i)]).sum();
    let noise = (total - values[..q].iter().sum::<f64>()) / (p - q) as f64;
    // uₖ = Σᵢ vᵢₖ dᵢ / √(n λₖ).
    let u: Vec<Vec<f64>> = (0..q)
        .map(|k| {
            let mut u = vec![0.0; p];
            let length = (n as f64 * values[k]).sqrt();
            (0..n).for_each(|i| u.iter_mut().zip(&d[i]).for_each(|(u, d)| *u += v[(i, k)] * d / length));
            u
        })
        .collect();
    let log_det = values[..q].iter().map(|v| v.ln()).sum::<f64>() + (p - q) as f64 * noise.ln();
    let density: Vec<f64> = (0..n)
        .map(|i| {
            let scores: Vec<f64> = u.iter().map(|u| dot(u, &d[i])).collect();
            let inside: f64 = scores.iter().zip(&values).map(|(t, v)| t * t / v).sum();
            let outside = dot(&d[i], &d[i]) - scores.iter().map(|t| t * t).sum::<f64>();
            -0.5 * (p as f64 * LN_2PI + log_det + inside + outside / noise)
        })
        .collect();
    for solver in [Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Eigen, Solver::Auto] {
        let found = fit(&x, q, solver);
        let s = &found.spectrum().unwrap();
        let what = solver.name();
        relative(s.noise_variance(), noise, 1e-9, (what, "noise variance"));
        for k in 0..q {
            relative(s.eigenvalues()[k], values[k], 1e-9, (what, "eigenvalue", k));
            let along: f64 = (0..p).map(|j| s.vectors()[(j, k)] * u[k][j]).sum();
            close(along.abs(), 1.0, 1e-9, (what, "direction", k));
        }
        relative(s.log_likelihood(), density.iter().sum(), 1e-9, (what, "log-likelihood"));
        let rows = found.model.log_density(&x).unwrap();
        rows.iter().zip(&density).for_each(|(a, b)| relative(*a, *b, 1e-9, (what, "row")));
    }
}

// ------------------------------------------------------------------------------------------- other software

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap()
}

fn vector(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(number).collect()
}

fn matrix(v: &Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = v.as_array().unwrap().iter().map(vector).collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

/// Reads each set once.
#[derive(Default)]
struct Sets(HashMap<String, Option<Mat<f64>>>);

impl Sets {
    fn get(&mut self, file: &str) -> Option<Mat<f64>> {
        self.0.entry(file.to_string()).or_insert_with(|| data_set(file)).clone()
    }
}

#[test]
fn ppca_complete_of_numpy() {
    let Some(file) = reference("ppca_complete.json") else { return };
    let mut sets = Sets::default();
    let mut checked = 0;
    for entry in file["results"].as_array().unwrap() {
        let Some(raw) = sets.get(entry["file"].as_str().unwrap()) else { continue };
        let x = match entry["scale"].as_str().unwrap() {
            "none" => raw,
            "standardise" => standardised(&raw, 0),
            other => panic!("an unknown scale: {other}"),
        };
        let q = usize::try_from(entry["q"].as_u64().unwrap()).unwrap();
        let shape = (entry["N"].as_u64().unwrap() as usize, entry["d"].as_u64().unwrap() as usize);
        assert_eq!((x.nrows(), x.ncols()), shape, "{}", entry["set"]);
        let wide = x.ncols() > 1000;
        let dear = |s: &Solver| wide && matches!(s, Solver::Eigen | Solver::Svd); // `olivetti` above does it once
        for solver in ALL.into_iter().filter(|s| !dear(s)).filter(|s| x.nrows() < 1000 || *s != Solver::Dual)
        {
            let what = format!("{}, {}, q {q}, {}", entry["set"], entry["scale"], solver.name());
            numpy_entry(entry, &x, &fit(&x, q, solver), &what);
        }
        checked += 1;
    }
    eprintln!("{checked} results of ppca_complete.json checked");
}

fn numpy_entry(entry: &Value, x: &Mat<f64>, found: &Fit<LinearGaussian>, what: &str) {
    let s = &found.spectrum().unwrap();
    let (n, p, q) = (x.nrows(), x.ncols(), s.n_components());
    relative(s.noise_variance(), number(&entry["sigma2_ml"]), 1e-9, (what, "noise"));
    for field in ["loglik_total_closed_form", "loglik_total_dense_cholesky", "loglik_total_scipy_mvn"] {
        if let Some(expected) = entry[field].as_f64() {
            relative(s.log_likelihood(), expected, 1e-9, (what, field));
        }
    }
    let rows = found.model.log_density(x).unwrap();
    relative(
        rows.iter().sum::<f64>() / n as f64,
        number(&entry["loglik_mean"]),
        1e-9,
        (what, "mean density"),
    );
    for (i, expected) in vector(&entry["loglik_first_rows"]).iter().enumerate() {
        relative(rows[i], *expected, 1e-9, (what, "row", i));
    }
    let expected = vector(&entry["eigenvalues_divisor_N"]);
    let known = expected.len().min(s.eigenvalues().len());
    for k in 0..known {
        let allowed = 1e-9 * expected[k] + rounding(p, expected[0]);
        close(s.eigenvalues()[k], expected[k], allowed, (what, "eigenvalue", k));
    }
    relative(s.total_variance(), number(&entry["total_variance_divisor_N"]), 1e-11, (what, "total variance"));
    for (kind, field) in [
        (Reconstruction::Orthogonal, "reconstruction_mse_orthogonal"),
        (Reconstruction::Posterior, "reconstruction_mse_posterior_mean"),
    ] {
        let rebuilt = found.model.reconstruct(x, kind).unwrap();
        let mut sum = 0.0;
        (0..n).for_each(|i| (0..p).for_each(|j| sum += (rebuilt[(i, j)] - x[(i, j)]).powi(2)));
        relative(sum / (n * p) as f64, number(&entry[field]), 1e-8, (what, field));
    }
    let posterior = found.model.posterior(x).unwrap();
    let means = matrix(&entry["posterior_mean_first_rows_given_W_sign"]);
    for i in 0..means.nrows() {
        // Both fix the sign by the largest entry; a tie of rounding could still turn one.
        (0..q).for_each(|k| {
            close(posterior.mean[(i, k)].abs(), means[(i, k)].abs(), 1e-7, (what, "posterior", i, k));
        });
    }
    close_matrix(
        &posterior.covariance.of(0).to_owned(),
        &matrix(&entry["posterior_cov"]),
        1e-9,
        (what, "posterior covariance"),
    );
    if !entry["mu"].is_null() {
        let size = vector(&entry["mu"]).iter().fold(1.0, |m: f64, v| m.max(v.abs()));
        close_all(found.model.mean(), &vector(&entry["mu"]), 1e-12 * size, (what, "mean"));
    }
    if !entry["W_ml_largest_entry_positive"].is_null() {
        let size = expected[0].sqrt();
        let w = matrix(&entry["W_ml_largest_entry_positive"]);
        close_matrix(found.model.loadings(), &w, 1e-7 * size, (what, "loadings, signs included"));
    }
    let Noise::Isotropic(noise) = found.model.noise() else { panic!("{what}") };
    assert_eq!(*noise, s.noise_variance());
}

#[test]
fn prcomp_of_r() {
    let Some(file) = reference("prcomp.json") else { return };
    let mut sets = Sets::default();
    for entry in file["results"].as_array().unwrap() {
        let name = entry["set"].as_str().unwrap();
        let file = if name == "hs9" { "holzinger_swineford1939_9" } else { name };
        let Some(raw) = sets.get(file) else { continue };
        let x = if entry["scale"] == "none" { raw } else { standardised(&raw, 1) };
        let (n, p) = (x.nrows(), x.ncols());
        let deviations = vector(&entry["sdev"]);
        assert_eq!(deviations.len(), p.min(n));
        for solver in [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Auto] {
            let found = covary::Pca::new(covary::Components::All).solver(solver).fit(&x).unwrap();
            let what = (name, solver.name());
            // R divides by n − 1.
            let divisor = n as f64 / (n - 1) as f64;
            for (k, v) in found.model.variances().iter().enumerate() {
                let allowed = 1e-10 * deviations[0];
                close((v * divisor).sqrt(), deviations[k], allowed, (what, "deviation", k));
            }
            let rotation = matrix(&entry["rotation_abs_first2"]);
            for j in 0..p {
                for k in 0..2 {
                    close(
                        found.model.components()[(j, k)].abs(),
                        rotation[(j, k)],
                        1e-9,
                        (what, "rotation", j, k),
                    );
                }
            }
            close_all(
                &found.spectrum().unwrap().explained_ratio(),
                &vector(&entry["importance_proportion"]),
                1e-9,
                what,
            );
        }
    }
}
