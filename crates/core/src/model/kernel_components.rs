//! Principal components in the feature space of a kernel: what kernel PCA finds.

use std::sync::{Arc, OnceLock};

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{Decode, Encode, Novelty, Reconstruct, numbered};
use super::preimage::{Preimage, Ridge};
use super::questions::stack;
use super::{AnyModel, Capability, Kind, LinearGaussian, Model, Reconstruction, ppca};
use crate::data::{Chunk, RowSource, Rows, map_chunks};
use crate::error::{Error, Result};
use crate::kernel::{Compared, Filling, Kernel, KernelForm, Known, Points};
use crate::linalg::{Mat, MatRef, set_product};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "kpca",
    title: "kernel PCA",
    about: "principal components in the feature space of a kernel",
    components: "components",
    capabilities: &[Capability::Encode, Capability::Decode, Capability::Reconstruct, Capability::Novelty],
    read: |file| Ok(Arc::new(read(file)?)),
};

/// The numbers of a kernel model: φ is the map into the feature space, zᵢ are the points.
#[derive(Debug, Clone)]
pub struct KernelParts {
    /// k(x, x′) = φ(x)·φ(x′).
    pub kernel: Kernel,
    /// Mean of the rows (p), around which they are compared; of a precomputed kernel that of its rows (m).
    pub mean: Vec<f64>,
    /// What features are divided by before they are compared (p); ones when they are not.
    pub divisors: Vec<f64>,
    /// Rows of the fit or landmarks (m × p), NaN where a cell is missing; of a precomputed kernel m × 0.
    pub points: Mat<f64>,
    /// A: direction j is Σᵢ Aᵢⱼ φ(zᵢ), of length 1 (m × q).
    pub coefficients: Mat<f64>,
    /// c: the mean of the rows in the feature space is Σᵢ cᵢ φ(zᵢ) (m).
    pub centre: Vec<f64>,
    /// Inner product of each direction with the mean (q).
    pub offset: Vec<f64>,
    /// Squared length of the mean in the feature space.
    pub square: f64,
    /// Variance along each direction, divisor n, descending (q).
    pub variances: Vec<f64>,
    /// Mean of the eigenvalues of the centred kernel that were left out.
    pub noise: f64,
    /// How rows are found from coordinates.
    pub preimage: Preimage,
    /// What missing cells of points and rows may be; without it none may be missing.
    pub filling: Option<LinearGaussian>,
}

/// Directions of largest variance in the feature space of a kernel \[SSM98\].
///
/// With φ̄ the mean of the rows in that space, coordinate j of a row is
/// $\sum_i A_{ij} k(z_i, x) - b_j$, the inner product of direction j with φ(x) − φ̄. The points z are the rows of
/// the fit, or landmarks that stand for them.
///
/// A row that misses cells has as its image E φ(x), over what the model `filling` knows of them; kernel values are
/// then E k(x, z), in closed form for the rbf and the linear kernel. A row without a cell has the image of any row.
///
/// ```
/// use covary::data::Rows;
/// use covary::kernel::KernelForm;
/// use covary::model::Encode;
/// let cells = [0.0, 0.1, 1.0, 1.2, 2.0, 1.9, 3.0, 3.1];
/// let rows = Rows::from_slice(&cells, 2)?;
/// let fit = covary::KernelPca::new(1).kernel(KernelForm::Linear).fit(&rows)?;
/// // A linear kernel is PCA.
/// let pca = covary::Pca::new(1).fit(&rows)?;
/// assert!((fit.model.variances()[0] - pca.model.variances()[0]).abs() < 1e-12);
/// assert_eq!(fit.model.encode(rows.source())?.ncols(), 1);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelComponents {
    parts: KernelParts,
    compared: Arc<Compared>,
    ridge: Arc<OnceLock<Ridge>>,
}

impl KernelComponents {
    /// From given numbers.
    ///
    /// # Errors
    /// When there is no point or feature, lengths disagree, or a number is not possible.
    pub fn new(parts: KernelParts) -> Result<Self> {
        check_lengths(&parts)?;
        check_numbers(&parts)?;
        let compared = match parts.kernel.form() {
            KernelForm::Precomputed => Points::precomputed(parts.kernel, parts.centre.len()).into(),
            _ => {
                let filling = parts.filling.clone().map(|model| Arc::new(model) as Arc<dyn Filling>);
                let points = parts.points.as_ref();
                Compared::around(parts.kernel, points, &parts.mean, &parts.divisors, filling)?
            }
        };
        Ok(Self { parts, compared: Arc::new(compared), ridge: Arc::default() })
    }

    /// Its numbers.
    pub fn parts(&self) -> &KernelParts {
        &self.parts
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.parts.kernel
    }

