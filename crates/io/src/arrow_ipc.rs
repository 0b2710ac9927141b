//! The Arrow IPC file format as a grid: one chunk per record batch.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Footer, Message, root_as_footer, root_as_message};
use arrow_schema::ArrowError;
use arrow_schema::SchemaRef;

use crate::arrow_columns::{Projection, Semaphore, columns, guard};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::positioned::read_exact_at;
use crate::reader::{Access, Chunks, open_regular};
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
    /// Most bytes of a record batch.
    most: usize,
    semaphore: Semaphore,
}

/// Opens an Arrow IPC file: footer, dictionaries, and the number of rows of each batch.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<(Arc<Schema>, Access)> {
    let (file, length) = open_regular(path, Format::Arrow)?;
    let bytes = guard(path, "Arrow IPC", || read_footer(&file, length))?;
    let footer = root_as_footer(&bytes).map_err(Error::damaged(path, "Arrow IPC"))?;
    let arrow_schema = guard(path, "Arrow IPC", || footer_schema(&footer))?;
    let (schema, roles) = resolve(path, Format::Arrow, true, &columns(&arrow_schema), options)?;
    let schema = Arc::new(schema);
    let most = options.part_bytes() / COPIES;
    let dictionaries = dictionaries(path, &file, &footer, most)?;
    let projected = |carried| {
        guard(path, "Arrow IPC", || project(&footer, &dictionaries, &arrow_schema, &roles, carried))
    };
    let projected = [projected(false)?, projected(true)?];
    let blocks = guard(path, "Arrow IPC", || blocks(&file, &footer))?;
    let largest = blocks.iter().map(|(block, _)| block_bytes(block)).max().unwrap_or(0);
    check_size(path, largest, most)?;
    let semaphore = Semaphore::new(options.part_bytes(), largest.saturating_mul(COPIES));
    let path = path.into();
    let file = ArrowFile { path, file, schema: Arc::clone(&schema), blocks, projected, most, semaphore };
    Ok((schema, Access::Grid(Arc::new(file))))
}

/// A batch is in memory as it lies in the file and as cells.
const COPIES: usize = 2;

fn block_bytes(block: &Block) -> usize {
    let length = i64::from(block.metaDataLength()).saturating_add(block.bodyLength());
    usize::try_from(length).unwrap_or(0)
}

fn check_size(path: &Path, needed: usize, most: usize) -> Result<()> {
    match needed <= most {
        true => Ok(()),
        false => Err(Error::LargePart { path: path.into(), part: "a record batch", needed, most }),
    }
}

/// Dictionaries, which all batches share.
fn dictionaries(path: &Path, file: &File, footer: &Footer<'_>, most: usize) -> Result<Vec<(Block, Buffer)>> {
    let read = |block: &Block| Ok((*block, read_checked(path, file, block, most)?));
    footer.dictionaries().iter().flatten().map(read).collect()
}

/// The bytes of a block, if neither they nor what they are decompressed to are too many.
fn read_checked(path: &Path, file: &File, block: &Block, most: usize) -> Result<Buffer> {
    check_size(path, block_bytes(block), most)?;
    let bytes = guard(path, "Arrow IPC", || read_block(file, block))?;
    let needed = guard(path, "Arrow IPC", || decompressed_bytes(&bytes, block))?;
    check_size(path, needed, most)?;
    Ok(bytes)
}

/// What the buffers of a block say that they take; a decoder believes them.
fn decompressed_bytes(bytes: &[u8], block: &Block) -> Result<usize, ArrowError> {
    let body_start = usize::try_from(block.metaDataLength()).unwrap_or(usize::MAX);
    let (head, body) = bytes.split_at_checked(body_start).ok_or_else(|| damaged("a block has no head"))?;
    let message = message(head)?;
    let batch = message.header_as_record_batch();
    let batch =
        batch.or_else(|| message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()));
    let compressed = batch.filter(|batch| batch.compression().is_some());
    let told = |buffer: &arrow_ipc::Buffer| -> usize {
        let start = usize::try_from(buffer.offset()).unwrap_or(usize::MAX);
        let size =
            body.get(start..).and_then(|rest| rest.first_chunk::<8>()).map(|size| i64::from_le_bytes(*size));
        let is_empty = buffer.length() == 0;
        size.filter(|_| !is_empty).and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
    };
    let buffers = compressed.and_then(|batch| batch.buffers());
    Ok(buffers.iter().flatten().map(told).fold(bytes.len(), usize::saturating_add))
}

