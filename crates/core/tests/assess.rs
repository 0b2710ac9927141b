//! Fit indices, sampling adequacy and standard errors against R (psych, factanal, lavaan) and against brute force.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod common;

use common::{close, close_all, relative};
use covary::Error;
use covary::assess::{Adequacy, FactorModel, FitIndices, kmo, smc, sphericity};
use covary::linalg::Mat;
use serde_json::Value;

fn r() -> Value {
    serde_json::from_str(include_str!("tools/assess.json")).unwrap()
}

fn sets(json: &Value) -> &[Value] {
    json["results"].as_array().unwrap()
}

fn numbers(v: &Value) -> Vec<f64> {
    serde_json::from_value(v.clone()).unwrap()
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap()
}

fn matrix(v: &Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(v.clone()).unwrap();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

fn correlation(s: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(s.nrows(), s.ncols(), |i, j| s[(i, j)] / (s[(i, i)] * s[(j, j)]).sqrt())
}

// ------------------------------------------------------------------------------------------------------ adequacy

#[test]
fn adequacy_equals_psych() {
    for set in sets(&r()) {
        let (name, n) = (&set["set"], number(&set["n"]));
        let s = matrix(&set["covariance"]);
        let ours = Adequacy::of(s.as_ref(), Some(n)).unwrap();
        close(ours.kmo.overall, number(&set["kmo"]), 1e-12, name);
        close_all(&ours.kmo.features, &numbers(&set["kmo_items"]), 1e-12, name);
        close_all(&ours.smc, &numbers(&set["smc"]), 1e-12, name);
        let test = ours.sphericity.unwrap();
        relative(test.chi2, number(&set["bartlett"]["chi2"]), 1e-12, name);
        assert_eq!(test.dof, set["bartlett"]["dof"].as_u64().unwrap());
        relative(test.p_value.unwrap(), number(&set["bartlett"]["p_value"]), 1e-6, name);
    }
}

#[test]
fn adequacy_does_not_depend_on_units() {
    let json = r();
    let s = matrix(&sets(&json)[3]["covariance"]);
    let unit = |j: usize| 10f64.powi([150, -150, 0, 70, -70, 3][j]);
    let scaled = Mat::from_fn(6, 6, |i, j| s[(i, j)] * unit(i) * unit(j));
    let (a, b) =
        (Adequacy::of(s.as_ref(), Some(112.0)).unwrap(), Adequacy::of(scaled.as_ref(), Some(112.0)).unwrap());
    close_all(&a.kmo.features, &b.kmo.features, 1e-12, "kmo");
    close_all(&a.smc, &b.smc, 1e-12, "smc");
}

#[test]
fn few_or_uncorrelated_features() {
    let one = Mat::from_fn(1, 1, |_, _| 4.0);
    let lonely = Adequacy::of(one.as_ref(), Some(10.0)).unwrap();
    assert_eq!((lonely.kmo.overall, lonely.smc[0]), (0.5, 0.0));
    assert_eq!(lonely.sphericity.unwrap().p_value, None);
    // Two features: the partial correlation is the correlation.
    let two = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { -0.3 });
    close(kmo(two.as_ref()).unwrap().overall, 0.5, 1e-15, "two features");
    close(smc(two.as_ref()).unwrap()[1], 0.09, 1e-15, "two features");
    let apart = Mat::<f64>::identity(4, 4);
    let adequacy = Adequacy::of(apart.as_ref(), Some(50.0)).unwrap();
    assert_eq!((adequacy.kmo.overall, adequacy.sphericity.unwrap().p_value), (0.5, Some(1.0)));
    // The limit is approached.
    let nearly = Mat::from_fn(4, 4, |i, j| if i == j { 1.0 } else { 1e-6 * (1 + i + j) as f64 });
    close(kmo(nearly.as_ref()).unwrap().overall, 0.5, 1e-4, "vanishing correlations");
    assert!(sphericity(apart.as_ref(), 3.0).is_err(), "too few rows for the correction");
}

#[test]
fn singular_matrices_say_why() {
    let base = |i: usize, j: usize| if i == j { 1.0 } else { 0.4 };
    let copy = |i: usize| if i == 3 { 1 } else { i };
    let doubled = Mat::from_fn(4, 4, |i, j| base(copy(i), copy(j)));
    match Adequacy::of(doubled.as_ref(), None) {
        Err(Error::Singular { eigenvalue, copies, constant }) => {
            assert!(eigenvalue.abs() < 1e-14 && constant.is_empty());
            assert_eq!(copies, [(1, 3)]);
        }
        other => panic!("{other:?}"),
    }
    let flat = Mat::from_fn(3, 3, |i, j| if i == 1 || j == 1 { 0.0 } else { base(i, j) });
    let error = Adequacy::of(flat.as_ref(), None).unwrap_err();
    assert!(error.to_string().contains("feature(s) 1 are constant"), "{error}");
    // Not the correlations of anything: eigenvalues 1 ± 0.9·√2 and 1.
    let impossible = Mat::from_fn(3, 3, |i, j| [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]][i][j]);
    match Adequacy::of(impossible.as_ref(), None) {
        Err(Error::Singular { eigenvalue, .. }) => {
            close(eigenvalue, 1.0 - 0.9 * 2f64.sqrt(), 1e-14, "eigenvalue")
        }
        other => panic!("{other:?}"),
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let broken = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { bad });
        assert!(Adequacy::of(broken.as_ref(), None).is_err());
    }
    let lopsided = Mat::from_fn(2, 2, |i, j| [[1.0, 0.3], [0.2, 1.0]][i][j]);
    assert!(Adequacy::of(lopsided.as_ref(), None).unwrap_err().to_string().contains("symmetric"));
    assert!(matches!(Adequacy::of(Mat::zeros(0, 0).as_ref(), None), Err(Error::NoFeatures)));
    assert!(Adequacy::of(lopsided.subcols(0, 1), None).is_err(), "not square");
}

