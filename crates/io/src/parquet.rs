//! Parquet as a grid: row groups cut into pieces of bounded size, only the columns that are needed.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use crate::arrow_columns::{Projection, Semaphore, columns, guard};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::parquet_input::Input;
use crate::reader::{Access, Chunks, open_regular};
use crate::schema::{ReadOptions, Role, Schema, resolve};

/// A row group and where it begins.
struct Group {
    first_piece: usize,
    first_row: usize,
    rows: usize,
}

/// Row groups cut into pieces. Pieces are not listed: a damaged file can promise any number of rows.
struct Pieces {
    groups: Vec<Group>,
    piece_rows: usize,
    count: usize,
}

impl Pieces {
    fn new(path: &Path, metadata: &ArrowReaderMetadata, piece_rows: usize) -> Result<Self> {
        let (mut groups, mut first_row, mut count) = (Vec::new(), 0_usize, 0);
        for info in metadata.metadata().row_groups() {
            let rows = usize::try_from(info.num_rows()).map_err(Error::damaged(path, "Parquet"))?;
            groups.push(Group { first_piece: count, first_row, rows });
            let next = first_row.checked_add(rows).filter(|n| isize::try_from(*n).is_ok());
            first_row = next.ok_or_else(|| Error::damaged(path, "Parquet")("it promises too many rows"))?;
            count += rows.div_ceil(piece_rows);
        }
        Ok(Self { groups, piece_rows, count })
    }

    fn get(&self, index: usize) -> Piece {
        let group = self.groups.partition_point(|group| group.first_piece <= index) - 1;
        let Group { first_piece, first_row, rows } = self.groups[group];
        let offset = (index - first_piece) * self.piece_rows;
        let start = first_row + offset;
        Piece { group, offset, rows: start..start + self.piece_rows.min(rows - offset) }
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

/// A decoder in the middle of a row group. The next piece goes on where it stands, instead of skipping there
/// anew.
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
    pieces: Pieces,
    cursors: Mutex<VecDeque<Cursor>>,
    /// Decoders that may be in memory at once.
    decoders: usize,
    semaphore: Semaphore,
}

/// Opens a Parquet file: footer only.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<(Arc<Schema>, Access)> {
    let (file, length) = open_regular(path, Format::Parquet)?;
    let most = options.part_bytes();
    let mut input = Input::new(file, length, most);
    let metadata = guard(path, "Parquet", || ArrowReaderMetadata::load(&input, ArrowReaderOptions::new()))?;
    let (schema, roles) = resolve(path, Format::Parquet, true, &columns(metadata.schema()), options)?;
    let cell = if schema.single_precision { 4 } else { 8 };
    let piece_rows = (options.chunk_bytes / (cell * schema.features.len().max(1))).max(1);
    let schema = Arc::new(schema);
    let read = roles.iter().filter(|role| **role != Role::Skip).count();
    input.page_bytes = most / read.max(1);
    let decoder_bytes = decoder_bytes(&metadata, &roles);
    let file = ParquetFile {
        path: path.into(),
        pieces: Pieces::new(path, &metadata, piece_rows)?,
        decoders: (most / decoder_bytes.max(1)).max(1),
        semaphore: Semaphore::new(most, decoder_bytes),
        input,
        metadata,
        schema: Arc::clone(&schema),
        projections: [Projection::new(&roles, false), Projection::new(&roles, true)],
        cursors: Mutex::default(),
    };
    Ok((schema, Access::Grid(Arc::new(file))))
}

/// What a decoder holds of the columns that are read: as a rule a page of each, and a dictionary where there
/// is one.
fn decoder_bytes(metadata: &ArrowReaderMetadata, roles: &[Role]) -> usize {
    const PAGE: usize = 1 << 20;
    let of_column = |column: &ColumnChunkMetaData| {
        let pages = if column.dictionary_page_offset().is_some() { 2 } else { 1 };
        usize::try_from(column.uncompressed_size()).unwrap_or(0).min(pages * PAGE)
    };
    let is_read = |leaf: usize| {
        let root = metadata.parquet_schema().get_column_root_idx(leaf);
        roles.get(root).is_some_and(|role| *role != Role::Skip)
    };
    let of_group = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| is_read(*leaf));
        columns.map(|(_, column)| of_column(column)).sum::<usize>()
    };
    metadata.metadata().row_groups().iter().map(of_group).max().unwrap_or(0)
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
        cursors.push_back(cursor);
        if cursors.len() > rayon::current_num_threads().min(self.decoders) {
            cursors.pop_front();
        }
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
                .with_batch_size(self.pieces.piece_rows);
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
        self.pieces.count
    }

    fn rows(&self, index: usize) -> Range<usize> {
        self.pieces.get(index).rows
    }

    fn read(&self, index: usize, carried: bool) -> Result<Batch> {
        let piece = &self.pieces.get(index);
        let decoded = self.semaphore.pass(|| guard(&self.path, "Parquet", || self.decode(piece, carried)));
        let batch = decoded.map_err(|error| self.input.in_words(&self.path, error))?;
        if batch.num_rows() != piece.rows.len() {
            return Err(Error::Changed { path: self.path.clone() });
        }
        self.projections[usize::from(carried)].batch(&self.schema, piece.rows.start, &batch)
    }
}
