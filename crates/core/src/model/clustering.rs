//! Clusters by their centres: what k-means finds.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{Assign, Encode, Reconstruct, numbered};
use super::questions::stack;
use super::{AnyModel, Capability, Kind, Model, Reconstruction};
use crate::blocks::{Frame, Nearest};
use crate::data::{RowSource, Rows, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// Its kind.
pub static KIND: Kind = Kind {
    name: "kmeans",
    title: "k-means",
    about: "clusters of rows around their means",
    components: "clusters",
    capabilities: &[Capability::Encode, Capability::Reconstruct, Capability::Assign],
    read: |file| Ok(Arc::new(read(file)?)),
};

/// What shares may add up to besides 1.
const ROUNDING: f64 = 1e-9;

/// K centres, in descending weight of their clusters. A row belongs to the nearest centre.
///
/// Distances are Euclidean, of features divided by [`divisors`](Self::divisors) when they were so for the fit.
/// Of a row with missing values the observed cells count: the sum of their squared differences is compared.
///
/// ```
/// use covary::data::Rows;
/// use covary::linalg::Mat;
/// use covary::model::Clustering;
/// let centres = Mat::from_fn(2, 2, |k, _| [0.0, 10.0][k]);
/// let model = Clustering::new(centres, vec![0.5, 0.5], vec![1.0, 1.0])?;
/// let rows = Rows::from_slice(&[1.0, 2.0, 9.0, f64::NAN], 2)?;
/// assert_eq!(model.nearest(rows)?, ([0, 1].to_vec(), [5.0, 1.0].to_vec()));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Clustering {
    centres: Mat<f64>, // (K × p)
    mean: Vec<f64>,
    shares: Vec<f64>,
    within: Vec<f64>,
    divisors: Vec<f64>,
    nearest: Arc<Nearest>,
}

impl Clustering {
    /// Centres (K × p), the share of the weight of each cluster (K), and the sum of squared distances of its
    /// rows to the centre (K).
    ///
    /// # Errors
    /// When there is no centre or no feature, the lengths disagree, or a number is not possible.
    pub fn new(centres: Mat<f64>, shares: Vec<f64>, within: Vec<f64>) -> Result<Self> {
        let mean = weighted_mean(&centres, &shares);
        let p = centres.ncols();
        Self::with_frame(centres, mean, shares, within, vec![1.0; p])
    }

    /// The same with the mean of the rows, around which distances are measured, and what features are divided
    /// by.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn with_frame(
        centres: Mat<f64>,
        mean: Vec<f64>,
        shares: Vec<f64>,
        within: Vec<f64>,
        divisors: Vec<f64>,
    ) -> Result<Self> {
        let (k, p) = (centres.nrows(), centres.ncols());
        if k == 0 || p == 0 {
            return Err(if p == 0 { Error::NoFeatures } else { Error::NoRows });
        }
        let lengths = [("shares of clusters", k, shares.len()), ("sums of squares", k, within.len())];
        let lengths = lengths.into_iter().chain([("means", p, mean.len()), ("divisors", p, divisors.len())]);
        for (what, expected, found) in lengths {
            if expected != found {
                return Err(Error::Length { what, expected, found });
            }
        }
        check("a centre", "finite", centres.col_iter().flat_map(|c| c.iter().copied()), f64::is_finite)?;
        check("the mean of a feature", "finite", mean.iter().copied(), f64::is_finite)?;
        check("the share of a cluster", "from 0 to 1", shares.iter().copied(), |s| (0.0..=1.0).contains(&s))?;
        let all: f64 = shares.iter().sum();
        check("the sum of the shares", "1", [all].into_iter(), |s| (s - 1.0).abs() <= ROUNDING)?;
        let size = |s: f64| s.is_finite() && s >= 0.0;
        check("a sum of squares", "finite and not negative", within.iter().copied(), size)?;
        let divides = |d: f64| d.is_finite() && d > 0.0 && (1.0 / d).is_finite();
        check("what a feature is divided by", "finite and positive", divisors.iter().copied(), divides)?;
        let frame = Arc::new(Frame::around(centres.as_ref(), &mean, &divisors));
        let columns = frame.columns(centres.as_ref());
        if columns.col_iter().any(|c| c.iter().any(|x| !x.is_finite())) {
            return Err(Error::Scale);
        }
        let nearest = Arc::new(Nearest::of(frame, columns));
        Ok(Self { centres, mean, shares, within, divisors, nearest })
    }

    /// Centres (K × p).
    pub fn centres(&self) -> &Mat<f64> {
        &self.centres
    }

    /// Share of the weight of each cluster (K), in descending order.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Sum of squared distances of the rows of each cluster to its centre (K), of divided features.
    pub fn within(&self) -> &[f64] {
        &self.within
    }

    /// Sum of squared distances of all rows to their centres.
    pub fn inertia(&self) -> f64 {
        self.within.iter().sum()
    }

    /// What features are divided by before distances are measured (p); ones when they are not.
    pub fn divisors(&self) -> &[f64] {
        &self.divisors
    }

    /// Mean of the rows of the fit (p).
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The nearest centre of each row, counted from 0, and the squared distance to it.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn nearest<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<(Vec<usize>, Vec<f64>)> {
        let rows = rows.into();
        self.check_features(rows.source())?;
        let parts = map_chunks(rows.source(), |chunk| self.nearest.of_chunk(chunk))?;
        let frame = self.nearest.frame();
        Ok(parts.into_iter().flatten().map(|(k, d)| (k, frame.square(d))).unzip())
    }

    /// Distance of each row to each centre (n × K).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn distances<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        let rows = rows.into();
        self.check_features(rows.source())?;
        let frame = self.nearest.frame();
        let parts = map_chunks(rows.source(), |chunk| {
            let mut d = self.nearest.distances(chunk)?;
            d.col_iter_mut().for_each(|c| c.iter_mut().for_each(|d| *d = frame.square(*d).sqrt()));
            Ok(d)
        })?;
        Ok(stack(self.centres.nrows(), parts.iter().map(Mat::as_ref)))
    }

    /// The centres, ready to be compared with rows.
    pub(crate) fn comparer(&self) -> &Arc<Nearest> {
        &self.nearest
    }

    /// The same with other sizes of clusters.
    pub(crate) fn with_sizes(self, shares: Vec<f64>, within: Vec<f64>) -> Result<Self> {
        Self::with_frame(self.centres, self.mean, shares, within, self.divisors)
    }

    fn check_features(&self, rows: &dyn RowSource) -> Result<()> {
        let (expected, found) = (self.centres.ncols(), rows.n_features());
        if expected == found { Ok(()) } else { Err(Error::FeatureCount { expected, found }) }
    }
}

