//! How the weights of an autoassociative network are found: all rows at once by limited-memory BFGS, or batches of
//! them by Adam.

mod adam;
mod descent;
mod stopping;

use std::sync::Arc;

pub(crate) use adam::Adam;
pub(crate) use descent::Descent;

use crate::blocks::Frame;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::evidence::{HiddenPart, NetworkSums, gather};
use crate::network::Network;

/// What is minimised: the mean loss of the rows, and the decay
/// $\tfrac{\alpha}{2} \lVert \theta - \theta_0 \rVert^2$ of all weights towards those of the start.
///
/// The start is PCA with hidden units that add nothing, so decay pulls towards the plane.
pub(crate) struct Training<'a> {
    pub(crate) rows: &'a dyn RowSource,
    pub(crate) frame: Arc<Frame>,
    pub(crate) hidden_part: Option<HiddenPart>,
    /// The network at the start.
    pub(crate) start: Arc<Network>,
    /// α.
    pub(crate) decay: f64,
}

/// A network with the objective and its derivatives there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) network: Arc<Network>,
    pub(crate) numbers: Vec<f64>,
    pub(crate) objective: f64,
    pub(crate) gradient: Vec<f64>,
    /// Mean squared error of hidden cells.
    pub(crate) hidden: Option<f64>,
}

/// What comes out of a search.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) network: Arc<Network>,
    /// The objective where the search began and there; `None` where there was no search.
    pub(crate) objective: Option<(f64, f64)>,
    /// Mean squared error of hidden cells where the search began and there.
    pub(crate) hidden: Option<(f64, f64)>,
}

impl Training<'_> {
    /// One pass over these rows for given weights.
    fn measure_on(&self, rows: &dyn RowSource, numbers: Vec<f64>, control: &Control<'_>) -> Result<Place> {
        let network = Arc::new(self.start.with_numbers(&numbers));
        let empty = || NetworkSums::empty(Arc::clone(&network), Arc::clone(&self.frame), self.hidden_part);
        let means = gather(rows, empty, control)?.means()?;
        let (mut objective, mut gradient) = (means.loss, means.gradient);
        let (from, decaying) = (self.start.numbers(), self.start.decaying());
        for (k, slope) in gradient.iter_mut().enumerate() {
            let away = numbers[k] - from[k];
            objective += 0.5 * self.decay * decaying[k] * away * away;
            *slope += self.decay * decaying[k] * away;
        }
        Ok(Place { network, numbers, objective, gradient, hidden: means.hidden })
    }

    /// One pass over all rows for given weights.
    pub(crate) fn measure(&self, numbers: Vec<f64>, control: &Control<'_>) -> Result<Place> {
        self.measure_on(self.rows, numbers, control)
    }

    /// What the objective is called.
    fn measure_name(&self) -> &'static str {
        if self.start.encoder.is_some() { "mean loss" } else { "negative log-likelihood" }
    }

    /// What a change of the objective is a share of: the objective itself, which is a sum of squares; of a
    /// log-likelihood the number of cells of a row.
    fn size_of(&self, objective: f64, at_start: f64) -> f64 {
        match self.start.encoder {
            Some(_) => objective.abs().max(1e-12 * at_start.abs()),
            None => self.frame.n_features() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Limits, drive};
    use crate::data::Rows;
    use crate::linalg::{Mat, symmetric_eigen};
    use crate::network::CurvedMap;

    /// Baldi & Hornik (1989): a linear network has no minimum but PCA's plane, from wherever it starts.
    #[test]
    fn a_linear_network_finds_the_plane_of_pca_from_any_start() {
        let (n, p, q) = (200, 4, 2);
        let wave = |i: usize, j: usize| (0.37 * i as f64 + 1.9 * (i * j) as f64 + j as f64).sin();
        let cells: Vec<f64> = (0..n)
            .flat_map(|i| {
                let z = [3.0 * wave(i, 1), 2.0 * wave(i, 2), wave(i, 3), 0.5 * wave(i, 5)];
                [z[0] + z[1], z[0] - z[1] + z[2], z[1] + 0.5 * z[3], z[2] - z[3]]
            })
            .collect();
        let mean = |j: usize| (0..n).map(|i| cells[i * p + j]).sum::<f64>() / n as f64;
        let mean: Vec<f64> = (0..p).map(mean).collect();
        let product = |a: usize, b: usize| {
            let pair = |i: usize| (cells[i * p + a] - mean[a]) * (cells[i * p + b] - mean[b]);
            (0..n).map(pair).sum::<f64>() / n as f64
        };
        let values = symmetric_eigen(Mat::from_fn(p, p, product).as_ref()).unwrap().values;
        let rows = Rows::from_slice(&cells, p).unwrap();
        let decoder = CurvedMap::linear(vec![0.1; p], Mat::from_fn(p, q, |i, j| wave(i + 3, j + 1)));
        let encoder = CurvedMap::linear(vec![-0.2; q], Mat::from_fn(q, p, |i, j| wave(i + 7, j + 2)));
        let start = Network { decoder, encoder: Some(encoder), noise: 1.0, anchors: Mat::zeros(q, 0) };
        let training = Training {
            rows: rows.source(),
            frame: Arc::new(Frame::in_unit(mean.clone(), &vec![1.0; p], 1.0)),
            hidden_part: None,
            start: Arc::new(start),
            decay: 0.0,
        };
        let control = Control::new();
        let limits = Limits { tolerance: 1e-14, iterations: 3000 };
        let (trained, _) = drive(Descent::new(&training, &control).unwrap(), limits, &control).unwrap();
        let (_, loss) = trained.objective.unwrap();
        let discarded: f64 = values[q..].iter().sum();
        assert!((2.0 * loss / discarded - 1.0).abs() < 1e-8, "{} {discarded}", 2.0 * loss);
    }
}
