//! Fit indices, sampling adequacy and standard errors against R (psych, factanal, lavaan) and against brute force.

use crate::common::{Dense, Rng, close, close_all, close_matrix, eigen, relative, row};
use covary::assess::{
    Adequacy, Assessment, FactorModel, FitIndices, Identification, MOST_PARAMETERS, Rotation, StandardErrors,
    kmo, smc, sphericity, standard_errors,
};
use covary::linalg::Mat;
use covary::model::Factors;
use covary::rotate::{Method, Rotate};
use covary::{Error, FactorAnalysis};
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
        Err(Error::Singular { eigenvalue, copies }) => {
            assert!(eigenvalue.abs() < 1e-14);
            assert_eq!(copies, [((1, None), (3, None))]);
        }
        other => panic!("{other:?}"),
    }
    let flat = Mat::from_fn(3, 3, |i, j| if i == 1 || j == 1 { 0.0 } else { base(i, j) });
    match Adequacy::of(flat.as_ref(), None) {
        Err(Error::ConstantFeatures { features }) => assert_eq!(features, [(1, None)]),
        other => panic!("{other:?}"),
    }
    // Not the correlations of anything: eigenvalues 1 ± 0.9·√2 and 1.
    let impossible = Mat::from_fn(3, 3, |i, j| [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]][i][j]);
    match Adequacy::of(impossible.as_ref(), None) {
        Err(Error::Indefinite { eigenvalue }) => {
            close(eigenvalue, 1.0 - 0.9 * 2f64.sqrt(), 1e-14, "eigenvalue");
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

// ----------------------------------------------------------------------------------------------- standard errors

#[test]
fn standard_errors_equal_lavaan() {
    for set in sets(&r()) {
        for rotated in set["rotated"].as_array().unwrap() {
            let flag = |key: &str| rotated[key].as_bool().unwrap();
            let name = (&set["set"], &rotated["rotation"], flag("kaiser"), flag("standardised"));
            let method = match rotated["rotation"].as_str().unwrap() {
                "varimax" => Method::Varimax,
                "oblimin" => Method::quartimin(),
                _ => Method::geomin(),
            };
            let (loadings, phi) = (matrix(&rotated["loadings"]), matrix(&rotated["correlation"]));
            let psi = numbers(&rotated["uniquenesses"]);
            let model = FactorModel::new(loadings.as_ref(), Some(phi.as_ref()), &psi).unwrap();
            let rotation =
                Rotation { method: &method, kaiser: flag("kaiser"), standardised: flag("standardised") };
            let ours = rotation.standard_errors(&model, number(&set["n"]), &[]).unwrap();
            assert!(ours.off_axis < 1e-4, "{name:?}: {}", ours.off_axis);
            // lavaan's oblique rotation ends at about 1e-6 from the optimum.
            let tolerance = if flag("orthogonal") { 1e-7 } else { 2e-5 };
            let se = &rotated["se"];
            close_matrix(&ours.given.loadings, &matrix(&se["loadings"]), tolerance * 0.1, name);
            close_matrix(&ours.given.correlation, &matrix(&se["correlation"]), tolerance * 0.1, name);
            close_all(&ours.given.uniquenesses, &numbers(&se["uniquenesses"]), 1e-10, name);
            close_all(&ours.standardised.uniquenesses, &numbers(&rotated["standardised_se"]), 2e-4, name);
        }
    }
}

/// Loadings and uniquenesses of features of different size, ΛᵀΨ⁻¹Λ diagonal.
fn unrotated(p: usize, q: usize) -> (Mat<f64>, Vec<f64>) {
    let mut rng = Rng(5);
    let unit = |j: usize| [1.0, 3.0, 0.4, 10.0, 0.9][j % 5];
    let simple = Mat::from_fn(p, q, |j, k| (if j % q == k { 0.7 } else { 0.1 }) + 0.15 * rng.normal());
    let l = Mat::from_fn(p, q, |j, k| simple[(j, k)] * unit(j));
    let psi: Vec<f64> = (0..p).map(|j| (0.3 + 0.3 * rng.uniform()) * unit(j) * unit(j)).collect();
    let weighted = Mat::from_fn(p, q, |j, k| l[(j, k)] / psi[j]);
    let (_, turn) = eigen(&(l.transpose() * &weighted));
    (&l * &turn, psi)
}

fn split(theta: &[f64], p: usize, q: usize) -> (Mat<f64>, &[f64]) {
    (Mat::from_fn(p, q, |j, k| theta[j + p * k]), &theta[p * q..])
}

fn covariance(theta: &[f64], p: usize, q: usize) -> Mat<f64> {
    let (l, psi) = split(theta, p, q);
    let common = &l * l.transpose();
    Mat::from_fn(p, p, |i, j| common[(i, j)] + if i == j { psi[i] } else { 0.0 })
}

/// ∂f/∂θ by central differences, with steps in proportion to each parameter's unit.
fn slopes(theta: &[f64], steps: &[f64], f: impl Fn(&[f64]) -> Vec<f64>) -> Mat<f64> {
    let columns: Vec<Vec<f64>> = (0..theta.len())
        .map(|k| {
            let at = |sign: f64| {
                let mut moved = theta.to_vec();
                moved[k] += sign * steps[k];
                f(&moved)
            };
            at(1.0).iter().zip(at(-1.0)).map(|(a, b)| (a - b) / (2.0 * steps[k])).collect()
        })
        .collect();
    Mat::from_fn(columns[0].len(), theta.len(), |o, k| columns[k][o])
}

/// The covariance of unrotated estimates from the second differences of the dense likelihood, on the surface ΛᵀΨ⁻¹Λ diagonal.
fn brute_covariance(theta: &[f64], steps: &[f64], p: usize, q: usize) -> Mat<f64> {
    let truth = covariance(theta, p, q);
    let objective = |t: &[f64]| {
        let dense = Dense::new(vec![0.0; p], covariance(t, p, q));
        let trace: f64 = (0..p).map(|j| dense.solve(truth.col_as_slice(j))[j]).sum();
        0.5 * (dense.log_det() + trace)
    };
    let k = theta.len();
    let gradient =
        |t: &[f64]| slopes(t, steps, |t| vec![objective(t)]).row(0).iter().copied().collect::<Vec<f64>>();
    let hessian = slopes(theta, steps, gradient);
    let equations = |t: &[f64]| {
        let (l, psi) = split(t, p, q);
        let entry = |r: usize, s: usize| (0..p).map(|j| l[(j, r)] * l[(j, s)] / psi[j]).sum::<f64>();
        (0..q).flat_map(|s| (s + 1..q).map(move |r| (r, s))).map(|(r, s)| entry(r, s)).collect()
    };
    // In units of the steps, so that no direction is lost in rounding.
    let scaled = |m: Mat<f64>| Mat::from_fn(m.nrows(), k, |i, j| m[(i, j)] * steps[j]);
    let border = scaled(slopes(theta, steps, equations));
    let (_, directions) = eigen(&(border.transpose() * &border));
    let free = k - border.nrows();
    let n = Mat::from_fn(k, free, |i, j| directions[(i, k - free + j)] * steps[i]);
    let inner = n.transpose() * &hessian * &n;
    let dense =
        Dense::new(vec![0.0; free], Mat::from_fn(free, free, |i, j| 0.5 * (inner[(i, j)] + inner[(j, i)])));
    let middle: Vec<Vec<f64>> = (0..k).map(|i| dense.solve(&row(&n, i))).collect();
    Mat::from_fn(k, k, |i, j| (0..free).map(|f| middle[i][f] * n[(j, f)]).sum())
}

/// Λ, Φ and ψ after a rotation, on the given and on the standardised scale.
fn rotated_outputs(theta: &[f64], p: usize, q: usize, rotation: &Rotation<'_>) -> Vec<f64> {
    let (l, psi) = split(theta, p, q);
    let sigma = covariance(theta, p, q);
    let unit = |j: usize| if rotation.standardised { sigma[(j, j)].sqrt() } else { 1.0 };
    let seen = Mat::from_fn(p, q, |j, k| l[(j, k)] / unit(j));
    let turned = Rotate::new(rotation.method.clone()).kaiser(rotation.kaiser).run(seen.as_ref()).unwrap();
    let cells = |rows: usize| (0..q).flat_map(move |k| (0..rows).map(move |j| (j, k)));
    let given = |(j, k): (usize, usize)| turned.pattern[(j, k)] * unit(j);
    let mut out: Vec<f64> = cells(p).map(given).chain(cells(q).map(|rs| turned.correlation[rs])).collect();
    out.extend_from_slice(psi);
    out.extend(cells(p).map(|(j, k)| given((j, k)) / sigma[(j, j)].sqrt()));
    out.extend(cells(q).map(|rs| turned.correlation[rs]));
    out.extend((0..p).map(|j| psi[j] / sigma[(j, j)]));
    out
}

fn flat(e: &StandardErrors) -> Vec<f64> {
    let columns =
        |m: &Mat<f64>| (0..m.ncols()).flat_map(|k| m.col_as_slice(k).to_vec()).collect::<Vec<f64>>();
    [columns(&e.loadings), columns(&e.correlation), e.uniquenesses.clone()].concat()
}

/// A model by its parameters, and steps that suit them.
fn brute_setting(p: usize, q: usize) -> (Vec<f64>, Vec<f64>, Mat<f64>) {
    let (l, psi) = unrotated(p, q);
    let theta: Vec<f64> =
        (0..q).flat_map(|k| l.col_as_slice(k).to_vec()).chain(psi.iter().copied()).collect();
    let sigma = covariance(&theta, p, q);
    let step = |a: usize| if a < p * q { 1e-3 * sigma[(a % p, a % p)].sqrt() } else { 1e-3 * psi[a - p * q] };
    let steps: Vec<f64> = (0..theta.len()).map(step).collect();
    let v = brute_covariance(&theta, &steps, p, q);
    (theta, steps, v)
}

#[test]
fn unrotated_errors_equal_the_numerically_differentiated_likelihood() {
    for (p, q) in [(4, 1), (7, 2), (9, 3)] {
        let (theta, _, v) = brute_setting(p, q);
        let (l, psi) = split(&theta, p, q);
        let model = FactorModel::new(l.as_ref(), None, psi).unwrap();
        let ours = standard_errors(&model, 250.0, Identification::Canonical, &[]).unwrap();
        assert!(ours.off_axis < 1e-10);
        for a in 0..theta.len() {
            let se = if a < p * q {
                ours.given.loadings[(a % p, a / p)]
            } else {
                ours.given.uniquenesses[a - p * q]
            };
            relative(se, (v[(a, a)] / 250.0).sqrt(), 1e-4, (p, q, a));
        }
    }
}

/// The border is not needed when the rotation itself is differentiated: errors of any rotation follow from the unrotated ones.
#[test]
fn rotated_errors_equal_the_numerically_differentiated_rotation() {
    for (p, q) in [(7, 2), (9, 3)] {
        let (theta, steps, v) = brute_setting(p, q);
        let (_, psi) = split(&theta, p, q);
        for (method, kaiser, standardised) in [
            (Method::Varimax, false, false),
            (Method::Varimax, false, true),
            (Method::Varimax, true, true),
            (Method::Equamax, false, true),
            (Method::quartimin(), false, false),
            (Method::quartimin(), false, true),
            (Method::quartimin(), true, false),
            (Method::geomin(), false, true),
            (Method::promax(), true, true),
            (Method::promax(), false, false),
        ] {
            let rotation = Rotation { method: &method, kaiser, standardised };
            let outputs = |t: &[f64]| rotated_outputs(t, p, q, &rotation);
            let now = outputs(&theta);
            let loadings = Mat::from_fn(p, q, |j, k| now[j + p * k]);
            let phi = Mat::from_fn(q, q, |r, s| now[p * q + r + q * s]);
            let model = FactorModel::new(loadings.as_ref(), Some(phi.as_ref()), psi).unwrap();
            let ours = rotation.standard_errors(&model, 1.0, &[]).unwrap();
            assert!(ours.off_axis < 1e-7, "{method} {kaiser}: {}", ours.off_axis);
            let j = slopes(&theta, &steps, outputs);
            let spread = &j * &v * j.transpose();
            let ours = [flat(&ours.given), flat(&ours.standardised)].concat();
            for (o, se) in ours.iter().enumerate() {
                let brute = spread[(o, o)].max(0.0).sqrt();
                close(*se, brute, 3e-4 * brute + 1e-7, (&method, kaiser, standardised, o));
            }
        }
    }
}

/// One factor of three features is a function of their covariances, whose covariances are known.
#[test]
fn three_features_by_hand() {
    let l = [0.9, 0.7, 0.5];
    let psi = [0.3, 0.6, 0.2];
    let sigma = |i: usize, j: usize| l[i] * l[j] + if i == j { psi[i] } else { 0.0 };
    let cells = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];
    let cov = |(a, b): (usize, usize), (c, d): (usize, usize)| {
        sigma(a, c) * sigma(b, d) + sigma(a, d) * sigma(b, c)
    };
    let s: Vec<f64> = cells.iter().map(|&(i, j)| sigma(i, j)).collect();
    // λ₀ = √(s₀₁s₀₂/s₁₂); standardised it is divided by √s₀₀; ψ₀ = s₀₀ − λ₀².
    let outputs = |s: &[f64]| {
        let square = s[3] * s[4] / s[5];
        vec![square.sqrt(), (square / s[0]).sqrt(), s[0] - square, 1.0 - square / s[0]]
    };
    let g = slopes(&s, &[1e-5; 6], outputs);
    let loadings = Mat::from_fn(3, 1, |j, _| l[j]);
    let model = FactorModel::new(loadings.as_ref(), None, &psi).unwrap();
    let ours = standard_errors(&model, 80.0, Identification::Canonical, &[]).unwrap();
    let ours = [
        ours.given.loadings[(0, 0)],
        ours.standardised.loadings[(0, 0)],
        ours.given.uniquenesses[0],
        ours.standardised.uniquenesses[0],
    ];
    for (o, se) in ours.iter().enumerate() {
        let pairs = (0..6).flat_map(|a| (0..6).map(move |b| (a, b)));
        let variance: f64 = pairs.map(|(a, b)| g[(o, a)] * cov(cells[a], cells[b]) * g[(o, b)]).sum();
        relative(*se, (variance / 80.0).sqrt(), 1e-8, o);
    }
}

#[test]
fn standard_errors_follow_units() {
    let (l, psi) = unrotated(7, 2);
    let unit = |j: usize| 10f64.powi([100, -100, 0, 60, -60, 3, 1][j]);
    let scaled = Mat::from_fn(7, 2, |j, k| l[(j, k)] * unit(j));
    let scaled_psi: Vec<f64> = psi.iter().enumerate().map(|(j, v)| v * unit(j) * unit(j)).collect();
    let of = |l: &Mat<f64>, psi: &[f64]| {
        let model = FactorModel::new(l.as_ref(), None, psi).unwrap();
        standard_errors(&model, 100.0, Identification::Canonical, &[]).unwrap()
    };
    let (a, b) = (of(&l, &psi), of(&scaled, &scaled_psi));
    close_all(&flat(&a.standardised), &flat(&b.standardised), 1e-10, "standardised");
    for j in 0..7 {
        relative(a.given.loadings[(j, 1)] * unit(j), b.given.loadings[(j, 1)], 1e-9, j);
        relative(a.given.uniquenesses[j] * unit(j) * unit(j), b.given.uniquenesses[j], 1e-9, j);
    }
}

#[test]
fn no_factors_and_fixed_uniquenesses() {
    let none = Mat::<f64>::zeros(3, 0);
    let psi = [1.0, 2.0, 5.0];
    let model = FactorModel::new(none.as_ref(), None, &psi).unwrap();
    let ours = standard_errors(&model, 200.0, Identification::Canonical, &[1]).unwrap();
    // A variance of normal rows has standard error σ²√(2/n).
    close_all(&ours.given.uniquenesses, &[0.1, 0.0, 0.5], 1e-12, "variances");
    close_all(&ours.standardised.uniquenesses, &[0.0; 3], 1e-12, "there is nothing else");
    assert_eq!(ours.fixed, [1]);
    // What is known makes the rest surer.
    let (l, psi) = unrotated(7, 2);
    let model = FactorModel::new(l.as_ref(), None, &psi).unwrap();
    let all = standard_errors(&model, 200.0, Identification::Canonical, &[]).unwrap();
    let some = standard_errors(&model, 200.0, Identification::Canonical, &[3]).unwrap();
    assert!((0..7).all(|j| some.given.uniquenesses[j] <= all.given.uniquenesses[j] * (1.0 + 1e-9)));
    assert_eq!(some.given.uniquenesses[3], 0.0);
}

#[test]
fn what_is_not_determined_is_an_error() {
    let errors = |l: &Mat<f64>, psi: &[f64], fixed: &[usize]| {
        let model = FactorModel::new(l.as_ref(), None, psi).unwrap();
        standard_errors(&model, 100.0, Identification::Canonical, fixed)
    };
    // Negative degrees of freedom.
    let (l, psi) = unrotated(4, 2);
    assert!(matches!(errors(&l, &psi, &[]), Err(Error::NotPositiveDefinite { .. })));
    // Two factors of equal strength: nothing tells the axes apart.
    let twins =
        Mat::from_fn(8, 2, |j, k| if (j < 4) == (k == 0) { [0.9, 0.8, 0.7, 0.6][j % 4] } else { 0.0 });
    let half = [0.5; 8];
    assert!(matches!(errors(&twins, &half, &[]), Err(Error::NotPositiveDefinite { .. })));
    // But varimax does.
    let model = FactorModel::new(twins.as_ref(), None, &half).unwrap();
    let varimax = Rotation { method: &Method::Varimax, kaiser: false, standardised: false };
    assert!(varimax.standard_errors(&model, 100.0, &[]).is_ok());
    // Correlated factors that were not rotated obliquely.
    let phi = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 0.3 });
    let model = FactorModel::new(twins.as_ref(), Some(phi.as_ref()), &half).unwrap();
    assert!(varimax.standard_errors(&model, 100.0, &[]).is_err());
    // A feature without loadings cannot be normalised.
    let gap = Mat::from_fn(8, 2, |j, k| if j == 3 { 0.0 } else { twins[(j, k)] });
    let model = FactorModel::new(gap.as_ref(), None, &half).unwrap();
    let kaiser = Rotation { kaiser: true, ..varimax };
    assert!(matches!(
        kaiser.standard_errors(&model, 100.0, &[]),
        Err(Error::ZeroLoadings { feature: (3, None) })
    ));
    assert!(errors(&l, &psi, &[9]).is_err(), "no such feature");
    let model = FactorModel::new(twins.as_ref(), None, &half).unwrap();
    assert!(standard_errors(&model, 0.0, Identification::Canonical, &[]).is_err());
    let large = Mat::from_fn(MOST_PARAMETERS, 1, |_, _| 0.5);
    let psi = vec![0.75; MOST_PARAMETERS];
    assert!(errors(&large, &psi, &[]).unwrap_err().to_string().contains("at most 4000"));
}

