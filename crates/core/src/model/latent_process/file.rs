//! The arrays of a GP-LVM as they stand in its file.

use super::{LatentProcess, ProcessParts, code};
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::packed_len;
use crate::model::arrays::{Array, Arrays, StoredArrays};

pub(super) fn arrays(parts: &ProcessParts) -> Arrays {
    let scalars = vec![code(parts.kernel.form()), parts.kernel.variance(), parts.bias, parts.noise];
    Arrays::from([
        ("mean", Array::Vector(parts.mean.clone())),
        ("divisors", Array::Vector(parts.divisors.clone())),
        ("scalars", Array::Vector(scalars)),
        ("relevance", Array::Vector(parts.kernel.relevance().to_vec())),
        ("inducing", Array::Matrix(parts.inducing.clone())),
        ("weights", Array::Matrix(parts.weights.clone())),
        ("reduction", Array::Matrix(parts.reduction.clone())),
        ("latent_mean", Array::Matrix(parts.latent_mean.clone())),
        ("latent_variance", Array::Matrix(parts.latent_variance.clone())),
    ])
}

/// # Errors
/// When arrays are missing, of other shapes, or hold impossible numbers.
pub(super) fn read(file: &dyn StoredArrays) -> Result<LatentProcess> {
    let mean = file.mean()?;
    let p = mean.len();
    let scalars = file.vector("scalars", Some(4))?;
    let form = match scalars[0] {
        0.0 => LatentForm::Linear,
        1.0 => LatentForm::Rbf,
        other => return Err(Error::Format(format!("kernel {other} of a GP-LVM is not known"))),
    };
    let kernel = LatentKernel::new(form, scalars[1], file.vector("relevance", None)?)?;
    let q = kernel.n_latent();
    let inducing = file.matrix("inducing", [None, Some(q)])?;
    let m = inducing.nrows();
    if m == 0 {
        return Err(Error::Format("no inducing points".into()));
    }
    let latent_mean = file.matrix("latent_mean", [None, Some(q)])?;
    LatentProcess::new(ProcessParts {
        divisors: file.vector("divisors", Some(p))?,
        mean,
        kernel,
        bias: scalars[2],
        noise: scalars[3],
        weights: file.matrix("weights", [Some(m), Some(p)])?,
        reduction: file.matrix("reduction", [Some(packed_len(m)), None])?,
        latent_variance: file
            .matrix("latent_variance", [Some(latent_mean.nrows()).filter(|n| *n > 0), Some(q)])?,
        inducing,
        latent_mean,
    })
}
