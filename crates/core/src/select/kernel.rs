//! How wide a kernel and how many components: kernel parallel analysis.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::parallel::{dimension, quantile};
use crate::control::Control;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::estimator::{KernelPca, MissingCells, RowsToChoose, explained, with_threads};
use crate::kernel::{Gamma, Kernel, Points};
use crate::linalg::{Mat, negligible, symmetric_eigenvalues};
use crate::parallel;

/// Rows that are looked at.
const ROWS: usize = 500;
/// Permuted tables: one in twenty is what the quantile asks for.
const SAMPLES: usize = 20;
/// γ is the median's times 2 to these powers, and beside the best of them in steps of one.
const POWERS: [i32; 7] = [-6, -4, -2, 0, 2, 4, 6];
/// The first stream of the generators that permute.
const STREAM: u64 = 1 << 44;

/// What is asked of kernel PCA: at which width do how many components stand out from noise.
///
/// Kernel parallel analysis \[JH12\]: rows whose columns are permuted, each by itself, have the same features without
/// anything that they have in common. Component j is kept while its eigenvalue λⱼ of the centred kernel is larger than
/// tⱼ, the 95 % quantile of those of 20 permuted tables. Too wide a kernel has hardly any variance in its feature
/// space, too narrow a one sees every row alone, whether permuted or not; between them lies the width whose kept
/// components have the largest excess, $\sum_j (\lambda_j - t_j) / \sum_i k(x_i, x_i)$, which is recommended. 500 rows
/// are looked at where there are more.
///
/// ```
/// use covary::KernelPca;
/// use covary::data::Rows;
/// use covary::select::SelectKernel;
///
/// // Three clusters: two directions tell them apart.
/// let noise = |i: usize, j: usize| ((i * (7 + 4 * j)) as f64 * 0.77).sin() * 0.3;
/// let at = [[0.0, 0.0, 0.0], [6.0, 0.0, 3.0], [0.0, 6.0, 3.0]];
/// let cells: Vec<f64> = (0..90).flat_map(|i| (0..3).map(move |j| at[i % 3][j] + noise(i, j))).collect();
/// let found = SelectKernel::new(KernelPca::new(1)).run(Rows::from_slice(&cells, 3)?)?;
/// assert!(found.recommended.components >= 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SelectKernel {
    family: KernelPca,
    max: Option<usize>,
    rows: usize,
    samples: usize,
    seed: u64,
    threads: Option<usize>,
}

/// What one width gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelLine {
    /// γ; `None` where the kernel has none.
    pub gamma: Option<f64>,
    /// Components whose eigenvalues exceed those of permuted rows.
    pub components: usize,
    /// By how much all of them do, as a share of Σ k(x, x).
    pub excess: f64,
    /// Share of the trace of the centred kernel that they hold.
    pub explained: f64,
    /// The largest eigenvalue of the centred kernel, divided by the number of rows.
    pub eigenvalue: f64,
    /// What it must exceed.
    pub noise_eigenvalue: f64,
}

/// Width and number of components to take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelChoice {
    /// γ; `None` where the kernel has none.
    pub gamma: Option<f64>,
    /// q, at least 1.
    pub components: usize,
}

/// The table over widths and the recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSelection {
    /// Rows of positive weight that have a cell.
    pub rows: usize,
    /// Rows that were looked at.
    pub sampled: usize,
    /// Number of features.
    pub features: usize,
    /// Name of the kernel.
    pub kernel: String,
    /// What is missing; `None` for complete rows.
    pub holes: Option<MissingCells>,
    /// From the widest kernel to the narrowest.
    pub table: Vec<KernelLine>,
    /// What to take.
    pub recommended: KernelChoice,
    /// Why.
    pub reason: String,
}

impl SelectKernel {
    /// Kernel PCA with the options of the family, whose own number of components does not count. A width that is
    /// given is the only one that is looked at.
    pub fn new(family: KernelPca) -> Self {
        Self { family, max: None, rows: ROWS, samples: SAMPLES, seed: 0, threads: None }
    }

    /// The largest number of components that is kept.
    pub fn max(self, components: usize) -> Self {
        Self { max: Some(components), ..self }
    }

    /// The most rows to look at; 500 by default. Time grows with their third power.
    pub fn rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    /// Permuted tables; 20 by default.
    pub fn samples(self, samples: usize) -> Self {
        Self { samples, ..self }
    }

