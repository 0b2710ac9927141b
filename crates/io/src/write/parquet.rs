//! Parquet output: row groups of bounded size, so that wide tables do not pile up in memory.

use std::io;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use covary::linalg::MatRef;

use super::atomic::Output;
use super::{Sink, record_batch, to_io};

/// Encoded bytes after which a row group ends.
const GROUP_BYTES: usize = 64 << 20;

struct ParquetSink {
    writer: ArrowWriter<Output>,
    schema: SchemaRef,
}

pub(super) fn create(output: Output, schema: SchemaRef) -> io::Result<Box<dyn Sink>> {
    // Cells are measurements: a dictionary of them only costs time.
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_created_by("covary".into())
        .build();
    let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(from_parquet)?;
    Ok(Box::new(ParquetSink { writer, schema }))
}

impl Sink for ParquetSink {
    fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> io::Result<()> {
        let batch = record_batch(&self.schema, carried, numbers)?;
        self.writer.write(&batch).map_err(from_parquet)?;
        match self.writer.in_progress_size() > GROUP_BYTES {
            true => self.writer.flush().map_err(from_parquet),
            false => Ok(()),
        }
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        self.writer.into_inner().map_err(from_parquet)
    }
}

/// The system's own error where there is one inside.
fn from_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => to_io(inner),
        other => io::Error::other(other),
    }
}
