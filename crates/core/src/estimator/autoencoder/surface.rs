//! What a trained network is like over all rows: its latent variables in order, the noise, and what is explained.

use std::sync::Arc;

use crate::blocks::Frame;
use crate::control::Control;
use crate::data::{Chunk, Order, RowSource};
use crate::error::{Error, Result};
use crate::evidence::{Moments, gather};
use crate::linalg::{
    Cholesky, Mat, MatRef, add_product, inverse, leading_entry, product, set_product, symmetric_eigen,
};
use crate::network::{ModeSearch, Network};

/// A network with its latent variables in order.
pub(super) struct Ordered {
    pub(super) network: Network,
    /// What each latent variable explains (q), in the frame.
    pub(super) variances: Vec<f64>,
    /// 1 − Σ(x − x̂)²/Σ(x − μ)² over the observed cells.
    pub(super) explained: f64,
}

/// For each row: z, the slopes of the decoder's hidden units, ‖x − x̂‖², ‖x‖² and the number of cells.
struct SurfaceRows<'a> {
    source: &'a dyn RowSource,
    network: &'a Network,
    frame: &'a Frame,
}

impl SurfaceRows<'_> {
    fn width(&self) -> usize {
        self.network.n_latent() + self.network.decoder.n_hidden() + 3
    }

    fn rows_of(&self, x: MatRef<'_, f64>, search: &ModeSearch<'_>, out: &mut Vec<f64>) -> Result<()> {
        let coded = self.network.encoder.as_ref().map(|encoder| encoder.apply(x).out);
        for i in 0..x.ncols() {
            let cells: Vec<f64> = x.col(i).iter().copied().collect();
            let z = match &coded {
                Some(z) => z.col_as_slice(i).to_vec(),
                None => search.mode(&cells)?.z,
            };
            let mapped = self.network.decoder.apply(MatRef::from_column_major_slice(&z, z.len(), 1));
            out.extend(&z);
            out.extend(mapped.hidden.col_as_slice(0).iter().map(|t| 1.0 - t * t));
            let seen = || cells.iter().zip(mapped.out.col_as_slice(0)).filter(|(x, _)| !x.is_nan());
            let squares: f64 = seen().map(|(x, y)| (x - y) * (x - y)).sum();
            out.extend([squares, seen().map(|(x, _)| x * x).sum(), seen().count() as f64]);
        }
        Ok(())
    }
}

impl RowSource for SurfaceRows<'_> {
    fn n_features(&self) -> usize {
        self.width()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let (p, search) = (self.frame.n_features(), ModeSearch::new(self.network));
        let (mut cells, mut ended) = (Vec::with_capacity(chunk.nrows() * self.width()), Ok(()));
        // Rows without weight or cell say nothing, whatever they hold.
        let weight = |i: usize| match (0..p).any(|j| !chunk.cells().get(i, j).is_nan()) {
            true => chunk.weights().map_or(1.0, |w| w[i]),
            false => 0.0,
        };
        let weights: Vec<f64> = (0..chunk.nrows()).map(weight).collect();
        self.frame.for_each_block(chunk.cells(), |first, block| {
            let mut block = block.to_vec();
            let rows = block.chunks_exact_mut(p).enumerate();
            rows.filter(|(i, _)| weights[first + i] == 0.0).for_each(|(_, row)| row.fill(0.0));
            let x = MatRef::from_column_major_slice(&block, p, block.len() / p);
            if ended.is_ok() {
                ended = self.rows_of(x, &search, &mut cells);
            }
        });
        ended?;
        Chunk::from_rows(chunk.first_row(), cells, self.width(), Order::Rows)?.with_weights(weights)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }
}

/// Puts the latent variables of a network in order, in one pass over the rows.
///
/// Over the rows, D = E JᵀJ (q × q) is what a step along each latent direction changes in the features; its
/// eigenvectors are the new latent variables, largest first, and what the network explains is shared out by its
/// eigenvalues. Of a plane with z of covariance I they are the principal components, and the eigenvalues their variances. An encoder's latent variables are first brought to mean 0 and
/// covariance I; without one they have the prior's. The largest entry of each column of E J is positive.
pub(super) fn ordered(
    source: &dyn RowSource,
    network: &Network,
    frame: &Arc<Frame>,
    control: &Control<'_>,
) -> Result<Ordered> {
    let rows = SurfaceRows { source, network, frame };
    let width = rows.width();
    let moments = gather(&rows, || Moments::empty(width), control)?;
    if moments.rows() == 0 {
        return Err(Error::NoRows);
    }
    let (q, h) = (network.n_latent(), network.decoder.n_hidden());
    let mean = moments.mean().to_vec();
    let covariance = |a: usize, b: usize| moments.scatter_lower()[(a.max(b), a.min(b))] / moments.weight();
    // z = S t + m with t of mean 0 and covariance I
    let (spread, shift) = match network.encoder {
        Some(_) => {
            let factor = Cholesky::new(Mat::from_fn(q, q, covariance), "the covariance of latent variables")?;
            (factor.lower().clone(), mean[..q].to_vec())
        }
        None => (Mat::identity(q, q), vec![0.0; q]),
    };
    let slopes = &mean[q..q + h];
    let pairs = Mat::from_fn(h, h, |a, b| covariance(q + a, q + b) + slopes[a] * slopes[b]);
    let metric = metric(network, slopes, &pairs);
    let inside = product(spread.transpose(), product(metric.as_ref(), spread.as_ref()).as_ref());
    let eigen = symmetric_eigen(inside.as_ref())?;
    // z = S V s + m, s the latent variables in order
    let mut back = product(spread.as_ref(), eigen.vectors.as_ref());
    standard_signs(&mut back, &mean_jacobian(network, slopes));
    let turned = turned(network, &back, &shift)?;
    let (squares, total, cells) = (mean[q + h], mean[q + h + 1], mean[q + h + 2]);
    // Rows that lose nothing leave no cell free of the fit, and their squares are rounding.
    let taken = if q < network.n_features() { q as f64 / network.n_features() as f64 } else { 0.0 };
    let noise = if network.encoder.is_some() { squares / (cells * (1.0 - taken)) } else { network.noise };
    let explained = if total > 0.0 { 1.0 - squares / total } else { 0.0 };
    let variances = shared_out(explained.max(0.0) * network.n_features() as f64, &eigen.values);
    Ok(Ordered { network: Network { noise, ..turned }, variances, explained })
}

