//! Optimisers that know nothing of models: where to go next, and which of several ends is the best.

mod accelerate;
mod anderson;
mod ascent;
mod fixed_point;
mod gains;
mod starts;

pub(crate) use accelerate::{Accelerator, Local, Metric, Proposal};
pub(crate) use anderson::Anderson;
pub(crate) use ascent::{Ascent, Smooth};
pub(crate) use fixed_point::fixed_point;
pub(crate) use gains::Gains;
pub(crate) use starts::best;

pub(crate) use crate::linalg::{QuasiNewton, halved};
