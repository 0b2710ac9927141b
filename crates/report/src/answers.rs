//! What a model that is not linear says about the rows of a page, which the page cannot compute itself: coordinates,
//! distances, groups, and rows of places in the latent plane.

use covary::Pca;
use covary::Result;
use covary::data::{Block, Cells, Chunk, Order, RowSource, Table};
use covary::linalg::Mat;
use covary::model::{Assign, Decode, Density, Encode, Model, Sample};
use covary::persist::SavedModel;
use serde::Serialize;

use crate::block::Arrays;
use crate::collect::residuals;
use crate::limits::{self, Limits};
use crate::linear::add_matrix;

/// Coordinates of a row that a page holds.
const COORDINATES: usize = 12;
/// Directions of a plane for drawing.
const DIRECTIONS: usize = 4;
/// Groups whose probabilities a page holds.
const GROUPS: usize = 100;
/// Places along a side of the grid of decoded places.
const SIDE: usize = 25;
/// Cells of all decoded places.
const GRID_CELLS: usize = 400_000;

/// Which answers are there.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Answers {
    coordinates: bool,
    /// A plane for drawing only, of the directions of largest variance.
    map: bool,
    distances: bool,
    p_values: bool,
    novelty: bool,
    groups: Option<usize>,
    probabilities: bool,
    limits: Option<Limits>,
    grid: Option<Grid>,
}

/// Places in the plane of the first two coordinates whose rows are known.
#[derive(Debug, Serialize)]
struct Grid {
    side: usize,
    /// Ends of the two axes.
    from: [f64; 2],
    to: [f64; 2],
}

/// The answers about rows (n × p, row by row); a linear model has answered most of them by its numbers.
pub(crate) fn add(
    saved: &SavedModel,
    cells: &[f64],
    linear: bool,
    sample: Option<Sample>,
    arrays: &mut Arrays,
) -> Result<Answers> {
    let model = &*saved.model;
    let p = model.n_features();
    let n = cells.len().checked_div(p).unwrap_or(0);
    let mut answers = Answers { groups: model.as_assign().map(Assign::n_groups), ..Answers::default() };
    if n == 0 {
        answers.limits = limits::add(model, None, false, sample, arrays)?;
        return Ok(answers);
    }
    let rows = table(cells.to_vec(), n, p);
    let incomplete = cells.iter().any(|x| x.is_nan());
    answers.limits = limits::add(model, Some(&rows), incomplete, sample, arrays)?;
    add_groups(model, &rows, arrays, &mut answers)?;
    if linear {
        return Ok(answers);
    }
    add_distances(model, &rows, arrays, &mut answers)?;
    if !answers.distances && !answers.novelty {
        add_residuals(model, cells, arrays)?;
    }
    match model.as_encode() {
        Some(encode) if model.as_assign().is_none() => {
            let z = add_coordinates(encode, &rows, arrays)?;
            answers.coordinates = true;
            if let Some(decode) = model.as_decode() {
                answers.grid = add_grid(decode, &z, p, arrays);
            }
        }
        _ => answers.map = add_map(saved, cells, n, p, arrays),
    }
    Ok(answers)
}

fn table(cells: Vec<f64>, nrows: usize, ncols: usize) -> Table<'static> {
    Table::new(Cells::F64(Block::Owned { cells, nrows, ncols, order: Order::Rows }))
}

fn add_groups(
    model: &dyn Model,
    rows: &dyn RowSource,
    arrays: &mut Arrays,
    answers: &mut Answers,
) -> Result<()> {
    let Some(groups) = model.as_assign() else { return Ok(()) };
    let of: Vec<u32> = groups.assign(rows)?.iter().map(|k| u32::try_from(*k).unwrap_or(u32::MAX)).collect();
    arrays.words("group", [of.len(), 1], &of);
    if let Some(memberships) = model.as_memberships().filter(|_| groups.n_groups() <= GROUPS) {
        let p = memberships.probabilities(rows)?;
        let each = p.row_iter().flat_map(|row| row.iter().copied().collect::<Vec<_>>());
        arrays.singles("probabilities", [p.nrows(), p.ncols()], each);
        answers.probabilities = true;
    }
    Ok(())
}

