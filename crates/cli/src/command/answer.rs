//! Questions about rows: piece by piece in order and in bounded memory, computed on all cores.

use std::sync::Arc;

use covary::data::{Chunk, RowSource};
use covary::linalg::Mat;
use covary::persist::SavedModel;
use covary_io::arrow_array::{ArrayRef, StringArray};
use covary_io::{Batch, CarriedColumn, Reader, Schema, TripleColumns, TripleOptions, Triples, open, triples};
use rayon::prelude::*;

use crate::args::Question;
use crate::exit::{Failure, Result};
use crate::files::read_model;
use crate::interrupt;
use crate::notice;
use crate::output::Output;
use crate::phrase::{about_rows, file_name};
use crate::progress::Progress;
use crate::source::for_model;

/// The rows that are asked about.
pub(super) enum Input {
    Rows(Reader),
    Cells(Box<Triples>),
}

impl Input {
    pub(super) fn schema(&self) -> &Schema {
        match self {
            Self::Rows(reader) => reader.schema(),
            Self::Cells(triples) => &triples.schema,
        }
    }
}

/// Reads the model and opens the data with the model's features.
pub(super) fn prepare(args: &mut Question) -> Result<(SavedModel, Input)> {
    let saved = read_model(&args.model)?;
    let input = match args.triples.clone() {
        Some(columns) => Input::Cells(Box::new(read_triples(args, columns, &saved)?)),
        None => Input::Rows(open_rows(args, &saved)?),
    };
    Ok((saved, input))
}

/// Opens rows with the model's features, by name or by position.
pub(super) fn open_rows(args: &mut Question, saved: &SavedModel) -> Result<Reader> {
    args.options = for_model(&args.options, Some(saved.into()));
    let reader = open(&args.data, &args.options)?;
    notice::schema(args.console, reader.schema());
    check_features(saved, reader.schema())?;
    Ok(reader)
}

/// Reads cells of the model's features.
pub(super) fn read_triples(args: &Question, columns: TripleColumns, saved: &SavedModel) -> Result<Triples> {
    let items = Some(saved.features.clone());
    let data = triples(&args.data, &TripleOptions { columns, items, read: args.options.clone() })?;
    notice::schema(args.console, &data.schema);
    Ok(data)
}

/// Whether the data have the features of the model, by name where both have names.
pub(super) fn check_features(saved: &SavedModel, schema: &Schema) -> Result<()> {
    let names = (schema.named && saved.named()).then_some(schema.features.as_slice());
    saved.check_features(schema.features.len(), names).map_err(|error| mismatch(&error, schema))
}

fn mismatch(error: &covary::Error, schema: &Schema) -> Failure {
    let file = file_name(&schema.path);
    let what = match error {
        covary::Error::FeatureCount { expected, found } => {
            format!("{found} columns are selected where the model has {expected} features")
        }
        covary::Error::FeatureName { position, expected, found } => {
            format!("column {} of the selection is '{found}' where the model has '{expected}'", position + 1)
        }
        other => other.to_string(),
    };
    Failure::data(format!("{file}: {what}; without --columns they are matched by name"))
}

/// The carried columns of some rows, and their features.
pub(super) type Piece<'a> = (Vec<ArrayRef>, Chunk<'a>);

/// Writes one row of answers for each row of the data, behind the columns that are carried along.
pub(super) fn write(
    args: &Question,
    input: Input,
    names: &[String],
    compute: impl Fn(&Chunk<'_>) -> covary::Result<Mat<f64>> + Sync,
) -> Result<()> {
    let schema = input.schema().clone();
    check_names(&schema, names)?;
    let mut writer = start(args, &schema.carried, names)?;
    match input {
        Input::Rows(reader) => append(args, &schema, &mut writer, reader.batches().map(piece), compute)?,
        Input::Cells(triples) => append(args, &schema, &mut writer, cells(&triples), compute)?,
    }
    writer.finish()?;
    Ok(())
}

/// Prepares the output.
pub(super) fn start(args: &Question, carried: &[CarriedColumn], names: &[String]) -> Result<Output> {
    Output::create(&args.output, &[&args.model, &args.data], carried, names)
}

/// Answers to all pieces, in order.
pub(super) fn append<'a>(
    args: &Question,
    schema: &Schema,
    writer: &mut Output,
    pieces: impl Iterator<Item = covary_io::Result<Piece<'a>>> + Send,
    compute: impl Fn(&Chunk<'_>) -> covary::Result<Mat<f64>> + Sync,
) -> Result<()> {
    let answer = |(carried, chunk): Piece<'a>| {
        let numbers = compute(&chunk)?;
        Ok(Answer { rows: chunk.nrows(), carried, numbers })
    };
    for_each_answer(args, schema, pieces, answer, |answer| {
        writer.write(&answer.carried, answer.numbers.as_ref())?;
        Ok(answer.rows)
    })
}

