//! Evidence about the centres of k-means as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Portable, SavedEvidence, check_kind, check_names};
use crate::blocks::{Frame, Nearest};
use crate::error::{Error, Result};
use crate::evidence::{Clusters, Farthest};
use crate::linalg::Mat;
use crate::model::StoredArrays;
use crate::persist::check;
use crate::persist::container::{Container, Tensor, to_bytes};

/// Numbers of evidence about centres that are not tensors.
#[derive(Serialize, Deserialize)]
struct ClusterDetails {
    features: Vec<String>,
    rows: usize,
    unit: f64,
    /// The row that is farthest from each centre, and its weight; `None` for a centre without rows.
    farthest: Vec<Option<(usize, f64)>>,
}

impl Portable for Clusters {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let (shift, factor, unit) = self.nearest.frame().parts();
        check_names(features, shift.len())?;
        let known = self.farthest.iter().map(|far| far.as_ref().map(|far| (far.row, far.weight)));
        let details =
            ClusterDetails { features: features.to_vec(), rows: self.rows, unit, farthest: known.collect() };
        let distances: Vec<f64> =
            self.farthest.iter().map(|f| f.as_ref().map_or(0.0, |f| f.distance)).collect();
        // Missing cells are no numbers of a file: which they are stands beside.
        let cell = |j: usize, k: usize| self.farthest[k].as_ref().map_or(f64::NAN, |far| far.cells[j]);
        let (p, k) = (shift.len(), self.weight.len());
        let seen = Mat::from_fn(p, k, |j, k| f64::from(u8::from(!cell(j, k).is_nan())));
        let cells = Mat::from_fn(p, k, |j, k| if cell(j, k).is_nan() { 0.0 } else { cell(j, k) });
        let mut tensors = BTreeMap::from([
            ("mean", Tensor::vector(shift)),
            ("factor", Tensor::vector(factor)),
            ("centres", Tensor::matrix(self.nearest.centres())),
            ("weight", Tensor::vector(&self.weight)),
            ("sums", Tensor::matrix(&self.sums)),
            ("within", Tensor::vector(&self.within)),
            ("farthest", Tensor::matrix(&cells)),
            ("farthest_seen", Tensor::matrix(&seen)),
            ("farthest_distance", Tensor::vector(&distances)),
        ]);
        if let Some(seen) = &self.seen {
            tensors.insert("seen", Tensor::matrix(seen));
        }
        to_bytes("clusters", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "clusters")?;
        let ClusterDetails { features, rows, unit, farthest } = file.details()?;
        let shift = file.mean()?;
        let p = shift.len();
        check::check_names(&features, p)?;
        let (factor, weight) = (file.vector("factor", Some(p))?, file.vector("weight", None)?);
        let k = weight.len();
        let impossible = || Error::Format("sums of clusters that no rows can have".into());
        let positive = |x: &f64| *x > 0.0 && x.is_finite();
        if !positive(&unit) || !factor.iter().all(positive) || k == 0 || farthest.len() != k {
            return Err(impossible());
        }
        let matrix = |name: &str| file.matrix(name, [Some(p), Some(k)]);
        let frame = Arc::new(Frame::from_parts(shift, factor, unit));
        let nearest = Arc::new(Nearest::of(frame, matrix("centres")?));
        let (cells, cells_seen) = (matrix("farthest")?, matrix("farthest_seen")?);
        let distances = file.vector("farthest_distance", Some(k))?;
        let far = |(c, known): (usize, Option<(usize, f64)>)| {
            let cell = |j: usize| if cells_seen[(j, c)] > 0.0 { cells[(j, c)] } else { f64::NAN };
            let cells = (0..p).map(cell).collect();
            known.map(|(row, weight)| Farthest { distance: distances[c], row, weight, cells })
        };
        let mut evidence = Self::about(nearest);
        evidence.rows = rows;
        evidence.weight = weight;
        evidence.sums = matrix("sums")?;
        evidence.seen = if file.has("seen") { Some(matrix("seen")?) } else { None };
        evidence.within = file.vector("within", Some(k))?;
        evidence.farthest = farthest.into_iter().enumerate().map(far).collect();
        let sizes = evidence.weight.iter().chain(&evidence.within).chain(&distances);
        match sizes.into_iter().all(|x| *x >= 0.0) {
            true => Ok(SavedEvidence { evidence, features }),
            false => Err(impossible()),
        }
    }
}
