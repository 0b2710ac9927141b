//! Tables to files: named columns of numbers and the columns that were carried along, batch after batch.

mod arrow_file;
mod atomic;
mod npy;
mod parquet;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use covary::linalg::MatRef;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::schema::{CarriedColumn, check_unique};
use atomic::Output;

/// What each format can do with a batch whose shape is right.
trait Sink: Send {
    fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> std::io::Result<()>;
    /// Writes what is left, and gives back the output.
    fn finish(self: Box<Self>) -> std::io::Result<Output>;
}

/// Writes a table: the carried columns first, then the numbers.
///
/// The file appears under its name when [`Writer::finish`] succeeds, and not before: a writer that is dropped
/// leaves everything as it was. NaN becomes an empty cell or null; numbers in text are the shortest that read
/// back exactly.
///
/// ```
/// use covary::linalg::Mat;
/// let path = std::env::temp_dir().join("covary-writer-example.csv");
/// let mut writer = covary_io::Writer::create(&path, &[], &["z1".into(), "z2".into()])?;
/// writer.write(&[], Mat::from_fn(3, 2, |i, j| (i + j) as f64).as_ref())?;
/// writer.finish()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "z1,z2\n0,1\n1,2\n2,3\n");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), covary_io::Error>(())
/// ```
pub struct Writer {
    path: PathBuf,
    n_carried: usize,
    n_numbers: usize,
    is_immediate: bool,
    sink: Box<dyn Sink>,
}

impl Writer {
    /// Prepares a file whose format is told by its ending; `-` is CSV on standard output.
    ///
    /// # Errors
    /// An unknown ending, two columns of one name, text columns for NPY, or a path that cannot be written.
    pub fn create(path: impl AsRef<Path>, carried: &[CarriedColumn], numbers: &[String]) -> Result<Self> {
        let path = path.as_ref();
        let format = Format::of_output(path)?;
        let names: Vec<&str> = carried.iter().map(|c| &c.name).chain(numbers).map(String::as_str).collect();
        check_unique(path, &names)?;
        if format == Format::Npy {
            check_numbers(path, carried)?;
        }
        let output = Output::create(path)?;
        let is_immediate = output.is_immediate();
        let schema = || arrow_schema(carried, numbers);
        let sink: std::io::Result<Box<dyn Sink>> = match format {
            Format::Delimited { delimiter, compression } => {
                text::create(output, &names, delimiter, compression)
            }
            Format::Parquet => parquet::create(output, schema()),
            Format::Arrow => arrow_file::create(output, schema()),
            Format::Npy => npy::create(output, names.len()),
            Format::Spreadsheet => return Err(Error::ReadOnly { path: path.into() }),
        };
        let sink = sink.map_err(Error::write(path))?;
        let (n_carried, n_numbers) = (carried.len(), numbers.len());
        Ok(Self { path: path.into(), n_carried, n_numbers, is_immediate, sink })
    }

    /// Whether rows can be seen before the last one is written, as on standard output, pipes and devices.
    pub fn is_immediate(&self) -> bool {
        self.is_immediate
    }

    /// Appends rows.
    ///
    /// # Errors
    /// When the columns are not those announced, or the system cannot write.
    pub fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> Result<()> {
        let fits = |what, expected, found| match expected == found {
            true => Ok(()),
            false => Err(covary::Error::Length { what, expected, found }),
        };
        fits("carried columns", self.n_carried, carried.len())?;
        fits("columns of numbers", self.n_numbers, numbers.ncols())?;
        carried.iter().try_for_each(|c| fits("rows of a carried column", numbers.nrows(), c.len()))?;
        self.sink.write(carried, numbers).map_err(Error::write(&self.path))
    }

    /// Makes the file appear, whole and durable.
    ///
    /// # Errors
    /// When the system cannot write; the target is then as it was before.
    pub fn finish(self) -> Result<()> {
        let output = self.sink.finish().map_err(Error::write(&self.path))?;
        output.commit().map_err(Error::write(&self.path))
    }
}

/// A file of bytes that will appear whole or not at all.
///
/// Made before a long computation, it tells at once when the place cannot be written.
pub struct NewFile {
    path: PathBuf,
    output: Output,
}

impl NewFile {
    /// Prepares the file; nothing is to be seen of it yet.
    ///
    /// # Errors
    /// When the path cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { path: path.into(), output: Output::create(path)? })
    }

    /// Makes the file appear with these bytes, whole and durable.
    ///
    /// # Errors
    /// When the system cannot write; the target is then as it was before.
    pub fn write(mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(Error::write(&self.path))?;
        self.output.commit().map_err(Error::write(&self.path))
    }
}

/// Writes bytes to a file, whole or not at all.
///
/// # Errors
/// When the system cannot write; the target is then as it was before.
pub fn write_file(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    NewFile::create(path)?.write(bytes)
}

/// Text does not go into an array of numbers.
fn check_numbers(path: &Path, carried: &[CarriedColumn]) -> Result<()> {
    let text = carried.iter().filter(|c| !c.data_type.is_numeric());
    let columns: Vec<String> = text.map(|c| format!("'{}'", c.name)).collect();
    match columns.is_empty() {
        true => Ok(()),
        false => Err(Error::OnlyNumbers { path: path.into(), columns: columns.join(", ") }),
    }
}

fn arrow_schema(carried: &[CarriedColumn], numbers: &[String]) -> SchemaRef {
    let carried = carried.iter().map(|c| Field::new(&c.name, c.data_type.clone(), true));
    let numbers = numbers.iter().map(|name| Field::new(name, DataType::Float64, true));
    Arc::new(arrow_schema::Schema::new(carried.chain(numbers).collect::<Vec<_>>()))
}

/// The rows as Arrow columns; NaN becomes null.
fn record_batch(
    schema: &SchemaRef,
    carried: &[ArrayRef],
    numbers: MatRef<'_, f64>,
) -> std::io::Result<RecordBatch> {
    let column = |j: usize| -> ArrayRef {
        let cells = (0..numbers.nrows()).map(|i| Some(numbers[(i, j)]).filter(|x| !x.is_nan()));
        Arc::new(cells.collect::<Float64Array>())
    };
    let columns = carried.iter().cloned().chain((0..numbers.ncols()).map(column)).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(std::io::Error::other)
}

/// The system's own error where there is one inside, so that a full disk is told as such.
fn to_io(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> std::io::Error {
    let error = match error.into().downcast::<arrow_schema::ArrowError>() {
        Ok(error) => match *error {
            arrow_schema::ArrowError::IoError(_, inner) => return inner,
            other => Box::new(other),
        },
        Err(other) => other,
    };
    match error.downcast::<std::io::Error>() {
        Ok(inner) => *inner,
        Err(other) => std::io::Error::other(other),
    }
}
