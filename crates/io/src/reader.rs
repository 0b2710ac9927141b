//! The door for reading: opens a file of any format and offers it as a table, a grid, a stream or batches.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use covary::data::{Chunk, RowSource, Table};

use crate::batch::{Batch, Batches, Feed, Job, Stream};
use crate::error::{Error, Result};
use crate::format::{Compression, Format};
use crate::schema::{ReadOptions, Schema};
use crate::{arrow_ipc, arrow_memory, csv, load, npy, parquet, spreadsheet};

/// A file that can be read in any order, as each format offers it.
pub(crate) trait Chunks: Send + Sync {
    /// Number of chunks.
    fn n_chunks(&self) -> usize;
    /// The rows of one chunk.
    fn rows(&self, index: usize) -> Range<usize>;
    /// Reads one chunk, with the carried columns when they are asked for.
    fn read(&self, index: usize, carried: bool) -> Result<Batch>;
}

/// A file that can be read in any order and again: plain CSV and TSV, Parquet, Arrow IPC, NPY. Cheap to
/// clone.
#[derive(Clone)]
pub struct Grid {
    schema: Arc<Schema>,
    chunks: Arc<dyn Chunks>,
}

impl Grid {
    /// What the file holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The rows in order, with the carried columns, parsed on all cores ahead of the consumer.
    pub fn batches(&self) -> Batches {
        Batches::new(Box::new(GridFeed { chunks: Arc::clone(&self.chunks), next: 0 }), true)
    }

    pub(crate) fn chunks(&self) -> &dyn Chunks {
        &*self.chunks
    }

    pub(crate) fn total_rows(&self) -> usize {
        match self.chunks.n_chunks() {
            0 => 0,
            n => self.chunks.rows(n - 1).end,
        }
    }
}

impl RowSource for Grid {
    fn n_features(&self) -> usize {
        self.schema.features.len()
    }

    fn n_chunks(&self) -> usize {
        self.chunks.n_chunks()
    }

    fn chunk(&self, index: usize) -> covary::Result<Chunk<'_>> {
        Ok(self.chunks.read(index, false)?.chunk)
    }

    fn n_rows(&self) -> Option<usize> {
        Some(self.total_rows())
    }

    fn feature_names(&self) -> Option<&[String]> {
        Some(&self.schema.features)
    }
}

/// The chunks of a grid one after another.
struct GridFeed {
    chunks: Arc<dyn Chunks>,
    next: usize,
}

impl Feed for GridFeed {
    fn next_job(&mut self, carried: bool) -> Result<Option<Job>> {
        let index = self.next;
        if index == self.chunks.n_chunks() {
            return Ok(None);
        }
        self.next += 1;
        let chunks = Arc::clone(&self.chunks);
        Ok(Some(Box::new(move || chunks.read(index, carried))))
    }
}

/// The ways in which a file can be read.
pub(crate) enum Access {
    Grid(Arc<dyn Chunks>),
    Stream(Box<dyn Feed>),
}

/// An open file whose columns are decided, but whose rows are not read yet.
pub struct Reader {
    schema: Arc<Schema>,
    access: Access,
}

