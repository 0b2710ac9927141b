//! NPY output: numbers in C order behind a header whose row count is filled in at the end.

use std::io::{self, BufWriter, Write};

use covary::linalg::MatRef;

use super::Sink;
use super::atomic::Output;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_cast::cast;
use arrow_schema::DataType;

/// Room for any shape; a multiple of 64, as `NumPy` aligns.
const HEADER: usize = 128;

struct NpySink {
    output: BufWriter<Output>,
    n_rows: usize,
    n_columns: usize,
}

pub(super) fn create(output: Output, n_columns: usize) -> io::Result<Box<dyn Sink>> {
    let mut output = BufWriter::with_capacity(1 << 18, output);
    output.write_all(&header(0, n_columns))?;
    Ok(Box::new(NpySink { output, n_rows: 0, n_columns }))
}

fn header(n_rows: usize, n_columns: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&u16::try_from(HEADER - 10).unwrap_or(0).to_le_bytes());
    bytes.extend(
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n_rows}, {n_columns}), }}").bytes(),
    );
    bytes.resize(HEADER - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// A carried column that holds numbers; null becomes NaN.
fn as_numbers(column: &ArrayRef) -> io::Result<Vec<f64>> {
    let numbers = cast(column, &DataType::Float64).map_err(super::to_io)?;
    Ok(numbers.as_primitive::<Float64Type>().iter().map(|x| x.unwrap_or(f64::NAN)).collect())
}

impl Sink for NpySink {
    fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> io::Result<()> {
        let carried = carried.iter().map(as_numbers).collect::<io::Result<Vec<_>>>()?;
        for i in 0..numbers.nrows() {
            for column in &carried {
                self.output.write_all(&column[i].to_le_bytes())?;
            }
            for j in 0..numbers.ncols() {
                self.output.write_all(&numbers[(i, j)].to_le_bytes())?;
            }
        }
        self.n_rows += numbers.nrows();
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<Output> {
        let mut output = self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        output.patch(&header(self.n_rows, self.n_columns))?;
        Ok(output)
    }
}
