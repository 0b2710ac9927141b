//! CSV and TSV output: rows formatted on all cores, written in order, compressed on the way if the ending
//! says so.

use std::io::{self, BufWriter, Write};

use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::ArrowError;
use covary::linalg::MatRef;
use flate2::write::GzEncoder;
use rayon::prelude::*;

use super::Sink;
use super::atomic::Output;
use crate::format::Compression;

/// Rows that one thread formats at a time.
const ROWS: usize = 512;
const ZSTD_LEVEL: i32 = 3;

/// Compressors around the output.
enum Encoder {
    Plain(BufWriter<Output>),
    Gzip(BufWriter<GzEncoder<Output>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Output>>),
}

struct TextSink {
    encoder: Encoder,
    delimiter: u8,
    /// A row whose only cell is empty would be a blank line, and readers skip those.
    single: bool,
}

pub(super) fn create(
    output: Output,
    names: &[&str],
    delimiter: u8,
    compression: Compression,
) -> io::Result<Box<dyn Sink>> {
    let encoder = match compression {
        Compression::None => Encoder::Plain(BufWriter::with_capacity(1 << 16, output)),
        Compression::Gzip => {
            Encoder::Gzip(BufWriter::new(GzEncoder::new(output, flate2::Compression::default())))
        }
        Compression::Zstd => {
            Encoder::Zstd(zstd::stream::write::Encoder::new(BufWriter::new(output), ZSTD_LEVEL)?)
        }
    };
    let mut sink = TextSink { encoder, delimiter, single: names.len() == 1 };
    let mut header = Vec::new();
    for name in names {
        push_text(&mut header, name, delimiter);
        header.push(delimiter);
    }
    sink.end_row(&mut header, 0);
    sink.encoder.writer().write_all(&header)?;
    Ok(Box::new(sink))
}

impl Encoder {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(writer) => writer,
            Self::Gzip(writer) => writer,
            Self::Zstd(writer) => writer,
        }
    }
}

impl TextSink {
    /// Turns the delimiter behind the last cell into the end of the row.
    fn end_row(&self, out: &mut Vec<u8>, start: usize) {
        out.pop();
        if self.single && out.len() == start {
            out.extend_from_slice(b"\"\"");
        }
        out.push(b'\n');
    }

    fn format(
        &self,
        carried: &[ArrayRef],
        numbers: MatRef<'_, f64>,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<u8>, ArrowError> {
        let options = FormatOptions::default();
        let texts: Vec<(&ArrayRef, ArrayFormatter<'_>)> = carried
            .iter()
            .map(|c| Ok((c, ArrayFormatter::try_new(c.as_ref(), &options)?)))
            .collect::<Result<_, ArrowError>>()?;
        let mut digits = ryu::Buffer::new();
        let mut out = Vec::with_capacity(rows.len() * (numbers.ncols() + texts.len()) * 20);
        for i in rows {
            let start = out.len();
            for (column, formatter) in &texts {
                if column.is_valid(i) {
                    push_text(&mut out, &formatter.value(i).try_to_string()?, self.delimiter);
                }
                out.push(self.delimiter);
            }
            for j in 0..numbers.ncols() {
                push_number(&mut out, numbers[(i, j)], &mut digits);
                out.push(self.delimiter);
            }
            self.end_row(&mut out, start);
        }
        Ok(out)
    }
}

/// The shortest text that reads back as the same number; a missing value is an empty cell.
fn push_number(out: &mut Vec<u8>, value: f64, digits: &mut ryu::Buffer) {
    if !value.is_nan() {
        let text = digits.format(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
    }
}

fn push_text(out: &mut Vec<u8>, text: &str, delimiter: u8) {
    let special = |b: u8| b == delimiter || matches!(b, b'"' | b'\n' | b'\r');
    if !text.bytes().any(special) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

impl Sink for TextSink {
    fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> io::Result<()> {
        let n = numbers.nrows();
        // A few pieces per thread at a time: formatted text never piles up.
        let step = ROWS * 4 * rayon::current_num_threads();
        for start in (0..n).step_by(step) {
            let end = (start + step).min(n);
            let pieces: Vec<Result<Vec<u8>, ArrowError>> = (start..end)
                .into_par_iter()
                .step_by(ROWS)
                .map(|i| self.format(carried, numbers, i..(i + ROWS).min(end)))
                .collect();
            for piece in pieces {
                self.encoder.writer().write_all(&piece.map_err(super::to_io)?)?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        let into_error = io::IntoInnerError::into_error;
        match self.encoder {
            Encoder::Plain(writer) => writer.into_inner().map_err(into_error),
            Encoder::Gzip(writer) => writer.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
            Encoder::Zstd(writer) => writer.finish()?.into_inner().map_err(into_error),
        }
    }
}
