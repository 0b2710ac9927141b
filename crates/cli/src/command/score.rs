//! `covary score`: how well each row fits the model.

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::{Density, Novelty, kind};

use super::answer::{prepare, write};
use crate::args::Question;
use crate::exit::{Code, Result};

/// Writes log density, T², SPE and p-value, and of a robust model the weight of each row; SPE alone of a model
/// without a density.
pub(super) fn run(mut args: Question) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    if let Some(model) = saved.model.as_novelty() {
        write(&args, reader, &["spe".into()], |chunk| novelty(model, chunk))?;
        return Ok(Code::Done);
    }
    let model = saved.model.density()?;
    let has_density = model.is_proper()?;
    if !has_density {
        args.console.note(
            "the model has no noise, so rows have no density: log_density and p_value stay empty; fit with \
             fewer components to have them",
        );
    }
    let mut names = ["log_density", "t2", "spe", "p_value"].map(String::from).to_vec();
    if saved.model.kind() == &kind::ROBUST {
        names.push("weight".into());
    }
    write(&args, reader, &names, |chunk| match has_density {
        true => scores(model, chunk),
        false => distances(model, chunk, names.len()),
    })?;
    Ok(Code::Done)
}

fn scores(model: &dyn Density, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let log_density = model.log_density(chunk)?;
    let outliers = model.outliers(chunk)?;
    let mut columns = vec![log_density, outliers.t2, outliers.spe, outliers.p_value];
    columns.extend(model.row_weights(chunk)?);
    Ok(Mat::from_fn(chunk.nrows(), columns.len(), |i, j| columns[j][i]))
}

/// The squared distance from the components in the model's own space.
fn novelty(model: &dyn Novelty, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let found = model.novelty(chunk)?;
    Ok(Mat::from_fn(found.len(), 1, |i, _| found[i]))
}

/// What exists without a density; NaN is written as an empty cell.
fn distances(model: &dyn Density, chunk: &Chunk<'_>, width: usize) -> covary::Result<Mat<f64>> {
    let (t2, spe) = model.distances(chunk)?;
    Ok(Mat::from_fn(chunk.nrows(), width, |i, j| match j {
        1 => t2[i],
        2 => spe[i],
        _ => f64::NAN,
    }))
}
