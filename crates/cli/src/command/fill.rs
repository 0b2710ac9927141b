//! `covary impute`: the table with its missing values filled, by what is expected or by draws.

use std::sync::Arc;

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::Fill;
use covary_io::arrow_array::{ArrayRef, Int64Array};
use covary_io::arrow_schema::DataType;
use covary_io::{Batch, CarriedBecause, CarriedColumn, Carry, Grid, Reader};

use super::answer::{Input, Piece, append, check_names, open_rows, piece, start, write};
use crate::args::{Filling, Question};
use crate::exit::{Code, Result};
use crate::files::read_model;

/// Name of the column that numbers the draws.
const DRAW: &str = "draw";

/// Writes the model's features, filled, behind all other columns.
pub(super) fn run(mut args: Question, filling: Filling) -> Result<Code> {
    let saved = read_model(&args.model)?;
    args.options.carry = Carry::Others;
    let reader = open_rows(&mut args, &saved)?;
    let model = saved.model.imputer()?;
    let mut names = saved.features.clone();
    match filling {
        Filling::Means => write(&args, Input::Rows(reader), &names, |chunk| model.impute(chunk))?,
        Filling::MeansAndDeviations => {
            names.extend(saved.features.iter().map(|name| format!("{name}_std")));
            write(&args, Input::Rows(reader), &names, |chunk| with_deviations(model, chunk))?;
        }
        Filling::Draws { count, seed } => draws(&args, reader, model, &names, count, seed)?,
    }
    Ok(Code::Done)
}

/// Filled cells beside their standard deviations (n × 2p).
fn with_deviations(model: &dyn Fill, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
    let (p, imputed) = (chunk.ncols(), model.impute_with_std(chunk)?);
    let cell = |i: usize, j: usize| if j < p { imputed.cells[(i, j)] } else { imputed.std[(i, j - p)] };
    Ok(Mat::from_fn(chunk.nrows(), 2 * p, cell))
}

/// One table for each draw, below each other: a pass over the rows for each.
fn draws(
    args: &Question,
    reader: Reader,
    model: &dyn Fill,
    names: &[String],
    count: usize,
    seed: u64,
) -> Result<()> {
    let schema = reader.schema().clone();
    check_names(&schema, &[names, &[DRAW.to_owned()]].concat())?;
    let number = CarriedColumn { name: DRAW.into(), data_type: DataType::Int64, because: CarriedBecause::Id };
    let carried: Vec<CarriedColumn> = [vec![number], schema.carried.clone()].concat();
    let mut writer = start(args, &carried, names)?;
    let passes = Passes::new(reader)?;
    for draw in 0..count {
        let one =
            |chunk: &Chunk<'_>| model.draw_missing(chunk, draw..draw + 1, seed).map(|mut d| d.remove(0));
        append(args, &schema, &mut writer, passes.numbered(draw + 1), one)?;
    }
    writer.finish()?;
    Ok(())
}

/// Rows that are read again and again; those that pass once are kept.
enum Passes {
    Grid(Grid),
    Kept(Vec<Batch>),
}

impl Passes {
    fn new(reader: Reader) -> Result<Self> {
        Ok(match reader.grid() {
            Some(grid) => Self::Grid(grid),
            None => Self::Kept(reader.batches().collect::<covary_io::Result<_>>()?),
        })
    }

    fn batches(&self) -> Box<dyn Iterator<Item = covary_io::Result<Batch>> + Send + '_> {
        match self {
            Self::Grid(grid) => Box::new(grid.batches()),
            Self::Kept(batches) => Box::new(batches.iter().cloned().map(Ok)),
        }
    }

    /// All rows behind this number.
    fn numbered(&self, draw: usize) -> impl Iterator<Item = covary_io::Result<Piece<'static>>> + Send + '_ {
        let number = i64::try_from(draw).unwrap_or(i64::MAX);
        self.batches().map(move |batch| {
            let (mut carried, chunk) = piece(batch)?;
            carried.insert(0, Arc::new(Int64Array::from(vec![number; chunk.nrows()])) as ArrayRef);
            Ok((carried, chunk))
        })
    }
}