/// Calls `take` with what is computed of each piece, in order, while the next ones are computed on all cores; it
/// gives the number of rows that are done.
pub(super) fn for_each_answer<'a, T: Send>(
    args: &Question,
    schema: &Schema,
    mut pieces: impl Iterator<Item = covary_io::Result<Piece<'a>>> + Send,
    compute: impl Fn(Piece<'a>) -> covary::Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<usize> + Send,
) -> Result<()> {
    let progress = Progress::new(args.console, "rows", schema.n_rows);
    let mut ready: Vec<T> = Vec::new();
    loop {
        let next = || next_group(&mut pieces, &compute).map(|group| group.map_err(about_rows(schema)));
        let done = std::mem::take(&mut ready);
        let (taken, next) = rayon::join(|| take_all(done, &mut take, &progress), next);
        taken?;
        match next {
            None => return Ok(()),
            Some(group) => ready = group?,
        }
        if interrupt::requested() {
            return Err(Failure::interrupted());
        }
    }
}

fn take_all<T>(done: Vec<T>, take: &mut impl FnMut(T) -> Result<usize>, progress: &Progress) -> Result<()> {
    for one in done {
        progress.add(take(one)?);
    }
    Ok(())
}

/// The rows of a file.
pub(super) fn piece(batch: covary_io::Result<Batch>) -> covary_io::Result<Piece<'static>> {
    batch.map(|batch| (batch.carried, batch.chunk))
}

/// The cells of some rows, behind their names.
pub(super) fn cells(triples: &Triples) -> impl Iterator<Item = covary_io::Result<Piece<'_>>> + Send {
    let names = triples.cells.row_names().unwrap_or_default();
    (0..triples.cells.n_chunks()).map(move |index| {
        let chunk = triples.cells.chunk(index)?;
        let rows = chunk.first_row()..chunk.first_row() + chunk.nrows();
        Ok((vec![Arc::new(StringArray::from_iter_values(&names[rows])) as ArrayRef], chunk))
    })
}

/// Carried columns and the numbers beside them.
pub(super) struct Answer {
    /// Rows of the data that were asked about.
    pub(super) rows: usize,
    pub(super) carried: Vec<ArrayRef>,
    pub(super) numbers: Mat<f64>,
}

/// The answers to the next few pieces, one for each thread; `None` at the end.
fn next_group<'a, T: Send>(
    pieces: &mut impl Iterator<Item = covary_io::Result<Piece<'a>>>,
    compute: &(impl Fn(Piece<'a>) -> covary::Result<T> + Sync),
) -> Option<covary::Result<Vec<T>>> {
    let group: Result<Vec<Piece<'a>>, _> = pieces.take(rayon::current_num_threads()).collect();
    let group = match group {
        Ok(group) if group.is_empty() => return None,
        Ok(group) => group,
        Err(error) => return Some(Err(error.into())),
    };
    let answers: Vec<_> = group.into_par_iter().map(compute).collect();
    Some(answers.into_iter().collect())
}

/// A carried column and a column of answers of the same name cannot both be written.
pub(super) fn check_names(schema: &Schema, names: &[String]) -> Result<()> {
    match schema.carried.iter().find(|c| names.contains(&c.name)) {
        None => Ok(()),
        Some(c) => Err(Failure::usage(format!(
            "{} has a column '{}', which the output would have twice; leave it out with --drop '{}'",
            file_name(&schema.path),
            c.name,
            c.name
        ))),
    }
}