/// Rows drawn again with replacement, fitted and rotated again: their spread is what standard errors promise.
#[test]
fn standard_errors_agree_with_the_bootstrap() {
    let (p, q, n) = (8, 2, 2000);
    let mut rng = Rng(11);
    let truth =
        Mat::from_fn(p, q, |j, k| if (j < 4) == (k == 0) { [0.85, 0.8, 0.75, 0.7][j % 4] } else { 0.0 });
    let mut x = Mat::zeros(n, p);
    for i in 0..n {
        let f0 = rng.normal();
        let f = [f0, 0.3 * f0 + 0.91f64.sqrt() * rng.normal()];
        for j in 0..p {
            x[(i, j)] = (0..q).map(|k| truth[(j, k)] * f[k]).sum::<f64>() + 0.6 * rng.normal();
        }
    }
    for method in [Method::quartimin(), Method::Varimax] {
        let analysis = FactorAnalysis::new(q).rotation(Rotate::new(method));
        let fit = analysis.fit(&x).unwrap();
        let now = outputs(&fit.model);
        let ours = covary::estimator::standard_errors(&fit.model, &fit.report).unwrap();
        let ours = [flat(&ours.given), flat(&ours.standardised)].concat();
        let draws: Vec<Vec<f64>> = (0..500)
            .map(|_| {
                let picked: Vec<usize> = (0..n).map(|_| rng.below(n)).collect();
                let again = Mat::from_fn(n, p, |i, j| x[(picked[i], j)]);
                aligned(outputs(&analysis.fit(&again).unwrap().model), &now, p, q)
            })
            .collect();
        compare_with_draws(&ours, &draws);
    }
}

