//! Latent evidence as bytes: the parameters that it is for, and the sums of the expectation step.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Naming, Portable, SavedEvidence, Tensors, check_kind, check_names, mean_rest, plain};
use crate::error::{Error, Result};
use crate::evidence::{Latent, LatentTotals as Totals};
use crate::expectation::{FeatureScale, LatentParameters};
use crate::linalg::packed_len;
use crate::model::StoredArrays;
use crate::persist::check;
use crate::persist::container::{Container, Tensor, to_bytes};

/// Numbers of latent evidence that are not tensors.
#[derive(Serialize, Deserialize)]
struct LatentDetails {
    features: Vec<String>,
    #[serde(flatten)]
    units: Units,
    totals: Totals,
}

/// Numbers of parameters that are not tensors.
#[derive(Serialize, Deserialize)]
pub(super) struct Units {
    noise: f64,
    /// What all cells are divided by; `None` when each feature has its own.
    unit: Option<f64>,
}

impl Units {
    pub(super) fn of(parameters: &LatentParameters) -> Self {
        let unit = match parameters.scale() {
            FeatureScale::Common(unit) => Some(*unit),
            FeatureScale::NoiseDeviations(_) => None,
        };
        Self { noise: parameters.noise(), unit }
    }

    /// The parameters of a file, and the number of its features.
    pub(super) fn read(&self, file: &Container) -> Result<(LatentParameters, usize)> {
        let mean = file.mean()?;
        let p = mean.len();
        let loadings = file.matrix("loadings", [None, Some(p)])?;
        let units = match self.unit {
            Some(unit) => vec![unit],
            None => file.vector("deviations", Some(p))?,
        };
        if !units.iter().chain([&self.noise]).all(|x| *x > 0.0 && x.is_finite()) {
            return Err(Error::Format("its noise is not positive".into()));
        }
        let parameters = match self.unit {
            Some(unit) => LatentParameters::in_units(mean, &loadings, self.noise, unit),
            None => LatentParameters::in_noise(mean, &loadings, units),
        };
        Ok((parameters.with_mean_rest(mean_rest(file, p, &plain)?), p))
    }
}

/// The arrays of parameters.
pub(super) fn write_parameters(parameters: &LatentParameters, tensors: &mut Tensors) {
    tensors.insert("mean".into(), Tensor::vector(parameters.mean()));
    tensors.insert("mean_rest".into(), Tensor::vector(parameters.mean_rest()));
    let loadings = parameters.loadings_transposed().to_owned();
    tensors.insert("loadings".into(), Tensor::matrix(&loadings));
    if let FeatureScale::NoiseDeviations(deviations) = parameters.scale() {
        tensors.insert("deviations".into(), Tensor::vector(deviations));
    }
}

/// The arrays of what rows say.
pub(super) fn write_sums(latent: &Latent, name: Naming<'_>, tensors: &mut Tensors) {
    tensors.insert(name("second"), Tensor::matrix(&latent.second));
    tensors.insert(name("cross"), Tensor::matrix(&latent.cross));
    tensors.insert(name("squares"), Tensor::vector(&latent.squares));
}

/// What rows say about given parameters.
pub(super) fn read_sums(
    file: &Container,
    parameters: Arc<LatentParameters>,
    totals: Totals,
    name: Naming<'_>,
) -> Result<Latent> {
    let (p, q) = (parameters.n_features(), parameters.n_latent());
    let second = file.matrix(&name("second"), [Some(packed_len(q + 1)), Some(p)])?;
    let cross = file.matrix(&name("cross"), [Some(q + 1), Some(p)])?;
    let squares = file.vector(&name("squares"), Some(p))?;
    Latent::from_parts(parameters, second, cross, squares, totals)
}

impl Portable for Latent {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let parameters = self.parameters();
        check_names(features, parameters.n_features())?;
        let (features, totals) = (features.to_vec(), self.totals.clone());
        let details = LatentDetails { features, units: Units::of(parameters), totals };
        let mut tensors = Tensors::new();
        write_parameters(parameters, &mut tensors);
        write_sums(self, &plain, &mut tensors);
        to_bytes("latent", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "latent")?;
        let LatentDetails { features, units, totals } = file.details()?;
        let (parameters, p) = units.read(&file)?;
        check::check_names(&features, p)?;
        let evidence = read_sums(&file, Arc::new(parameters), totals, &plain)?;
        Ok(SavedEvidence { evidence, features })
    }
}
