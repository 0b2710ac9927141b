//! Rows in whitened coordinates, as a source of its own: made anew in each pass, or kept.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blocks::for_each_block;
use crate::control::Control;
use crate::data::{
    Block, Cells, Chunk, Order, Parcel, RemoteRows, RowSource, Step, Task, Then, fill_through, map_chunks,
};
use crate::error::Result;
use crate::evidence::{PickedRows, Which, gather};
use crate::linalg::serial;
use crate::linalg::{Mat, comparable, packed, packed_len, set_product};
use crate::model::LinearGaussian;
use crate::spectrum::Spectrum;

/// How rows become coordinates u of covariance I.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Whitening {
    /// They are such already.
    Given(usize),
    /// Complete rows: u = Λ^-½Uᵀ(x − μ), by one product.
    Complete {
        /// μ (p).
        mean: Vec<f64>,
        /// UΛ^-½ (p × q).
        #[serde(with = "serial")]
        map: Mat<f64>,
    },
    /// The same of features that differ by orders of magnitude: the latent variables of a model without noise, which
    /// knows each to its own scale.
    Graded(LinearGaussian),
    /// Rows with missing values: mean and covariance of what u is when the missing cells have the distribution
    /// that PPCA gives them.
    Incomplete {
        /// PPCA of the rows.
        model: LinearGaussian,
        /// λ/(λ − σ²): u = D z̄ for the posterior mean z̄ of a complete row, D its root.
        stretch: Vec<f64>,
        /// σ²/λ, the variance of z that a complete row leaves.
        left: Vec<f64>,
    },
}

impl Whitening {
    /// By the spectrum of complete rows or of those with missing values.
    pub(super) fn new(spectrum: &Spectrum, complete: bool) -> Result<Self> {
        let (noise, values) = (spectrum.noise_variance(), &spectrum.eigenvalues()[..spectrum.n_components()]);
        if complete {
            let model = noise_free(spectrum)?;
            let features = model.loadings().row_iter().map(|w| w.squared_norm_l2());
            if !comparable(features.chain(values.iter().copied())) {
                return Ok(Self::Graded(model));
            }
            let u = spectrum.vectors();
            let map = Mat::from_fn(u.nrows(), u.ncols(), |j, k| u[(j, k)] / values[k].sqrt());
            return Ok(Self::Complete { mean: spectrum.mean().to_vec(), map });
        }
        Ok(Self::Incomplete {
            model: spectrum.ppca()?,
            stretch: values.iter().map(|v| v / (v - noise)).collect(),
            left: values.iter().map(|v| noise / v).collect(),
        })
    }

    /// Numbers to a row.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Given(q) => *q,
            Self::Complete { map, .. } => map.ncols(),
            Self::Graded(model) => model.n_latent(),
            Self::Incomplete { model, .. } => model.n_latent() + packed_len(model.n_latent()),
        }
    }

    /// The rows of a chunk that have a weight and a cell: others say nothing.
    fn rows_of(&self, chunk: &Chunk<'_>) -> Result<Chunk<'static>> {
        let counts =
            |row: &usize| chunk.weights().is_none_or(|w| w[*row] > 0.0) && !self.knows_nothing(chunk, *row);
        let some: Vec<usize> = (0..chunk.nrows()).filter(counts).collect();
        match self {
            Self::Given(_) => chunk.select(&some),
            _ if some.len() < chunk.nrows() => self.coordinates(&chunk.select(&some)?),
            _ => self.coordinates(chunk),
        }
    }

    fn knows_nothing(&self, chunk: &Chunk<'_>, row: usize) -> bool {
        match (self, chunk.cells()) {
            (Self::Given(_) | Self::Complete { .. } | Self::Graded(_), _) => false,
            (_, Cells::Observed(rows)) => rows.row(row).0.is_empty(),
            (_, cells) => (0..chunk.ncols()).all(|j| cells.get(row, j).is_nan()),
        }
    }

    fn coordinates(&self, chunk: &Chunk<'_>) -> Result<Chunk<'static>> {
        let coordinates = match self {
            Self::Complete { mean, map } => projected(chunk, mean, map),
            Self::Graded(model) => model.latent_mean(chunk)?,
            Self::Incomplete { model, stretch, left } => expected(model, chunk, stretch, left)?,
            Self::Given(_) => Mat::new(),
        };
        let (nrows, ncols) = (chunk.nrows(), self.width());
        let cells = (0..ncols).flat_map(|k| coordinates.col_as_slice(k).iter().copied()).collect();
        let block = Block::Owned { cells, nrows, ncols, order: Order::Columns };
        let white = Chunk::new(chunk.first_row(), Cells::F64(block));
        match chunk.weights() {
            Some(weights) => white.with_weights(Cow::Owned(weights.to_vec())),
            None => Ok(white),
        }
    }
}

/// The model of the same directions without noise: W = UΛ^½.
pub(super) fn noise_free(spectrum: &Spectrum) -> Result<LinearGaussian> {
    let mut loadings = spectrum.vectors().clone();
    for (k, value) in spectrum.eigenvalues()[..spectrum.n_components()].iter().enumerate() {
        loadings.col_as_slice_mut(k).iter_mut().for_each(|x| *x *= value.sqrt());
    }
    LinearGaussian::new(spectrum.mean().to_vec(), loadings, 0.0.into())
}

/// (x − μ) UΛ^-½ of each row (n × q).
fn projected(chunk: &Chunk<'_>, mean: &[f64], map: &Mat<f64>) -> Mat<f64> {
    let (mut out, mut start) = (Mat::zeros(chunk.nrows(), map.ncols()), 0);
    chunk.with_wide(|view| {
        for_each_block(view, None, mean, 1.0, |rows| {
            set_product(out.as_mut().subrows_mut(start, rows.nrows()), rows, map.as_ref());
            start += rows.nrows();
        });
    });
    out
}

/// Mean D z̄ and packed covariance D (C − σ²M⁻¹) D of u for each row (n × (q + q(q+1)/2)). By the law of total
/// covariance, C is that of what the missing cells would add to z̄, and the σ²M⁻¹ that a complete row leaves.
fn expected(model: &LinearGaussian, chunk: &Chunk<'_>, stretch: &[f64], left: &[f64]) -> Result<Mat<f64>> {
    let q = model.n_latent();
    let posterior = model.posterior(chunk)?;
    let root: Vec<f64> = stretch.iter().map(|s| s.sqrt()).collect();
    let mut out = Mat::zeros(chunk.nrows(), q + packed_len(q));
    for row in 0..chunk.nrows() {
        let covariance = posterior.covariance.of(row);
        for a in 0..q {
            out[(row, a)] = root[a] * posterior.mean[(row, a)];
            for b in 0..=a {
                let more = covariance[(a, b)] - if a == b { left[a] } else { 0.0 };
                out[(row, q + packed(a, b))] = root[a] * root[b] * more;
            }
        }
    }
    Ok(out)
}

/// Whitened rows, made anew whenever they are read.
pub(super) struct WhitenedRows<'a> {
    pub(super) source: &'a dyn RowSource,
    pub(super) whitening: Whitening,
}

