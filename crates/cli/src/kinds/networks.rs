//! Autoassociative networks.

use std::sync::Arc;

use covary::estimator::Family;
use covary::{Activation, Autoencoder, Solver};

use super::Wanted;
use super::axes::components;
use crate::exit::{Failure, Result};
use crate::flags::{self, ActivationName};

pub(super) fn autoencoder(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = components(wanted);
    let solver = match wanted.solver {
        flags::Solver::Auto => Solver::Auto,
        flags::Solver::Lbfgs => Solver::Lbfgs,
        flags::Solver::Adam => Solver::Adam,
        _ => return Err(Failure::usage("an autoassociative network has the solvers auto, lbfgs and adam")),
    };
    let mut family = Autoencoder::new(components).solver(solver);
    if let Some(flags) = wanted.network {
        let activation = match flags.activation {
            None | Some(ActivationName::Tanh) => Activation::Tanh,
            Some(ActivationName::Linear) => Activation::Linear,
        };
        family = family.activation(activation).encoder(!flags.no_encoder);
        family = if flags.no_early_stopping { family.early_stopping(false) } else { family };
        family = flags.hidden.map_or(family.clone(), |units| family.hidden(units));
        family = flags.alpha.map_or(family.clone(), |alpha| family.alpha(alpha));
    }
    Ok((Arc::new(family), because))
}
