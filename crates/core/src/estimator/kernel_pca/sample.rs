//! Rows by which the width of a kernel and the number of components are chosen.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::MissingCells;
use super::KernelPca;
use super::fit::Look;
use super::missing::table_of;
use crate::control::Control;
use crate::data::{Chunk, RowSource};
use crate::error::{Error, Result};
use crate::kernel::{Gamma, Kernel, KernelForm};
use crate::linalg::Mat;

/// The stream of the generator that draws rows.
const STREAM: u64 = 1 << 43;

/// Some rows, each of which counts as one, and what was seen of all.
#[derive(Debug)]
pub(crate) struct RowsToChoose {
    /// Complete rows (n × p): a missing cell is drawn from what is known of it.
    pub(crate) rows: Mat<f64>,
    /// Rows that there are.
    pub(crate) all: usize,
    pub(crate) holes: Option<MissingCells>,
    /// The kernel that the options tell.
    pub(crate) kernel: Kernel,
}

impl KernelPca {
    /// The form of the kernel.
    pub fn form(&self) -> KernelForm {
        self.form
    }

    /// How its width is found.
    pub fn width(&self) -> Gamma {
        self.gamma
    }

    /// About so many rows; all where there are no more. A row of weight 2 is there as often as two rows.
    ///
    /// # Errors
    /// As a fit.
    pub(crate) fn rows_to_choose(
        &self,
        source: &dyn RowSource,
        most: usize,
        control: &Control<'_>,
    ) -> Result<RowsToChoose> {
        if self.form == KernelForm::Precomputed {
            let (name, value) = ("the kernel", "precomputed".into());
            let allowed =
                "a function of rows: those of a matrix cannot be permuted; give the number of components";
            return Err(Error::Parameter { name, value, allowed });
        }
        let look = Look::at(source, self, control)?;
        let count = most.min(look.rows);
        if count < 2 {
            return Err(Error::TooFewRows { rows: look.rows, needed: 2 });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.run.seed);
        rng.set_stream(STREAM);
        let stretch = look.weight / count as f64;
        let mut places = (0..count).map(|s| (s as f64 + rng.random::<f64>()) * stretch).peekable();
        let (mut cells, mut before) = (Vec::new(), 0.0);
        for index in 0..source.n_chunks() {
            control.check()?;
            let chunk = source.chunk(index)?;
            for i in 0..chunk.nrows() {
                before += weight(&chunk, i);
                while places.next_if(|place| *place < before).is_some() {
                    cells.extend((0..chunk.ncols()).map(|j| chunk.cells().get(i, j)));
                }
            }
        }
        let p = source.n_features();
        let rows = Mat::from_fn(cells.len() / p, p, |i, j| cells[i * p + j]);
        let rows = match &look.filling {
            None => rows,
            Some(model) => model.draw_missing(&rows, 0..1, self.run.seed)?.pop().ok_or(Error::NoRows)?,
        };
        let unit = look.unit();
        let scaled = Mat::from_fn(rows.nrows(), p, |i, j| rows[(i, j)] / unit);
        let kernel = self.gamma.kernel(self.form, &table_of(&scaled)?, unit)?;
        Ok(RowsToChoose { rows, all: look.rows, holes: look.holes, kernel })
    }
}

/// How often a row counts: not at all where it has no cell.
fn weight(chunk: &Chunk<'_>, row: usize) -> f64 {
    let has_cell = (0..chunk.ncols()).any(|j| !chunk.cells().get(row, j).is_nan());
    if has_cell { chunk.weights().map_or(1.0, |w| w[row]) } else { 0.0 }
}
