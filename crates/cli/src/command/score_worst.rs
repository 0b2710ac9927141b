//! `covary score --worst N`: the least likely rows first, as lines, as lines of their cells, or in words.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use covary::data::{Chunk, Order};
use covary::describe::{cell_in_words, count, number};
use covary::linalg::Mat;
use covary::model::Contributions;
use covary::persist::SavedModel;
use covary_io::arrow_array::{ArrayRef, Int64Array};
use covary_io::arrow_schema::DataType;
use covary_io::{CarriedBecause, CarriedColumn, Schema, join_rows, shown_value, take_rows};

use super::answer::{Input, Piece, cells, check_names, for_each_answer, piece, start};
use super::score::{Scoring, explainer};
use super::score_cells::{self, PLACES};
use crate::args::{Asked, Question};
use crate::console::print;
use crate::escape;
use crate::exit::Result;
use crate::phrase::about_rows;

/// Cells of a row that are told in words.
const TOLD: usize = 5;
/// Carried columns that are told in words.
const NAMED: usize = 3;
/// Cells above this are told: the χ² with one degree of freedom that one cell in a hundred exceeds.
const REMARKABLE: f64 = 6.635;

/// Writes or tells the N least likely rows.
pub(super) fn run(
    args: &Question,
    input: Input,
    saved: &SavedModel,
    scoring: &Scoring<'_>,
    n: usize,
    asked: Asked,
) -> Result<()> {
    let schema = input.schema().clone();
    if let Asked::Rows { .. } = asked {
        check_names(&schema, &[&[PLACES[0].to_owned()], &scoring.names[..]].concat())?;
        return write_rows(args, &schema, scoring, &collect(args, input, &schema, scoring, n)?);
    }
    let model = explainer(saved)?;
    let kept = collect(args, input, &schema, scoring, n)?;
    let all = kept.iter().flat_map(|row| row.cells.iter().copied()).collect();
    let chunk = Chunk::from_rows(0, all, saved.features.len(), Order::Rows)?;
    let found = model.contributions(&chunk).map_err(about_rows(&schema))?;
    if asked == Asked::Words {
        return print(&escape::lines(&in_words(&kept, scoring, &schema, saved, &found)));
    }
    let mut writer = score_cells::create(args, &schema)?;
    if !kept.is_empty() {
        let numbers: Vec<usize> = kept.iter().map(|row| row.number).collect();
        let lines = score_cells::lines(&found, &saved.features, &joined(&kept)?, &chunk, &numbers)
            .map_err(about_rows(&schema))?;
        writer.write(&lines.carried, lines.numbers.as_ref())?;
    }
    writer.finish()
}

/// A row that may be among the least likely.
struct Kept {
    number: usize, // counted from 0
    scores: Vec<f64>,
    cells: Vec<f64>,
    carried: Vec<ArrayRef>,
}

/// The N least likely rows of all, the least likely first: one pass, of which no more than those are kept.
fn collect(
    args: &Question,
    input: Input,
    schema: &Schema,
    scoring: &Scoring<'_>,
    n: usize,
) -> Result<Vec<Kept>> {
    let mut kept: Vec<Kept> = Vec::new();
    let compute = |piece: Piece<'_>| worst_of(scoring, piece, n);
    let take = |(rows, some): (usize, Vec<Kept>)| {
        kept.extend(some);
        kept.sort_by(|a, b| scoring.order(&a.scores, &b.scores).then(a.number.cmp(&b.number)));
        kept.truncate(n);
        Ok(rows)
    };
    match input {
        Input::Rows(reader) => for_each_answer(args, schema, reader.batches().map(piece), compute, take)?,
        Input::Cells(triples) => for_each_answer(args, schema, cells(&triples), compute, take)?,
    }
    Ok(kept)
}

/// The number of rows of a piece, and the least likely of them.
fn worst_of(scoring: &Scoring<'_>, piece: Piece<'_>, n: usize) -> covary::Result<(usize, Vec<Kept>)> {
    let (carried, chunk) = piece;
    let table = scoring.of(&chunk)?;
    let scores = |row: usize| table.row(row).iter().copied().collect::<Vec<f64>>();
    let mut rows: Vec<(usize, Vec<f64>)> = (0..chunk.nrows()).map(|row| (row, scores(row))).collect();
    rows.sort_by(|a, b| scoring.order(&a.1, &b.1).then(a.0.cmp(&b.0)));
    rows.truncate(n);
    let kept = rows.into_iter().map(|(row, scores)| {
        Ok(Kept {
            number: chunk.first_row() + row,
            scores,
            cells: (0..chunk.ncols()).map(|j| chunk.cells().get(row, j)).collect(),
            carried: take_rows(&carried, &[row])?,
        })
    });
    Ok((chunk.nrows(), kept.collect::<covary::Result<_>>()?))
}