    /// Seed of the sample of rows and of the permutations; 0 by default.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, family: self.family.seed(seed), ..self }
    }

    /// Number of threads; all cores by default. The result does not depend on it.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Looks at the rows.
    ///
    /// # Errors
    /// When the options make no sense, the kernel is precomputed, or the data do not allow kernel PCA.
    pub fn run<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<KernelSelection> {
        self.run_with(rows, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`].
    pub fn run_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<KernelSelection> {
        let rows = rows.into();
        self.check(rows.source().n_features())?;
        let found = with_threads(self.threads, || {
            let rows = self.family.rows_to_choose(rows.source(), self.rows, control)?;
            self.look(&rows, control)
        });
        found.map_err(|e| explained(e, rows.source(), control))
    }

    fn check(&self, p: usize) -> Result<()> {
        let bad =
            |name, value: usize, allowed| Err(Error::Parameter { name, value: value.to_string(), allowed });
        match p {
            0 => Err(Error::NoFeatures),
            1 => bad("the number of features", 1, "at least 2: columns are permuted against each other"),
            _ if self.max == Some(0) => bad("the largest number of components", 0, "at least 1"),
            _ if self.rows < 2 => bad("the number of rows to look at", self.rows, "at least 2"),
            _ if self.samples == 0 => bad("the number of permuted tables", 0, "at least 1"),
            _ => Ok(()),
        }
    }

    fn look(&self, chosen: &RowsToChoose, control: &Control<'_>) -> Result<KernelSelection> {
        let RowsToChoose { rows, kernel, .. } = chosen;
        let searched = self.family.width() == Gamma::Median && kernel.form().has_gamma();
        let line = |power: i32| self.line(rows, times(*kernel, power)?, control).map(|line| (power, line));
        let mut table = Vec::new();
        for power in if searched { POWERS.to_vec() } else { vec![0] } {
            table.push(line(power)?);
        }
        if searched {
            let best = best(&table).0;
            table.push(line(best - 1)?);
            table.push(line(best + 1)?);
            table.sort_by_key(|(power, _)| *power);
        }
        let best = best(&table).1.clone();
        let table: Vec<KernelLine> = table.into_iter().map(|(_, line)| line).collect();
        Ok(KernelSelection {
            rows: chosen.all,
            sampled: rows.nrows(),
            features: rows.ncols(),
            kernel: kernel.form().name().into(),
            holes: chosen.holes.clone(),
            recommended: KernelChoice { gamma: best.gamma, components: best.components.max(1) },
            reason: reason(&best, table.len()),
            table,
        })
    }

    /// What one kernel gives.
    fn line(&self, rows: &Mat<f64>, kernel: Kernel, control: &Control<'_>) -> Result<KernelLine> {
        let (values, total) = spectrum(kernel, rows)?;
        let noise = parallel::try_map(self.samples, |draw| {
            control.check()?;
            Ok(spectrum(kernel, &permuted(rows, self.seed, draw as u64))?.0)
        })?;
        let n = rows.nrows();
        let least = negligible(n, n, values[0].abs());
        let threshold = |j: usize| quantile(noise.iter().map(|v| v[j]).collect()).max(least);
        let thresholds: Vec<f64> = (0..n).map(threshold).collect();
        let components = dimension(&values, &thresholds).min(self.max.unwrap_or(usize::MAX));
        let kept = || values.iter().zip(&thresholds).take(components);
        // From 0 on, because the sum of nothing is −0.
        let excess = kept().fold(0.0, |sum, (v, t)| sum + (v - t));
        let trace: f64 = values.iter().filter(|v| **v > 0.0).sum();
        let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        Ok(KernelLine {
            gamma: kernel.form().has_gamma().then_some(kernel.gamma()),
            components,
            excess: share(excess, total),
            explained: share(kept().fold(0.0, |sum, (v, _)| sum + v), trace),
            eigenvalue: values[0] / n as f64,
            noise_eigenvalue: thresholds[0] / n as f64,
        })
    }
}

/// The same form with γ times a power of two.
fn times(kernel: Kernel, power: i32) -> Result<Kernel> {
    Kernel::new(kernel.form(), kernel.gamma() * 2f64.powi(power))
}

/// The line of the largest excess, the widest of those that are equal.
fn best(table: &[(i32, KernelLine)]) -> &(i32, KernelLine) {
    let better = |a: &&(i32, KernelLine), b: &&(i32, KernelLine)| {
        // Where nothing stands out, the median width is as good as any.
        let of = |line: &(i32, KernelLine)| (line.1.excess, -line.0.abs());
        let ((x, a), (y, b)) = (of(a), of(b));
        x.total_cmp(&y).then(a.cmp(&b))
    };
    table.iter().max_by(better).unwrap_or(&table[0])
}

fn reason(best: &KernelLine, widths: usize) -> String {
    let excess = 100.0 * best.excess;
    match (best.components, widths) {
        (0, 1) => "no eigenvalue exceeds those of permuted rows, but a model needs a component".into(),
        (0, _) => {
            "no eigenvalue exceeds those of permuted rows at any width, but a model needs a component".into()
        }
        (_, 1) => {
            format!("kernel parallel analysis: they exceed permuted rows by {excess:.1} % of the kernel")
        }
        _ => format!(
            "kernel parallel analysis: they exceed permuted rows by {excess:.1} % of the kernel, more than at any \
             other width"
        ),
    }
}

/// Eigenvalues of the centred kernel of rows (n), descending, and Σ|k(x, x)|.
fn spectrum(kernel: Kernel, rows: &Mat<f64>) -> Result<(Vec<f64>, f64)> {
    let (n, p) = (rows.nrows(), rows.ncols());
    let mean: Vec<f64> = rows.col_iter().map(|c| c.iter().sum::<f64>() / n as f64).collect();
    let mut k = Points::around(kernel, rows.as_ref(), &mean, &vec![1.0; p])?.gram();
    let total = (0..n).map(|i| k[(i, i)].abs()).sum();
    let means: Vec<f64> = k.col_iter().map(|c| c.iter().sum::<f64>() / n as f64).collect();
    let all = means.iter().sum::<f64>() / n as f64;
    for (j, mean) in means.iter().enumerate() {
        k.col_as_slice_mut(j).iter_mut().zip(&means).for_each(|(k, row)| *k = *k - row - mean + all);
    }
    if !k.as_ref().is_all_finite() {
        return Err(Error::Scale);
    }
    Ok((symmetric_eigenvalues(k.as_ref())?, total))
}

/// Each column in an order of its own.
fn permuted(rows: &Mat<f64>, seed: u64, draw: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM + draw);
    let mut out = rows.clone();
    for j in 0..out.ncols() {
        let column = out.col_as_slice_mut(j);
        for i in (1..column.len()).rev() {
            column.swap(i, rng.random_range(0..=i));
        }
    }
    out
}
