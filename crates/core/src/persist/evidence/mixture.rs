//! Evidence about a mixture as bytes: the mixture, and of each component what its rows say.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Portable, SavedEvidence, Tensors, check_kind, check_names, latent, moments};
use crate::algorithm::{MixtureCollected as Collected, MixtureEvidence, MixtureTotals};
use crate::error::{Error, Result};
use crate::evidence::LatentTotals;
use crate::model::{Mixture, Model, StoredArrays, kind};
use crate::persist::check;
use crate::persist::container::{Container, Tensor, to_bytes};

/// What the file of evidence about a mixture is called.
const KIND: &str = "mixture_evidence";

/// Numbers of evidence about a mixture that are not tensors.
#[derive(Serialize, Deserialize)]
struct MixtureDetails {
    features: Vec<String>,
    rows: usize,
    weight: f64,
    log_likelihood: f64,
    negative_entropy: f64,
    parts: Parts,
}

/// Numbers of the evidence of each component that are not tensors.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Parts {
    /// Rows and weight of complete rows.
    Complete(Vec<(usize, f64)>),
    /// The sums that are not about single features.
    Incomplete(Vec<LatentTotals>),
}

/// What the arrays of a component are called.
fn named(component: usize) -> impl Fn(&str) -> String {
    move |name| format!("component_{component}.{name}")
}

/// The numbers of the components that are not tensors; the others go to the tensors.
fn write_parts(collected: &Collected, tensors: &mut Tensors) -> Parts {
    match collected {
        Collected::Complete(of) => {
            let each = of.parts.iter().enumerate();
            each.for_each(|(k, part)| moments::write(part, &named(k), tensors));
            Parts::Complete(of.parts.iter().map(|part| (part.rows(), part.weight())).collect())
        }
        Collected::Incomplete(of) => {
            let each = of.parts.iter().enumerate();
            each.for_each(|(k, part)| latent::write_sums(part, &named(k), tensors));
            Parts::Incomplete(of.parts.iter().map(|part| part.totals.clone()).collect())
        }
    }
}

/// Reads the components into evidence of no rows.
fn read_parts(file: &Container, parts: Parts, empty: &mut Collected, p: usize) -> Result<()> {
    match (parts, empty) {
        (Parts::Complete(known), Collected::Complete(of)) if known.len() == of.parts.len() => {
            for (k, (counts, part)) in known.into_iter().zip(&mut of.parts).enumerate() {
                *part = moments::read(file, p, counts, &named(k))?;
            }
            Ok(())
        }
        (Parts::Incomplete(known), Collected::Incomplete(of)) if known.len() == of.parts.len() => {
            for (k, (totals, part)) in known.into_iter().zip(&mut of.parts).enumerate() {
                *part = latent::read_sums(file, Arc::clone(part.parameters()), totals, &named(k))?;
            }
            Ok(())
        }
        _ => Err(Error::Format("not one part for each component".into())),
    }
}

impl Portable for MixtureEvidence {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let mixture = self.mixture();
        check_names(features, mixture.n_features())?;
        let arrays = mixture.arrays();
        let mut tensors: Tensors =
            arrays.iter().map(|(name, array)| ((*name).to_string(), Tensor::from(array))).collect();
        let MixtureTotals { rows, weight, log_likelihood, overlap, negative_entropy } = self.totals();
        tensors.insert("overlap".into(), Tensor::matrix(overlap));
        let parts = write_parts(&self.collected, &mut tensors);
        let features = features.to_vec();
        let details = MixtureDetails { features, rows, weight, log_likelihood, negative_entropy, parts };
        to_bytes(KIND, &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, KIND)?;
        let MixtureDetails { features, rows, weight, log_likelihood, negative_entropy, parts } =
            file.details()?;
        let mixture = Arc::new(mixture_of(&file)?);
        let (p, k) = (mixture.n_features(), mixture.n_components());
        check::check_names(&features, p)?;
        let mut evidence = match parts {
            Parts::Complete(_) => Self::complete(mixture),
            Parts::Incomplete(_) => Self::incomplete(mixture),
        };
        read_parts(&file, parts, &mut evidence.collected, p)?;
        let overlap = &file.matrix("overlap", [Some(k), Some(k)])?;
        let finite = log_likelihood.is_finite() && negative_entropy.is_finite();
        if !check::is_weight(rows, weight) || !finite {
            return Err(Error::Format("sums of a mixture that no rows can have".into()));
        }
        evidence.set_totals(MixtureTotals { rows, weight, log_likelihood, overlap, negative_entropy });
        Ok(SavedEvidence { evidence, features })
    }
}

/// The mixture of a file, with noise in every feature.
fn mixture_of(file: &Container) -> Result<Mixture> {
    let impossible = |error: Error| match error {
        Error::Format(_) => error,
        error => Error::Format(format!("its mixture is not possible: {error}")),
    };
    let model = (kind::MIXTURE.read)(file).map_err(impossible)?;
    let mixture = model.downcast_ref::<Mixture>().cloned();
    let mixture = mixture.ok_or_else(|| Error::Format("it holds no mixture".into()))?;
    let noisy = |k: usize| (0..mixture.n_features()).all(|j| mixture.components()[k].noise().of(j) > 0.0);
    match (0..mixture.n_components()).all(noisy) {
        true => Ok(mixture),
        false => Err(Error::Format("its noise is not positive".into())),
    }
}