fn damaged(what: &str) -> ArrowError {
    ArrowError::ParseError(what.into())
}

/// The message in the head of a block, behind its length.
fn message(head: &[u8]) -> Result<Message<'_>, ArrowError> {
    let message = match head {
        [0xff, 0xff, 0xff, 0xff, _, _, _, _, rest @ ..] | [_, _, _, _, rest @ ..] => rest,
        _ => return Err(damaged("a record batch has no head")),
    };
    root_as_message(message).map_err(|e| damaged(&e.to_string()))
}

fn read_footer(file: &File, length: u64) -> Result<Vec<u8>, ArrowError> {
    if length < TRAILER || read_exact_at(file, 0, MAGIC.len())? != MAGIC {
        return Err(damaged("it does not begin as one"));
    }
    let trailer: [u8; 10] =
        read_exact_at(file, length - TRAILER, 10)?.try_into().map_err(|_| damaged("it has no end"))?;
    let footer = read_footer_length(trailer)?;
    let start = (length - TRAILER).checked_sub(footer as u64).ok_or_else(|| damaged("it has no footer"))?;
    Ok(read_exact_at(file, start, footer)?)
}

fn footer_schema(footer: &Footer<'_>) -> Result<SchemaRef, ArrowError> {
    let schema = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
    Ok(Arc::new(try_fb_to_schema(schema)?))
}

fn project(
    footer: &Footer<'_>,
    dictionaries: &[(Block, Buffer)],
    schema: &SchemaRef,
    roles: &[Role],
    carried: bool,
) -> Result<Projected, ArrowError> {
    let projection = Projection::new(roles, carried);
    let mut decoder =
        FileDecoder::new(Arc::clone(schema), footer.version()).with_projection(projection.indices.clone());
    for (block, bytes) in dictionaries {
        decoder.read_dictionary(block, bytes)?;
    }
    Ok(Projected { decoder, projection })
}

/// The record batches and their rows, from the head of each message.
fn blocks(file: &File, footer: &Footer<'_>) -> Result<Vec<(Block, Range<usize>)>, ArrowError> {
    let (mut blocks, mut row) = (Vec::new(), 0_usize);
    for block in footer.recordBatches().iter().flatten() {
        let rows = row..row.checked_add(count_rows(file, block)?).ok_or_else(|| damaged("too many rows"))?;
        row = rows.end;
        if !rows.is_empty() {
            blocks.push((*block, rows));
        }
    }
    Ok(blocks)
}

fn count_rows(file: &File, block: &Block) -> Result<usize, ArrowError> {
    let (offset, length) = extent(file, block.offset(), i64::from(block.metaDataLength()))?;
    let head = read_exact_at(file, offset, length)?;
    let batch = message(&head)?.header_as_record_batch().ok_or_else(|| damaged("a record batch is none"))?;
    usize::try_from(batch.length()).map_err(|e| damaged(&e.to_string()))
}

/// A place in the file, which must hold it.
fn extent(file: &File, offset: i64, length: i64) -> Result<(u64, usize), ArrowError> {
    let (Ok(offset), Ok(length)) = (u64::try_from(offset), usize::try_from(length)) else {
        return Err(damaged("a block has a negative place"));
    };
    match length as u64 <= file.metadata()?.len().saturating_sub(offset) {
        true => Ok((offset, length)),
        false => Err(ArrowError::ParseError(format!("{length} bytes promised at {offset} are not there"))),
    }
}

fn read_block(file: &File, block: &Block) -> Result<Buffer, ArrowError> {
    let length = i64::from(block.metaDataLength()).saturating_add(block.bodyLength());
    let (offset, length) = extent(file, block.offset(), length)?;
    Ok(Buffer::from_vec(read_exact_at(file, offset, length)?))
}

impl ArrowFile {
    fn decode(&self, block: &Block, decoder: &FileDecoder) -> Result<RecordBatch> {
        let bytes = read_checked(&self.path, &self.file, block, self.most)?;
        guard(&self.path, "Arrow IPC", || {
            let batch = decoder.read_record_batch(block, &bytes)?;
            batch.ok_or_else(|| damaged("a record batch is empty"))
        })
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
        let batch = self.semaphore.pass(|| self.decode(block, decoder))?;
        if batch.num_rows() != rows.len() {
            return Err(Error::Changed { path: self.path.clone() });
        }
        projection.batch(&self.schema, rows.start, &batch)
    }
}
