//! Optimisers that know nothing of models: where to go next, and which of several ends is the best.

mod accelerate;
mod anderson;
mod fixed_point;
mod gains;
mod line_search;
mod quasi_newton;
mod starts;

pub(crate) use accelerate::{Accelerator, Local, Metric, Proposal};
pub(crate) use anderson::Anderson;
pub(crate) use fixed_point::fixed_point;
pub(crate) use gains::Gains;
pub(crate) use line_search::halved;
pub(crate) use quasi_newton::QuasiNewton;
pub(crate) use starts::best;
