//! Evidence about directions of independent sources as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Portable, SavedEvidence, check_kind, check_names};
use crate::error::{Error, Result};
use crate::evidence::{Contrast, ContrastSums};
use crate::model::StoredArrays;
use crate::persist::container::{Container, Tensor, to_bytes};

/// Numbers of evidence about directions that are not tensors.
#[derive(Serialize, Deserialize)]
struct ContrastDetails {
    features: Vec<String>,
    rows: usize,
    weight: f64,
    contrast: Contrast,
}

impl Portable for ContrastSums {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        check_names(features, self.directions.ncols())?;
        let (rows, weight, contrast) = (self.rows, self.weight, self.contrast);
        let details = ContrastDetails { features: features.to_vec(), rows, weight, contrast };
        let tensors = BTreeMap::from([
            ("directions", Tensor::matrix(&self.directions)),
            ("values", Tensor::vector(&self.values)),
            ("slopes", Tensor::matrix(&self.slopes)),
            ("bends", Tensor::vector(&self.bends)),
        ]);
        to_bytes("contrast", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "contrast")?;
        let ContrastDetails { features, rows, weight, contrast } = file.details()?;
        let values = file.vector("values", None)?;
        let (k, q) = (values.len(), features.len());
        let alpha = if let Contrast::LogCosh { alpha } = contrast { alpha } else { 1.0 };
        let counted = weight.is_finite() && weight >= 0.0 && (rows > 0) == (weight > 0.0);
        if k == 0 || q == 0 || !counted || !(alpha.is_finite() && alpha > 0.0) {
            return Err(Error::Format("sums of a contrast that no rows can have".into()));
        }
        let matrix = |name: &str| file.matrix(name, [Some(k), Some(q)]);
        let mut evidence = Self::empty(contrast, Arc::new(matrix("directions")?));
        (evidence.rows, evidence.weight, evidence.values) = (rows, weight, values);
        evidence.slopes = matrix("slopes")?;
        evidence.bends = file.vector("bends", Some(k))?;
        Ok(SavedEvidence { evidence, features })
    }
}
