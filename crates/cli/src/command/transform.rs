//! `covary transform`: latent coordinates of each row.

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Model, Posterior};

use super::answer::{latent_names, prepare, write};
use crate::args::Question;
use crate::exit::{Code, Failure, Result};

/// Writes posterior means or scores, and their deviations when asked.
pub(super) fn run(mut args: Question, deviations: bool) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    let q = saved.model.n_latent();
    let mut names = latent_names(q, "");
    match (&saved.model, deviations) {
        (model, false) => write(&args, reader, &names, |chunk| model.transform(chunk))?,
        (Model::Ppca(model), true) => {
            names.extend(latent_names(q, "_std"));
            write(&args, reader, &names, |chunk| with_deviations(model, chunk))?;
        }
        (Model::Fa(model), true) => {
            names.extend(latent_names(q, "_std"));
            write(&args, reader, &names, |chunk| beside_deviations(q, &model.posterior(chunk)?))?;
        }
        (Model::Pca(_), true) => {
            return Err(Failure::usage(
                "--std needs a posterior, and classical PCA has none; fit with --model ppca",
            ));
        }
    }
    Ok(Code::Done)
}

/// Means beside standard deviations (n × 2q).
fn with_deviations(model: &LinearGaussian, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    beside_deviations(model.n_latent(), &model.posterior(chunk)?)
}

fn beside_deviations(q: usize, posterior: &Posterior) -> covary::Result<Mat<f64>> {
    let deviation = |i: usize, j: usize| posterior.covariance.of(i)[(j, j)].max(0.0).sqrt();
    let cell = |i: usize, j: usize| if j < q { posterior.mean[(i, j)] } else { deviation(i, j - q) };
    Ok(Mat::from_fn(posterior.mean.nrows(), 2 * q, cell))
}
