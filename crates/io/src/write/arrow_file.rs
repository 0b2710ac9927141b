//! Arrow IPC output: one record batch per batch of rows.

use std::io::{self, BufWriter};

use arrow_array::ArrayRef;
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use covary::linalg::MatRef;

use super::atomic::Output;
use super::{Sink, record_batch, to_io};

struct ArrowSink {
    writer: FileWriter<BufWriter<Output>>,
    schema: SchemaRef,
}

pub(super) fn create(output: Output, schema: SchemaRef) -> io::Result<Box<dyn Sink>> {
    let writer = FileWriter::try_new_buffered(output, &schema).map_err(to_io)?;
    Ok(Box::new(ArrowSink { writer, schema }))
}

impl Sink for ArrowSink {
    fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> io::Result<()> {
        self.writer.write(&record_batch(&self.schema, carried, numbers)?).map_err(to_io)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Output> {
        self.writer.finish().map_err(to_io)?;
        let buffered = self.writer.into_inner().map_err(to_io)?;
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
