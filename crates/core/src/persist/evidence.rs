//! Evidence as bytes: parts of the data can be summarised in one place and merged in another.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::check;
use super::container::{Container, Tensor, to_bytes};
use crate::blocks::{Frame, Nearest};
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Clusters, Farthest, Latent, LatentTotals as Totals, Moments, Sketch};
use crate::expectation::{FeatureScale, LatentParameters};
use crate::linalg::{Mat, mirror_lower, packed_len};
use crate::model::StoredArrays;

/// Evidence that can be written and read back.
pub trait Portable: Accumulator {
    /// The bytes.
    ///
    /// # Errors
    /// When there is not one name per feature, or a number cannot be written (none of evidence from rows).
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>>;

    /// Reads the bytes.
    ///
    /// # Errors
    /// When they are not such evidence, are damaged or of a newer version, or hold impossible numbers.
    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>>;
}

/// Evidence with the names of its features.
#[derive(Debug, Clone)]
pub struct SavedEvidence<A> {
    /// The evidence.
    pub evidence: A,
    /// Names of the features.
    pub features: Vec<String>,
}

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

/// What rounding has taken off the mean; files of earlier releases do not say.
fn mean_rest(file: &Container, features: usize) -> Result<Vec<f64>> {
    if file.has("mean_rest") { file.vector("mean_rest", Some(features)) } else { Ok(vec![0.0; features]) }
}

fn check_kind(file: &Container, kind: &str) -> Result<()> {
    if file.kind == kind {
        Ok(())
    } else {
        Err(Error::Format(format!("it holds '{}', not {kind}", file.kind)))
    }
}

/// One name per feature: anything else could be written but not read.
fn check_names(features: &[String], expected: usize) -> Result<()> {
    let found = features.len();
    if found == expected { Ok(()) } else { Err(Error::Length { what: "feature names", expected, found }) }
}

impl Portable for Moments {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        check_names(features, self.n_features())?;
        let details =
            Details { features: features.to_vec(), rows: self.rows(), weight: self.weight(), trace: None };
        let mut scatter = self.scatter_lower().to_owned();
        mirror_lower(&mut scatter);
        let tensors = BTreeMap::from([
            ("mean", Tensor::vector(self.mean())),
            ("mean_rest", Tensor::vector(self.mean_rest())),
            ("scatter", Tensor::matrix(&scatter)),
        ]);
        to_bytes("moments", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let (file, Details { features, rows, weight, .. }) = open(bytes, "moments")?;
        let p = features.len();
        let evidence =
            Self::from_parts(rows, weight, file.mean()?, file.matrix("scatter", [Some(p), Some(p)])?)?;
        let evidence = evidence.with_mean_rest(mean_rest(&file, p)?)?;
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

/// Numbers of latent evidence that are not tensors.
#[derive(Serialize, Deserialize)]
struct LatentDetails {
    features: Vec<String>,
    noise: f64,
    /// What all cells are divided by; `None` when each feature has its own.
    unit: Option<f64>,
    totals: Totals,
}

impl Portable for Latent {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let parameters = self.parameters();
        check_names(features, parameters.n_features())?;
        let details = LatentDetails {
            features: features.to_vec(),
            noise: parameters.noise(),
            unit: match parameters.scale() {
                FeatureScale::Common(unit) => Some(*unit),
                FeatureScale::NoiseDeviations(_) => None,
            },
            totals: self.totals.clone(),
        };
        let mut tensors = BTreeMap::from([
            ("mean", Tensor::vector(parameters.mean())),
            ("mean_rest", Tensor::vector(parameters.mean_rest())),
            ("loadings", Tensor::matrix(&parameters.loadings_transposed().to_owned())),
            ("second", Tensor::matrix(&self.second)),
            ("cross", Tensor::matrix(&self.cross)),
            ("squares", Tensor::vector(&self.squares)),
        ]);
        if let FeatureScale::NoiseDeviations(deviations) = parameters.scale() {
            tensors.insert("deviations", Tensor::vector(deviations));
        }
        to_bytes("latent", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "latent")?;
        let LatentDetails { features, noise, unit, totals } = file.details()?;
        let mean = file.mean()?;
        let p = mean.len();
        check::check_names(&features, p)?;
        let loadings = file.matrix("loadings", [None, Some(p)])?;
        let q = loadings.nrows();
        let units = match unit {
            Some(unit) => vec![unit],
            None => file.vector("deviations", Some(p))?,
        };
        if !units.iter().chain([&noise]).all(|x| *x > 0.0 && x.is_finite()) {
            return Err(Error::Format("its noise is not positive".into()));
        }
        let parameters = match unit {
            Some(unit) => LatentParameters::in_units(mean, &loadings, noise, unit),
            None => LatentParameters::in_noise(mean, &loadings, units),
        };
        let parameters = parameters.with_mean_rest(mean_rest(&file, p)?);
        let second = file.matrix("second", [Some(packed_len(q + 1)), Some(p)])?;
        let cross = file.matrix("cross", [Some(q + 1), Some(p)])?;
        let squares = file.vector("squares", Some(p))?;
        let evidence = Self::from_parts(Arc::new(parameters), second, cross, squares, totals)?;
        Ok(SavedEvidence { evidence, features })
    }
}

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
