//! `covary transform`: latent coordinates of each row.

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::Model;

use super::answer::{latent_names, prepare, write};
use crate::args::Question;
use crate::exit::{Code, Failure, Result};
use crate::flags::Scores;
use crate::loadings::factor_names;
use crate::phrase::file_name;

/// Writes posterior means or scores, and their deviations when asked.
pub(super) fn run(mut args: Question, scores: Option<Scores>, deviations: bool) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    check(&saved.model, scores, deviations)?;
    let bartlett = scores == Some(Scores::Bartlett);
    let mut names = names(&saved.model, "");
    if names.is_empty() && reader.schema().carried.is_empty() {
        return Err(no_columns(&args));
    }
    match (&saved.model, deviations) {
        (Model::Fa(model), _) if bartlett => {
            write(&args, reader, &names, |chunk| model.transform(chunk, covary::model::Scores::Bartlett))?;
        }
        (model, false) => write(&args, reader, &names, |chunk| model.transform(chunk))?,
        (model, true) => {
            names.extend(self::names(model, "_std"));
            write(&args, reader, &names, |chunk| with_deviations(model, chunk))?;
        }
    }
    Ok(Code::Done)
}

/// z1, z2, …; f1, f2, … of factors.
fn names(model: &Model, ending: &str) -> Vec<String> {
    match model {
        Model::Fa(m) => factor_names(m.n_factors()).into_iter().map(|name| name + ending).collect(),
        _ => latent_names(model.n_latent(), ending),
    }
}

/// A table without columns says nothing.
fn no_columns(args: &Question) -> Failure {
    Failure::data(format!(
        "{} has no component, because no direction of its data stood out from noise, so rows have no coordinates; keep columns of the data with --id to have them alone",
        file_name(&args.model)
    ))
}

/// What a model has no answer to.
fn check(model: &Model, scores: Option<Scores>, deviations: bool) -> Result<()> {
    match (model, scores, deviations) {
        (Model::Pca(_), _, true) => {
            Err(Failure::usage("--std needs a posterior, and classical PCA has none; fit with --model ppca"))
        }
        (Model::Fa(_), Some(Scores::Bartlett), true) => Err(Failure::usage(
            "--std tells the deviations of the posterior, whose mean is --scores regression; leave --scores out",
        )),
        (Model::Fa(_), ..) | (_, None, _) => Ok(()),
        (other, Some(_), _) => Err(Failure::usage(format!(
            "--scores is for models of factors, and this one is {}; leave it out",
            other.kind()
        ))),
    }
}

/// Means beside standard deviations (n × 2q).
fn with_deviations(model: &Model, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let q = model.n_latent();
    let posterior = match model {
        Model::Fa(model) => model.posterior(chunk)?,
        other => other.gaussian()?.posterior(chunk)?,
    };
    let deviation = |i: usize, j: usize| posterior.covariance.of(i)[(j, j)].max(0.0).sqrt();
    let cell = |i: usize, j: usize| if j < q { posterior.mean[(i, j)] } else { deviation(i, j - q) };
    Ok(Mat::from_fn(posterior.mean.nrows(), 2 * q, cell))
}
