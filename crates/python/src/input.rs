//! Rows from Python: arrays are looked at where they lie, tables and files are read through `covary-io`.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::PyArrowType;
use covary::data::{Block, Cells, Observed, Real, RowSource, Sparse, Table, counted_rows};
use covary::linalg::MatRef;
use covary_io::arrow_schema::{DataType, Schema};
use covary_io::{
    Budget, CarriedBecause, CarriedColumn, Grid, Loaded, MissingWords, ReadOptions, Reader, Selection,
    Stream, open, open_arrow, pandas_index,
};
use numpy::{Element, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::door::{Manner, now, run};
use crate::errors::{io_exception, otherwise};
use crate::given::{to_vec, vector};
use crate::threads::Threads;

/// What a fit or a question reads; owned, so that work which nobody waits for any more still has it.
pub(crate) enum Held {
    /// An array of NumPy's, and the reference that keeps its memory alive.
    Array {
        table: Table<'static>,
        _owner: Py<PyAny>,
    },
    Table(Table<'static>),
    Sparse(Sparse),
    Observed(Observed<'static>),
    Grid(Grid),
    /// Taken by the first who reads it.
    Stream {
        stream: Mutex<Option<Stream>>,
        n_features: usize,
    },
}

impl Held {
    /// The rows, when they can be read more than once.
    pub(crate) fn source(&self) -> covary::Result<&dyn RowSource> {
        match self {
            Self::Array { table, .. } | Self::Table(table) => Ok(table),
            Self::Sparse(rows) => Ok(rows),
            Self::Observed(rows) => Ok(rows),
            Self::Grid(grid) => Ok(grid),
            Self::Stream { .. } => Err(passes_once()),
        }
    }

    /// The rows that pass once, if such they are.
    pub(crate) fn take_stream(&self) -> Option<covary::Result<Stream>> {
        let Self::Stream { stream, .. } = self else { return None };
        let taken = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some(taken.ok_or_else(passes_once))
    }

    pub(crate) fn n_features(&self) -> usize {
        match self {
            Self::Stream { n_features, .. } => *n_features,
            held => held.source().map_or(0, RowSource::n_features),
        }
    }
}

fn passes_once() -> covary::Error {
    covary::Error::Solver {
        solver: "asked-for",
        reason: "the file can be read only once and does not fit in memory; raise the memory limit of \
            covary.read, or uncompress the file"
            .into(),
    }
}

/// Rows that a fit or a question can read.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Rows {
    pub(crate) held: Arc<Held>,
    pub(crate) budget: Option<Budget>,
    names: Option<Vec<String>>,
    single_precision: bool,
}

impl Rows {
    fn new(held: Held, names: Option<Vec<String>>, single_precision: bool) -> Self {
        Self { held: Arc::new(held), budget: None, names, single_precision }
    }
}

type Weights<'py> = Option<PyReadonlyArray1<'py, f64>>;

#[pymethods]
impl Rows {
    /// A two-dimensional array of float64 or float32, of any strides: not copied.
    #[staticmethod]
    #[pyo3(signature = (array, weights=None, names=None))]
    fn dense(
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        weights: Weights<'_>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let cells = if let Ok(array) = array.cast::<PyArray2<f64>>() {
            Cells::F64(Block::View(view(array)?))
        } else if let Ok(array) = array.cast::<PyArray2<f32>>() {
            Cells::F32(Block::View(view(array)?))
        } else {
            return Err(PyTypeError::new_err("a two-dimensional array of float64 or float32 is needed"));
        };
        let single_precision = matches!(cells, Cells::F32(_));
        let weights = copied(py, weights)?;
        let table = now(py, || {
            let table = with(Table::new(cells), weights, Table::with_weights)?;
            with_names(table, names.clone(), Table::with_names)
        })?;
        Ok(Self::new(Held::Array { table, _owner: array.clone().unbind() }, names, single_precision))
    }

    /// Compressed rows whose other cells are 0.
    #[staticmethod]
    #[pyo3(signature = (starts, columns, values, n_features, weights=None, names=None))]
    fn sparse(
        py: Python<'_>,
        starts: PyReadonlyArray1<'_, i64>,
        columns: PyReadonlyArray1<'_, u32>,
        values: PyReadonlyArray1<'_, f64>,
        n_features: usize,
        weights: Weights<'_>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (starts, weights) = (offsets(py, &starts)?, copied(py, weights)?);
        let rows = now(py, || {
            let rows = Sparse::new(starts, to_vec(&columns)?, to_vec(&values)?, n_features)?;
            let rows = with(rows, weights, Sparse::with_weights)?;
            with_names(rows, names.clone(), Sparse::with_names)
        })?;
        Ok(Self::new(Held::Sparse(rows), names, false))
    }

    /// Compressed rows of which only the stored cells were seen.
    #[staticmethod]
    #[pyo3(signature = (starts, columns, values, n_features, weights=None, names=None))]
    fn observed(
        py: Python<'_>,
        starts: PyReadonlyArray1<'_, i64>,
        columns: PyReadonlyArray1<'_, u32>,
        values: PyReadonlyArray1<'_, f64>,
        n_features: usize,
        weights: Weights<'_>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (starts, weights) = (offsets(py, &starts)?, copied(py, weights)?);
        let rows = now(py, || {
            let rows = Observed::from_rows(starts, to_vec(&columns)?, to_vec(&values)?, n_features)?;
            let rows = with(rows, weights, Observed::with_weights)?;
            with_names(rows, names.clone(), Observed::with_names)
        })?;
        Ok(Self::new(Held::Observed(rows), names, false))
    }

    /// A table of anything that speaks Arrow's PyCapsule interface; every column is a feature, but
    /// the index of a frame of pandas.
    #[staticmethod]
    #[pyo3(signature = (table, weights=None))]
    fn arrow(py: Python<'_>, table: &Bound<'_, PyAny>, weights: Weights<'_>) -> PyResult<Self> {
        let reader = table.extract::<PyArrowType<RecordBatchStreamReader>>();
        let PyArrowType(reader) = reader.map_err(|error| not_a_table(py, error))?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>();
        let batches = batches.map_err(|error| unreadable(&schema, &error.to_string()))?;
        // The index of a frame of pandas is no feature, as it is none in the frame itself.
        let index = pandas_index(&schema);
        let fields = schema.fields().iter().filter(|field| !index.contains(field.name()));
        let names: Vec<String> = fields.clone().map(|field| field.name().clone()).collect();
        let single_precision = fields.clone().all(|field| *field.data_type() == DataType::Float32);
        let columns = Some(Selection::names(names.clone()));
        let options = ReadOptions { columns, ..ReadOptions::default() };
        let weights = copied(py, weights)?;
        let table = run(py, &Manner::default(), move |_| {
            let reader = open_arrow("X", &schema, batches, &options)?;
            match reader.load(usize::MAX)? {
                Loaded::Table(table) => with(table, weights, Table::with_weights),
                _ => Err(passes_once()),
            }
        })?;
        Ok(Self::new(Held::Table(table), Some(names), single_precision))
    }

    /// Names of the features, when they have some.
    #[getter]
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }

    /// Whether all cells were given in single precision.
    #[getter]
    fn single_precision(&self) -> bool {
        self.single_precision
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.held.n_features()
    }

    /// Number of rows of positive weight, when it is known.
    #[getter]
    fn n_rows(&self) -> Option<usize> {
        let source = self.held.source().ok()?;
        let positive = |weights: &[f64]| weights.iter().filter(|w| **w > 0.0).count();
        source.weights().map(positive).or_else(|| source.n_rows())
    }

    /// Number of rows that they stand for, by their weights, when it is known.
    #[getter]
    fn n_counted(&self) -> Option<usize> {
        let weights = self.held.source().ok()?.weights();
        let rows = self.n_rows()?;
        Some(weights.map_or(rows, |weights| counted_rows(rows, weights.iter().sum())))
    }
}

