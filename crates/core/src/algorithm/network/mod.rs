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
        let empty =
            || NetworkSums::empty(Arc::clone(&network), Arc::clone(&self.frame), self.hidden_part);
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

    /// What a change of the objective is a share of: the objective itself, which is a sum of squares; of a
    /// log-likelihood the number of cells of a row.
    fn size_of(&self, objective: f64, at_start: f64) -> f64 {
        match self.start.encoder {
            Some(_) => objective.abs().max(1e-12 * at_start.abs()),
            None => self.frame.n_features() as f64,
        }
    }
}
