//! The gradient of an autoassociative network as a sum over rows: mergeable like any other evidence.

use std::borrow::Cow;
use std::sync::Arc;

use super::Accumulator;
use crate::blocks::Frame;
use crate::data::{Chunk, mixed};
use crate::error::{Error, Result};
use crate::linalg::{MatRef, dot};
use crate::network::{LaplaceGradient, MapGradient, ModeSearch, Network};

/// Which part of the data is hidden from a fit, to see how well the network predicts what it has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenPart {
    /// One of so many is hidden: rows of a network with an encoder, cells of one without.
    pub one_in: u64,
    /// Which.
    pub seed: u64,
}

impl HiddenPart {
    fn has(self, index: u64) -> bool {
        mixed(index, self.seed).is_multiple_of(self.one_in)
    }
}

/// For a given network, sums over weighted rows: the loss, its derivatives by all weights, and the squared error of
/// what is hidden.
///
/// With an encoder the loss of a row is ½‖x − x̂‖²; rows must be complete, and a hidden row is left out of it. Without
/// one it is minus the log-likelihood of the observed cells by Laplace's approximation, and hidden cells are taken for
/// missing ones.
#[derive(Debug, Clone)]
pub struct NetworkSums {
    pub(crate) network: Arc<Network>,
    pub(crate) frame: Arc<Frame>,
    pub(crate) hidden_part: Option<HiddenPart>,
    pub(crate) rows: usize,
    pub(crate) weight: f64,
    pub(crate) loss: f64,
    pub(crate) gradient: Vec<f64>,
    pub(crate) hidden_weight: f64,  // Σ w over hidden cells
    pub(crate) hidden_squares: f64, // Σ w (x − x̂)² over them
}

/// Means over the rows.
#[derive(Debug, Clone)]
pub struct NetworkMeans {
    /// Rows of positive weight that are not hidden.
    pub rows: usize,
    /// Mean loss.
    pub loss: f64,
    /// Its derivatives by all weights.
    pub gradient: Vec<f64>,
    /// Mean squared error of the hidden cells; `None` where none is hidden.
    pub hidden: Option<f64>,
}

impl NetworkSums {
    /// Of no rows, which will be seen in a frame.
    pub(crate) fn empty(network: Arc<Network>, frame: Arc<Frame>, hidden_part: Option<HiddenPart>) -> Self {
        let gradient = vec![0.0; network.numbers().len()];
        Self {
            network,
            frame,
            hidden_part,
            rows: 0,
            weight: 0.0,
            loss: 0.0,
            gradient,
            hidden_weight: 0.0,
            hidden_squares: 0.0,
        }
    }

    /// The same for rows around a mean (p), divided by `scale` (p) and all by one unit.
    pub fn around(
        network: Arc<Network>,
        mean: Vec<f64>,
        scale: &[f64],
        unit: f64,
        hidden_part: Option<HiddenPart>,
    ) -> Self {
        Self::empty(network, Arc::new(Frame::in_unit(mean, scale, unit)), hidden_part)
    }

    /// Means over the rows.
    ///
    /// # Errors
    /// When there are none.
    pub fn means(self) -> Result<NetworkMeans> {
        if self.rows == 0 {
            return Err(Error::NoRows);
        }
        let mean = |x: f64| x / self.weight;
        let hidden = (self.hidden_weight > 0.0).then(|| self.hidden_squares / self.hidden_weight);
        let gradient = self.gradient.iter().map(|x| mean(*x)).collect();
        Ok(NetworkMeans { rows: self.rows, loss: mean(self.loss), gradient, hidden })
    }

    /// Counts a row that is not hidden.
    fn count(&mut self, weight: f64) {
        self.rows += usize::from(weight > 0.0);
        self.weight += weight;
    }

    fn add(&mut self, gradient: impl Iterator<Item = f64>) {
        self.gradient.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
    }