/// A variance shared out in proportion to what a step along each latent direction changes. Of a plane that is what each
/// explains.
fn shared_out(variance: f64, changes: &[f64]) -> Vec<f64> {
    let all: f64 = changes.iter().map(|v| v.max(0.0)).sum();
    changes.iter().map(|v| if all > 0.0 { variance * v.max(0.0) / all } else { 0.0 }).collect()
}

/// The network of latent variables s, z = R s + m.
fn turned(network: &Network, back: &Mat<f64>, shift: &[f64]) -> Result<Network> {
    let there = inverse(back.as_ref());
    let there = there.ok_or(Error::NotFinite { what: "the order of the latent variables" })?;
    let q = shift.len();
    // s = R⁻¹ z − R⁻¹ m
    let lowered = |k: usize| -(0..q).map(|a| there[(k, a)] * shift[a]).sum::<f64>();
    let lowered: Vec<f64> = (0..q).map(lowered).collect();
    let mut anchors = Mat::from_fn(q, network.anchors.ncols(), |k, _| lowered[k]);
    add_product(anchors.as_mut(), there.as_ref(), network.anchors.as_ref(), 1.0);
    Ok(Network {
        decoder: network.decoder.of_turned_inputs(back.as_ref(), &lowered),
        encoder: network.encoder.as_ref().map(|e| e.with_turned_outputs(there.as_ref(), &lowered)),
        noise: network.noise,
        anchors,
    })
}

/// E JᵀJ = WᵀW + 2 sym(WᵀB E[D] A) + Aᵀ(BᵀB ∘ E[d dᵀ])A, d the slopes of the hidden units and D = diag(d).
fn metric(network: &Network, slopes: &[f64], pairs: &Mat<f64>) -> Mat<f64> {
    let (d, q) = (&network.decoder, network.n_latent());
    let mut out = product(d.linear.transpose(), d.linear.as_ref());
    let steep = Mat::from_fn(slopes.len(), q, |i, k| slopes[i] * d.inner[(i, k)]);
    let crossed = product(product(d.linear.transpose(), d.outer.as_ref()).as_ref(), steep.as_ref());
    let gram = product(d.outer.transpose(), d.outer.as_ref());
    let weighted = Mat::from_fn(gram.nrows(), gram.ncols(), |a, b| gram[(a, b)] * pairs[(a, b)]);
    let bent = product(d.inner.transpose(), product(weighted.as_ref(), d.inner.as_ref()).as_ref());
    for (a, b) in (0..q).flat_map(|a| (0..q).map(move |b| (a, b))) {
        out[(a, b)] += crossed[(a, b)] + crossed[(b, a)] + 0.5 * (bent[(a, b)] + bent[(b, a)]);
    }
    out
}

/// E J = W + B E[D] A (p × q).
fn mean_jacobian(network: &Network, slopes: &[f64]) -> Mat<f64> {
    let d = &network.decoder;
    let steep = Mat::from_fn(slopes.len(), network.n_latent(), |i, k| slopes[i] * d.inner[(i, k)]);
    let mut out = d.linear.clone();
    add_product(out.as_mut(), d.outer.as_ref(), steep.as_ref(), 1.0);
    out
}

/// Turns columns of R round so that the largest entry of each column of (E J) R is positive.
fn standard_signs(back: &mut Mat<f64>, jacobian: &Mat<f64>) {
    let mut along = Mat::zeros(jacobian.nrows(), back.ncols());
    set_product(along.as_mut(), jacobian.as_ref(), back.as_ref());
    for k in 0..back.ncols() {
        let column = along.col_as_slice(k);
        if column[leading_entry(column)] < 0.0 {
            back.col_as_slice_mut(k).iter_mut().for_each(|x| *x = -*x);
        }
    }
}