    /// Rows of the fit or landmarks (m × p), NaN where a cell is missing; of a precomputed kernel m × 0.
    pub fn points(&self) -> &Mat<f64> {
        &self.parts.points
    }

    /// Number of points, m.
    pub fn n_points(&self) -> usize {
        self.parts.centre.len()
    }

    /// Variance along each direction, divisor n (q).
    pub fn variances(&self) -> &[f64] {
        &self.parts.variances
    }

    /// Mean of the eigenvalues of the centred kernel that were left out, (trace − kept)/(n − 1 − q).
    pub fn noise_variance(&self) -> f64 {
        self.parts.noise
    }

    /// The points, ready to be compared with rows.
    pub(super) fn compared(&self) -> &Compared {
        &self.compared
    }

    /// The points (m × p), each missing cell filled by its mean.
    pub fn filled_points(&self) -> Mat<f64> {
        let (z, points) = (&self.parts.points, self.compared.points());
        Mat::from_fn(z.nrows(), z.ncols(), |i, j| match z[(i, j)] {
            cell if cell.is_nan() => points.frame().outside(j, points.columns()[(j, i)]),
            cell => cell,
        })
    }

    /// Coordinates of the points themselves (m × q).
    ///
    /// # Errors
    /// For a precomputed kernel, whose points are not known.
    pub fn coordinates_of_points(&self) -> Result<Mat<f64>> {
        self.check_rows_known("the coordinates of the points")?;
        self.encode(Rows::from(&self.parts.points).source())
    }

    /// The ridge regression from coordinates to rows (m × p): weights B of x − mean = k(z)ᵀB.
    ///
    /// # Errors
    /// For a precomputed kernel, or when there is not enough memory.
    pub fn ridge_weights(&self) -> Result<&Mat<f64>> {
        Ok(self.ridge()?.weights())
    }

    pub(super) fn ridge(&self) -> Result<&Ridge> {
        self.check_rows_known("a way back to rows")?;
        match self.ridge.get() {
            Some(known) => Ok(known),
            None => {
                let found = Ridge::of(self)?;
                Ok(self.ridge.get_or_init(|| found))
            }
        }
    }

    /// A precomputed kernel tells nothing of rows.
    fn check_rows_known(&self, what: &'static str) -> Result<()> {
        match self.parts.kernel.form() {
            KernelForm::Precomputed => Err(Error::Parameter {
                name: "the kernel",
                value: "precomputed".into(),
                allowed: match what {
                    "a way back to rows" => "a function of rows, because a matrix does not tell the way back",
                    "the novelty" => "a function of rows, because a matrix does not tell k(x, x) of new rows",
                    _ => "a function of rows",
                },
            }),
            _ => Ok(()),
        }
    }

    fn check_features(&self, rows: &dyn RowSource) -> Result<()> {
        let (expected, found) = (self.n_features(), rows.n_features());
        if expected == found { Ok(()) } else { Err(Error::FeatureCount { expected, found }) }
    }

    /// Coordinates of a chunk (n × q), and what `also` makes of each block with its coordinates (q × b).
    fn project(
        &self,
        chunk: &Chunk<'_>,
        mut also: impl FnMut((MatRef<'_, f64>, &[Known<'_>]), MatRef<'_, f64>, MatRef<'_, f64>),
    ) -> Result<Mat<f64>> {
        let (parts, q) = (&self.parts, self.parts.offset.len());
        let mut out = Mat::zeros(chunk.nrows(), q);
        // Questions about rows count every row, whatever its weight.
        let unweighted = Chunk::new(chunk.first_row(), chunk.cells().clone());
        self.compared.for_each_block(&unweighted, |first, block, values, known| {
            let mut z = Mat::zeros(q, values.ncols());
            set_product(z.as_mut(), parts.coefficients.transpose(), values.as_ref());
            for r in 0..z.ncols() {
                for (j, b) in parts.offset.iter().enumerate() {
                    z[(j, r)] -= b;
                    out[(first + r, j)] = z[(j, r)];
                }
            }
            also((block, known), values.as_ref(), z.as_ref());
            Ok(())
        })?;
        Ok(out)
    }

    /// Novelty of each row of a chunk: k̃(x, x) − ‖z‖², never below 0; of a row that misses cells that of its image.
    fn novelty_of(&self, chunk: &Chunk<'_>) -> Result<Vec<f64>> {
        let (parts, mut found) = (&self.parts, Vec::with_capacity(chunk.nrows()));
        self.project(chunk, |(block, known), values, z| {
            for (r, own) in self.compared.own(block, known).iter().enumerate() {
                let with_mean: f64 = values.col(r).iter().zip(&parts.centre).map(|(k, c)| k * c).sum();
                let centred = own - 2.0 * with_mean + parts.square;
                found.push((centred - z.col(r).squared_norm_l2()).max(0.0));
            }
        })?;
        Ok(found)
    }
}

