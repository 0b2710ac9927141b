//! `covary score`: how well each row fits the model.

use covary::Error;
use covary::data::{Chunk, Rows};
use covary::linalg::Mat;
use covary::model::LinearGaussian;

use super::answer::{prepare, write};
use crate::args::Question;
use crate::exit::{Code, Result};

/// Writes log density, T², SPE and p-value.
pub(super) fn run(mut args: Question) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    let model = saved.model.gaussian()?;
    let has_density = has_density(&model)?;
    if !has_density {
        args.console.note(
            "the model has no noise, so rows have no density: log_density and p_value stay empty; fit with fewer components to have them",
        );
    }
    let names = ["log_density", "t2", "spe", "p_value"].map(String::from);
    write(&args, reader, &names, |chunk| match has_density {
        true => scores(&model, chunk),
        false => distances(&model, chunk),
    })?;
    Ok(Code::Done)
}

/// Asks about the mean, which every model has.
fn has_density(model: &LinearGaussian) -> covary::Result<bool> {
    match model.log_density(Rows::from_slice(model.mean(), model.n_features())?) {
        Ok(_) => Ok(true),
        Err(Error::NoDensity { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn scores(model: &LinearGaussian, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let log_density = model.log_density(chunk)?;
    let outliers = model.outliers(chunk)?;
    let columns = [log_density, outliers.t2, outliers.spe, outliers.p_value];
    Ok(Mat::from_fn(chunk.nrows(), 4, |i, j| columns[j][i]))
}

/// What exists without a density; NaN is written as an empty cell.
fn distances(model: &LinearGaussian, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let (t2, spe) = model.t2_spe(chunk)?;
    Ok(Mat::from_fn(chunk.nrows(), 4, |i, j| match j {
        1 => t2[i],
        2 => spe[i],
        _ => f64::NAN,
    }))
}
