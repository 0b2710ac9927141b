//! A fit of a kernel matrix that was computed elsewhere.

use std::time::Instant;

use super::super::Fit;
use super::KernelPca;
use super::exact::Exact;
use super::fit::{check_number, finished};
use super::plan::{Size, choose};
use crate::algorithm::kernel::CentredKernel;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::linalg::{Mat, SymmetricTiles};
use crate::memory;
use crate::model::KernelComponents;

/// How far a precomputed kernel may be from symmetric, relative to its largest value.
const SYMMETRY: f64 = 1e-8;

/// Fits a kernel matrix.
pub(super) fn fit_matrix(
    family: &KernelPca,
    source: &dyn RowSource,
    control: &Control<'_>,
    started: Instant,
) -> Result<Fit<KernelComponents>> {
    let n = source.n_features();
    let mut weights = Vec::new();
    memory::check("the kernel matrix", &[n, n])?;
    let mut values = Mat::zeros(n, n);
    for index in 0..source.n_chunks() {
        control.check()?;
        let chunk = source.chunk(index)?;
        if let Some(error) = chunk.explain_not_finite("a kernel") {
            return Err(error);
        }
        for i in 0..chunk.nrows() {
            let row = weights.len();
            if row < n {
                (0..n).for_each(|j| values[(j, row)] = chunk.cells().get(i, j));
            }
            weights.push(chunk.weights().map_or(1.0, |w| w[i]));
        }
    }
    if weights.len() != n {
        let (expected, found) = (weights.len(), n);
        return Err(Error::Length {
            what: "columns of the kernel matrix, which must be square",
            expected,
            found,
        });
    }
    check_symmetry(&values, &weights)?;
    without_weightless(&mut values, &weights);
    let rows = weights.iter().filter(|w| **w > 0.0).count();
    check_number(family.components, rows, n)?;
    let size = Size {
        rows: n,
        features: 0,
        components: family.components,
        landmarks: None,
        memory: Some(usize::MAX),
    };
    let plan = choose(family.solver, &size)?;
    let kernel = Kernel::new(family.form, 1.0)?;
    let tiles = SymmetricTiles::of_lower(values.as_ref());
    drop(values);
    let centred = CentredKernel::new(tiles, &weights)?;
    let means = centred.means.clone();
    let found = Exact::of(centred, (&weights, 0.0), family, plan.plan.solver, control)?;
    let coordinates = found.coordinates(&weights);
    let model =
        found.model(kernel, Mat::zeros(n, 0), (means, None), &weights, family.preimage, &coordinates)?;
    let details = found.report(kernel, n);
    let weight = weights.iter().sum();
    Ok(finished(model, details, plan, (rows, weight), found.spectrum.trace, None, (1, started)))
}

/// A row of weight 0 is no row, whatever it holds.
fn without_weightless(values: &mut Mat<f64>, weights: &[f64]) {
    for j in (0..weights.len()).filter(|j| weights[*j] == 0.0) {
        values.col_as_slice_mut(j).fill(0.0);
        (0..weights.len()).for_each(|i| values[(j, i)] = 0.0);
    }
}

fn check_symmetry(values: &Mat<f64>, weights: &[f64]) -> Result<()> {
    let counts = |i: &usize| weights[*i] > 0.0;
    let n = weights.len();
    let pairs = || (0..n).filter(counts).flat_map(|j| (j + 1..n).filter(counts).map(move |i| (i, j)));
    let largest = pairs().fold(0.0, |a: f64, ij| a.max(values[ij].abs()));
    match pairs().find(|&(i, j)| (values[(i, j)] - values[(j, i)]).abs() > SYMMETRY * largest) {
        None => Ok(()),
        Some((i, j)) => {
            // The matrix is held with rows as columns.
            let (value, mirrored) = (values[(i, j)], values[(j, i)]);
            Err(Error::AsymmetricKernel { row: j, column: i, value, mirrored })
        }
    }
}