impl Scoring<'_> {
    /// Less likely rows first: by p-value, by density where both are too small for a number, and by SPE where there
    /// is no density.
    fn order(&self, a: &[f64], b: &[f64]) -> Ordering {
        let of = |name: &str, row: &[f64]| self.place(name).map_or(f64::NAN, |column| row[column]);
        let by = |name: &str| of(name, a).total_cmp(&of(name, b));
        match of("p_value", a).is_nan() || of("p_value", b).is_nan() {
            true => by("spe").reverse(),
            false => by("p_value").then(by("log_density")),
        }
    }
}

/// The carried columns of the rows.
fn joined(kept: &[Kept]) -> Result<Vec<ArrayRef>> {
    let pieces: Vec<&[ArrayRef]> = kept.iter().map(|row| &row.carried[..]).collect();
    Ok(join_rows(&pieces)?)
}

fn write_rows(args: &Question, schema: &Schema, scoring: &Scoring<'_>, kept: &[Kept]) -> Result<()> {
    let place =
        CarriedColumn { name: PLACES[0].into(), data_type: DataType::Int64, because: CarriedBecause::Id };
    let carried: Vec<CarriedColumn> = schema.carried.iter().cloned().chain([place]).collect();
    let mut writer = start(args, &carried, &scoring.names)?;
    if !kept.is_empty() {
        let mut columns = joined(kept)?;
        let numbers = kept.iter().map(|row| i64::try_from(row.number + 1).unwrap_or(i64::MAX));
        columns.push(Arc::new(Int64Array::from_iter_values(numbers)));
        let scores = Mat::from_fn(kept.len(), scoring.names.len(), |i, j| kept[i].scores[j]);
        writer.write(&columns, scores.as_ref())?;
    }
    writer.finish()
}

/// Each row with the cells that stand out most.
fn in_words(
    kept: &[Kept],
    scoring: &Scoring<'_>,
    schema: &Schema,
    saved: &SavedModel,
    found: &Contributions,
) -> String {
    let mut text = String::new();
    for (i, row) in kept.iter().enumerate() {
        let _ = writeln!(text, "row {}{}: {}", row.number + 1, names(row, schema), scores(row, scoring));
        let mut told: Vec<usize> = (0..row.cells.len()).filter(|j| !row.cells[*j].is_nan()).collect();
        let observed = told.len();
        // Without noise no cell has a distance of its own, and shares of SPE take its place.
        let size = |j: usize| match found.cell[(i, j)] {
            nan if nan.is_nan() => found.spe[(i, j)],
            cell => cell,
        };
        told.sort_by(|a, b| size(*b).total_cmp(&size(*a)));
        told.retain(|j| found.cell[(i, *j)].is_nan() || found.cell[(i, *j)] > REMARKABLE);
        let more = told.len().saturating_sub(TOLD);
        for j in told.iter().copied().take(TOLD) {
            let (expected, deviation) = (found.expected[(i, j)], found.deviation[(i, j)]);
            let sentence = cell_in_words(&saved.features[j], row.cells[j], expected, deviation);
            let _ = writeln!(text, "  {sentence}");
        }
        let _ = match (observed, told.len(), more) {
            (0, ..) => writeln!(text, "  no cell was observed"),
            (_, 0, _) => writeln!(text, "  no single cell stands out from what the others say"),
            (.., 0) => Ok(()),
            _ => writeln!(text, "  and {} more", count(more, "cell")),
        };
    }
    text
}

/// What tells the row from others, in brackets.
fn names(row: &Kept, schema: &Schema) -> String {
    let named = schema.carried.iter().zip(&row.carried).take(NAMED);
    let words: Vec<String> =
        named.map(|(column, value)| format!("{} {}", column.name, shown_value(value, 0))).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

fn scores(row: &Kept, scoring: &Scoring<'_>) -> String {
    let named = [("p_value", "p-value"), ("t2", "T²"), ("spe", "SPE")];
    let known = named.iter().filter_map(|(column, name)| {
        let value = row.scores[scoring.place(column)?];
        (!value.is_nan()).then(|| format!("{name} {}", number(value)))
    });
    known.collect::<Vec<_>>().join(", ")
}
