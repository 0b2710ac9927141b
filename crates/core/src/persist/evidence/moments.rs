//! Moments and sketches as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Naming, Portable, SavedEvidence, Tensors, check_kind, check_names, mean_rest, plain};
use crate::error::{Error, Result};
use crate::evidence::{Moments, Sketch};
use crate::linalg::{Mat, mirror_lower};
use crate::model::StoredArrays;
use crate::persist::check;
use crate::persist::container::{Container, Tensor, to_bytes};

#[derive(Serialize, Deserialize)]
struct Details {
    features: Vec<String>,
    rows: usize,
    weight: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<f64>,
}

fn open(bytes: &[u8], kind: &str) -> Result<(Container, Details)> {
    let file = Container::from_bytes(bytes)?;
    check_kind(&file, kind)?;
    let details: Details = file.details()?;
    check::check_names(&details.features, file.mean()?.len())?;
    Ok((file, details))
}

/// The arrays of moments.
pub(super) fn write(moments: &Moments, name: Naming<'_>, tensors: &mut Tensors) {
    let mut scatter = moments.scatter_lower().to_owned();
    mirror_lower(&mut scatter);
    tensors.insert(name("mean"), Tensor::vector(moments.mean()));
    tensors.insert(name("mean_rest"), Tensor::vector(moments.mean_rest()));
    tensors.insert(name("scatter"), Tensor::matrix(&scatter));
}

/// Moments of so many rows and such a weight from their arrays.
pub(super) fn read(
    file: &Container,
    p: usize,
    (rows, weight): (usize, f64),
    name: Naming<'_>,
) -> Result<Moments> {
    let mean = file.vector(&name("mean"), Some(p))?;
    let scatter = file.matrix(&name("scatter"), [Some(p), Some(p)])?;
    Moments::from_parts(rows, weight, mean, scatter)?.with_mean_rest(mean_rest(file, p, name)?)
}

impl Portable for Moments {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        check_names(features, self.n_features())?;
        let details =
            Details { features: features.to_vec(), rows: self.rows(), weight: self.weight(), trace: None };
        let mut tensors = Tensors::new();
        write(self, &plain, &mut tensors);
        to_bytes("moments", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let (file, Details { features, rows, weight, .. }) = open(bytes, "moments")?;
        let evidence = read(&file, features.len(), (rows, weight), &plain)?;
        Ok(SavedEvidence { evidence, features })
    }
}

impl Portable for Sketch {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        check_names(features, self.mean().len())?;
        let details = Details {
            features: features.to_vec(),
            rows: self.rows(),
            weight: self.weight(),
            trace: Some(self.trace()),
        };
        let tensors = BTreeMap::from([
            ("mean", Tensor::vector(self.mean())),
            ("block", Tensor::matrix(self.block())),
            ("image", Tensor::matrix(&self.image().to_owned())),
        ]);
        to_bytes("sketch", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let (file, Details { features, rows, weight, trace }) = open(bytes, "sketch")?;
        let p = features.len();
        let block: Arc<Mat<f64>> = Arc::new(file.matrix("block", [Some(p), None])?);
        let image = file.matrix("image", [Some(p), Some(block.ncols())])?;
        let trace = trace.ok_or_else(|| Error::Format("the trace is missing".into()))?;
        let evidence = Self::from_parts(block, rows, weight, file.mean()?, trace, image)?;
        Ok(SavedEvidence { evidence, features })
    }
}
