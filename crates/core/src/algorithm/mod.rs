//! How a model is found: mathematics only, one file each, and the one loop that repeats a step.

mod coordinates;
mod drive;
pub(crate) mod dual;
pub(crate) mod eigen;
pub(crate) mod em;
pub(crate) mod em_factor;
mod factor_profile;
pub(crate) mod gplvm;
pub(crate) mod ica;
pub(crate) mod kernel;
pub(crate) mod krylov;
pub(crate) mod krylov_factor;
pub(crate) mod landmarks;
pub(crate) mod lloyd;
mod maximise;
mod mean_row;
pub(crate) mod mixture;
pub(crate) mod network;
pub(crate) mod newton_factor;
pub(crate) mod online;
pub(crate) mod optimise;
mod passes;
pub(crate) mod prior;
pub(crate) mod redundant;
mod refine;
pub(crate) mod relevance;
pub(crate) mod resolution;
pub(crate) mod robust;
pub(crate) mod robust_step;
mod row_moves;
pub(crate) mod seeding;
pub(crate) mod start;
pub(crate) mod svd;
pub(crate) mod swaps;

pub use drive::{Guard, Iteration, Journey, Limits, Objective, Step, Stop, drive};
pub(crate) use factor_profile::{FoundFactors, Search, Start};
pub use maximise::em_step;
pub(crate) use mixture::{MixtureCollected, MixtureTotals};
pub use mixture::{MixtureEvidence, mixture_step};
pub use passes::{Passes, RowIteration};
pub use redundant::RedundantFeatures;
pub use robust_step::robust_step;
pub use seeding::Seeding;

use crate::error::{Error, Result};
use crate::spectrum::minka;

/// How many components are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Components {
    /// So many; with none, all is noise.
    Count(usize),
    /// As few as explain this share of the variance, in (0, 1).
    Fraction(f64),
    /// All that the data allow: as many as there are directions in which the rows vary, min(n − 1, p) unless
    /// the data are special. Writing a row twice, or giving it weight 2, adds none. With missing values, as
    /// many as the observed cells can tell from noise.
    All,
    /// The number of largest evidence by Minka's approximation.
    Evidence,
    /// To be chosen before the fit, which a [`Request`](crate::Request) does.
    Auto,
}

impl std::fmt::Display for Components {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(q) => write!(f, "{q}"),
            Self::Fraction(share) => write!(f, "{share}"),
            Self::All => f.write_str("all"),
            Self::Evidence => f.write_str("mle"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl From<usize> for Components {
    fn from(q: usize) -> Self {
        Self::Count(q)
    }
}

impl From<f64> for Components {
    fn from(fraction: f64) -> Self {
        Self::Fraction(fraction)
    }
}

impl Components {
    /// What makes no sense whatever the data.
    pub(crate) fn check(self) -> Result<()> {
        let (name, allowed) = ("the number of components", "a whole number, or a fraction between 0 and 1");
        match self {
            Self::Fraction(f) if !(f > 0.0 && f < 1.0) => {
                Err(Error::Parameter { name, value: f.to_string(), allowed })
            }
            Self::Auto => {
                let allowed = "chosen first, which a request does; or given";
                Err(Error::Parameter { name, value: "auto".into(), allowed })
            }
            _ => Ok(()),
        }
    }

    /// The number, when it does not depend on the eigenvalues.
    pub(crate) fn count(self) -> Option<usize> {
        match self {
            Self::Count(q) => Some(q),
            _ => None,
        }
    }

    /// Whether such a number exists for these data, before any work is done.
    pub(crate) fn check_possible(self, rows: usize, features: usize) -> Result<()> {
        let any = Self::Count(self.count().unwrap_or(1));
        any.resolve(rows, features, &[], 0.0).map(|_| ())
    }

    /// The number for these data, given all eigenvalues (or none when a count was asked for); those up to
    /// `rounding` are 0.
    pub(crate) fn resolve(
        self,
        rows: usize,
        features: usize,
        eigenvalues: &[f64],
        rounding: f64,
    ) -> Result<usize> {
        if rows < 2 {
            return Err(if rows == 0 { Error::NoRows } else { Error::TooFewRows { rows, needed: 2 } });
        }
        let possible = features.min(rows - 1);
        match self {
            Self::All | Self::Auto => Ok(eigenvalues[..possible].iter().filter(|v| **v > rounding).count()),
            Self::Count(requested) if requested > possible => {
                Err(Error::Components { requested, possible, rows, features })
            }
            Self::Count(q) => Ok(q),
            Self::Fraction(fraction) => Ok(smallest_covering(fraction, &eigenvalues[..possible])),
            Self::Evidence => {
                let known = |v: &f64| if *v > rounding { *v } else { 0.0 };
                let values: Vec<f64> = eigenvalues[..possible].iter().map(known).collect();
                Ok(minka::dimension(&values, features, rows as f64))
            }
        }
    }
}

/// The smallest q whose eigenvalues hold the fraction of their sum.
fn smallest_covering(fraction: f64, eigenvalues: &[f64]) -> usize {
    let total: f64 = eigenvalues.iter().sum();
    let mut held = 0.0;
    let covers = |value: &f64| {
        held += value;
        held >= fraction * total
    };
    eigenvalues.iter().position(covers).map_or(eigenvalues.len(), |q| q + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_takes_the_fewest_that_reach_it() {
        let values = [5.0, 3.0, 1.0, 1.0];
        let q = |f: f64| Components::Fraction(f).resolve(10, 4, &values, 0.0).unwrap();
        assert_eq!([q(0.1), q(0.5), q(0.51), q(0.8), q(0.81), q(0.99)], [1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn all_are_the_directions_in_which_the_rows_vary() {
        let q = |rows| Components::All.resolve(rows, 4, &[5.0, 3.0, 1e-16, 0.0], 1e-14).unwrap();
        assert_eq!([q(2), q(3), q(4), q(100)], [1, 2, 2, 2]);
    }

    #[test]
    fn too_many_components_says_what_is_possible() {
        let error = Components::Count(7).resolve(5, 9, &[], 0.0).unwrap_err();
        assert!(matches!(error, Error::Components { requested: 7, possible: 4, rows: 5, features: 9 }));
    }
}