fn add_distances(
    model: &dyn Model,
    rows: &dyn RowSource,
    arrays: &mut Arrays,
    answers: &mut Answers,
) -> Result<()> {
    if let Some(novelty) = model.as_novelty() {
        let spe = novelty.novelty(rows)?;
        arrays.singles("spe", [spe.len(), 1], spe.into_iter());
        answers.novelty = true;
    }
    if let Some(density) = model.as_density() {
        let (t2, spe, p) = judged(density, rows)?;
        answers.p_values = p.is_some();
        answers.distances = true;
        arrays.singles("t2", [t2.len(), 1], t2.into_iter());
        arrays.singles("spe", [spe.len(), 1], spe.into_iter());
        p.into_iter().for_each(|p| arrays.singles("p_value", [p.len(), 1], p.into_iter()));
    }
    Ok(())
}

/// Of a model with neither, squared distances from what it makes of the rows.
fn add_residuals(model: &dyn Model, cells: &[f64], arrays: &mut Arrays) -> Result<()> {
    let chunk = Chunk::from_rows(0, cells.to_vec(), model.n_features(), Order::Rows)?;
    if let Some(spe) = residuals(model, &chunk)? {
        arrays.singles("spe", [spe.len(), 1], spe.into_iter());
    }
    Ok(())
}

/// T², SPE and, where there is a density, p-values.
type Judgement = (Vec<f64>, Vec<f64>, Option<Vec<f64>>);

fn judged(density: &dyn Density, rows: &dyn RowSource) -> Result<Judgement> {
    if density.is_proper()? {
        let found = density.outliers(rows)?;
        return Ok((found.t2, found.spe, Some(found.p_value)));
    }
    let (t2, spe) = density.distances(rows)?;
    Ok((t2, spe, None))
}

fn add_coordinates(encode: &dyn Encode, rows: &dyn RowSource, arrays: &mut Arrays) -> Result<Mat<f64>> {
    let z = encode.encode(rows)?;
    let shown = z.ncols().min(COORDINATES);
    let each = (0..z.nrows()).flat_map(|i| (0..shown).map(move |k| (i, k)));
    arrays.singles("coordinates", [z.nrows(), shown], each.map(|at| z[at]));
    Ok(z)
}

/// Rows of places on a grid over the first two coordinates, the others 0; nothing where the model has no way back.
fn add_grid(decode: &dyn Decode, z: &Mat<f64>, p: usize, arrays: &mut Arrays) -> Option<Grid> {
    let q = z.ncols();
    let side = (2..=SIDE).rev().find(|side| side * side * p <= GRID_CELLS)?;
    if q == 0 {
        return None;
    }
    let ends = |k: usize| {
        let of = (0..z.nrows()).map(|i| if k < q { z[(i, k)] } else { 0.0 });
        of.fold((0.0, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)))
    };
    let (x, y) = (ends(0), ends(1));
    let at = |(low, high): (f64, f64), i: usize| low + (high - low) * i as f64 / (side - 1) as f64;
    let places = Mat::from_fn(side * side, q, |i, k| match k {
        0 => at(x, i % side),
        1 => at(y, i / side),
        _ => 0.0,
    });
    let rows = decode.decode(places.as_ref()).ok()?;
    let each = (0..side * side).flat_map(|i| (0..p).map(move |j| (i, j)));
    arrays.singles("grid", [side * side, p], each.map(|at| rows[at]));
    Some(Grid { side, from: [x.0, y.0], to: [x.1, y.1] })
}

/// The directions of largest variance of the rows, for drawing; nothing where there are none.
fn add_map(saved: &SavedModel, cells: &[f64], n: usize, p: usize, arrays: &mut Arrays) -> bool {
    let scale = saved.report.scaled.as_ref().map_or_else(|| vec![1.0; p], |scaled| scaled.factors.clone());
    let scaled = cells.iter().enumerate().map(|(at, x)| x / scale[at % p]).collect();
    let directions = DIRECTIONS.min(p).min(n.saturating_sub(1));
    let rows = table(scaled, n, p);
    let source: &dyn RowSource = &rows;
    let Ok(fit) = Pca::new(directions.max(1)).fit(source) else { return false };
    let (mean, u) = (fit.model.mean(), fit.model.components());
    arrays.doubles("mean", [p, 1], &(0..p).map(|j| mean[j] * scale[j]).collect::<Vec<_>>());
    let d = Mat::from_fn(p, u.ncols(), |j, k| u[(j, k)] * scale[j]);
    add_matrix(arrays, "directions", d.as_ref());
    arrays.doubles("scale", [p, 1], &scale);
    true
}