// ------------------------------------------------------------------------------------------------------- indices

#[test]
fn indices_equal_psych_and_factanal() {
    for set in sets(&r()) {
        let name = &set["set"];
        let s = correlation(&matrix(&set["covariance"]));
        let (loadings, psi) = (matrix(&set["loadings"]), numbers(&set["uniquenesses"]));
        let model = FactorModel::new(loadings.as_ref(), None, &psi).unwrap();
        let ours = FitIndices::of(s.as_ref(), set["n"].as_f64(), &model, None).unwrap();
        // psych takes ψ = 1 − h² where factanal has optimised ψ: the same to the optimiser's tolerance, squared.
        close(ours.discrepancy.unwrap(), number(&set["objective"]), 1e-8, name);
        relative(ours.chi2.unwrap(), number(&set["chi2"]), 1e-7, name);
        assert_eq!(ours.dof, set["dof"].as_i64().unwrap());
        relative(ours.p_value.unwrap(), number(&set["p_value"]), 1e-6, name);
        relative(ours.null_chi2.unwrap(), number(&set["null_chi2"]), 1e-11, name);
        close(ours.rmsea.unwrap(), number(&set["rmsea"]), 1e-7, name);
        close(ours.tli.unwrap(), number(&set["tli"]), 1e-7, name);
        close(ours.cfi.unwrap(), number(&set["cfi"]), 1e-7, name);
        close(ours.rmsr, number(&set["rms"]), 1e-7, name);
        close(ours.bic_difference.unwrap(), number(&set["bic"]), 1e-5, name);
        // psych's search for the ends stops at 1e-4 of the noncentrality.
        let (low, high) = ours.rmsea_interval.unwrap();
        close_all(&[low, high], &numbers(&set["rmsea_interval"]), 1e-5, name);
    }
}

#[test]
fn indices_equal_lavaan() {
    for set in sets(&r()) {
        let s = matrix(&set["covariance"]);
        for rotated in set["rotated"].as_array().unwrap() {
            let name = (&set["set"], &rotated["rotation"]);
            let (loadings, phi) = (matrix(&rotated["loadings"]), matrix(&rotated["correlation"]));
            let psi = numbers(&rotated["uniquenesses"]);
            let model = FactorModel::new(loadings.as_ref(), Some(phi.as_ref()), &psi).unwrap();
            let ours = FitIndices::of(s.as_ref(), set["n"].as_f64(), &model, None).unwrap();
            let theirs = |key: &str| number(&rotated["measures"][key]);
            close(ours.srmr, theirs("srmr"), 1e-6, name);
            // Of the covariance alone: the means are another p parameters, and their likelihood is at its maximum either way.
            let (p, n) = (s.nrows() as f64, number(&set["n"]));
            relative(ours.log_likelihood.unwrap(), theirs("logl"), 1e-9, name);
            assert_eq!(ours.parameters as f64, theirs("npar") + p);
            relative(ours.aic.unwrap(), theirs("aic") + 2.0 * p, 1e-9, name);
            relative(ours.bic.unwrap(), theirs("bic") + p * n.ln(), 1e-9, name);
            relative(n * ours.discrepancy.unwrap(), theirs("chisq"), 1e-6, name);
            assert_eq!(ours.dof as f64, theirs("df"));
        }
    }
}

#[test]
fn indices_do_not_depend_on_units() {
    let json = r();
    let set = &sets(&json)[3];
    let s = correlation(&matrix(&set["covariance"]));
    let (loadings, psi) = (matrix(&set["loadings"]), numbers(&set["uniquenesses"]));
    let unit = |j: usize| 10f64.powi([150, -150, 0, 70, -70, 3][j]);
    let scaled = Mat::from_fn(6, 6, |i, j| s[(i, j)] * unit(i) * unit(j));
    let scaled_loadings = Mat::from_fn(6, 2, |i, k| loadings[(i, k)] * unit(i));
    let scaled_psi: Vec<f64> = psi.iter().enumerate().map(|(j, v)| v * unit(j) * unit(j)).collect();
    let n = Some(112.0);
    let a = FitIndices::of(s.as_ref(), n, &FactorModel::new(loadings.as_ref(), None, &psi).unwrap(), None)
        .unwrap();
    let model = FactorModel::new(scaled_loadings.as_ref(), None, &scaled_psi).unwrap();
    let b = FitIndices::of(scaled.as_ref(), n, &model, None).unwrap();
    relative(a.chi2.unwrap(), b.chi2.unwrap(), 1e-11, "chi2");
    close(a.srmr, b.srmr, 1e-13, "srmr");
    // A change of units moves ℓ by −n Σ log unit.
    let units: f64 = (0..6).map(|j| unit(j).ln()).sum();
    relative(b.log_likelihood.unwrap(), a.log_likelihood.unwrap() - 112.0 * units, 1e-12, "log-likelihood");
}

