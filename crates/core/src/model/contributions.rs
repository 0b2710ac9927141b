//! What each cell of a row adds to T² and SPE, and how it compares with what the rest of the row expects.

use super::LinearGaussian;
use super::cells::{CANCELLED, CellResiduals, distance_without};
use super::groups::{Group, OnePattern};
use super::inference::{Inference, Purpose};
use super::questions::{room_for, stack};
use crate::data::{Chunk, Rows, map_chunks};
use crate::error::Result;
use crate::expectation::Student;
use crate::linalg::{LatentFactor, Mat, MatRef, product};

/// Tables of numbers that there are for each cell.
const TABLES: usize = 5;

/// What each cell of a row adds to its distance (n × p each); NaN where a cell was not observed.
///
/// With $\Lambda = C^{-1}$ over the observed cells of a row, $r_j = (\Lambda(x - \mu))_j / \Lambda_{jj}$ is the cell
/// minus what the others expect of it.
#[derive(Debug, Clone)]
pub struct Contributions {
    /// Shares of T², which add up to it. A share is below 0 where the cell lies towards the mean of what the others
    /// say: $e_j\, a_j^\top (G + sI)^{-1} z$, the decomposition of \[N96\] and \[WGS00\].
    pub t2: Mat<f64>,
    /// Shares of SPE, which add up to it: the squared residual of each cell.
    pub spe: Mat<f64>,
    /// $d_j = r_j^2 \Lambda_{jj}$: by how much the squared Mahalanobis distance of the row would fall if the cell were
    /// missing. Of rows of a normal model it has the χ² distribution with one degree of freedom. NaN where the other
    /// cells leave no variance, as without noise.
    pub cell: Mat<f64>,
    /// What the rest of the row expects, $x_j - r_j$: what imputation would give if the cell were missing.
    pub expected: Mat<f64>,
    /// The standard deviation of that, $1/\sqrt{\Lambda_{jj}}$.
    pub deviation: Mat<f64>,
}

impl Contributions {
    /// From one table of all tables side by side (n × 5p).
    pub(super) fn from_table(all: &Mat<f64>) -> Self {
        let p = all.ncols() / TABLES;
        let part = |k: usize| all.as_ref().subcols(k * p, p).to_owned();
        Self { t2: part(0), spe: part(1), cell: part(2), expected: part(3), deviation: part(4) }
    }

    /// Width of that table.
    pub(super) fn width(features: usize) -> usize {
        TABLES * features
    }
}

impl LinearGaussian {
    /// What each cell of each row adds to T² and SPE, and what the rest of the row expects of it: O(pq) for each row
    /// and O(pq²) for each pattern of missing values.
    ///
    /// ```
    /// use covary::data::Rows;
    /// use covary::linalg::Mat;
    /// use covary::model::{LinearGaussian, Noise};
    ///
    /// // Two features with covariance 1 and variances 1½.
    /// let w = Mat::full(2, 1, 1.0);
    /// let model = LinearGaussian::new(vec![0.0, 0.0], w, Noise::Isotropic(0.5))?;
    /// let found = model.contributions(Rows::from_slice(&[3.0, -1.5], 2)?)?;
    /// // The second cell says that the first is about −1, with variance 1½ − 1/1½.
    /// assert!((found.expected[(0, 0)] + 1.0).abs() < 1e-14);
    /// assert!((found.deviation[(0, 0)].powi(2) - 5.0 / 6.0).abs() < 1e-14);
    /// assert!((found.cell[(0, 0)] - 16.0 * 6.0 / 5.0).abs() < 1e-12);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn contributions<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Contributions> {
        self.contributions_student(rows, Student::NORMAL)
    }

    /// The same of the t distribution, whose deviations grow with the distance of the other cells.
    pub(super) fn contributions_student<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        student: Student,
    ) -> Result<Contributions> {
        let rows = rows.into();
        let width = Contributions::width(self.n_features());
        room_for("the table of contributions", rows.source(), width)?;
        let inference = Inference::new(self, Purpose::Cells);
        let parts = map_chunks(rows.source(), |chunk| contributions_of(&inference, chunk, student))?;
        Ok(Contributions::from_table(&stack(width, parts.iter().map(Mat::as_ref))))
    }

    /// All tables of the rows of a chunk side by side (n × 5p).
    pub(super) fn contribution_table(&self, chunk: &Chunk<'_>) -> Result<Mat<f64>> {
        contributions_of(&Inference::new(self, Purpose::Cells), chunk, Student::NORMAL)
    }
}