fn check_lengths(parts: &KernelParts) -> Result<()> {
    let (m, q, p) = (parts.centre.len(), parts.offset.len(), parts.mean.len());
    if m == 0 || p == 0 {
        return Err(if p == 0 { Error::NoFeatures } else { Error::NoRows });
    }
    let (features, columns) = match parts.kernel.form() {
        KernelForm::Precomputed => (m, 0),
        _ => (p, p),
    };
    let lengths = [
        ("means", features, p),
        ("divisors", p, parts.divisors.len()),
        ("points", m, parts.points.nrows()),
        ("features of the points", columns, parts.points.ncols()),
        ("coefficients of points", m, parts.coefficients.nrows()),
        ("directions", q, parts.coefficients.ncols()),
        ("variances", q, parts.variances.len()),
    ];
    match lengths.into_iter().find(|(_, expected, found)| expected != found) {
        Some((what, expected, found)) => Err(Error::Length { what, expected, found }),
        None => Ok(()),
    }
}

fn check_numbers(parts: &KernelParts) -> Result<()> {
    let known = |x: &f64| x.is_finite() || (x.is_nan() && parts.filling.is_some());
    let finite = parts.points.col_iter().all(|c| c.iter().all(known));
    let finite = finite && parts.coefficients.as_ref().is_all_finite();
    let vectors = [&parts.mean, &parts.centre, &parts.offset, &parts.variances];
    let scalars = [parts.square, parts.noise];
    let divides = |d: &f64| d.is_finite() && *d > 0.0 && (1.0 / d).is_finite();
    if !finite || vectors.into_iter().flatten().chain(&scalars).any(|x| !x.is_finite()) {
        let (name, value) = ("a number of the kernel model", "not finite".into());
        return Err(Error::Parameter { name, value, allowed: "finite" });
    }
    if let Some(d) = parts.divisors.iter().find(|d| !divides(d)) {
        let (name, value) = ("what a feature is divided by", d.to_string());
        return Err(Error::Parameter { name, value, allowed: "finite and positive" });
    }
    check_filling(parts)?;
    parts.preimage.check()
}

