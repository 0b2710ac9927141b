//! What a page needs of a model that is linear: with it, the page computes coordinates, distances and what each cell
//! contributes by itself.

use covary::Result;
use covary::linalg::{Mat, MatRef};
use covary::model::{Decode, Density, Loadings};
use covary::persist::SavedModel;
use serde::Serialize;
use serde_json::Value;

use crate::block::Arrays;

/// What is decoded to see the directions of a linear model: so far out that the mean takes off no digits.
const FAR: f64 = (1u64 << 60) as f64;

/// How the arrays of a linear model are read.
#[derive(Debug, Serialize)]
pub(crate) struct Linear {
    /// Coordinates are means of a posterior; otherwise projections on the directions.
    posterior: bool,
    /// Rows have a density: there is noise.
    proper: bool,
    /// Degrees of freedom of a t distribution; nothing for the normal one.
    degrees_of_freedom: Option<f64>,
    /// Whether there are standard deviations of the loadings.
    deviations: bool,
    /// Whether coordinates are turned: Tᵀz.
    turned: bool,
}

/// The arrays of a linear model; nothing for a model of another form.
pub(crate) fn add(saved: &SavedModel, facts: &Value, arrays: &mut Arrays) -> Result<Option<Linear>> {
    let model = &saved.model;
    let (Some(loadings), Some(decode)) = (model.as_loadings(), model.as_decode()) else { return Ok(None) };
    let (p, q) = (model.n_features(), model.n_latent());
    let factors = loadings.factors();
    let gaussian = factors.gaussian();
    arrays.doubles("mean", [p, 1], gaussian.mean());
    add_matrix(arrays, "loadings", gaussian.loadings().as_ref());
    arrays.doubles("noise", [p, 1], &(0..p).map(|j| gaussian.noise().of(j)).collect::<Vec<_>>());
    add_matrix(arrays, "directions", directions(decode, loadings, q)?.as_ref());
    add_matrix(arrays, "structure", factors.standardised_structure().as_ref());
    add_matrix(arrays, "pattern", factors.standardised_pattern().as_ref());
    if let Some(turn) = factors.turn() {
        add_matrix(arrays, "turn", turn.as_ref());
    }
    if let Some(scaled) = &saved.report.scaled {
        arrays.doubles("scale", [p, 1], &scaled.factors);
    }
    if let Some(deviations) = loadings.deviations() {
        add_matrix(arrays, "deviations", deviations.as_ref());
    }
    Ok(Some(Linear {
        posterior: model.as_posterior().is_some(),
        proper: model.as_density().map_or(Ok(false), Density::is_proper)?,
        degrees_of_freedom: facts["robust"]["degrees_of_freedom"].as_f64(),
        deviations: loadings.deviations().is_some(),
        turned: factors.turn().is_some(),
    }))
}

/// What one unit of each coordinate does to each feature (p × q).
fn directions(decode: &dyn Decode, loadings: &dyn Loadings, q: usize) -> Result<Mat<f64>> {
    let far = decode.decode(Mat::from_fn(q, q, |i, j| if i == j { FAR } else { 0.0 }).as_ref())?;
    let mean = loadings.mean();
    Ok(Mat::from_fn(mean.len(), q, |j, k| (far[(k, j)] - mean[j]) / FAR))
}

/// A matrix, row by row.
pub(crate) fn add_matrix(arrays: &mut Arrays, name: &str, matrix: MatRef<'_, f64>) {
    let cells: Vec<f64> = matrix.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>()).collect();
    arrays.doubles(name, [matrix.nrows(), matrix.ncols()], &cells);
}
