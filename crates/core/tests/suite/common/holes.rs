//! Rows with holes, and their likelihood by definition.

use covary::data::Observed;
use covary::linalg::Mat;
use covary::model::LinearGaussian;

use super::*;

/// The log-likelihood of the observed cells from its definition: a dense marginal normal for every row.
pub fn observed_log_likelihood(model: &LinearGaussian, x: &Mat<f64>, weights: Option<&[f64]>) -> f64 {
    let dense = Dense::of(model);
    let of_row = |i: usize| {
        let features: Vec<usize> = (0..x.ncols()).filter(|j| !x[(i, *j)].is_nan()).collect();
        let cells: Vec<f64> = features.iter().map(|j| x[(i, *j)]).collect();
        if cells.is_empty() { 0.0 } else { dense.marginal(&features).log_density(&cells) }
    };
    (0..x.nrows()).map(|i| weights.map_or(1.0, |w| w[i]) * of_row(i)).sum()
}

/// Cells at random become holes.
pub fn punched(x: &Mat<f64>, share: f64, rng: &mut Rng) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if rng.uniform() < share { f64::NAN } else { x[(i, j)] })
}

/// Rows of a random model, of equal or diagonal noise, with holes.
pub fn rows_with_holes(n: usize, p: usize, q: usize, share: f64, seed: u64, diagonal: bool) -> Mat<f64> {
    let mut rng = Rng(seed);
    let truth = random_model(p, q, diagonal, &mut rng);
    punched(&truth.sample(n, seed), share, &mut rng)
}

/// The cells that are there and nothing else.
pub fn observed(x: &Mat<f64>) -> Observed<'static> {
    let cells = (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| (i, j, x[(i, j)])));
    Observed::from_triples(x.nrows(), x.ncols(), cells).unwrap()
}

/// The table of a result in `missing_ml.json`.
pub fn incomplete_case(case: &serde_json::Value) -> Option<Mat<f64>> {
    let text = |key: &str| case[key].as_str().unwrap();
    let csv = read_csv(text("file"))?;
    let names: Vec<&str> = text("columns").split(' ').collect();
    let all = text("columns").ends_with(" columns");
    let mut x = if all { csv.numbers() } else { csv.columns(|c| names.contains(&c)) };
    let p = case["d"].as_u64().unwrap() as usize;
    assert_eq!(x.ncols(), p, "{}", text("set"));
    for cell in case["removed_cells_flat_row_major"].as_array().into_iter().flatten() {
        let cell = cell.as_u64().unwrap() as usize;
        x[(cell / p, cell % p)] = f64::NAN;
    }
    if text("scale") == "standardise" {
        standardise_observed(&mut x);
    }
    Some(x)
}

/// Mean 0 and variance 1 (divisor n) of the cells that are there.
pub fn standardise_observed(x: &mut Mat<f64>) {
    for j in 0..x.ncols() {
        let seen: Vec<f64> = (0..x.nrows()).map(|i| x[(i, j)]).filter(|v| !v.is_nan()).collect();
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        let deviation = (seen.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / seen.len() as f64).sqrt();
        (0..x.nrows()).for_each(|i| x[(i, j)] = (x[(i, j)] - mean) / deviation);
    }
}