#[test]
fn what_cannot_be_told_is_none() {
    let loadings = Mat::from_fn(3, 1, |i, _| [0.9, 0.8, 0.7][i]);
    let psi = [0.19, 0.36, 0.51];
    let model = FactorModel::new(loadings.as_ref(), None, &psi).unwrap();
    let s = Mat::from_fn(3, 3, |i, j| if i == j { 1.0 } else { loadings[(i, 0)] * loadings[(j, 0)] });
    // One factor of three features has as many parameters as there are covariances.
    let full = FitIndices::of(s.as_ref(), Some(100.0), &model, None).unwrap();
    assert_eq!((full.dof, full.p_value, full.rmsea, full.cfi, full.tli), (0, None, None, None, None));
    close(full.chi2.unwrap(), 0.0, 1e-12, "chi2");
    // Two have more.
    let two = Mat::from_fn(3, 2, |i, k| [[0.9, 0.1], [0.8, 0.0], [0.7, 0.2]][i][k]);
    let wide = FactorModel::new(two.as_ref(), None, &psi).unwrap();
    assert_eq!(FitIndices::of(s.as_ref(), Some(100.0), &wide, None).unwrap().dof, -2);
    // n unknown.
    let unknown = FitIndices::of(s.as_ref(), None, &model, None).unwrap();
    assert_eq!((unknown.chi2, unknown.log_likelihood, unknown.bic), (None, None, None));
    assert!(unknown.discrepancy.is_some());
    assert_eq!(FitIndices::of(s.as_ref(), None, &model, Some(-5.0)).unwrap().aic, Some(10.0 + 2.0 * 9.0));
    // A singular sample: no χ², but a likelihood and residuals.
    let flat = Mat::from_fn(3, 3, |_, _| 1.0);
    let singular = FitIndices::of(flat.as_ref(), Some(100.0), &model, None).unwrap();
    assert_eq!((singular.discrepancy, singular.chi2), (None, None));
    assert!(singular.log_likelihood.unwrap().is_finite() && singular.srmr > 0.0);
    // Too few rows for the correction.
    assert_eq!(FitIndices::of(s.as_ref(), Some(3.0), &model, None).unwrap().chi2, None);
    // No factors at all: the null model itself.
    let none = Mat::<f64>::zeros(3, 0);
    let ones = [1.0; 3];
    let null = FactorModel::new(none.as_ref(), None, &ones).unwrap();
    let null = FitIndices::of(s.as_ref(), Some(100.0), &null, None).unwrap();
    assert_eq!((null.dof, null.chi2 == null.null_chi2), (3, true));
    close(null.cfi.unwrap(), 0.0, 1e-15, "cfi of the null model");
    close(null.tli.unwrap(), 0.0, 1e-15, "tli of the null model");
}

#[test]
fn bad_models_are_errors() {
    let l = Mat::from_fn(3, 2, |i, k| 0.5 + 0.1 * (i + k) as f64);
    let psi = [0.5; 3];
    assert!(FactorModel::new(l.as_ref(), None, &psi[..2]).is_err());
    assert!(FactorModel::new(l.as_ref(), None, &[0.5, 0.0, 0.5]).is_err());
    assert!(FactorModel::new(l.as_ref(), None, &[0.5, f64::NAN, 0.5]).is_err());
    for phi in
        [[[1.0, 0.3], [0.2, 1.0]], [[1.0, 1.3], [1.3, 1.0]], [[2.0, 0.3], [0.3, 1.0]], [[1.0, f64::NAN]; 2]]
    {
        let phi = Mat::from_fn(2, 2, |i, j| phi[i][j]);
        assert!(FactorModel::new(l.as_ref(), Some(phi.as_ref()), &psi).is_err(), "{phi:?}");
    }
    let broken = Mat::from_fn(3, 1, |_, _| f64::INFINITY);
    assert!(FactorModel::new(broken.as_ref(), None, &psi).is_err());
    let model = FactorModel::new(l.as_ref(), None, &psi).unwrap();
    let small = Mat::<f64>::identity(2, 2);
    assert!(matches!(FitIndices::of(small.as_ref(), None, &model, None), Err(Error::Length { .. })));
    let s = Mat::<f64>::identity(3, 3);
    for n in [0.0, -3.0, f64::NAN, f64::INFINITY] {
        assert!(FitIndices::of(s.as_ref(), Some(n), &model, None).is_err(), "{n}");
    }
}
