//! `covary moments`: count, mean and scatter of one part of the data, as a file.

use covary::Control;
use covary::data::{RowSource, RowStream};
use covary::evidence::{Moments, gather, gather_stream};
use covary::persist::Portable;
use covary_io::{Reader, Schema, open};

use crate::args::{self, Pass};
use crate::exit::{Code, Failure, Result};
use crate::interrupt;
use crate::notice;
use crate::output::new_file;
use crate::phrase::{about_rows, count};
use crate::progress::Progress;

/// Gathers and writes.
pub(super) fn run(args: &args::Moments) -> Result<Code> {
    let target = new_file(&args.output, &[&args.pass.data])?;
    let (schema, reader) = open_for_moments(&args.pass)?;
    let p = schema.features.len();
    let empty = || Moments::empty(p);
    let moments = one_pass(
        &args.pass,
        reader,
        |grid, control| gather(grid, empty, control),
        |stream, control| gather_stream(stream, empty, control),
    );
    let moments = moments.map_err(about_rows(&schema))?;
    target.write(&moments.to_bytes(&schema.features)?)?;
    let (rows, features) = (count(moments.rows(), "row"), count(moments.n_features(), "feature"));
    args.pass.console.note(&format!("{rows} of {features} in '{}'", args.output.display()));
    Ok(Code::Done)
}

/// Opens data whose moments fit in the memory limit.
fn open_for_moments(pass: &Pass) -> Result<(Schema, Reader)> {
    let reader = open(&pass.data, &pass.options)?;
    let schema = reader.schema().clone();
    notice::schema(pass.console, &schema);
    if let Some(needed) = pass.budget.too_many_for_moments(schema.features.len(), 1) {
        return Err(Failure::usage(format!(
            "the moments of {} need about {} MiB; raise --memory, or select columns",
            count(schema.features.len(), "feature"),
            needed >> 20
        )));
    }
    Ok((schema, reader))
}

/// One watched pass, within the memory limit, over rows that lie in a file or come once.
fn one_pass<T: Send>(
    pass: &Pass,
    reader: Reader,
    of_grid: impl FnOnce(&dyn RowSource, &Control<'_>) -> covary::Result<T> + Send,
    of_stream: impl FnOnce(&mut dyn RowStream, &Control<'_>) -> covary::Result<T>,
) -> covary::Result<T> {
    let p = reader.schema().features.len();
    let progress = Progress::new(pass.console, "reading", reader.schema().n_rows);
    let observer = |event| progress.follow(event);
    let control = Control::new().observer(&observer).cancel(interrupt::flag());
    let Some(grid) = reader.grid() else { return of_stream(&mut reader.stream(), &control) };
    let threads = pass.budget.threads(rayon::current_num_threads(), p, 1);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(|| of_grid(&grid, &control)),
        Err(_) => of_grid(&grid, &control),
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
