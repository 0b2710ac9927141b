//! ψ-statistics as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Portable, SavedEvidence, check_kind, check_names};
use crate::error::{Error, Result};
use crate::evidence::{LatentPositions, PsiSums};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::packed_len;
use crate::model::StoredArrays;
use crate::persist::container::{Container, Tensor, to_bytes};

/// Numbers of ψ-statistics that are not tensors.
#[derive(Serialize, Deserialize)]
struct PsiDetails {
    features: Vec<String>,
    rows: usize,
    kernel: LatentForm,
    variance: f64,
    masked: bool,
}

impl Portable for PsiSums {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let at = &self.at;
        check_names(features, at.centre.len())?;
        let kernel = at.psi.kernel();
        let details = PsiDetails {
            features: features.to_vec(),
            rows: self.rows,
            kernel: kernel.form(),
            variance: kernel.variance(),
            masked: at.masked,
        };
        let tensors = BTreeMap::from([
            ("relevance", Tensor::vector(kernel.relevance())),
            ("inducing", Tensor::matrix(at.psi.points())),
            ("latent_mean", Tensor::vector(&at.mean)),
            ("latent_variance", Tensor::vector(&at.variance)),
            ("centre", Tensor::vector(&at.centre)),
            ("weight", Tensor::vector(&self.weight)),
            ("psi0", Tensor::vector(&self.zero)),
            ("psi1y", Tensor::matrix(&self.one)),
            ("psi2", Tensor::matrix(&self.two)),
            ("squares", Tensor::vector(&self.squares)),
            ("divergence", Tensor::vector(&self.divergence)),
        ]);
        to_bytes("psi", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "psi")?;
        let PsiDetails { features, rows, kernel, variance, masked } = file.details()?;
        let p = features.len();
        let wrong = || Error::Format("ψ-statistics that no rows can have".into());
        if p == 0 {
            return Err(wrong());
        }
        let kernel =
            LatentKernel::new(kernel, variance, file.vector("relevance", None)?).map_err(|_| wrong())?;
        let q = kernel.n_latent();
        let inducing = file.matrix("inducing", [None, Some(q)])?;
        let m = inducing.nrows();
        let place = (file.vector("latent_mean", None)?, file.vector("latent_variance", None)?);
        let centre = file.vector("centre", Some(p))?;
        let at = LatentPositions::new(kernel, inducing, place, centre, masked).map_err(|_| wrong())?;
        let groups = at.groups();
        let mut evidence = Self::empty(Arc::new(at));
        evidence.rows = rows;
        evidence.weight = file.vector("weight", Some(groups))?;
        evidence.zero = file.vector("psi0", Some(groups))?;
        evidence.one = file.matrix("psi1y", [Some(m), Some(p)])?;
        evidence.two = file.matrix("psi2", [Some(packed_len(m)), Some(groups)])?;
        evidence.squares = file.vector("squares", Some(p))?;
        evidence.divergence = file.vector("divergence", Some(q))?;
        let sums = [&evidence.weight, &evidence.zero, &evidence.squares];
        match sums.into_iter().flatten().all(|x| *x >= 0.0) && rows <= evidence.at.n_rows() {
            true => Ok(SavedEvidence { evidence, features }),
            false => Err(wrong()),
        }
    }
}
