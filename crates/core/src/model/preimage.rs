//! From coordinates in the feature space of a kernel back to rows.

use super::KernelComponents;
use super::questions::stack;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelForm, Points};
use crate::linalg::{Cholesky, Mat, MatRef, set_product};
use crate::memory;
use crate::parallel;

/// Rows that are looked for together.
const BLOCK: usize = 64;
/// Steps of the fixed point, and the squared step, relative to the spread of the points, at which it ends.
const STEPS: usize = 200;
const SETTLED: f64 = 1e-16;

/// How rows are found from coordinates z: the image of a row should be near P = φ̄ + Σⱼ zⱼ uⱼ, which no row may
/// have exactly.
///
/// Ridge regression of the points on their coordinates, with a kernel k_z between coordinates \[BWS04\]: x − mean
/// = k_z(z)ᵀ(K_z + αI)⁻¹(X − mean). Then, for the rbf kernel, Mika's fixed point \[MSS98\]
/// $x \leftarrow \sum_i \gamma_i k(x, z_i) z_i / \sum_i \gamma_i k(x, z_i)$ with P = Σᵢ γᵢ φ(zᵢ), from the answer
/// of the regression, which stands where the fixed point does not come nearer to P. A row that is rebuilt is known: there it
/// begins at the row itself, as in \[MSS98\], unless no point is near; components that do not tell clusters apart leave
/// each row in its own. Where cells of zᵢ are missing,
/// what x lets expect of them stands in their place. A linear kernel needs neither: there it is PCA's reconstruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preimage {
    /// k_z, between coordinates.
    pub kernel: Kernel,
    /// α, above 0.
    pub alpha: f64,
    /// Whether the fixed point follows, where the kernel has one.
    pub fixed_point: bool,
}

impl Preimage {
    pub(super) fn check(self) -> Result<()> {
        if self.alpha > 0.0 && self.alpha.is_finite() {
            return Ok(());
        }
        let (name, value) = ("alpha, the ridge of the way back to rows,", self.alpha.to_string());
        Err(Error::Parameter { name, value, allowed: "a finite number above 0" })
    }

    /// As it stands in files: k_z, α and whether the fixed point follows.
    pub(super) fn to_numbers(self) -> [f64; 6] {
        let [form, gamma, degree, coef0] = self.kernel.to_numbers();
        [form, gamma, degree, coef0, self.alpha, f64::from(u8::from(self.fixed_point))]
    }

    /// The way back, of six numbers.
    pub(super) fn from_numbers(numbers: &[f64]) -> Result<Self> {
        let [form, gamma, degree, coef0, alpha, fixed] = numbers else {
            return Err(Error::Format("a way back to rows of other than six numbers".into()));
        };
        let kernel = Kernel::from_numbers([*form, *gamma, *degree, *coef0])?;
        Ok(Self { kernel, alpha: *alpha, fixed_point: *fixed != 0.0 })
    }
}

/// The regression of rows on coordinates.
#[derive(Debug)]
pub(super) struct Ridge {
    latent: Points,    // coordinates of the points, compared by k_z
    weights: Mat<f64>, // B (m × p), of x − mean
}

impl Ridge {
    /// B = (K_z + αI)⁻¹(X − mean) for the points of a model.
    pub(super) fn of(model: &KernelComponents) -> Result<Self> {
        let parts = model.parts();
        let m = model.n_points();
        memory::check("the ridge regression from coordinates to rows", &[m, m])?;
        let z = model.coordinates_of_points()?; // (m × q)
        let q = z.ncols();
        let latent = Points::around(parts.preimage.kernel, z.as_ref(), &vec![0.0; q], &vec![1.0; q])?;
        let mut gram = latent.gram();
        (0..m).for_each(|i| gram[(i, i)] += parts.preimage.alpha);
        let points = model.filled_points();
        let mut weights = Mat::from_fn(m, parts.mean.len(), |i, j| points[(i, j)] - parts.mean[j]);
        Cholesky::new(gram, "the kernel of coordinates with its ridge")?.solve(weights.as_mut());
        Ok(Self { latent, weights })
    }

    pub(super) fn weights(&self) -> &Mat<f64> {
        &self.weights
    }

    /// x − mean of coordinates (q × b), as columns (p × b).
    fn deviations(&self, z: MatRef<'_, f64>) -> Mat<f64> {
        let frame = self.latent.frame();
        let inside = Mat::from_fn(z.nrows(), z.ncols(), |j, r| frame.inside(j, z[(j, r)]));
        let mut values = Mat::zeros(self.latent.len(), z.ncols());
        self.latent.values(inside.as_ref(), values.as_mut());
        let mut out = Mat::zeros(self.weights.ncols(), z.ncols());
        set_product(out.as_mut(), self.weights.transpose(), values.as_ref());
        out
    }
}

impl KernelComponents {
    /// Rows (n × p) of coordinates (n × q), which may be those of given rows in the frame (p × n).
    pub(super) fn preimages(
        &self,
        latent: MatRef<'_, f64>,
        rows: Option<MatRef<'_, f64>>,
    ) -> Result<Mat<f64>> {
        let linear = self.kernel().form() == KernelForm::Linear;
        let ridge = if linear { None } else { Some(self.ridge()?) };
        let blocks = parallel::map(latent.nrows().div_ceil(BLOCK), |block| {
            let start = block * BLOCK;
            let count = BLOCK.min(latent.nrows() - start);
            let z = latent.subrows(start, count).transpose().to_owned();
            let columns = match ridge {
                None => self.combined(z.as_ref()),
                Some(ridge) => self.nonlinear(ridge, z.as_ref(), rows.map(|x| x.subcols(start, count))),
            };
            columns.transpose().to_owned()
        });
        let rows = stack(self.parts().mean.len(), blocks.iter().map(Mat::as_ref));
        if rows.as_ref().is_all_finite() { Ok(rows) } else { Err(Error::Scale) }
    }

