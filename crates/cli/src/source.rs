//! The rows of a fit: a table in memory, a grid read in parts, cells one by one, or rows that pass once.

use covary::data::{Observed, Order, RowSource, Table};
use covary::persist::SavedModel;
use covary_io::{
    Grid, LeftOutBecause, LeftOutColumn, Loaded, ReadOptions, Schema, Selection, Stream, TripleColumns,
    TripleOptions, open, triples,
};

use crate::args::Reading;
use crate::exit::{Failure, Result};
use crate::notice;
use crate::phrase::file_name;
use crate::progress::Progress;

/// Rows, and what the file holds besides.
pub(crate) struct Source {
    pub(crate) schema: Schema,
    pub(crate) rows: Rows,
}

/// How the rows can be had.
pub(crate) enum Rows {
    Table(Table<'static>),
    Grid(Grid),
    Cells(Observed<'static>),
    Stream(Stream),
}

impl Source {
    /// Opens the data, and loads what fits in memory; `features` are those of a model, if the rows must have
    /// them.
    pub(crate) fn open(args: &Reading<'_>, features: Option<ModelFeatures<'_>>) -> Result<Self> {
        if let Some(columns) = args.triples {
            return Self::read_triples(args, columns, features.map(|model| model.names));
        }
        let reader = open(args.data, &for_model(args.options, features))?;
        let schema = reader.schema().clone();
        notice::schema(args.console, &schema);
        let progress = Progress::new(args.console, "reading", schema.n_rows);
        let rows = match reader.load_watched(args.budget.table(), &|rows| progress.add(rows))? {
            Loaded::Table(table) => Rows::Table(table),
            Loaded::Grid(grid) => Rows::Grid(grid),
            Loaded::Stream(stream) => Rows::Stream(stream),
        };
        Ok(Self { schema, rows })
    }

    fn read_triples(args: &Reading<'_>, columns: &TripleColumns, items: Option<&[String]>) -> Result<Self> {
        let (columns, items) = (columns.clone(), items.map(<[String]>::to_vec));
        let data = triples(args.data, &TripleOptions { columns, items, read: args.options.clone() })?;
        notice::schema(args.console, &data.schema);
        Ok(Self { schema: data.schema, rows: Rows::Cells(data.cells) })
    }

    /// The rows, if they can be read more than once.
    pub(crate) fn again(&self) -> Option<&dyn RowSource> {
        match &self.rows {
            Rows::Table(table) => Some(table),
            Rows::Grid(grid) => Some(grid),
            Rows::Cells(cells) => Some(cells),
            Rows::Stream(_) => None,
        }
    }

    /// Bytes of the rows that are in memory.
    pub(crate) fn in_memory(&self) -> usize {
        let cell = if self.schema.single_precision { 4 } else { 8 };
        match &self.rows {
            Rows::Table(table) => table.shape().0 * table.shape().1 * cell,
            Rows::Cells(cells) => cells.n_cells() * (size_of::<f64>() + size_of::<u32>()),
            Rows::Grid(_) | Rows::Stream(_) => 0,
        }
    }

    /// The same rows without some features, which have no value anywhere; says so.
    pub(crate) fn without(self, args: &Reading<'_>, empty: &[usize]) -> Result<Self> {
        let Self { mut schema, rows } = self;
        let (left_out, kept) = part(&schema.features, empty);
        if kept.is_empty() {
            return Err(Failure::data(format!("{} has no value in any column", file_name(args.data))));
        }
        let names: Vec<String> = kept.iter().map(|&j| schema.features[j].clone()).collect();
        let rows = match rows {
            Rows::Table(table) => Rows::Table(columns_of(&table, &kept, &names)?),
            Rows::Cells(cells) => Rows::Cells(items_of(&cells, &kept, &names)?),
            Rows::Grid(_) | Rows::Stream(_) => reopen(args, &left_out)?,
        };
        args.console.note(&format!("left out, as no row has a value: {}", notice::listed(left_out.iter())));
        let because = LeftOutBecause::Empty;
        schema.left_out.extend(left_out.into_iter().map(|name| LeftOutColumn { name, because }));
        schema.features = names;
        Ok(Self { schema, rows })
    }
}

/// The features of a model, as rows must have them.
#[derive(Clone, Copy)]
pub(crate) struct ModelFeatures<'a> {
    pub(crate) names: &'a [String],
    /// Whether the names are the model's own.
    pub(crate) named: bool,
}

impl<'a> From<&'a SavedModel> for ModelFeatures<'a> {
    fn from(saved: &'a SavedModel) -> Self {
        Self { names: &saved.features, named: saved.named() }
    }
}

/// How rows are read for a model, unless somebody says which columns they have.
pub(crate) fn for_model(options: &ReadOptions, model: Option<ModelFeatures<'_>>) -> ReadOptions {
    let model = model.filter(|_| options.columns.is_none());
    ReadOptions {
        features: model.map(|model| model.names.to_vec()),
        nameless: model.is_some_and(|model| !model.named),
        ..options.clone()
    }
}

/// The names of the empty features, and the positions of the others.
fn part(features: &[String], empty: &[usize]) -> (Vec<String>, Vec<usize>) {
    let mut is_empty = vec![false; features.len()];
    empty.iter().for_each(|&j| is_empty[j] = true);
    let names = empty.iter().map(|&j| features[j].clone()).collect();
    (names, (0..features.len()).filter(|&j| !is_empty[j]).collect())
}

fn reopen(args: &Reading<'_>, drop: &[String]) -> Result<Rows> {
    let mut options = args.options.clone();
    options.drop = Some(match options.drop.take() {
        Some(selection) => selection.and_names(drop),
        None => Selection::names(drop),
    });
    match open(args.data, &options)?.grid() {
        Some(grid) => Ok(Rows::Grid(grid)),
        None => Err(Failure::usage(format!(
            "{} passes only once; leave out what is empty with --drop {}",
            file_name(args.data),
            drop.join(",")
        ))),
    }
}

/// Some columns of a table, in double precision.
fn columns_of(table: &Table<'_>, kept: &[usize], names: &[String]) -> covary::Result<Table<'static>> {
    let (nrows, ncols) = (table.shape().0, kept.len());
    let row = |i: usize| kept.iter().map(move |&j| table.cells().get(i, j));
    let cells = (0..nrows).flat_map(row).collect();
    let block = covary::data::Block::Owned { cells, nrows, ncols, order: Order::Rows };
    let picked = Table::new(covary::data::Cells::F64(block)).with_names(names.to_vec())?;
    match table.weights() {
        Some(weights) => picked.with_weights(weights.to_vec()),
        None => Ok(picked),
    }
}

/// Some features of cells.
fn items_of(cells: &Observed<'_>, kept: &[usize], names: &[String]) -> covary::Result<Observed<'static>> {
    let mut place = vec![None; cells.n_features()];
    kept.iter().enumerate().for_each(|(k, &j)| place[j] = Some(k));
    let (all, place) = (cells.rows(0..cells.nrows()), &place);
    let row = |i: usize| {
        let (columns, values) = all.row(i);
        columns.iter().zip(values).filter_map(move |(j, x)| Some((i, place[*j as usize]?, *x)))
    };
    let triples = (0..cells.nrows()).flat_map(row);
    let picked = Observed::from_triples(cells.nrows(), kept.len(), triples)?.with_names(names.to_vec())?;
    match cells.row_names() {
        Some(rows) => picked.with_row_names(rows.to_vec()),
        None => Ok(picked),
    }
}