    /// Rows as columns (p × n) through encoder and decoder, and back.
    fn add_encoded(&mut self, x: MatRef<'_, f64>, first_row: usize, weights: Option<&[f64]>) {
        let network = Arc::clone(&self.network);
        let Some(encoder) = &network.encoder else { return };
        let decoder = &network.decoder;
        let coded = encoder.apply(x);
        let decoded = decoder.apply(coded.out.as_ref());
        let mut slopes = decoded.out.clone(); // w (x̂ − x), 0 of hidden rows
        for i in 0..x.ncols() {
            let w = weights.map_or(1.0, |w| w[i]);
            let column = slopes.col_as_slice_mut(i);
            column.iter_mut().zip(x.col(i).iter()).for_each(|(y, x)| *y -= x);
            let squares = dot(column, column);
            let hidden = self.hidden_part.is_some_and(|part| part.has((first_row + i) as u64));
            if hidden {
                self.hidden_squares += w * squares;
                self.hidden_weight += w * x.nrows() as f64;
            } else {
                self.loss += 0.5 * w * squares;
                self.count(w);
            }
            let share = if hidden { 0.0 } else { w };
            column.iter_mut().for_each(|y| *y *= share);
        }
        let (mut by_decoder, mut by_encoder) = (MapGradient::zeros(decoder), MapGradient::zeros(encoder));
        let back = decoder.add_gradient(coded.out.as_ref(), &decoded, slopes.as_ref(), &mut by_decoder);
        encoder.add_gradient(x, &coded, back.as_ref(), &mut by_encoder);
        self.add(by_decoder.0.numbers().into_iter().chain(by_encoder.0.numbers()));
    }

    /// Rows as columns (p × n), each at its most probable latent variables.
    fn add_searched(&mut self, x: MatRef<'_, f64>, first_row: usize, weights: Option<&[f64]>) -> Result<()> {
        let network = Arc::clone(&self.network);
        let search = ModeSearch::new(&network);
        let mut sums = LaplaceGradient::zeros(&network);
        let p = x.nrows();
        for i in 0..x.ncols() {
            let w = weights.map_or(1.0, |w| w[i]);
            let whole: Vec<f64> = x.col(i).iter().copied().collect();
            let cell = |j: usize| ((first_row + i) as u64).wrapping_mul(p as u64).wrapping_add(j as u64);
            let is_hidden = |j: usize| self.hidden_part.is_some_and(|part| part.has(cell(j)));
            let seen: Vec<f64> =
                whole.iter().enumerate().map(|(j, x)| if is_hidden(j) { f64::NAN } else { *x }).collect();
            if w == 0.0 || seen.iter().all(|x| x.is_nan()) {
                continue;
            }
            let mode = search.mode(&seen)?;
            sums.add(&network, &search, &mode, w);
            for j in (0..p).filter(|j| seen[*j].is_nan() && !whole[*j].is_nan()) {
                self.hidden_squares += w * (whole[j] - mode.image[j]).powi(2);
                self.hidden_weight += w;
            }
            self.count(w);
        }
        self.loss += sums.loss;
        self.add(sums.decoder.0.numbers().into_iter().chain([sums.log_noise]));
        Ok(())
    }
}

impl Accumulator for NetworkSums {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (expected, found) = (self.frame.n_features(), chunk.ncols());
        if expected != found {
            return Err(Error::FeatureCount { expected, found });
        }
        let problem = match self.network.encoder {
            Some(_) => chunk.explain_not_finite("an encoder"),
            None => chunk.explain_infinite(),
        };
        if let Some(problem) = problem {
            return Err(problem);
        }
        let (frame, mut ended) = (Arc::clone(&self.frame), Ok(()));
        frame.for_each_block(chunk.cells(), |first, cells| {
            if ended.is_err() {
                return;
            }
            let n = cells.len() / expected.max(1);
            let weights = chunk.weights().map(|w| &w[first..first + n]);
            let cells = without_unweighted(cells, expected, weights);
            let x = MatRef::from_column_major_slice(&cells, expected, n);
            match self.network.encoder {
                Some(_) => self.add_encoded(x, chunk.first_row() + first, weights),
                None => ended = self.add_searched(x, chunk.first_row() + first, weights),
            }
        });
        ended
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        let same = Arc::ptr_eq(&self.network, &other.network) || self.network == other.network;
        if !same || self.frame != other.frame || self.hidden_part != other.hidden_part {
            let (name, value) = ("the network of a gradient", "another one".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        self.rows = self.rows.saturating_add(other.rows);
        self.weight += other.weight;
        self.loss += other.loss;
        self.hidden_weight += other.hidden_weight;
        self.hidden_squares += other.hidden_squares;
        self.add(other.gradient.iter().copied());
        Ok(())
    }
}

/// Rows of p cells in which those of no weight are 0, whatever they hold.
fn without_unweighted<'a>(cells: &'a [f64], p: usize, weights: Option<&[f64]>) -> Cow<'a, [f64]> {
    let Some(weights) = weights.filter(|w| w.contains(&0.0)) else { return Cow::Borrowed(cells) };
    let mut own = cells.to_vec();
    let rows = own.chunks_exact_mut(p.max(1)).zip(weights);
    rows.filter(|(_, w)| **w == 0.0).for_each(|(row, _)| row.fill(0.0));
    Cow::Owned(own)
}
