//! `covary moments`: count, mean and scatter of one part of the data, as a file.

use covary::Control;
use covary::evidence::{Moments, gather, gather_stream};
use covary::persist::Portable;
use covary_io::{NewFile, Reader, open};

use crate::args;
use crate::exit::{Code, Failure, Result};
use crate::interrupt;
use crate::phrase::{about_rows, count};
use crate::progress::Progress;

/// Gathers and writes.
pub(super) fn run(args: &args::Moments) -> Result<Code> {
    let target = NewFile::create(&args.output)?;
    let reader = open(&args.data, &args.options)?;
    let schema = reader.schema().clone();
    if let Some(needed) = args.budget.too_many_for_moments(schema.features.len()) {
        return Err(Failure::usage(format!(
            "the moments of {} need about {} MiB; raise --memory, or select columns",
            count(schema.features.len(), "feature"),
            needed >> 20
        )));
    }
    let moments = collect(args, reader).map_err(about_rows(&schema))?;
    target.write(&moments.to_bytes(&schema.features)?)?;
    let (rows, features) = (count(moments.rows(), "row"), count(moments.n_features(), "feature"));
    args.console.note(&format!("{rows} of {features} in '{}'", args.output.display()));
    Ok(Code::Done)
}

/// One pass, within the memory limit.
fn collect(args: &args::Moments, reader: Reader) -> covary::Result<Moments> {
    let p = reader.schema().features.len();
    let progress = Progress::new(args.console, "reading", reader.schema().n_rows);
    let observer = |event| progress.follow(event);
    let control = Control::new().observer(&observer).cancel(interrupt::flag());
    let Some(grid) = reader.grid() else {
        return gather_stream(&mut reader.stream(), || Moments::empty_double(p), &control);
    };
    let threads = args.budget.threads(rayon::current_num_threads(), p);
    let pass = || gather(&grid, || Moments::empty_double(p), &control);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(pass),
        Err(_) => pass(),
    }
}

/// The first difference between the features of two parts, in words.
pub(super) fn difference(first: &[String], other: &[String]) -> Option<String> {
    if first.len() != other.len() {
        return Some(format!("{} where the first part has {}", count(other.len(), "feature"), first.len()));
    }
    let position = first.iter().zip(other).position(|(a, b)| a != b)?;
    let (expected, found) = (&first[position], &other[position]);
    Some(format!("feature {} is '{found}' where the first part has '{expected}'", position + 1))
}

/// The error that a part does not belong to the others.
pub(super) fn does_not_belong(part: &str, first: &str, difference: &str) -> Failure {
    Failure::data(format!("{part} does not go with {first}: {difference}; merge parts of the same features"))
}
