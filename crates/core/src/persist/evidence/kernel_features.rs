//! Moments in the feature space of landmarks as bytes, with the map that they belong to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::moments::{read, write};
use super::{Portable, SavedEvidence, Tensors, check_kind, check_names};
use crate::error::{Error, Result};
use crate::evidence::KernelFeatures;
use crate::kernel::{FeatureMap, Filling, FillingNumbers, Kernel};
use crate::linalg::Mat;
use crate::model::{LinearGaussian, StoredArrays};
use crate::persist::container::{Container, Tensor, to_bytes};

/// Numbers of the evidence that are not tensors.
#[derive(Serialize, Deserialize)]
struct Details {
    features: Vec<String>,
    rows: usize,
    weight: f64,
    mapped: bool, // whether the moments are those of φ, otherwise of kernel values
    diagonal: f64,
}

/// Arrays of the moments.
fn of_moments(name: &str) -> String {
    format!("image.{name}")
}

impl Portable for KernelFeatures {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let map = self.map();
        check_names(features, map.n_inputs())?;
        let mut tensors = Tensors::from([
            ("kernel".into(), Tensor::vector(&map.kernel().to_numbers())),
            ("landmarks".into(), Tensor::matrix(map.landmarks())),
            ("origin".into(), Tensor::vector(map.origin())),
        ]);
        if let Some(FillingNumbers { mean, loadings, noise }) = map.filling().map(Filling::numbers) {
            tensors.insert("filling_mean".into(), Tensor::vector(&mean));
            tensors.insert("filling_noise_variance".into(), Tensor::vector(&noise));
            if loadings.ncols() > 0 {
                tensors.insert("filling_loadings".into(), Tensor::matrix(&loadings));
            }
        }
        let (moments, mapped) = self.sums();
        write(moments, &of_moments, &mut tensors);
        let (rows, weight, diagonal) = (moments.rows(), moments.weight(), self.diagonal());
        let details = Details { features: features.to_vec(), rows, weight, mapped, diagonal };
        to_bytes("kernel_features", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "kernel_features")?;
        let Details { features, rows, weight, mapped, diagonal } = file.details()?;
        let p = features.len();
        if p == 0 {
            return Err(Error::Format("it has no features".into()));
        }
        let numbers = file.vector("kernel", Some(4))?;
        let kernel = Kernel::from_numbers([numbers[0], numbers[1], numbers[2], numbers[3]])?;
        let landmarks = file.matrix("landmarks", [None, Some(p)])?;
        let map = FeatureMap::new(kernel, landmarks, &file.vector("origin", Some(p))?)?;
        let map = Arc::new(match filling(&file, p)? {
            Some(filling) => map.with_filling(filling),
            None => map,
        });
        let moments = read(&file, map.n_features(), (rows, weight), &of_moments)?;
        let evidence = Self::from_parts(map, (moments, mapped), diagonal)?;
        Ok(SavedEvidence { evidence, features })
    }
}

/// What is known of missing cells, where anything is.
fn filling(file: &Container, p: usize) -> Result<Option<Arc<dyn Filling>>> {
    if !file.has("filling_mean") {
        return Ok(None);
    }
    let loadings = match file.has("filling_loadings") {
        true => file.matrix("filling_loadings", [Some(p), None])?,
        false => Mat::zeros(p, 0),
    };
    let (mean, noise) = (file.vector("filling_mean", Some(p))?, file.vector("filling_noise_variance", None)?);
    let model = LinearGaussian::of_numbers(FillingNumbers { mean, loadings, noise })?;
    Ok(Some(Arc::new(model)))
}
