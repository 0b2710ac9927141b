//! The array file of `NumPy` as a grid: rows or columns read at their place, numbers of any width and byte
//! order.

use std::fs::File;
use std::io::Seek;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};
use arrow_schema::DataType;
use covary::data::{Order, Real};
use npyz::{DType, Endianness, NpyHeader, TypeChar};

use crate::arrow_columns::guard;
use crate::batch::{Batch, Numbers};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::positioned::read_exact_at;
use crate::reader::{Access, Chunks, open_regular};
use crate::schema::{Column, Kind, ReadOptions, Role, Schema, check_width, default_name, resolve};

/// How one number is stored.
#[derive(Debug, Clone, Copy)]
struct Element {
    kind: TypeChar,
    size: usize,
    big_endian: bool,
}

struct NpyFile {
    path: PathBuf,
    file: File,
    schema: Arc<Schema>,
    roles: Vec<Role>,
    element: Element,
    order: Order,
    data_start: u64,
    n_rows: usize,
    chunk_rows: usize,
}

/// Opens an NPY file: its header, checked against the length of the file.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<(Arc<Schema>, Access)> {
    let (mut file, length) = open_regular(path, Format::Npy)?;
    let header = guard(path, "NPY", || NpyHeader::from_reader(&mut file))?;
    let data_start = file.stream_position().map_err(Error::read(path))?;
    let element = element(path, &header.dtype())?;
    let (n_rows, n_columns) = shape(path, header.shape())?;
    check_length(path, header.shape(), element, length - data_start)?;
    let kind = if element.size == 4 && element.kind == TypeChar::Float { Kind::Single } else { Kind::Double };
    check_width(path, n_columns, options)?;
    let column = |i| Column::new(default_name(i), kind.clone(), DataType::Float64);
    let columns: Vec<Column> = (0..n_columns).map(column).collect();
    let (schema, roles) = resolve(path, Format::Npy, false, &columns, options)?;
    let schema = Arc::new(schema);
    let chunk_rows = (options.chunk_bytes / (element.size * n_columns)).max(1);
    let order = match header.order() {
        npyz::Order::C => Order::Rows,
        npyz::Order::Fortran => Order::Columns,
    };
    let path = path.to_path_buf();
    let npy = NpyFile {
        path,
        file,
        schema: Arc::clone(&schema),
        roles,
        element,
        order,
        data_start,
        n_rows,
        chunk_rows,
    };
    Ok((schema, Access::Grid(Arc::new(npy))))
}

fn element(path: &Path, dtype: &DType) -> Result<Element> {
    let unsupported = || Error::Unsupported {
        path: path.into(),
        what: format!(
            "it holds {}, but only booleans, integers and 4- or 8-byte floats can be read; convert it with \
            astype",
            dtype.descr()
        ),
    };
    let DType::Plain(plain) = dtype else { return Err(unsupported()) };
    let (kind, size) = (plain.type_char(), plain.num_bytes().ok_or_else(unsupported)?);
    match (kind, size) {
        (TypeChar::Bool, 1) | (TypeChar::Int | TypeChar::Uint, 1 | 2 | 4 | 8) | (TypeChar::Float, 4 | 8) => {
            Ok(Element { kind, size, big_endian: plain.endianness() == Endianness::Big })
        }
        _ => Err(unsupported()),
    }
}

/// Rows and columns; one dimension is one column.
fn shape(path: &Path, shape: &[u64]) -> Result<(usize, usize)> {
    let size = |n: u64| usize::try_from(n).map_err(Error::damaged(path, "NPY"));
    match *shape {
        [n] => Ok((size(n)?, 1)),
        [_, 0] => Err(Error::NoFeatures { path: path.into(), selected: false, text: None }),
        [n, p] => Ok((size(n)?, size(p)?)),
        _ => Err(Error::Unsupported {
            path: path.into(),
            what: format!("the array has {} dimensions, but a table has two; reshape it", shape.len()),
        }),
    }
}

fn check_length(path: &Path, shape: &[u64], element: Element, found: u64) -> Result<()> {
    let expected = shape.iter().try_fold(element.size as u64, |bytes, n| bytes.checked_mul(*n));
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(Error::damaged(path, "NPY")(format!(
            "the header promises {expected} bytes of numbers, the file has {found}"
        ))),
        None => Err(Error::damaged(path, "NPY")("the header promises more numbers than can exist")),
    }
}

