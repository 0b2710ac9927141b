//! `covary transform`: latent coordinates of each row.

use std::sync::atomic::{AtomicUsize, Ordering};

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::{Encode, Factors, LatentPosterior, LatentProcess, Model, kind};

use super::answer::{Input, prepare, write};
use crate::args::Question;
use crate::exit::{Code, Failure, Result};
use crate::flags::Scores;
use crate::phrase::{count, file_name};

/// Writes posterior means or scores, and their deviations when asked.
pub(super) fn run(mut args: Question, scores: Option<Scores>, deviations: bool) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    // Coordinates of the command are in the units of the data, also of a model that whitens in Python.
    let saved = saved.whitened(false);
    let (model, encoder) = (&*saved.model, saved.model.encoder()?);
    let posterior = deviations.then(|| model.latent_posterior()).transpose()?;
    let mut names = encoder.coordinate_names();
    if names.is_empty() && reader.schema().carried.is_empty() {
        return Err(no_columns(&args));
    }
    if let Some(factors) = with_scores(model, scores, deviations)? {
        write(&args, reader, &names, |chunk| factors.transform(chunk, covary::model::Scores::Bartlett))?;
        return Ok(Code::Done);
    }
    if let Some(process) = model.downcast_ref::<LatentProcess>() {
        return positions(&args, reader, process, deviations);
    }
    if let Some(posterior) = posterior {
        names.extend(encoder.coordinate_names().iter().map(|name| format!("{name}_std")));
        write(&args, reader, &names, |chunk| with_deviations(posterior, chunk))?;
    } else {
        write(&args, reader, &names, |chunk| encoder.encode(chunk))?;
    }
    Ok(Code::Done)
}

/// A table without columns says nothing.
fn no_columns(args: &Question) -> Failure {
    Failure::data(format!(
        "{} has no component, so rows have no coordinates; keep columns of the data with --id to have them \
         alone",
        file_name(&args.model)
    ))
}

/// The factors whose scores are estimated in another way than their posterior mean.
fn with_scores(model: &dyn Model, scores: Option<Scores>, deviations: bool) -> Result<Option<&Factors>> {
    let Some(scores) = scores else { return Ok(None) };
    let Some(factors) = model.downcast_ref::<Factors>() else {
        return Err(Failure::usage(format!(
            "--scores is for models of kind {}, and this one is {}; leave it out",
            kind::FA,
            model.kind()
        )));
    };
    match scores {
        Scores::Regression => Ok(None),
        Scores::Bartlett if deviations => Err(Failure::usage(
            "--std tells the deviations of the posterior, whose mean is --scores regression; leave --scores \
             out",
        )),
        Scores::Bartlett => Ok(Some(factors)),
    }
}

/// Means beside standard deviations (n × 2q).
fn with_deviations(model: &dyn LatentPosterior, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let posterior = model.posterior(chunk)?;
    let q = posterior.mean.ncols();
    let deviation = |i: usize, j: usize| posterior.covariance.of(i)[(j, j)].max(0.0).sqrt();
    let cell = |i: usize, j: usize| if j < q { posterior.mean[(i, j)] } else { deviation(i, j - q) };
    Ok(Mat::from_fn(posterior.mean.nrows(), 2 * q, cell))
}

/// Positions on a curved surface. A second place may explain a row about as well: a column marks such rows beside their
/// deviations, a sentence counts them otherwise.
fn positions(args: &Question, rows: Input, model: &LatentProcess, deviations: bool) -> Result<Code> {
    let mut names = model.coordinate_names();
    if deviations {
        names.extend(model.coordinate_names().iter().map(|name| format!("{name}_std")));
        names.push("ambiguous".into());
    }
    let found = AtomicUsize::new(0);
    write(args, rows, &names, |chunk| {
        let placed = model.place(chunk)?;
        let q = placed.mean.ncols();
        found.fetch_add(placed.ambiguous.iter().filter(|a| **a).count(), Ordering::Relaxed);
        let cell = |i: usize, j: usize| match j {
            _ if j < q => placed.mean[(i, j)],
            _ if j < 2 * q => placed.variance[(i, j - q)].max(0.0).sqrt(),
            _ => f64::from(u8::from(placed.ambiguous[i])),
        };
        Ok(Mat::from_fn(placed.mean.nrows(), names.len(), cell))
    })?;
    let found = found.into_inner();
    if found > 0 {
        let marked = if deviations { ": ambiguous is 1" } else { "; --std marks them in a column" };
        args.console.note(&format!("a second place explains {} about as well{marked}", count(found, "row")));
    }
    Ok(Code::Done)
}
