//! Small matrices with names on two sides: covariances, correlations, targets of rotations.

use std::path::{Path, PathBuf};

use covary::linalg::Mat;

use crate::error::{Error, Result};
use crate::header::HeaderGuess;
use crate::ids::IdColumn;
use crate::reader::open;
use crate::recognised::Recognised;
use crate::schema::{CarriedBecause, CarriedColumn, ReadOptions, Schema};
use crate::select::Selection;

/// A matrix as a file has it.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The file, `-` for standard input.
    pub path: PathBuf,
    /// Names of the columns; x1, x2, … where the file has none.
    pub columns: Vec<String>,
    /// Names of the rows, if a first column has them.
    pub rows: Option<Vec<String>>,
    /// Whether the names of the columns come from the file.
    pub named: bool,
    /// What was guessed about the first line, where it was not obvious whether it is a header.
    pub header_guess: Option<HeaderGuess>,
    /// What was recognised of how the file is written.
    pub recognised: Vec<Recognised>,
    /// The numbers; NaN where a cell is empty.
    pub cells: Mat<f64>,
}

/// Reads a matrix whole. A first column of text holds the names of its rows.
///
/// # Errors
/// File trouble, and text where numbers are expected.
pub fn matrix(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Matrix> {
    read(path.as_ref(), options, usize::MAX)
}

/// Reads a square matrix whose rows and columns stand for the same features, and picks some of them.
///
/// A first column of names must say the same as the header, in the same order. The options select among the
/// columns of the file.
///
/// # Errors
/// As [`matrix`]; when it is not square or names of rows and columns differ.
pub fn square_matrix(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Matrix> {
    let all = ReadOptions { columns: None, drop: None, ..options.clone() };
    let whole = read(path.as_ref(), &all, 1)?.with_numbered_rows();
    let (rows, p) = (whole.cells.nrows(), whole.columns.len());
    if rows != p {
        return Err(Error::NotSquare { path: whole.path, rows, columns: p });
    }
    whole.check_names()?;
    whole.picked(options.columns.as_ref(), options.drop.as_ref())
}

/// Reads until there are `spare` more rows than columns: a square matrix has no more.
fn read(path: &Path, options: &ReadOptions, spare: usize) -> Result<Matrix> {
    let reader = open(path, options)?;
    let schema = reader.schema().clone();
    let (labels, p) = (label_column(&schema)?, schema.features.len());
    let mut names = Vec::new();
    let mut cells: Vec<f64> = Vec::new();
    for batch in reader.batches() {
        let batch = batch?;
        let (chunk, first) = (&batch.chunk, batch.chunk.first_row());
        if let Some(column) = &labels {
            let texts = column.texts(&batch.carried)?;
            for i in 0..chunk.nrows() {
                names.push(column.id(&texts, i, first)?.to_owned());
            }
        }
        cells.extend((0..chunk.nrows()).flat_map(|i| (0..p).map(move |j| chunk.cells().get(i, j))));
        if cells.len() / p > p.saturating_add(spare) {
            break;
        }
    }
    if cells.is_empty() {
        return Err(Error::NoRows { path: path.into() });
    }
    Ok(Matrix {
        path: path.into(),
        columns: schema.features,
        rows: labels.map(|_| names),
        named: schema.named,
        header_guess: schema.header_guess,
        recognised: schema.recognised,
        cells: Mat::from_fn(cells.len() / p, p, |i, j| cells[i * p + j]),
    })
}

/// The first column, when it holds text; text elsewhere has no place in a matrix.
fn label_column(schema: &Schema) -> Result<Option<IdColumn>> {
    let is_label =
        |c: &CarriedColumn| schema.columns.first() == Some(&c.name) || c.because == CarriedBecause::Index;
    let wrong = schema.carried.iter().find(|c| !is_label(c));
    if let Some(column) = wrong {
        let (path, column, what) = (schema.path.clone(), column.name.clone(), "text".into());
        return Err(Error::NotNumeric { path, column, what, role: "part of a matrix" });
    }
    match schema.carried.first() {
        Some(column) => IdColumn::find(schema, &Selection::names([&column.name])).map(Some),
        None => Ok(None),
    }
}

impl Matrix {
    /// Names that are numbers look like one column too many.
    fn with_numbered_rows(self) -> Self {
        let (n, p) = (self.cells.nrows(), self.columns.len());
        if self.rows.is_some() || !self.named || p != n + 1 {
            return self;
        }
        Self {
            rows: Some((0..n).map(|i| self.cells[(i, 0)].to_string()).collect()),
            columns: self.columns[1..].to_vec(),
            cells: self.cells.subcols(1, n).to_owned(),
            ..self
        }
    }

    fn check_names(&self) -> Result<()> {
        let Some(rows) = self.rows.as_ref().filter(|_| self.named) else { return Ok(()) };
        match rows.iter().zip(&self.columns).position(|(row, column)| row != column) {
            None => Ok(()),
            Some(i) => Err(Error::RowName {
                path: self.path.clone(),
                row: i + 1,
                found: rows[i].clone(),
                expected: self.columns[i].clone(),
            }),
        }
    }

    /// The rows and columns of some features.
    fn picked(self, columns: Option<&Selection>, drop: Option<&Selection>) -> Result<Self> {
        // Positions are those of the file, in which a column of names may come first.
        let labels = usize::from(self.rows.is_some());
        let labelled = std::iter::repeat_n("", labels).chain(self.columns.iter().map(String::as_str));
        let names: Vec<&str> = labelled.collect();
        let resolve = |selection: &Selection| selection.resolve(&self.path, &names);
        let dropped = drop.map(resolve).transpose()?.unwrap_or_default();
        let wanted = columns.map_or_else(|| Ok((labels..names.len()).collect()), resolve)?;
        let kept: Vec<usize> = wanted.into_iter().filter(|j| *j >= labels && !dropped.contains(j)).collect();
        if kept.is_empty() {
            return Err(Error::NoFeatures { path: self.path, selected: true, text: None });
        }
        let kept: Vec<usize> = kept.into_iter().map(|j| j - labels).collect();
        let cells = Mat::from_fn(kept.len(), kept.len(), |i, j| self.cells[(kept[i], kept[j])]);
        let name = |names: &[String]| kept.iter().map(|&j| names[j].clone()).collect::<Vec<_>>();
        Ok(Self { columns: name(&self.columns), rows: self.rows.as_deref().map(name), cells, ..self })
    }
}