impl Element {
    fn decode<T: Real>(self, bytes: &[u8]) -> Vec<T> {
        macro_rules! decode {
            ($type:ty) => {
                bytes
                    .chunks_exact(size_of::<$type>())
                    .map(|cell| {
                        let mut raw = [0; size_of::<$type>()];
                        raw.copy_from_slice(cell);
                        let value = match self.big_endian {
                            true => <$type>::from_be_bytes(raw),
                            false => <$type>::from_le_bytes(raw),
                        };
                        T::from_f64(value as f64)
                    })
                    .collect()
            };
        }
        match (self.kind, self.size) {
            (TypeChar::Float, 4) => decode!(f32),
            (TypeChar::Float, _) => decode!(f64),
            (TypeChar::Int, 1) => decode!(i8),
            (TypeChar::Int, 2) => decode!(i16),
            (TypeChar::Int, 4) => decode!(i32),
            (TypeChar::Int, _) => decode!(i64),
            (_, 1) => decode!(u8),
            (_, 2) => decode!(u16),
            (_, 4) => decode!(u32),
            _ => decode!(u64),
        }
    }
}

impl NpyFile {
    /// `count` numbers from number `start` of the array on.
    fn numbers<T: Real>(&self, start: usize, count: usize) -> Result<Vec<T>> {
        let offset = self.data_start + (start * self.element.size) as u64;
        let bytes = read_exact_at(&self.file, offset, count * self.element.size)
            .map_err(|_| Error::Changed { path: self.path.clone() })?;
        Ok(self.element.decode(&bytes))
    }

    /// The cells of the features.
    fn features<T: Real>(&self, rows: &Range<usize>) -> Result<(Vec<T>, Order)> {
        let width = self.roles.len();
        let mut columns = vec![0; self.schema.features.len()];
        for (j, role) in self.roles.iter().enumerate() {
            if let Role::Feature(k) = role {
                columns[*k] = j;
            }
        }
        if self.order == Order::Columns {
            let parts: Result<Vec<Vec<T>>> = columns.iter().map(|&j| self.column(j, rows)).collect();
            return Ok((parts?.concat(), Order::Columns));
        }
        let whole = self.numbers::<T>(rows.start * width, rows.len() * width)?;
        let all = columns.len() == width && columns.iter().enumerate().all(|(k, j)| k == *j);
        match all {
            true => Ok((whole, Order::Rows)),
            false => {
                let pick = |row: &[T]| columns.iter().map(|&j| row[j]).collect::<Vec<T>>();
                Ok((whole.chunks_exact(width).flat_map(pick).collect(), Order::Rows))
            }
        }
    }

    /// One column.
    fn column<T: Real>(&self, j: usize, rows: &Range<usize>) -> Result<Vec<T>> {
        let width = self.roles.len();
        match self.order {
            Order::Columns => self.numbers(j * self.n_rows + rows.start, rows.len()),
            Order::Rows => {
                let whole = self.numbers::<T>(rows.start * width, rows.len() * width)?;
                Ok(whole.chunks_exact(width).map(|row| row[j]).collect())
            }
        }
    }
}

impl Chunks for NpyFile {
    fn n_chunks(&self) -> usize {
        self.n_rows.div_ceil(self.chunk_rows)
    }

    fn rows(&self, index: usize) -> Range<usize> {
        let start = index * self.chunk_rows;
        start..(start + self.chunk_rows).min(self.n_rows)
    }

    fn read(&self, index: usize, carried: bool) -> Result<Batch> {
        let rows = self.rows(index);
        let numbers = match self.schema.single_precision {
            true => self.features(&rows).map(|(cells, order)| (Numbers::F32(cells), order))?,
            false => self.features(&rows).map(|(cells, order)| (Numbers::F64(cells), order))?,
        };
        let (mut weights, mut columns) = (None, Vec::new());
        for (j, role) in self.roles.iter().enumerate() {
            match role {
                Role::Weight => weights = Some(self.column(j, &rows)?),
                Role::Carried(_) if carried => {
                    columns.push(Arc::new(Float64Array::from(self.column::<f64>(j, &rows)?)) as ArrayRef);
                }
                _ => {}
            }
        }
        Batch::new(&self.schema, rows.start, rows.len(), numbers, weights, columns)
    }
}