/// For a column by itself, or what else Arrow passes on that has no columns.
fn not_a_table(py: Python<'_>, why: PyErr) -> PyErr {
    let error =
        PyValueError::new_err("X is not a table of columns; give a frame, also when it has one column");
    error.set_cause(py, Some(why));
    error
}

/// Batches that cannot be imported; columns without a type are the usual trouble.
fn unreadable(schema: &Schema, why: &str) -> PyErr {
    let text = match schema.fields().iter().find(|field| *field.data_type() == DataType::Null) {
        Some(field) => {
            format!("column '{}' of X has no values and no type; give it one, or leave it out", field.name())
        }
        None => format!("X cannot be read: {why}"),
    };
    PyValueError::new_err(text)
}

/// An array as a matrix view that outlives this call.
fn view<T: Element + Real>(array: &Bound<'_, PyArray2<T>>) -> PyResult<MatRef<'static, T>> {
    let size = size_of::<T>().cast_signed();
    let (shape, strides, data) = (array.shape(), array.strides(), array.data());
    if !data.is_aligned() || strides.iter().any(|s| s % size != 0) {
        return Err(PyTypeError::new_err("cells that do not lie on a grid of whole numbers of their type"));
    }
    // SAFETY: pointer, shape and strides are NumPy's description of memory that holds numbers of type T and
    // is aligned; whoever gets the view keeps a reference to the array beside it (`Held::Array`), so the
    // memory is not freed, and an array that is referred to cannot be resized. Nothing is written through the
    // view.
    Ok(unsafe { MatRef::from_raw_parts(data, shape[0], shape[1], strides[0] / size, strides[1] / size) })
}

fn copied(py: Python<'_>, weights: Weights<'_>) -> PyResult<Option<Vec<f64>>> {
    weights.map(|weights| vector(py, &weights)).transpose()
}

fn offsets(py: Python<'_>, starts: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    let offsets: Result<_, _> = vector(py, starts)?.into_iter().map(usize::try_from).collect();
    offsets.map_err(|_| PyValueError::new_err("a sparse matrix with negative offsets"))
}

fn with<R>(
    rows: R,
    weights: Option<Vec<f64>>,
    attach: impl FnOnce(R, Vec<f64>) -> covary::Result<R>,
) -> covary::Result<R> {
    match weights {
        Some(weights) => attach(rows, weights),
        None => Ok(rows),
    }
}

fn with_names<R>(
    rows: R,
    names: Option<Vec<String>>,
    attach: impl FnOnce(R, Vec<String>) -> covary::Result<R>,
) -> covary::Result<R> {
    match names {
        Some(names) => attach(rows, names),
        None => Ok(rows),
    }
}

/// A file of rows: what `covary.read` gives.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct File {
    path: PathBuf,
    options: ReadOptions,
    budget: Budget,
    features: Vec<String>,
    named: bool,
    n_rows: Option<usize>,
    header_guess: Option<String>,
    recognised: Vec<(String, String)>,
    not_numeric: Vec<String>,
}