/// What [`Reader::load`] leaves you with.
pub enum Loaded {
    /// All rows in memory.
    Table(Table<'static>),
    /// Too large for memory, but readable again and in any order.
    Grid(Grid),
    /// Too large for memory and passing once; no row is lost.
    Stream(Stream),
}

/// Opens a file (`-` is CSV on standard input) and decides about its columns.
///
/// # Errors
/// File trouble, an unknown ending, bad headers, selections that do not fit, no rows.
///
/// ```no_run
/// use covary_io::{Loaded, ReadOptions, open};
/// let reader = open("wine.csv", &ReadOptions::default())?;
/// println!("{:?}", reader.schema().features);
/// if let Loaded::Table(table) = reader.load(512 << 20)? {
///     println!("{:?}", table.shape());
/// }
/// # Ok::<(), covary_io::Error>(())
/// ```
pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Reader> {
    let path = path.as_ref();
    let format = Format::from_path(path)?;
    options.check_format(path, format)?;
    let (schema, access) = match format {
        Format::Delimited { delimiter, compression } if is_stream(path, compression) => {
            csv::open_stream(path, format, delimiter, compression, options)?
        }
        Format::Delimited { delimiter, .. } => csv::open_grid(path, format, delimiter, options)?,
        Format::Parquet => parquet::open(path, options)?,
        Format::Arrow => arrow_ipc::open(path, options)?,
        Format::Npy => npy::open(path, options)?,
        Format::Spreadsheet => spreadsheet::open(path, options)?,
    };
    counted(path, Reader { schema, access })
}

/// Record batches that lie in memory already, read like a file; `name` is what messages call them.
///
/// # Errors
/// Bad column names, selections that do not fit, no rows.
pub fn open_arrow(
    name: &str,
    schema: &arrow_schema::Schema,
    batches: Vec<arrow_array::RecordBatch>,
    options: &ReadOptions,
) -> Result<Reader> {
    let name = Path::new(name);
    let (schema, access) = arrow_memory::open(name, schema, batches, options)?;
    counted(name, Reader { schema, access })
}

/// A grid knows how many rows it has, and must have some.
fn counted(path: &Path, mut reader: Reader) -> Result<Reader> {
    if let Some(grid) = reader.grid() {
        let n_rows = grid.total_rows();
        if n_rows == 0 {
            return Err(Error::NoRows { path: path.into() });
        }
        reader.set_rows(n_rows);
    }
    Ok(reader)
}

/// Pipes and devices can only be read once, whatever their name ends in.
fn is_stream(path: &Path, compression: Compression) -> bool {
    compression != Compression::None
        || path.as_os_str() == "-"
        || std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Opens a file for reading; a directory is an error of its own.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(Error::open(path))?;
    match file.metadata().map_err(Error::open(path))?.is_dir() {
        true => Err(Error::Directory { path: path.into() }),
        false => Ok(file),
    }
}

/// Opens a file that is read at many places, and tells its length; a pipe or a device has no places.
pub(crate) fn open_regular(path: &Path, format: Format) -> Result<(File, u64)> {
    let found = std::fs::metadata(path).map_err(Error::open(path))?;
    if !found.is_file() && !found.is_dir() {
        return Err(Error::NotRegular { path: path.into(), format: format.name() });
    }
    let file = open_file(path)?;
    match file.metadata().map_err(Error::read(path))?.len() {
        0 => Err(Error::Empty { path: path.into() }),
        length => Ok((file, length)),
    }
}

impl Reader {
    /// What the file holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The file as a grid, when it can be read in any order.
    pub fn grid(&self) -> Option<Grid> {
        match &self.access {
            Access::Grid(chunks) => {
                Some(Grid { schema: Arc::clone(&self.schema), chunks: Arc::clone(chunks) })
            }
            Access::Stream(_) => None,
        }
    }

    /// The rows in order, with the carried columns, parsed on all cores ahead of the consumer.
    pub fn batches(self) -> Batches {
        Batches::new(self.feed(), true)
    }

    /// The rows in order, features and weights only, for fits in one pass.
    pub fn stream(self) -> Stream {
        let schema = Arc::clone(&self.schema);
        Stream::new(&schema, self.feed())
    }

    /// Reads all rows into one table if it takes no more than `memory_limit` bytes; otherwise gives back what
    /// can be read in pieces. Cells in single precision stay so.
    ///
    /// # Errors
    /// Whatever is wrong with the file.
    pub fn load(self, memory_limit: usize) -> Result<Loaded> {
        self.load_watched(memory_limit, &|_| {})
    }

    /// The same, telling an observer how many rows each step has read.
    ///
    /// # Errors
    /// Whatever is wrong with the file.
    pub fn load_watched(self, memory_limit: usize, on_rows: &(dyn Fn(usize) + Sync)) -> Result<Loaded> {
        match self.grid() {
            Some(grid) => load::grid(grid, memory_limit, on_rows),
            None => {
                let schema = Arc::clone(&self.schema);
                load::stream(&schema, self.stream(), memory_limit, on_rows)
            }
        }
    }

    fn feed(self) -> Box<dyn Feed> {
        match self.access {
            Access::Grid(chunks) => Box::new(GridFeed { chunks, next: 0 }),
            Access::Stream(feed) => feed,
        }
    }

    fn set_rows(&mut self, n_rows: usize) {
        Arc::make_mut(&mut self.schema).n_rows = Some(n_rows);
    }
}
