//! A plain text file as a grid: chunks of whole records, parsed independently of each other.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::head::Head;
use super::index::{self, Body, Extent};
use super::parse::{self, Layout, Piece};
use super::{encoding, layout, sample, stream};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::{Compression, Format};
use crate::positioned::read_at;
use crate::reader::{Access, Chunks, open_file};
use crate::schema::{ReadOptions, Schema};

struct TextFile {
    file: File,
    layout: Layout,
    extents: Vec<Extent>,
}

/// Opens a plain file: header, sample, index. One whose text must be converted passes once.
pub(crate) fn open(
    path: &Path,
    format: Format,
    delimiter: u8,
    options: &ReadOptions,
) -> Result<(Arc<Schema>, Access)> {
    let file = open_file(path)?;
    let mut first = [0; encoding::FIRST];
    let found = read_at(&file, &mut first, 0).map_err(Error::read(path))?;
    if encoding::foreign(path, &first[..found], options.encoding)?.is_some() {
        return stream::open(path, format, delimiter, Compression::None, options);
    }
    let head = Head::read(&mut &file, delimiter, options).map_err(Error::read(path))?;
    let sample = sample::examine(path, &head, delimiter, options)?;
    let start = sample.start;
    let layout = layout(path, format, sample, options)?;
    let length = file.metadata().map_err(Error::read(path))?.len();
    let body = Body {
        path,
        file: &file,
        bytes: start.offset as u64..length,
        first_line: start.line,
        delimiter: layout.dialect.delimiter,
        longest: options.piece_bytes as u64,
    };
    let extents = index::build(&body, options.chunk_bytes as u64)?;
    let schema = Arc::clone(&layout.schema);
    Ok((schema, Access::Grid(Arc::new(TextFile { file, layout, extents }))))
}

impl Chunks for TextFile {
    fn n_chunks(&self) -> usize {
        self.extents.len()
    }

    fn rows(&self, index: usize) -> Range<usize> {
        self.extents[index].rows.clone()
    }

    fn read(&self, index: usize, carried: bool) -> Result<Batch> {
        let Extent { bytes, rows, first_line } = &self.extents[index];
        let text = index::read_extent(&self.layout.schema.path, &self.file, bytes)?;
        let piece = Piece { text: &text, rows: rows.len(), first_row: rows.start, first_line: *first_line };
        parse::parse(&self.layout, &piece, carried)
    }
}