fn check(
    name: &'static str,
    allowed: &'static str,
    mut numbers: impl Iterator<Item = f64>,
    possible: impl Fn(f64) -> bool,
) -> Result<()> {
    match numbers.find(|x| !possible(*x)) {
        Some(x) => Err(Error::Parameter { name, value: x.to_string(), allowed }),
        None => Ok(()),
    }
}

/// The mean of the rows, from the means of clusters.
fn weighted_mean(centres: &Mat<f64>, shares: &[f64]) -> Vec<f64> {
    let of = |j: usize| {
        let first = centres[(0, j)];
        first + shares.iter().enumerate().map(|(k, s)| s * (centres[(k, j)] - first)).sum::<f64>()
    };
    let rows = centres.nrows().min(shares.len());
    (0..centres.ncols()).map(|j| if rows == 0 { 0.0 } else { of(j) }).collect()
}

fn read(file: &dyn StoredArrays) -> Result<Clustering> {
    let mean = file.mean()?;
    let shares = file.vector("shares", None)?;
    let centres = file.matrix("centres", [Some(shares.len()).filter(|k| *k > 0), Some(mean.len())])?;
    let within = file.vector("within", Some(shares.len()))?;
    let divisors = file.vector("divisors", Some(mean.len()))?;
    Clustering::with_frame(centres, mean, shares, within, divisors)
}

impl Model for Clustering {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.centres.ncols()
    }

    /// K: coordinates of a row are its distances to the centres.
    fn n_latent(&self) -> usize {
        self.centres.nrows()
    }

    fn arrays(&self) -> Arrays {
        Arrays::from([
            ("mean", Array::Vector(self.mean.clone())),
            ("centres", Array::Matrix(self.centres.clone())),
            ("shares", Array::Vector(self.shares.clone())),
            ("within", Array::Vector(self.within.clone())),
            ("divisors", Array::Vector(self.divisors.clone())),
        ])
    }

    /// Centres are in the units of the data; distances are not invariant, so the factors stay with the model.
    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let c = &self.centres;
        let times = |of: &[f64]| of.iter().zip(scale).map(|(x, d)| x * d).collect::<Vec<_>>();
        let centres = Mat::from_fn(c.nrows(), c.ncols(), |k, j| c[(k, j)] * scale[j]);
        let (shares, within) = (self.shares.clone(), self.within.clone());
        Ok(Arc::new(Self::with_frame(centres, times(&self.mean), shares, within, times(&self.divisors))?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
    }

    fn as_assign(&self) -> Option<&dyn Assign> {
        Some(self)
    }
}

/// Coordinates are the distances to the centres, as scikit-learn's `transform` has them.
impl Encode for Clustering {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('d', self.centres.nrows())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.distances(rows)
    }
}

/// Each row is replaced by the centre of its cluster, in either kind of reconstruction.
impl Reconstruct for Clustering {
    fn reconstruct(&self, rows: &dyn RowSource, _: Reconstruction) -> Result<Mat<f64>> {
        let (labels, _) = self.nearest(rows)?;
        Ok(Mat::from_fn(labels.len(), self.centres.ncols(), |i, j| self.centres[(labels[i], j)]))
    }
}

impl Assign for Clustering {
    fn n_groups(&self) -> usize {
        self.centres.nrows()
    }

    fn assign(&self, rows: &dyn RowSource) -> Result<Vec<usize>> {
        Ok(self.nearest(rows)?.0)
    }
}
