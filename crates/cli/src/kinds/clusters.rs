//! k-means.

use std::sync::Arc;

use covary::KMeans;
use covary::estimator::{Family, Groups};

use super::Wanted;
use crate::exit::{Failure, Result};
use crate::flags;

pub(super) fn kmeans(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    if wanted.solver != flags::Solver::Auto {
        return Err(Failure::usage("k-means has one solver, Lloyd's method; leave --solver out"));
    }
    let flags = wanted.groups;
    let (groups, because) = match (flags.and_then(|flags| flags.groups), wanted.start) {
        (Some(groups @ Groups::Between(..)), None) => (groups, "to be chosen"),
        (Some(groups), None) => (groups, "asked for"),
        (None, Some(count)) => (Groups::Count(count), "as the model to start from has"),
        (Some(groups), Some(count)) if groups == Groups::Count(count) => (groups, "asked for"),
        (Some(_), Some(count)) => {
            return Err(Failure::usage(format!(
                "the model to start from has {count} clusters; leave -k or --start out"
            )));
        }
        (None, None) => {
            return Err(Failure::usage(
                "k-means needs the number of clusters: add, for example, -k 3, -k 2-8 or -k auto",
            ));
        }
    };
    let mut family = KMeans::new(groups).polish(!flags.is_some_and(|flags| flags.no_polish));
    if let Some(init) = flags.and_then(|flags| flags.init) {
        family = family.seeding(init.into());
    }
    if let Some(starts) = wanted.factor.and_then(|flags| flags.starts) {
        family = family.starts(starts);
    }
    Ok((Arc::new(family), because.into()))
}
