//! When a search for weights ends: hidden cells are no better predicted, or the objective does not move any more.

use super::{Place, Trained, Training};

/// Steps or epochs whose gain together decides about convergence.
const WINDOW: usize = 10;
const WINDOW_OF_EPOCHS: usize = 2;
/// Steps that may pass without a better prediction of what is hidden: so many, or half as many as went before. PCA at the start
/// has seen what is hidden and is beaten there only after a while (Frey faces with ten latent variables: more than 20 steps);
/// without an encoder a row whose cells are few may jump to another turn while the surface bends.
const PATIENCE: usize = 100;
/// The same of epochs of batches, each of which does as much as several steps.
const PATIENCE_OF_EPOCHS: usize = 10;
/// Derivatives below this share of the objective, or this share of the variance of a row, are rounding.
const FLAT: (f64, f64) = (1e-10, 1e-12);

/// The course of a search, and the best network on it.
pub(super) struct Course {
    objectives: Vec<f64>, // the first is that of the start
    steps: usize,
    patience: usize,
    window: usize,
    best: Place,
    best_step: usize,
    at_start: (f64, Option<f64>),
}

impl Course {
    /// At the start of a search.
    pub(super) fn new(start: &Place, by_epochs: bool) -> Self {
        let (patience, window) =
            if by_epochs { (PATIENCE_OF_EPOCHS, WINDOW_OF_EPOCHS) } else { (PATIENCE, WINDOW) };
        Self {
            objectives: vec![start.objective],
            steps: 0,
            patience,
            window,
            best: start.clone(),
            best_step: 0,
            at_start: (start.objective, start.hidden),
        }
    }

    /// Takes in the place that a step has led to. The best is that of the least error of hidden cells, or the lowest
    /// objective where nothing is hidden.
    pub(super) fn add(&mut self, place: &Place) {
        self.steps += 1;
        self.objectives.push(place.objective);
        let better = match (place.hidden, self.best.hidden) {
            (Some(now), Some(before)) => now < before,
            _ => place.objective < self.best.objective,
        };
        if better {
            self.best = place.clone();
            self.best_step = self.steps;
        }
    }

    /// Whether hidden cells have not been predicted better for long, or the last steps together have gained less than
    /// the tolerance.
    pub(super) fn ended(&self, training: &Training<'_>, tolerance: f64) -> bool {
        let waited = self.steps - self.best_step;
        if self.best.hidden.is_some() && waited > self.patience.max(self.best_step / 2) {
            return true;
        }
        let last = self.objectives.len() - 1;
        let Some(before) = last.checked_sub(self.window) else { return false };
        let gain = self.objectives[before] - self.objectives[last];
        gain <= tolerance * training.size_of(self.objectives[last], self.at_start.0)
    }

    /// Whether the derivatives are rounding.
    pub(super) fn is_flat(&self, training: &Training<'_>, place: &Place) -> bool {
        let largest = place.gradient.iter().fold(0.0, |a: f64, g| a.max(g.abs()));
        let of_objective = FLAT.0 * training.size_of(place.objective, self.at_start.0);
        largest <= of_objective.max(FLAT.1 * training.frame.n_features() as f64)
    }

    /// The best network.
    pub(super) fn finish(self) -> Trained {
        let hidden = self.at_start.1.zip(self.best.hidden);
        Trained {
            objective: Some((self.at_start.0, self.best.objective)),
            hidden,
            network: self.best.network,
        }
    }
}
