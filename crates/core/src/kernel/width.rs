//! How wide a kernel is when nobody says.

use super::{Kernel, KernelForm};
use crate::data::Table;
use crate::error::{Error, Result};

/// Rows whose distances are looked at: their pairs are half a million.
pub(crate) const ROWS: usize = 1000;

/// γ of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Gamma {
    /// This number.
    Given(f64),
    /// By the median distance h between rows of a sample, whatever the units of the features: 1/(2h²) for rbf,
    /// 1/h for laplacian (h the sum of absolute differences); 1 over the median squared length of a row for
    /// polynomials and sigmoid.
    #[default]
    Median,
    /// 1/p, as scikit-learn has it.
    PerFeature,
}

impl Gamma {
    /// The kernel of this form for rows of which a sample is given in a frame of that unit.
    ///
    /// # Errors
    /// When the kernel is not possible, or rows do not differ.
    pub(crate) fn kernel(self, form: KernelForm, sample: &Table<'_>, unit: f64) -> Result<Kernel> {
        let gamma = match self {
            Self::Given(gamma) => gamma,
            _ if !form.has_gamma() => 1.0,
            Self::PerFeature => 1.0 / sample.shape().1 as f64,
            Self::Median => by_median(form, sample, unit)?,
        };
        Kernel::new(form, gamma)
    }
}

fn by_median(form: KernelForm, sample: &Table<'_>, unit: f64) -> Result<f64> {
    let (n, p) = sample.shape();
    let step = n.div_ceil(ROWS).max(1);
    let row = |i: usize| (0..p).map(|j| sample.cells().get(i, j)).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = (0..n).step_by(step).map(row).collect();
    let between = |of: fn(f64) -> f64| {
        let pair = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| of(a - b)).sum::<f64>();
        let pairs = (1..rows.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        median(pairs.map(|(i, j)| pair(&rows[i], &rows[j])).collect())
    };
    let found = match form {
        KernelForm::Rbf => between(|d| d * d).map(|square| 0.5 / square / unit / unit),
        KernelForm::Laplacian => between(f64::abs).map(|distance| 1.0 / distance / unit),
        _ => {
            let squares = rows.iter().map(|x| x.iter().map(|x| x * x).sum()).collect();
            median(squares).map(|square| 1.0 / square / unit / unit)
        }
    };
    match found {
        None => Err(Error::Constant),
        Some(gamma) if gamma.is_normal() => Ok(gamma),
        Some(_) => Err(Error::Scale),
    }
}

/// The median, of those above 0 where more than half are 0; `None` when all are.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    let of = |numbers: &mut Vec<f64>| {
        let middle = numbers.len() / 2;
        (!numbers.is_empty()).then(|| *numbers.select_nth_unstable_by(middle, f64::total_cmp).1)
    };
    let found = of(&mut numbers)?;
    if found > 0.0 {
        return Some(found);
    }
    numbers.retain(|x| *x > 0.0);
    of(&mut numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Block, Cells};
    use crate::linalg::MatRef;

    #[test]
    fn the_median_distance_by_hand() {
        // Distances 1, 3 and 4; squares 1, 9 and 16.
        let cells = [0.0, 1.0, 4.0];
        let table = Table::new(Cells::F64(Block::View(MatRef::from_row_major_slice(&cells, 3, 1))));
        let gamma = |form, unit| Gamma::Median.kernel(form, &table, unit).map(Kernel::gamma);
        assert_eq!(gamma(KernelForm::Rbf, 1.0).unwrap(), 1.0 / 18.0);
        assert_eq!(gamma(KernelForm::Rbf, 2.0).unwrap(), 1.0 / 72.0);
        assert_eq!(gamma(KernelForm::Laplacian, 1.0).unwrap(), 1.0 / 3.0);
        let same = [5.0; 3];
        let table = Table::new(Cells::F64(Block::View(MatRef::from_row_major_slice(&same, 3, 1))));
        assert!(matches!(Gamma::Median.kernel(KernelForm::Rbf, &table, 1.0), Err(Error::Constant)));
    }
}
