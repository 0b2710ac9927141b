//! Text that passes once: decompressed and cut into whole records on one thread, parsed on all others.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use memchr::memrchr;

use super::encoding::Malformed;
use super::fields::{self, State};
use super::head::Head;
use super::parse::{self, Layout, Piece};
use super::{encoding, layout, sample};
use crate::batch::{Feed, Job};
use crate::error::{Error, Result};
use crate::format::{Compression, Format};
use crate::reader::{Access, open_file};
use crate::schema::{ReadOptions, Schema};

/// Opens a compressed file or standard input: header and sample; the rest is read when asked for.
pub(crate) fn open(
    path: &Path,
    format: Format,
    delimiter: u8,
    compression: Compression,
    options: &ReadOptions,
) -> Result<(Arc<Schema>, Access)> {
    let reader = decompressed(path, compression, options)?;
    let mut reader = encoding::converted(path, reader, options.encoding, trouble(path, format))?;
    let mut head = Head::read(&mut reader, delimiter, options).map_err(trouble(path, format))?;
    let sample = sample::examine(path, &head, delimiter, options)?;
    let start = sample.start;
    let layout = Arc::new(layout(path, format, sample, options)?);
    head.text.drain(..start.offset);
    let cutter = Cutter {
        reader,
        layout: Arc::clone(&layout),
        rest: head.text,
        size: options.chunk_bytes.max(1),
        longest: options.piece_bytes,
        row: 0,
        line: start.line,
        ended: head.whole,
    };
    let schema = Arc::clone(&layout.schema);
    Ok((schema, Access::Stream(Box::new(TextFeed { layout, source: Source::Idle(cutter) }))))
}

fn decompressed(
    path: &Path,
    compression: Compression,
    options: &ReadOptions,
) -> Result<Box<dyn Read + Send>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = BufReader::with_capacity(1 << 17, open_file(path)?);
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(file).map_err(Error::open(path))?;
            decoder.window_log_max(window_log(options)).map_err(Error::open(path))?;
            Box::new(decoder)
        }
    })
}

/// What zstd says to a window that is larger than allowed, and what is said about it.
const TOO_LARGE: &str = "too much memory";
const WINDOW: &str = "decompressing it takes more than the memory limit leaves; compress it anew without a \
    long window (zstd --long, --ultra), or raise the limit";

/// The largest window that zstd may look back through, as a power of two within what the format allows.
fn window_log(options: &ReadOptions) -> u32 {
    options.part_bytes().max(1).ilog2().clamp(10, 31)
}

/// What a failed read means: a decompressor's complaint is about the file, not about the disk.
fn trouble(path: &Path, format: Format) -> impl Fn(std::io::Error) -> Error {
    let is_malformed =
        |source: &std::io::Error| matches!(source.get_ref(), Some(inner) if inner.is::<Malformed>());
    move |source| match format {
        _ if is_malformed(&source) => Error::UnknownEncoding { path: path.into(), what: source.to_string() },
        Format::Delimited { compression: Compression::Zstd, .. }
            if source.to_string().contains(TOO_LARGE) =>
        {
            Error::Unsupported { path: path.into(), what: WINDOW.into() }
        }
        Format::Delimited { compression: Compression::Gzip | Compression::Zstd, .. }
            if source.raw_os_error().is_none() =>
        {
            Error::damaged(path, format.name())(source)
        }
        _ => Error::read(path)(source),
    }
}

/// Whole records that own their text.
struct OwnedPiece {
    text: Vec<u8>,
    rows: usize,
    first_row: usize,
    first_line: usize,
}

/// Cuts a stream of bytes into whole records.
struct Cutter {
    reader: Box<dyn Read + Send>,
    layout: Arc<Layout>,
    /// Read but not yet handed out.
    rest: Vec<u8>,
    size: usize,
    /// Most bytes that a record may have.
    longest: usize,
    row: usize,
    line: usize,
    ended: bool,
}

