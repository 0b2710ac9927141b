//! Arrow record batches that lie in memory already, as a grid: one chunk per batch.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;

use crate::arrow_columns::{Projection, columns};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::reader::{Access, Chunks};
use crate::schema::{ReadOptions, Role, Schema, resolve};

struct Memory {
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
    ends: Vec<usize>, // rows up to and with each batch
    roles: Vec<Role>,
}

/// Decides about the columns of record batches, as of a file; `name` is what messages call them.
pub(crate) fn open(
    name: &Path,
    arrow: &ArrowSchema,
    batches: Vec<RecordBatch>,
    options: &ReadOptions,
) -> Result<(Arc<Schema>, Access)> {
    let (schema, roles) = resolve(name, Format::Arrow, true, &columns(arrow), options)?;
    Ok(of(schema, batches, roles))
}

/// Record batches whose columns are decided about.
pub(crate) fn of(schema: Schema, batches: Vec<RecordBatch>, roles: Vec<Role>) -> (Arc<Schema>, Access) {
    let schema = Arc::new(schema);
    let batches: Vec<RecordBatch> = batches.into_iter().filter(|b| b.num_rows() > 0).collect();
    let count = |end: &mut usize, b: &RecordBatch| {
        *end += b.num_rows();
        Some(*end)
    };
    let ends = batches.iter().scan(0, count).collect();
    (Arc::clone(&schema), Access::Grid(Arc::new(Memory { schema, batches, ends, roles })))
}

impl Chunks for Memory {
    fn n_chunks(&self) -> usize {
        self.batches.len()
    }

    fn rows(&self, index: usize) -> Range<usize> {
        self.ends[index] - self.batches[index].num_rows()..self.ends[index]
    }

    fn read(&self, index: usize, carried: bool) -> Result<Batch> {
        let projection = Projection::new(&self.roles, carried);
        let columns = self.batches[index].project(&projection.indices);
        let columns = columns.map_err(Error::damaged(&self.schema.path, self.schema.format.name()))?;
        projection.batch(&self.schema, self.rows(index).start, &columns)
    }
}
