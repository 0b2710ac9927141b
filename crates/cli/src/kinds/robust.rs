//! Robust PPCA.

use std::sync::Arc;

use covary::RobustPpca;
use covary::estimator::Family;

use super::Wanted;
use super::axes::{components, solver};
use crate::exit::Result;

pub(super) fn robust(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = components(wanted);
    let family = RobustPpca::new(components).nu(wanted.nu.unwrap_or_default()).solver(solver(wanted)?);
    Ok((Arc::new(family), because))
}
