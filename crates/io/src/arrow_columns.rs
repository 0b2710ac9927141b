//! Arrow columns as cells: which types are numbers, and how a record batch becomes a batch. Null is a missing
//! value.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use covary::data::Order;
use serde::Deserialize;

use crate::batch::{Batch, Numbers};
use crate::error::{Error, Result};
use crate::schema::{Column, Kind, Role, Schema};

/// The columns of an Arrow schema.
pub(crate) fn columns(schema: &arrow_schema::Schema) -> Vec<Column> {
    let index = pandas_index(schema);
    let column = |field: &arrow_schema::FieldRef| Column {
        is_index: index.contains(field.name()),
        ..Column::new(field.name().clone(), kind(field.data_type()), field.data_type().clone())
    };
    schema.fields().iter().map(column).collect()
}

/// What pandas notes about the frame that a file was written from.
#[derive(Default, Deserialize)]
struct Pandas {
    /// Names of columns; an index that needs none is described instead.
    #[serde(default)]
    index_columns: Vec<serde_json::Value>,
}

/// The columns of a table that were the index of a frame of pandas, as it notes in the schema. A note that
/// makes no sense is no reason to give up.
pub fn pandas_index(schema: &arrow_schema::Schema) -> Vec<String> {
    let note = schema.metadata().get("pandas").and_then(|text| serde_json::from_str(text).ok());
    let Pandas { index_columns } = note.unwrap_or_default();
    index_columns.iter().filter_map(|column| column.as_str().map(str::to_owned)).collect()
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Float16 | DataType::Float32 => Kind::Single,
        DataType::Boolean => Kind::Boolean,
        DataType::Dictionary(_, values) => kind(values),
        // A column of type null holds nothing but missing values.
        DataType::Null => Kind::Double,
        other if other.is_numeric() => Kind::Double,
        other => Kind::Other(format!("its type is {other}")),
    }
}

/// The columns that must be decoded, by index and by role.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    pub(crate) indices: Vec<usize>,
    roles: Vec<Role>,
}

impl Projection {
    pub(crate) fn new(roles: &[Role], carried: bool) -> Self {
        let is_read = |role: &Role| match role {
            Role::Feature(_) | Role::Weight => true,
            Role::Carried(_) => carried,
            Role::Skip => false,
        };
        let indices: Vec<usize> = (0..roles.len()).filter(|&i| is_read(&roles[i])).collect();
        let roles = indices.iter().map(|&i| roles[i]).collect();
        Self { indices, roles }
    }

    /// Converts the projected columns of a record batch.
    pub(crate) fn batch(&self, schema: &Schema, first_row: usize, rows: &RecordBatch) -> Result<Batch> {
        let numbers = match schema.single_precision {
            true => Numbers::F32(self.cells::<Float32Type>(schema, rows, f32::NAN)?),
            false => Numbers::F64(self.cells::<Float64Type>(schema, rows, f64::NAN)?),
        };
        let (mut weights, mut carried) = (None, Vec::new());
        for (role, column) in self.roles.iter().zip(rows.columns()) {
            match role {
                Role::Weight => {
                    let mut values = vec![f64::NAN; rows.num_rows()];
                    copy::<Float64Type>(schema, column, &mut values)?;
                    weights = Some(values);
                }
                // Carried columns are numbered in the order of the file.
                Role::Carried(_) => carried.push(column.clone()),
                Role::Feature(_) | Role::Skip => {}
            }
        }
        Batch::new(schema, first_row, rows.num_rows(), (numbers, Order::Columns), weights, carried)
    }

    /// Column after column, in the order of the features.
    fn cells<T: ArrowPrimitiveType>(
        &self,
        schema: &Schema,
        rows: &RecordBatch,
        missing: T::Native,
    ) -> Result<Vec<T::Native>> {
        let n = rows.num_rows();
        let mut cells = vec![missing; n * schema.features.len()];
        for (role, column) in self.roles.iter().zip(rows.columns()) {
            if let Role::Feature(k) = role {
                copy::<T>(schema, column, &mut cells[k * n..(k + 1) * n])?;
            }
        }
        Ok(cells)
    }
}

/// Copies the values of a column into cells that are NaN.
fn copy<T: ArrowPrimitiveType>(schema: &Schema, column: &ArrayRef, out: &mut [T::Native]) -> Result<()> {
    let damaged = Error::damaged(&schema.path, schema.format.name());
    let cast = cast(column, &T::DATA_TYPE).map_err(damaged)?;
    let array: &PrimitiveArray<T> = cast.as_primitive();
    match array.nulls() {
        None => out.copy_from_slice(array.values()),
        Some(nulls) => nulls.valid_indices().for_each(|i| out[i] = array.values()[i]),
    }
    Ok(())
}

/// Lets a few threads at a time through: what each of them holds is large.
pub(crate) struct Semaphore {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Semaphore {
    /// As many as fit if each needs so much.
    pub(crate) fn new(available: usize, needed: usize) -> Self {
        Self { free: Mutex::new((available / needed.max(1)).max(1)), freed: Condvar::new() }
    }

    /// Does something that must not wait for another thread.
    pub(crate) fn pass<T>(&self, work: impl FnOnce() -> T) -> T {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        let done = work();
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
        done
    }
}

/// Runs a decoder; that it panics on a damaged file is the file's fault, not the caller's.
pub(crate) fn guard<T, E: std::fmt::Display>(
    path: &Path,
    format: &'static str,
    decode: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(result) => result.map_err(Error::damaged(path, format)),
        Err(_) => Err(Error::damaged(path, format)("its contents make no sense")),
    }
}
