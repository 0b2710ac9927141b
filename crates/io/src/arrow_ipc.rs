//! The Arrow IPC file format as a grid: one chunk per record batch.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Footer, root_as_footer, root_as_message};
use arrow_schema::ArrowError;
use arrow_schema::SchemaRef;

use crate::arrow_columns::{Projection, columns, guard};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::positioned::read_exact_at;
use crate::reader::{Access, Chunks, open_file};
use crate::schema::{ReadOptions, Role, Schema, resolve};

const MAGIC: &[u8] = b"ARROW1";
/// Footer length and magic at the end.
const TRAILER: u64 = 10;

/// A decoder and the columns that it decodes.
struct Projected {
    decoder: FileDecoder,
    projection: Projection,
}

struct ArrowFile {
    path: PathBuf,
    file: File,
    schema: Arc<Schema>,
    blocks: Vec<(Block, Range<usize>)>,
    /// Without and with the carried columns.
    projected: [Projected; 2],
}

/// Opens an Arrow IPC file: footer, dictionaries, and the number of rows of each batch.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<(Arc<Schema>, Access)> {
    let file = open_file(path)?;
    let length = file.metadata().map_err(Error::read(path))?.len();
    if length == 0 {
        return Err(Error::Empty { path: path.into() });
    }
    let bytes = guard(path, "Arrow IPC", || read_footer(&file, length))?;
    let footer = root_as_footer(&bytes).map_err(Error::damaged(path, "Arrow IPC"))?;
    let arrow_schema = guard(path, "Arrow IPC", || footer_schema(&footer))?;
    let (schema, roles) = resolve(path, Format::Arrow, true, &columns(&arrow_schema), options)?;
    let schema = Arc::new(schema);
    let projected =
        |carried| guard(path, "Arrow IPC", || project(&file, &footer, &arrow_schema, &roles, carried));
    let projected = [projected(false)?, projected(true)?];
    let blocks = guard(path, "Arrow IPC", || blocks(&file, &footer))?;
    let file = ArrowFile { path: path.into(), file, schema: Arc::clone(&schema), blocks, projected };
    Ok((schema, Access::Grid(Arc::new(file))))
}

fn read_footer(file: &File, length: u64) -> Result<Vec<u8>, ArrowError> {
    let missing = |what: &str| ArrowError::ParseError(what.into());
    if length < TRAILER || read_exact_at(file, 0, MAGIC.len())? != MAGIC {
        return Err(missing("it does not begin as one"));
    }
    let trailer: [u8; 10] =
        read_exact_at(file, length - TRAILER, 10)?.try_into().map_err(|_| missing("it has no end"))?;
    let footer = read_footer_length(trailer)?;
    let start = (length - TRAILER).checked_sub(footer as u64).ok_or_else(|| missing("it has no footer"))?;
    Ok(read_exact_at(file, start, footer)?)
}

fn footer_schema(footer: &Footer<'_>) -> Result<SchemaRef, ArrowError> {
    let schema = footer.schema().ok_or_else(|| ArrowError::ParseError("it has no schema".into()))?;
    Ok(Arc::new(try_fb_to_schema(schema)?))
}

fn project(
    file: &File,
    footer: &Footer<'_>,
    schema: &SchemaRef,
    roles: &[Role],
    carried: bool,
) -> Result<Projected, ArrowError> {
    let projection = Projection::new(roles, carried);
    let mut decoder =
        FileDecoder::new(Arc::clone(schema), footer.version()).with_projection(projection.indices.clone());
    for block in footer.dictionaries().iter().flatten() {
        decoder.read_dictionary(block, &read_block(file, block)?)?;
    }
    Ok(Projected { decoder, projection })
}

/// The record batches and their rows, from the head of each message.
fn blocks(file: &File, footer: &Footer<'_>) -> Result<Vec<(Block, Range<usize>)>, ArrowError> {
    let (mut blocks, mut row) = (Vec::new(), 0);
    for block in footer.recordBatches().iter().flatten() {
        let rows = count_rows(file, block)?;
        if rows > 0 {
            blocks.push((*block, row..row + rows));
        }
        row += rows;
    }
    Ok(blocks)
}

fn count_rows(file: &File, block: &Block) -> Result<usize, ArrowError> {
    let damaged = |what: &str| ArrowError::ParseError(what.into());
    let (offset, length) = extent(block.offset(), i64::from(block.metaDataLength()))?;
    let head = read_exact_at(file, offset, length)?;
    let message = match head.as_slice() {
        [0xff, 0xff, 0xff, 0xff, _, _, _, _, rest @ ..] | [_, _, _, _, rest @ ..] => rest,
        _ => return Err(damaged("a record batch has no head")),
    };
    let message = root_as_message(message).map_err(|e| damaged(&e.to_string()))?;
    let batch = message.header_as_record_batch().ok_or_else(|| damaged("a record batch is none"))?;
    usize::try_from(batch.length()).map_err(|e| damaged(&e.to_string()))
}

fn extent(offset: i64, length: i64) -> Result<(u64, usize), ArrowError> {
    match (u64::try_from(offset), usize::try_from(length)) {
        (Ok(offset), Ok(length)) => Ok((offset, length)),
        _ => Err(ArrowError::ParseError("a block has a negative place".into())),
    }
}

fn read_block(file: &File, block: &Block) -> Result<Buffer, ArrowError> {
    let length = i64::from(block.metaDataLength()).saturating_add(block.bodyLength());
    let (offset, length) = extent(block.offset(), length)?;
    let available = file.metadata()?.len().saturating_sub(offset);
    match length as u64 <= available {
        true => Ok(Buffer::from_vec(read_exact_at(file, offset, length)?)),
        false => Err(ArrowError::ParseError(format!("{length} bytes promised at {offset} are not there"))),
    }
}

impl ArrowFile {
    fn decode(&self, block: &Block, decoder: &FileDecoder) -> Result<RecordBatch, ArrowError> {
        let batch = decoder.read_record_batch(block, &read_block(&self.file, block)?)?;
        batch.ok_or_else(|| ArrowError::ParseError("a record batch is empty".into()))
    }
}

impl Chunks for ArrowFile {
    fn n_chunks(&self) -> usize {
        self.blocks.len()
    }

    fn rows(&self, index: usize) -> Range<usize> {
        self.blocks[index].1.clone()
    }

    fn read(&self, index: usize, carried: bool) -> Result<Batch> {
        let (block, rows) = &self.blocks[index];
        let Projected { decoder, projection } = &self.projected[usize::from(carried)];
        let batch = guard(&self.path, "Arrow IPC", || self.decode(block, decoder))?;
        if batch.num_rows() != rows.len() {
            return Err(Error::Changed { path: self.path.clone() });
        }
        projection.batch(&self.schema, rows.start, &batch)
    }
}