fn check_filling(parts: &KernelParts) -> Result<()> {
    let Some(filling) = &parts.filling else { return Ok(()) };
    check_expected(parts.kernel.form())?;
    let (expected, found) = (parts.mean.len(), filling.n_features());
    let what = "features of the model of missing cells";
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// Whether the expectation of a kernel is known in closed form.
///
/// # Errors
/// When it is not.
pub(crate) fn check_expected(form: KernelForm) -> Result<()> {
    match form {
        KernelForm::Rbf | KernelForm::Linear => Ok(()),
        _ => Err(Error::Parameter {
            name: "the kernel of rows with missing values",
            value: form.name().into(),
            allowed: "rbf or linear, whose expectation over the missing cells is known; for another one fill the cells first (covary impute)",
        }),
    }
}

fn read(file: &dyn StoredArrays) -> Result<KernelComponents> {
    let mean = file.mean()?;
    let p = mean.len();
    let numbers = file.vector("kernel", Some(4))?;
    let kernel = Kernel::from_numbers([numbers[0], numbers[1], numbers[2], numbers[3]])?;
    let centre = file.vector("centre", None)?;
    let m = Some(centre.len()).filter(|m| *m > 0);
    let offset = file.vector("offset", None)?;
    let coefficients = file.matrix("coefficients", [m, Some(offset.len())])?;
    let points = match kernel.form() {
        KernelForm::Precomputed => Mat::zeros(centre.len(), 0),
        _ if file.has("filling_mean") => file.matrix_with_missing("points", [m, Some(p)])?,
        _ => file.matrix("points", [m, Some(p)])?,
    };
    let scalars = file.vector("scalars", Some(2))?;
    KernelComponents::new(KernelParts {
        kernel,
        divisors: file.vector("divisors", Some(p))?,
        points,
        coefficients,
        variances: file.vector("eigenvalues", Some(offset.len()))?,
        centre,
        offset,
        square: scalars[0],
        noise: scalars[1],
        preimage: Preimage::from_numbers(&file.vector("preimage", Some(6))?)?,
        filling: read_filling(file, p)?,
        mean,
    })
}

/// The model of missing cells, where there is one.
fn read_filling(file: &dyn StoredArrays, p: usize) -> Result<Option<LinearGaussian>> {
    if !file.has("filling_mean") {
        return Ok(None);
    }
    let mean = file.vector("filling_mean", Some(p))?;
    let loadings = match file.has("filling_loadings") {
        true => file.matrix("filling_loadings", [Some(p), None])?,
        false => Mat::zeros(p, 0),
    };
    let noise = ppca::noise_of(file.vector("filling_noise_variance", None)?);
    LinearGaussian::new(mean, loadings, noise).map(Some)
}

impl Model for KernelComponents {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.parts.mean.len()
    }

    fn n_latent(&self) -> usize {
        self.parts.offset.len()
    }

    fn arrays(&self) -> Arrays {
        let parts = &self.parts;
        let mut arrays = Arrays::from([
            ("mean", Array::Vector(parts.mean.clone())),
            ("divisors", Array::Vector(parts.divisors.clone())),
            ("kernel", Array::Vector(parts.kernel.to_numbers().to_vec())),
            ("coefficients", Array::Matrix(parts.coefficients.clone())),
            ("centre", Array::Vector(parts.centre.clone())),
            ("offset", Array::Vector(parts.offset.clone())),
            ("scalars", Array::Vector(vec![parts.square, parts.noise])),
            ("eigenvalues", Array::Vector(parts.variances.clone())),
            ("preimage", Array::Vector(parts.preimage.to_numbers().to_vec())),
        ]);
        if parts.kernel.form() != KernelForm::Precomputed {
            arrays.insert("points", Array::Matrix(parts.points.clone()));
        }
        if let Some(filling) = &parts.filling {
            arrays.insert("filling_mean", Array::Vector(filling.mean().to_vec()));
            arrays.insert("filling_noise_variance", Array::Vector(ppca::noise_variances(filling)));
            if filling.n_latent() > 0 {
                arrays.insert("filling_loadings", Array::Matrix(filling.loadings().clone()));
            }
        }
        arrays
    }

    /// Points are in the units of the data; kernels are not invariant, so the factors stay with the model.
    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        self.check_rows_known("features of a scale")?;
        let times = |of: &[f64]| of.iter().zip(scale).map(|(x, d)| x * d).collect::<Vec<_>>();
        let (parts, z) = (self.parts.clone(), &self.parts.points);
        let points = Mat::from_fn(z.nrows(), z.ncols(), |i, j| z[(i, j)] * scale[j]);
        let (mean, divisors) = (times(&parts.mean), times(&parts.divisors));
        let filling = parts.filling.as_ref().map(|model| ppca::rescaled(model, scale)).transpose()?;
        Ok(Arc::new(Self::new(KernelParts { points, mean, divisors, filling, ..parts })?))
    }

    fn component_variances(&self) -> Option<&[f64]> {
        Some(self.variances())
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
    }

    fn as_novelty(&self) -> Option<&dyn Novelty> {
        Some(self)
    }
}

impl Encode for KernelComponents {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', self.n_latent())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.check_features(rows)?;
        let parts = map_chunks(rows, |chunk| {
            rows.check()?;
            self.project(chunk, |_, _, _| ())
        })?;
        Ok(stack(self.n_latent(), parts.iter().map(Mat::as_ref)))
    }
}

/// The row whose image in the feature space is nearest to the point with these coordinates: see [`Preimage`].
impl Decode for KernelComponents {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        if latent.ncols() != self.n_latent() {
            let (expected, found) = (self.n_latent(), latent.ncols());
            return Err(Error::Length { what: "coordinates of each row", expected, found });
        }
        self.check_rows_known("a way back to rows")?;
        self.preimages(latent, None)
    }
}

/// Each row from its coordinates, in either kind of reconstruction; the fixed point begins at the row.
impl Reconstruct for KernelComponents {
    fn reconstruct(&self, rows: &dyn RowSource, _: Reconstruction) -> Result<Mat<f64>> {
        self.check_rows_known("a way back to rows")?;
        self.check_features(rows)?;
        let parts = map_chunks(rows, |chunk| {
            rows.check()?;
            let (mut inside, mut first) = (Mat::zeros(self.n_features(), chunk.nrows()), 0);
            let latent = self.project(chunk, |(block, _), _, _| {
                inside.as_mut().subcols_mut(first, block.ncols()).copy_from(block);
                first += block.ncols();
            })?;
            self.preimages(latent.as_ref(), Some(inside.as_ref()))
        })?;
        Ok(stack(self.n_features(), parts.iter().map(Mat::as_ref)))
    }
}

/// k̃(x, x) − Σ of the squared coordinates: the squared distance from the plane of the directions in the
/// feature space; of a row that misses cells the distance of its image E φ(x), so that what is not known is not novel.
impl Novelty for KernelComponents {
    fn novelty(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        self.check_features(rows)?;
        self.check_rows_known("the novelty")?;
        Ok(map_chunks(rows, |chunk| self.novelty_of(chunk))?.concat())
    }
}
