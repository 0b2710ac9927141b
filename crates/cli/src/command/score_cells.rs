//! `covary score --contributions`: a line for each observed cell.

use std::sync::Arc;

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::{Contributions, Explain};
use covary::persist::SavedModel;
use covary_io::arrow_array::{ArrayRef, Int64Array, StringArray};
use covary_io::arrow_schema::DataType;
use covary_io::{CarriedBecause, CarriedColumn, Schema, take_rows};

use super::answer::{Answer, Input, Piece, cells, check_names, for_each_answer, piece, start};
use super::score::explainer;
use crate::args::Question;
use crate::exit::Result;
use crate::output::Output;

/// Columns of text and whole numbers behind those that are carried.
pub(super) const PLACES: [&str; 2] = ["row", "feature"];
/// Columns of numbers.
const NUMBERS: [&str; 6] = ["value", "expected", "deviation", "t2", "spe", "cell"];

/// Writes the cells of all rows.
pub(super) fn run(args: &Question, input: Input, saved: &SavedModel) -> Result<()> {
    let model = explainer(saved)?;
    let schema = input.schema().clone();
    let mut writer = create(args, &schema)?;
    let compute = |piece: Piece<'_>| lines_of(model, &saved.features, piece);
    let take = |answer: Answer| {
        writer.write(&answer.carried, answer.numbers.as_ref())?;
        Ok(answer.rows)
    };
    match input {
        Input::Rows(reader) => for_each_answer(args, &schema, reader.batches().map(piece), compute, take)?,
        Input::Cells(triples) => for_each_answer(args, &schema, cells(&triples), compute, take)?,
    }
    writer.finish()
}

/// Prepares the output of lines of cells.
pub(super) fn create(args: &Question, schema: &Schema) -> Result<Output> {
    let numbers = NUMBERS.map(String::from);
    check_names(schema, &[&PLACES.map(String::from)[..], &numbers].concat())?;
    let types = [DataType::Int64, DataType::Utf8];
    let places = PLACES.iter().zip(types).map(|(name, data_type)| CarriedColumn {
        name: (*name).into(),
        data_type,
        because: CarriedBecause::Id,
    });
    let carried: Vec<CarriedColumn> = schema.carried.iter().cloned().chain(places).collect();
    start(args, &carried, &numbers)
}

/// The lines of some rows, which are numbered as they stand in the data.
fn lines_of(model: &dyn Explain, features: &[String], piece: Piece<'_>) -> covary::Result<Answer> {
    let (carried, chunk) = piece;
    let numbers: Vec<usize> = (0..chunk.nrows()).map(|row| chunk.first_row() + row).collect();
    lines(&model.contributions(&chunk)?, features, &carried, &chunk, &numbers)
}

/// A line for each observed cell of rows of these numbers, counted from 0.
pub(super) fn lines(
    found: &Contributions,
    features: &[String],
    carried: &[ArrayRef],
    chunk: &Chunk<'_>,
    numbers: &[usize],
) -> covary::Result<Answer> {
    let (n, p) = (chunk.nrows(), chunk.ncols());
    let value = |i: usize, j: usize| chunk.cells().get(i, j);
    let observed: Vec<(usize, usize)> =
        (0..n).flat_map(|i| (0..p).map(move |j| (i, j))).filter(|(i, j)| !value(*i, *j).is_nan()).collect();
    let rows: Vec<usize> = observed.iter().map(|(i, _)| *i).collect();
    let mut columns = take_rows(carried, &rows)?;
    let number = |row: &usize| i64::try_from(numbers[*row] + 1).unwrap_or(i64::MAX);
    columns.push(Arc::new(Int64Array::from_iter_values(rows.iter().map(number))));
    columns.push(Arc::new(StringArray::from_iter_values(observed.iter().map(|(_, j)| &features[*j]))));
    let tables = [&found.expected, &found.deviation, &found.t2, &found.spe, &found.cell];
    let cell = |line: usize, k: usize| {
        let (i, j) = observed[line];
        if k == 0 { value(i, j) } else { tables[k - 1][(i, j)] }
    };
    let numbers = Mat::from_fn(observed.len(), NUMBERS.len(), cell);
    Ok(Answer { rows: n, carried: columns, numbers })
}
