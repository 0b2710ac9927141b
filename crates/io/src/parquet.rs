//! Parquet as a grid: row groups cut into pieces of bounded size, only the columns that are needed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::{ChunkReader, Length};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;

use crate::arrow_columns::{Projection, columns, guard};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::positioned::{read_at, read_exact_at};
use crate::reader::{Access, Chunks, open_file};
use crate::schema::{ReadOptions, Schema, resolve};

/// A file whose readers do not share a cursor, unlike those of `File` itself.
#[derive(Clone)]
struct Input {
    file: Arc<File>,
    length: u64,
}

/// Reads on from a position.
struct At {
    file: Arc<File>,
    offset: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = read_at(&self.file, buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Input {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::with_capacity(4096, At { file: Arc::clone(&self.file), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!("{length} bytes promised at {start} are not there")));
        }
        Ok(read_exact_at(&self.file, start, length)?.into())
    }
}

/// Rows of one row group.
struct Piece {
    group: usize,
    /// Within the row group.
    offset: usize,
    /// Within the file.
    rows: Range<usize>,
}

/// A decoder in the middle of a row group. The next piece goes on where it stands, instead of skipping there anew.
struct Cursor {
    group: usize,
    offset: usize,
    carried: bool,
    reader: ParquetRecordBatchReader,
}

struct ParquetFile {
    path: PathBuf,
    input: Input,
    metadata: ArrowReaderMetadata,
    schema: Arc<Schema>,
    /// Without and with the carried columns.
    projections: [Projection; 2],
    pieces: Vec<Piece>,
    piece_rows: usize,
    cursors: Mutex<VecDeque<Cursor>>,
}

/// Opens a Parquet file: footer only.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<(Arc<Schema>, Access)> {
    let file = Arc::new(open_file(path)?);
    let length = file.metadata().map_err(Error::read(path))?.len();
    if length == 0 {
        return Err(Error::Empty { path: path.into() });
    }
    let input = Input { file, length };
    let metadata = guard(path, "Parquet", || ArrowReaderMetadata::load(&input, ArrowReaderOptions::new()))?;
    let (schema, roles) = resolve(path, Format::Parquet, true, &columns(metadata.schema()), options)?;
    let cell = if schema.single_precision { 4 } else { 8 };
    let piece_rows = (options.chunk_bytes / (cell * schema.features.len().max(1))).max(1);
    let schema = Arc::new(schema);
    let file = ParquetFile {
        path: path.into(),
        pieces: pieces(path, &metadata, piece_rows)?,
        input,
        metadata,
        schema: Arc::clone(&schema),
        projections: [Projection::new(&roles, false), Projection::new(&roles, true)],
        piece_rows,
        cursors: Mutex::default(),
    };
    Ok((schema, Access::Grid(Arc::new(file))))
}

fn pieces(path: &Path, metadata: &ArrowReaderMetadata, piece_rows: usize) -> Result<Vec<Piece>> {
    let (mut pieces, mut row) = (Vec::new(), 0);
    for (group, info) in metadata.metadata().row_groups().iter().enumerate() {
        let rows = usize::try_from(info.num_rows()).map_err(Error::damaged(path, "Parquet"))?;
        for offset in (0..rows).step_by(piece_rows) {
            let n = piece_rows.min(rows - offset);
            pieces.push(Piece { group, offset, rows: row..row + n });
            row += n;
        }
    }
    Ok(pieces)
}

impl ParquetFile {
    fn take_cursor(&self, group: usize, offset: usize, carried: bool) -> Option<Cursor> {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |c: &Cursor| c.group == group && c.offset == offset && c.carried == carried;
        let index = cursors.iter().position(fits)?;
        cursors.remove(index)
    }

    /// Keeps about one cursor per thread: each holds a page and a dictionary of every column.
    fn keep_cursor(&self, cursor: Cursor) {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        if cursors.len() >= rayon::current_num_threads() {
            cursors.pop_front();
        }
        cursors.push_back(cursor);
    }

    fn new_cursor(&self, group: usize, offset: usize, carried: bool) -> ParquetResult<Cursor> {
        let mask = ProjectionMask::roots(
            self.metadata.parquet_schema(),
            self.projections[usize::from(carried)].indices.iter().copied(),
        );
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.input.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(self.piece_rows);
        if offset > 0 {
            let rows = usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or(0);
            let selectors = vec![RowSelector::skip(offset), RowSelector::select(rows - offset)];
            builder = builder.with_row_selection(RowSelection::from(selectors));
        }
        Ok(Cursor { group, offset, carried, reader: builder.build()? })
    }

    fn decode(&self, piece: &Piece, carried: bool) -> ParquetResult<RecordBatch> {
        let mut cursor = match self.take_cursor(piece.group, piece.offset, carried) {
            Some(cursor) => cursor,
            None => self.new_cursor(piece.group, piece.offset, carried)?,
        };
        let (mut batches, mut found) = (Vec::new(), 0);
        while found < piece.rows.len() {
            let batch = cursor.reader.next().transpose()?;
            let batch = batch.ok_or_else(|| ParquetError::EOF("a row group has too few rows".into()))?;
            found += batch.num_rows();
            batches.push(batch);
        }
        cursor.offset += found;
        if cursor.offset
            < usize::try_from(self.metadata.metadata().row_group(piece.group).num_rows()).unwrap_or(0)
        {
            self.keep_cursor(cursor);
        }
        match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => Ok(batch),
            Err(batches) => Ok(concat_batches(&batches[0].schema(), &batches)?),
        }
    }
}

impl Chunks for ParquetFile {
    fn n_chunks(&self) -> usize {
        self.pieces.len()
    }

    fn rows(&self, index: usize) -> Range<usize> {
        self.pieces[index].rows.clone()
    }

    fn read(&self, index: usize, carried: bool) -> Result<Batch> {
        let piece = &self.pieces[index];
        let batch = guard(&self.path, "Parquet", || self.decode(piece, carried))?;
        if batch.num_rows() != piece.rows.len() {
            return Err(Error::Changed { path: self.path.clone() });
        }
        self.projections[usize::from(carried)].batch(&self.schema, piece.rows.start, &batch)
    }
}