fn contributions_of(inference: &Inference<'_>, chunk: &Chunk<'_>, student: Student) -> Result<Mat<f64>> {
    let p = chunk.ncols();
    let mut out = Mat::full(chunk.nrows(), Contributions::width(p), f64::NAN);
    inference.for_each_group(chunk, &mut |group| {
        let rows = match group {
            Group::OnePattern(rows) => rows,
            Group::ManyPatterns(rows) => {
                return rows.for_each_cell(student, |row, feature, numbers| {
                    numbers.into_iter().enumerate().for_each(|(k, x)| out[(row, k * p + feature)] = x);
                });
            }
        };
        for (k, table) in tables(&rows, student)?.iter().enumerate() {
            for j in 0..table.nrows() {
                let column = out.col_as_slice_mut(k * p + rows.features.map_or(j, |features| features[j]));
                rows.rows.iter().zip(table.row(j).iter()).for_each(|(row, x)| column[*row] = *x);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// The tables of rows that observe the same cells (p × rows each), in the order of [`Contributions`].
fn tables(rows: &OnePattern<'_>, student: Student) -> Result<[Mat<f64>; TABLES]> {
    let (model, e) = (rows.model, rows.e);
    let (least_squares, noise) = (model.least_squares()?, model.factor().noise());
    let z = model.latent(least_squares, e);
    let mut spe = model.residual(e, z.as_ref()); // (p × rows)
    let mut t2 = product(model.loadings(), score_weights(least_squares, noise, z.as_ref()).as_ref());
    let cells = model.cells()?;
    let CellResiduals { mut expected, residual: mut cell } =
        cells.residuals(model.loadings(), model.factor(), e)?;
    let (mean, root, deviations) = (model.mean(), model.root(), cells.deviations());
    let square = |r: f64, deviation: f64| if deviation > 0.0 { (r / deviation).powi(2) } else { f64::NAN };
    for i in 0..rows.rows.len() {
        t2.col_as_slice_mut(i).iter_mut().zip(e.row(i).iter()).for_each(|(t, e)| *t *= e);
        spe.col_as_slice_mut(i).iter_mut().zip(root).for_each(|(r, root)| *r = (*r * root).powi(2));
        cell.col_as_slice_mut(i).iter_mut().zip(deviations).for_each(|(r, d)| *r = square(*r, *d));
        let units = expected.col_as_slice_mut(i).iter_mut().zip(mean.iter().zip(root));
        units.for_each(|(x, (mean, root))| *x = mean + *x * root);
    }
    let deviation = spreads(rows, student, &cell)?;
    Ok([t2, spe, cell, expected, deviation])
}

/// (G + sI)⁺ z in the directions that the cells see (q × rows), for least-squares coordinates z: T² is eᵀA times it.
fn score_weights(least_squares: &LatentFactor, noise: f64, z: MatRef<'_, f64>) -> Mat<f64> {
    let LatentFactor::Noiseless { eigen, rank, .. } = least_squares else {
        return Mat::zeros(z.nrows(), z.ncols());
    };
    let v = eigen.vectors.subcols(0, *rank);
    let mut t = product(v.transpose(), z);
    for (i, value) in eigen.values[..*rank].iter().enumerate() {
        t.row_mut(i).iter_mut().for_each(|x| *x /= value + noise);
    }
    product(v, t.as_ref())
}

/// Deviation of each cell given the others, in the units of the data (p × rows).
///
/// With the t distribution it is √((ν + δ)/(ν + k − 2)) times that of the normal, for the k other cells of a row and
/// their squared distance δ.
fn spreads(rows: &OnePattern<'_>, student: Student, cell: &Mat<f64>) -> Result<Mat<f64>> {
    let (model, p) = (rows.model, cell.nrows());
    let units = model.cells()?.deviations().iter().zip(model.root());
    let normal: Vec<f64> = units.map(|(deviation, root)| deviation * root).collect();
    let mut out = Mat::zeros(p, cell.ncols());
    for i in 0..cell.ncols() {
        out.col_as_slice_mut(i).copy_from_slice(&normal);
    }
    if student == Student::NORMAL {
        return Ok(out);
    }
    model.log_det()?;
    let (a, noise) = (model.loadings(), model.factor().noise());
    for (i, distance) in model.mahalanobis(rows.e).into_iter().enumerate() {
        for j in 0..p {
            let mut others = distance - cell[(j, i)];
            if others < CANCELLED * distance {
                others = distance_without(a, noise, rows.e.subrows(i, 1), j)?;
            }
            out[(j, i)] *= student.spread(p - 1, others).sqrt();
        }
    }
    Ok(out)
}