#[pymethods]
impl File {
    /// Opens the file and decides about its columns.
    #[new]
    #[pyo3(signature = (
        path, columns=None, drop=None, weights=None, memory=None, header=None, delimiter=None, decimal=None, na=Vec::new(),
        encoding=None, sheet=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of covary.read")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        columns: Option<Vec<String>>,
        drop: Option<Vec<String>>,
        weights: Option<String>,
        memory: Option<usize>,
        header: Option<bool>,
        delimiter: Option<String>,
        decimal: Option<String>,
        na: Vec<String>,
        encoding: Option<String>,
        sheet: Option<String>,
    ) -> PyResult<Self> {
        if memory.is_some_and(|bytes| bytes < Budget::LEAST) {
            let least = Budget::LEAST;
            return Err(PyValueError::new_err(format!("memory must be at least {least} bytes")));
        }
        let budget = Budget::new(memory);
        let options = ReadOptions {
            columns: columns.map(Selection::names),
            drop: drop.map(Selection::names),
            weights,
            chunk_bytes: budget.chunk_bytes(),
            piece_bytes: budget.piece_bytes(),
            header,
            delimiter: parsed(py, delimiter)?,
            decimal: parsed(py, decimal)?,
            missing: MissingWords::new(na),
            encoding: parsed(py, encoding)?,
            sheet,
            ..ReadOptions::default()
        };
        let (to_open, how) = (path.clone(), options.clone());
        let schema = run(py, &Manner::default(), move |_| Ok(open(&to_open, &how)?.schema().clone()))?;
        let (features, named, n_rows) = (schema.features, schema.named, schema.n_rows);
        let header_guess = schema.header_guess.map(|guess| guess.to_string());
        let recognised = schema.recognised.iter().map(|one| (one.to_string(), otherwise(one))).collect();
        let is_text = |column: &&CarriedColumn| column.because == CarriedBecause::NotNumeric;
        let not_numeric = schema.carried.iter().filter(is_text).map(|column| column.name.clone()).collect();
        Ok(Self { path, options, budget, features, named, n_rows, header_guess, recognised, not_numeric })
    }

    /// The rows, loaded when they fit; with the given features when a model wants them by name.
    #[pyo3(signature = (features=None, threads=None))]
    fn rows(
        &self,
        py: Python<'_>,
        features: Option<Vec<String>>,
        threads: Option<Threads>,
    ) -> PyResult<Rows> {
        let options = ReadOptions { features, ..self.options.clone() };
        let (path, limit) = (self.path.clone(), self.budget.table());
        let manner = Manner { threads, progress: None };
        let held = run(py, &manner, move |_| hold(open(&path, &options)?, limit))?;
        let names = self.named.then(|| self.features.clone());
        Ok(Rows { held: Arc::new(held), budget: Some(self.budget), names, single_precision: false })
    }

    /// What was guessed about the first line, where that is not obvious.
    #[getter]
    fn header_guess(&self) -> Option<String> {
        self.header_guess.clone()
    }

    /// What was recognised of how the file is written, and what to do if that is wrong.
    #[getter]
    fn recognised(&self) -> Vec<(String, String)> {
        self.recognised.clone()
    }

    /// Names of the columns that are not numeric, which are left out.
    #[getter]
    fn not_numeric(&self) -> Vec<String> {
        self.not_numeric.clone()
    }

    /// Where the file is.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Names of the features: x1, x2, … when the file has none.
    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.features.clone()
    }

    /// Whether the names come from the file.
    #[getter]
    fn named(&self) -> bool {
        self.named
    }

    /// Number of rows, when it is known before reading them.
    #[getter]
    fn n_rows(&self) -> Option<usize> {
        self.n_rows
    }

    fn __repr__(&self) -> String {
        let rows = self.n_rows.map_or("?".into(), |n| n.to_string());
        let text = match self.not_numeric.len() {
            0 => String::new(),
            _ => format!("; not numeric: {}", self.not_numeric.join(", ")),
        };
        format!("covary.read({:?})  # {rows} rows, {} features{text}", self.path, self.features.len())
    }
}

/// What a keyword says, if it is there.
fn parsed<T: FromStr<Err = covary_io::Error>>(py: Python<'_>, text: Option<String>) -> PyResult<Option<T>> {
    let parse = |text: String| text.parse().map_err(|error| io_exception(py, error));
    text.map(parse).transpose()
}

fn hold(reader: Reader, limit: usize) -> covary::Result<Held> {
    let n_features = reader.schema().features.len();
    Ok(match reader.load(limit)? {
        Loaded::Table(table) => Held::Table(table),
        Loaded::Grid(grid) => Held::Grid(grid),
        Loaded::Stream(stream) => Held::Stream { stream: Mutex::new(Some(stream)), n_features },
    })
}

/// Writes a file whole or not at all.
pub(crate) fn write(py: Python<'_>, path: PathBuf, bytes: &[u8]) -> PyResult<()> {
    let written = covary_io::NewFile::create(path).and_then(|file| file.write(bytes));
    written.map(drop).map_err(|error| io_exception(py, error))
}