impl Cutter {
    fn next_piece(&mut self) -> Result<Option<OwnedPiece>> {
        let mut size = self.size;
        loop {
            self.fill(size)?;
            if self.rest.is_empty() {
                return Ok(None);
            }
            // Up to `size` bytes, or the first whole record if that is longer.
            let piece = match self.ended && self.rest.len() <= size {
                true => &self.rest[..],
                false => {
                    let end = size.min(self.rest.len());
                    &self.rest[..memrchr(b'\n', &self.rest[..end]).map_or(0, |i| i + 1)]
                }
            };
            let survey = fields::survey(piece, self.layout.dialect.delimiter, State::Record);
            if survey.cut > 0 {
                let piece = self.cut(survey.cut);
                if piece.rows > 0 {
                    return Ok(Some(piece));
                }
                size = self.size;
                continue;
            }
            let (path, line) = (&self.layout.schema.path, self.line);
            if self.ended && self.rest.len() <= size {
                return Err(Error::Unclosed { path: path.clone(), line });
            }
            if size > self.longest {
                return Err(Error::LongRow { path: path.clone(), line, most: self.longest });
            }
            size *= 2;
        }
    }

    /// Reads until `size` bytes wait, or the end.
    fn fill(&mut self, size: usize) -> Result<()> {
        let missing = size.saturating_sub(self.rest.len());
        if self.ended || missing == 0 {
            return Ok(());
        }
        let schema = &self.layout.schema;
        let got = (&mut self.reader)
            .take(missing as u64)
            .read_to_end(&mut self.rest)
            .map_err(trouble(&schema.path, schema.format))?;
        self.ended = got < missing;
        Ok(())
    }

    /// Takes whole records off the front.
    fn cut(&mut self, at: usize) -> OwnedPiece {
        let rest = self.rest.split_off(at);
        let text = std::mem::replace(&mut self.rest, rest);
        let survey = fields::survey(&text, self.layout.dialect.delimiter, State::Record);
        let piece = OwnedPiece { text, rows: survey.rows, first_row: self.row, first_line: self.line };
        self.row += survey.rows;
        self.line += survey.lines;
        piece
    }
}

/// The cutter before and after it got its thread.
enum Source {
    Idle(Cutter),
    Running(Receiver<Result<Option<OwnedPiece>>>),
    Ended,
}

struct TextFeed {
    layout: Arc<Layout>,
    source: Source,
}

impl TextFeed {
    fn next_piece(&mut self) -> Result<Option<OwnedPiece>> {
        if let Source::Idle(_) = self.source
            && let Source::Idle(cutter) = std::mem::replace(&mut self.source, Source::Ended)
        {
            self.source = Source::Running(start(cutter)?);
        }
        match &self.source {
            Source::Running(receiver) => receiver.recv().unwrap_or_else(|_| Err(self.lost())),
            _ => Ok(None),
        }
    }

    /// The thread ended without saying so.
    fn lost(&self) -> Error {
        Error::read(&self.layout.schema.path)(std::io::Error::other("the reading thread is gone"))
    }
}

/// Reads ahead by two pieces; ends when nobody listens any more.
fn start(mut cutter: Cutter) -> Result<Receiver<Result<Option<OwnedPiece>>>> {
    let (sender, receiver) = sync_channel(2);
    let path = cutter.layout.schema.path.clone();
    std::thread::Builder::new()
        .name("covary-read".into())
        .spawn(move || {
            loop {
                let piece = cutter.next_piece();
                let last = !matches!(piece, Ok(Some(_)));
                if sender.send(piece).is_err() || last {
                    return;
                }
            }
        })
        .map_err(Error::read(&path))?;
    Ok(receiver)
}

impl Feed for TextFeed {
    fn next_job(&mut self, carried: bool) -> Result<Option<Job>> {
        let layout = Arc::clone(&self.layout);
        Ok(self.next_piece()?.map(|OwnedPiece { text, rows, first_row, first_line }| -> Job {
            Box::new(move || {
                parse::parse(&layout, &Piece { text: &text, rows, first_row, first_line }, carried)
            })
        }))
    }
}
