//! `covary assign`: the cluster or mixture component of each row.

use covary::linalg::Mat;

use super::answer::{prepare, write};
use crate::args::Question;
use crate::exit::{Code, Result};

/// Writes the group of each row, counted from 1, and its probabilities when asked.
pub(super) fn run(mut args: Question, probabilities: bool) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    if !probabilities {
        let groups = saved.model.groups()?;
        write(&args, reader, &["group".into()], |chunk| {
            let labels = groups.assign(chunk)?;
            Ok(Mat::from_fn(labels.len(), 1, |i, _| (labels[i] + 1) as f64))
        })?;
        return Ok(Code::Done);
    }
    let (memberships, groups) = (saved.model.memberships()?, saved.model.groups()?);
    let names = (1..=groups.n_groups()).map(|k| format!("p{k}"));
    let names: Vec<String> = std::iter::once("group".into()).chain(names).collect();
    write(&args, reader, &names, |chunk| {
        let (labels, p) = (groups.assign(chunk)?, memberships.probabilities(chunk)?);
        let cell = |i: usize, j: usize| if j == 0 { (labels[i] + 1) as f64 } else { p[(i, j - 1)] };
        Ok(Mat::from_fn(labels.len(), names.len(), cell))
    })?;
    Ok(Code::Done)
}