/// Λ, Φ and ψ on the given and on the standardised scale.
fn outputs(model: &Factors) -> Vec<f64> {
    let columns = |m: &Mat<f64>| (0..m.ncols()).flat_map(|k| m.col_as_slice(k).to_vec()).collect::<Vec<_>>();
    let noises = (0..model.n_features()).map(|j| model.gaussian().noise().of(j)).collect();
    let given = [columns(model.pattern()), columns(&model.correlation()), noises].concat();
    let standardised = [columns(&model.standardised_pattern()), columns(&model.correlation())].concat();
    [given, standardised, model.uniquenesses()].concat()
}

fn compare_with_draws(ours: &[f64], draws: &[Vec<f64>]) {
    let count = draws.len() as f64;
    let deviation = |o: usize| {
        let mean = draws.iter().map(|d| d[o]).sum::<f64>() / count;
        (draws.iter().map(|d| (d[o] - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()
    };
    let ratios: Vec<f64> =
        (0..ours.len()).filter(|&o| ours[o] > 1e-6).map(|o| deviation(o) / ours[o]).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    close(mean, 1.0, 0.03, "on average");
    assert!(ratios.iter().all(|r| (r - 1.0).abs() < 0.1), "{ratios:?}");
}

/// The same factors in the order and with the signs of a reference (two factors).
fn aligned(mut out: Vec<f64>, reference: &[f64], p: usize, q: usize) -> Vec<f64> {
    let block = p * q + q * q + p;
    let along = |a: usize, b: usize| (0..p).map(|j| out[j + p * a] * reference[j + p * b]).sum::<f64>();
    let swap = along(0, 0).abs() < along(1, 0).abs();
    let source = |k: usize| if swap { 1 - k } else { k };
    let sign = |k: usize| along(source(k), k).signum();
    let signs = [sign(0), sign(1)];
    let old = out.clone();
    for start in [0, block] {
        for k in 0..q {
            (0..p).for_each(|j| out[start + j + p * k] = signs[k] * old[start + j + p * source(k)]);
        }
        for cell in [start + p * q + 1, start + p * q + 2] {
            out[cell] = signs[0] * signs[1] * old[cell];
        }
    }
    out
}

#[test]
fn an_assessment_survives_json() {
    let json = r();
    let set = &sets(&json)[2];
    let s = correlation(&matrix(&set["covariance"]));
    let (loadings, psi) = (matrix(&set["loadings"]), numbers(&set["uniquenesses"]));
    let model = FactorModel::new(loadings.as_ref(), None, &psi).unwrap();
    let assessment = Assessment {
        fit: FitIndices::of(s.as_ref(), set["n"].as_f64(), &model, None).unwrap(),
        adequacy: Adequacy::of(s.as_ref(), set["n"].as_f64()).ok(),
        precision: standard_errors(&model, 301.0, Identification::Canonical, &[]).ok(),
    };
    let text = serde_json::to_string(&assessment).unwrap();
    assert_eq!(serde_json::from_str::<Assessment>(&text).unwrap(), assessment);
    assert!(assessment.precision.is_some());
}