    /// γ of P = Σᵢ γᵢ φ(zᵢ) for coordinates (q × b): A z + c (m × b).
    fn weights_of_points(&self, z: MatRef<'_, f64>) -> Mat<f64> {
        let parts = self.parts();
        let mut weights = Mat::zeros(self.n_points(), z.ncols());
        set_product(weights.as_mut(), parts.coefficients.as_ref(), z);
        for column in weights.col_iter_mut() {
            column.iter_mut().zip(&parts.centre).for_each(|(w, c)| *w += c);
        }
        weights
    }

    /// Σᵢ γᵢ zᵢ (p × b): where φ is the row itself.
    fn combined(&self, z: MatRef<'_, f64>) -> Mat<f64> {
        let (points, weights) = (self.compared().points(), self.weights_of_points(z));
        let mut inside = Mat::zeros(points.columns().nrows(), z.ncols());
        set_product(inside.as_mut(), points.columns(), weights.as_ref());
        self.outside(inside.as_ref())
    }

    fn nonlinear(&self, ridge: &Ridge, z: MatRef<'_, f64>, rows: Option<MatRef<'_, f64>>) -> Mat<f64> {
        let mean = &self.parts().mean;
        let mut x = ridge.deviations(z); // (p × b)
        x.col_iter_mut().for_each(|c| c.iter_mut().zip(mean).for_each(|(x, m)| *x += m));
        match self.kernel().form() {
            KernelForm::Rbf if self.parts().preimage.fixed_point => self.fixed_point(z, x.as_ref(), rows),
            _ => x,
        }
    }

    /// Mika's fixed point from given rows in the frame (p × b), or from columns x (p × b) in the units of the data where
    /// there are none, or no point is near.
    fn fixed_point(
        &self,
        z: MatRef<'_, f64>,
        start: MatRef<'_, f64>,
        rows: Option<MatRef<'_, f64>>,
    ) -> Mat<f64> {
        let (compared, points) = (self.compared(), self.compared().points());
        let frame = points.frame();
        let weights = self.weights_of_points(z); // (m × b)
        let mut begin = Mat::from_fn(start.nrows(), start.ncols(), |j, r| frame.inside(j, start[(j, r)]));
        let mut values = Mat::zeros(points.len(), begin.ncols());
        if let Some(rows) = rows {
            compared.values(rows, values.as_mut());
            for r in 0..rows.ncols() {
                if weigh(&mut values, &weights, r) > f64::MIN_POSITIVE {
                    begin.col_mut(r).copy_from(rows.col(r));
                }
            }
        }
        let mut x = begin.clone();
        // Σᵢ γᵢ k(x, zᵢ) is φ(x)·P: the larger it is, the nearer x is to P.
        let mut closeness = vec![(f64::NEG_INFINITY, f64::NEG_INFINITY); x.ncols()]; // at the start, and now
        for step in 0..=STEPS {
            compared.values(x.as_ref(), values.as_mut());
            let mut far: f64 = 0.0;
            let mut next = Mat::zeros(x.nrows(), x.ncols());
            let sums: Vec<f64> = (0..x.ncols()).map(|r| weigh(&mut values, &weights, r)).collect();
            set_product(next.as_mut(), points.columns(), values.as_ref());
            for r in 0..x.ncols() {
                compared.add_pulls(values.col_as_slice(r), x.col_as_slice(r), next.col_as_slice_mut(r));
            }
            for (r, sum) in sums.into_iter().enumerate() {
                if step == 0 {
                    closeness[r].0 = sum;
                }
                closeness[r].1 = sum;
                if step == STEPS || sum.is_nan() || sum <= f64::MIN_POSITIVE {
                    continue; // where the sum vanishes the row stays
                }
                for j in 0..x.nrows() {
                    let moved = next[(j, r)] / sum;
                    far = far.max((moved - x[(j, r)]).powi(2));
                    x[(j, r)] = moved;
                }
            }
            if far <= SETTLED {
                break;
            }
        }
        for (r, (before, after)) in closeness.into_iter().enumerate() {
            if after.is_nan() || after < before {
                x.col_mut(r).copy_from(begin.col(r));
            }
        }
        self.outside(x.as_ref())
    }

    /// Cells in the units of the data (p × b).
    fn outside(&self, inside: MatRef<'_, f64>) -> Mat<f64> {
        let frame = self.compared().points().frame();
        Mat::from_fn(inside.nrows(), inside.ncols(), |j, r| frame.outside(j, inside[(j, r)]))
    }
}

/// Column r of the kernel values times its weights; their sum.
fn weigh(values: &mut Mat<f64>, weights: &Mat<f64>, r: usize) -> f64 {
    let column = values.col_as_slice_mut(r);
    column.iter_mut().zip(weights.col_as_slice(r)).for_each(|(k, w)| *k *= w);
    column.iter().sum()
}