impl WhitenedRows<'_> {
    /// The same rows, kept in memory: the same numbers in the same chunks.
    pub(super) fn kept(&self, control: &Control<'_>) -> Result<KeptRows> {
        if self.source.remote().is_some() {
            return self.brought(Which::All, control);
        }
        let chunks = map_chunks(self.source, |chunk| {
            control.check()?;
            self.whitening.rows_of(chunk)
        })?;
        Ok(KeptRows { chunks, width: self.whitening.width() })
    }

    /// Some rows from elsewhere, kept in memory.
    fn brought(&self, which: Which, control: &Control<'_>) -> Result<KeptRows> {
        let (which, p) = (Arc::new(which), self.source.n_features());
        let (_, table) =
            gather(self.source, || PickedRows::empty(Arc::clone(&which), p), control)?.table()?;
        let chunks = map_chunks(&table, |chunk| self.whitening.rows_of(chunk))?;
        Ok(KeptRows { chunks, width: self.whitening.width() })
    }
}

/// Rows that stand together in a sample.
const RUN: usize = 256;

impl WhitenedRows<'_> {
    /// Every k-th run of rows, kept in memory: the same rows however they are cut into chunks.
    pub(super) fn sample(&self, k: usize, control: &Control<'_>) -> Result<KeptRows> {
        if self.source.remote().is_some() {
            return self.brought(Which::Runs { length: RUN, every: k }, control);
        }
        let chunks = map_chunks(self.source, |chunk| {
            control.check()?;
            let in_sample = |i: &usize| ((chunk.first_row() + i) / RUN).is_multiple_of(k);
            let some: Vec<usize> = (0..chunk.nrows()).filter(in_sample).collect();
            self.whitening.rows_of(&chunk.select(&some)?)
        })?;
        Ok(KeptRows { chunks, width: self.whitening.width() })
    }
}

impl RowSource for WhitenedRows<'_> {
    fn n_features(&self) -> usize {
        self.whitening.width()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        self.whitening.rows_of(&self.source.chunk(index)?)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn remote(&self) -> Option<&dyn RemoteRows> {
        self.source.remote().map(|_| self as &dyn RemoteRows)
    }
}

impl RemoteRows for WhitenedRows<'_> {
    fn fill(&self, task: Task) -> Result<Parcel> {
        fill_through(self.source, &self.whitening, task)
    }
}

impl Step for Whitening {
    const NAME: &'static str = "whitened";

    fn over(&self, rows: &dyn RowSource, then: Then<'_>) -> Result<()> {
        then(&WhitenedRows { source: rows, whitening: self.clone() })
    }
}

/// Whitened rows in memory.
pub(super) struct KeptRows {
    chunks: Vec<Chunk<'static>>,
    width: usize,
}

impl RowSource for KeptRows {
    fn n_features(&self) -> usize {
        self.width
    }

    fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        Ok(self.chunks[index].borrowed())
    }

    fn n_rows(&self) -> Option<usize> {
        Some(self.chunks.iter().map(Chunk::nrows).sum())
    }
}
