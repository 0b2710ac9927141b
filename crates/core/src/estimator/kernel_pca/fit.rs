//! A fit: a look at the rows, then the kernel matrix itself or landmarks and a pass.

use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::{Details, Fit, KMeans, Report, Solver};
use super::plan::{KernelPlan, Size, choose};
use super::report::{KernelReport, LandmarkMethod};
use super::{KernelPca, Landmarks, WayBack};
use crate::algorithm::kernel::{CentredKernel, KernelSpectrum, SpectrumOptions, number, rounding};
use crate::algorithm::landmarks::{independent, pivoted};
use crate::algorithm::{Components, Stop};
use crate::blocks::Frame;
use crate::control::Control;
use crate::data::{RowSource, Table, map_chunks};
use crate::error::{Error, Result};
use crate::evidence::{Coreset, CoresetDesign, KernelFeatures, Survey, gather};
use crate::kernel::{FeatureMap, Gamma, Kernel, KernelForm, Points};
use crate::linalg::{Mat, leading_eigen, standard_signs, symmetric_eigen};
use crate::memory;
use crate::model::{KernelComponents, KernelParts, Preimage};

/// Rows from which landmarks are drawn: so many, and so many for each landmark.
const SAMPLE_ROWS: usize = 1 << 13;
const ROWS_PER_LANDMARK: usize = 16;
/// The stream of the generator that draws landmarks.
const STREAM: u64 = 1 << 42;
/// How far a precomputed kernel may be from symmetric, relative to its largest value.
const SYMMETRY: f64 = 1e-8;

/// Fits rows.
pub(super) fn fit(
    family: &KernelPca,
    source: &dyn RowSource,
    control: &Control<'_>,
) -> Result<Fit<KernelComponents>> {
    let started = Instant::now();
    if family.form == KernelForm::Precomputed {
        return fit_matrix(family, source, control, started);
    }
    let look = Look::at(source, control)?;
    let size = Size {
        rows: look.rows,
        features: source.n_features(),
        components: family.components,
        landmarks: family.landmarks.asked(),
        memory: family.run.bytes().min(memory::available().unwrap_or(usize::MAX)),
    };
    check_number(family.components, look.rows, source.n_features())?;
    let plan = choose(family.solver, &size)?;
    match plan.landmarks {
        None => look.exact(family, plan, control, started),
        Some(wanted) => look.by_landmarks(family, plan, wanted, size.memory, control, started),
    }
}

fn check_number(components: Components, rows: usize, features: usize) -> Result<()> {
    match components.count() {
        _ if rows < 2 => Err(Error::TooFewRows { rows, needed: 2 }),
        Some(requested) if requested > rows => {
            Err(Error::Components { requested, possible: rows, rows, features })
        }
        _ => Ok(()),
    }
}

/// What the first look at the rows has found.
struct Look<'a> {
    source: &'a dyn RowSource,
    rows: usize,
    weight: f64,
    mean: Vec<f64>,
    design: CoresetDesign, // of all rows, as they are up to a power of two
}

impl<'a> Look<'a> {
    /// One pass.
    fn at(source: &'a dyn RowSource, control: &Control<'_>) -> Result<Self> {
        let p = source.n_features();
        let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
        if census.missing() > 0 {
            map_chunks(source, |chunk| chunk.explain_not_finite("a kernel").map_or(Ok(()), Err))?;
        }
        let (mean, variances) = (margins.mean().to_vec(), margins.variance());
        let size = mean.iter().zip(&variances).fold(0.0, |a: f64, (m, v)| a.max(m.abs()).max(v.sqrt()));
        let frame = Frame::new(vec![0.0; p], &vec![1.0; p], size);
        let unit = frame.parts().2;
        let square = |(m, v): (&f64, &f64)| (m / unit).powi(2) + v / unit / unit;
        let squares = census.weight() * mean.iter().zip(&variances).map(square).sum::<f64>();
        let design = CoresetDesign {
            frame: Arc::new(frame),
            size: f64::INFINITY,
            weight: census.weight(),
            squares,
            seed: 0,
        };
        Ok(Self { source, rows: census.rows(), weight: census.weight(), mean, design })
    }

    /// About so many rows, as cells divided by the unit of the frame; all where there are no more.
    fn sample(&self, rows: usize, seed: u64, control: &Control<'_>) -> Result<Table<'static>> {
        memory::check("the sample of rows", &[2, rows.min(self.rows), self.source.n_features()])?;
        let size = if self.rows <= rows { f64::INFINITY } else { rows as f64 };
        let CoresetDesign { frame, weight, squares, .. } = &self.design;
        let (frame, weight, squares) = (Arc::clone(frame), *weight, *squares);
        let design = Arc::new(CoresetDesign { frame, size, weight, squares, seed });
        gather(self.source, || Coreset::empty(Arc::clone(&design)), control)?.table()
    }

    fn unit(&self) -> f64 {
        self.design.frame.parts().2
    }

    /// The cells of a sample in the units of the data (n × p): exactly those of the rows.
    fn cells(&self, sample: &Table<'_>) -> Mat<f64> {
        let (n, p) = sample.shape();
        Mat::from_fn(n, p, |i, j| self.design.frame.outside(j, sample.cells().get(i, j)))
    }

    /// By the kernel matrix of all rows.
    fn exact(
        &self,
        family: &KernelPca,
        plan: KernelPlan,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<KernelComponents>> {
        let sample = self.sample(usize::MAX, family.run.seed, control)?;
        let kernel = family.gamma.kernel(family.form, &sample, self.unit())?;
        let weights = sample.weights().map_or_else(|| vec![1.0; sample.shape().0], <[f64]>::to_vec);
        let points = self.cells(&sample);
        drop(sample);
        let n = points.nrows();
        memory::check("the kernel matrix of the rows", &[n, n])?;
        let p = self.mean.len();
        let compared = Points::around(kernel, points.as_ref(), &self.mean, &vec![1.0; p])?;
        let centred = CentredKernel::new(compared.gram(), &weights)?;
        drop(compared);
        let found = Exact::of(centred, &weights, family, plan.plan.solver, control)?;
        let coordinates = found.coordinates(&weights);
        let model =
            found.model(kernel, points, self.mean.clone(), &weights, family.preimage, &coordinates)?;
        let details = found.report(kernel, n);
        Ok(finished(model, details, plan, (self.rows, self.weight), found.spectrum.trace, (2, started)))
    }

    /// By landmarks.
    fn by_landmarks(
        &self,
        family: &KernelPca,
        plan: KernelPlan,
        wanted: usize,
        limit: usize,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<KernelComponents>> {
        let room = limit / 4 / 8 / (wanted + 2 * self.mean.len());
        let rows = SAMPLE_ROWS.max(ROWS_PER_LANDMARK * wanted).min(room).max(wanted);
        let sample = self.sample(rows, family.run.seed, control)?;
        let kernel = family.gamma.kernel(family.form, &sample, self.unit())?;
        let (landmarks, method) = self.landmarks(family, kernel, wanted, &sample, control)?;
        let map = Arc::new(FeatureMap::new(kernel, landmarks, &self.mean)?);
        let evidence = gather(self.source, || KernelFeatures::empty(Arc::clone(&map)), control)?;
        let found = ByLandmarks::of(&map, &evidence, family)?;
        let model = found.model(kernel, &map, self.mean.clone(), family.preimage)?;
        let asked = Some(wanted);
        let details = KernelReport { landmarks: Some(method), asked, ..found.report(kernel, &map) };
        let trace = found.trace;
        Ok(finished(model, details, plan, (self.rows, self.weight), trace, (3, started)))
    }

    /// The landmarks (m × p), without copies.
    fn landmarks(
        &self,
        family: &KernelPca,
        kernel: Kernel,
        wanted: usize,
        sample: &Table<'_>,
        control: &Control<'_>,
    ) -> Result<(Mat<f64>, LandmarkMethod)> {
        let p = self.mean.len();
        let around = |points: &Mat<f64>| Points::around(kernel, points.as_ref(), &self.mean, &vec![1.0; p]);
        let distinct = |points: Mat<f64>| {
            memory::check("the kernel matrix of the landmarks", &[2, points.nrows(), points.nrows()])?;
            let which = independent(&around(&points)?);
            Ok::<_, Error>(rows_of(&points, &which))
        };
        let (points, method) = match &family.landmarks {
            Landmarks::Given(points) => (distinct(points.clone())?, LandmarkMethod::Given),
            Landmarks::KMeans(_) => {
                let centres = KMeans::new(wanted).polish(false).seed(family.run.seed);
                let fitted = centres.fit_with(self.source, control)?;
                (distinct(fitted.model.centres().clone())?, LandmarkMethod::KMeans)
            }
            Landmarks::Auto | Landmarks::Pivoted(_) => {
                let points = self.cells(sample);
                let weights = sample.weights().map_or_else(|| vec![1.0; points.nrows()], <[f64]>::to_vec);
                let mut rng = ChaCha8Rng::seed_from_u64(family.run.seed);
                rng.set_stream(STREAM);
                let which = pivoted(&around(&points)?, &weights, wanted, &mut rng, control)?;
                (rows_of(&points, &which), LandmarkMethod::Pivoted)
            }
        };
        match points.nrows() {
            0 => Err(Error::Constant), // k(x, x) is 0 for every row
            _ => Ok((points, method)),
        }
    }
}

fn rows_of(points: &Mat<f64>, which: &[usize]) -> Mat<f64> {
    Mat::from_fn(which.len(), points.ncols(), |k, j| points[(which[k], j)])
}

/// What the kernel matrix has told.
struct Exact {
    spectrum: KernelSpectrum,
    means: Vec<f64>, // (n)
    square: f64,
    noise: f64,
}

impl Exact {
    fn of(
        centred: CentredKernel,
        weights: &[f64],
        family: &KernelPca,
        solver: Solver,
        control: &Control<'_>,
    ) -> Result<Self> {
        let (means, square) = (centred.means.clone(), centred.square);
        let options = SpectrumOptions {
            components: family.components,
            whole: solver == Solver::Dual,
            indefinite: family.form.may_be_indefinite(),
            seed: family.run.seed,
        };
        let mut spectrum = centred.solve(options, control)?;
        if family.drop_empty && spectrum.rank < spectrum.values.len() {
            let left: f64 = spectrum.values.split_off(spectrum.rank).iter().sum();
            spectrum.vectors = spectrum.vectors.subcols(0, spectrum.rank).to_owned();
            spectrum.rest += left;
        }
        let rows = weights.iter().filter(|w| **w > 0.0).count();
        let noise = noise(spectrum.rest, spectrum.trace, rows, spectrum.values.len());
        Ok(Self { spectrum, means, square, noise })
    }

    /// Coordinates of the rows (n × q): √λ v / √w.
    fn coordinates(&self, weights: &[f64]) -> Mat<f64> {
        let KernelSpectrum { values, vectors, .. } = &self.spectrum;
        let root = |i: usize| if weights[i] > 0.0 { weights[i].sqrt() } else { 1.0 };
        let (n, q) = (vectors.nrows(), values.len());
        Mat::from_fn(n, q, |i, j| values[j].max(0.0).sqrt() * vectors[(i, j)] / root(i))
    }

    fn model(
        &self,
        kernel: Kernel,
        points: Mat<f64>,
        mean: Vec<f64>,
        weights: &[f64],
        back: WayBack,
        coordinates: &Mat<f64>,
    ) -> Result<KernelComponents> {
        let KernelSpectrum { values, vectors, .. } = &self.spectrum;
        let (n, q) = (vectors.nrows(), values.len());
        let weight: f64 = weights.iter().sum();
        // Of no length: there is no direction of no variance, nor one of negative variance.
        let scale = |j: usize| if values[j] > 0.0 { 1.0 / values[j].sqrt() } else { 0.0 };
        let coefficients = Mat::from_fn(n, q, |i, j| weights[i].sqrt() * vectors[(i, j)] * scale(j));
        let dot = |j: usize| coefficients.col_as_slice(j).iter().zip(&self.means).map(|(a, m)| a * m).sum();
        KernelComponents::new(KernelParts {
            kernel,
            divisors: vec![1.0; mean.len()],
            mean,
            points,
            centre: weights.iter().map(|w| w / weight).collect(),
            offset: (0..q).map(dot).collect(),
            coefficients,
            square: self.square,
            variances: values.iter().map(|v| v / weight).collect(),
            noise: self.noise,
            preimage: preimage(back, kernel, coordinates)?,
        })
    }

    fn report(&self, kernel: Kernel, points: usize) -> KernelReport {
        KernelReport {
            rank: self.spectrum.rank,
            noise_variance: self.noise,
            negative: self.spectrum.negative,
            ..KernelReport::new(kernel, points)
        }
    }
}

/// What the moments of the rows in the space of the landmarks have told.
struct ByLandmarks {
    vectors: Mat<f64>, // U (m × q)
    values: Vec<f64>,  // eigenvalues of the centred kernel (q)
    mean: Vec<f64>,    // of φ (m)
    weight: f64,
    rank: usize,
    trace: f64,    // of the centred kernel, with what is left out
    left_out: f64, // of the trace
    noise: f64,
}

impl ByLandmarks {
    fn of(map: &FeatureMap, evidence: &KernelFeatures, family: &KernelPca) -> Result<Self> {
        let (moments, m) = (evidence.moments(), map.n_features());
        let (weight, left_out) = (moments.weight(), evidence.left_out());
        let trace = weight * moments.total_variance() + left_out;
        if !trace.is_finite() {
            return Err(Error::Scale);
        }
        let covariance = moments.covariance();
        let leading = match family.components {
            Components::Count(q) if 6 * q < m => {
                leading_eigen(covariance.as_ref(), q.max(1), family.run.seed)?
            }
            _ => None,
        };
        let eigen = leading.map_or_else(|| symmetric_eigen(covariance.as_ref()), Ok)?;
        let values: Vec<f64> = eigen.values.iter().map(|v| v * weight).collect();
        let floor = rounding(m, &values);
        let q = number(family.components, &values, trace, floor);
        let known = |v: &f64| if v.abs() <= floor { 0.0 } else { *v };
        let mut values: Vec<f64> = values[..q].iter().map(known).collect();
        let rank = values.iter().filter(|v| **v > 0.0).count();
        if family.drop_empty {
            values.truncate(rank);
        }
        let rest = trace - values.iter().sum::<f64>();
        // Components beyond the landmarks that were found have no variance.
        let asked = family.components.count().filter(|_| !family.drop_empty).unwrap_or(values.len());
        let vectors = Mat::from_fn(m, asked, |i, j| match values.get(j) {
            Some(v) if *v > 0.0 => eigen.vectors[(i, j)],
            _ => 0.0,
        });
        values.resize(asked, 0.0);
        let noise = noise(rest, trace, moments.rows(), asked);
        let mean = moments.mean().to_vec();
        Ok(Self { vectors, values, mean, weight, rank, trace, left_out, noise })
    }

    fn model(
        &self,
        kernel: Kernel,
        map: &FeatureMap,
        mean: Vec<f64>,
        back: WayBack,
    ) -> Result<KernelComponents> {
        let (m, q) = (map.n_features(), self.values.len());
        let mut coefficients = self.vectors.clone();
        map.weights_of_landmarks(coefficients.as_mut());
        standard_signs(&mut coefficients);
        let mut centre = Mat::from_fn(m, 1, |i, _| self.mean[i]);
        map.weights_of_landmarks(centre.as_mut());
        let parts = KernelParts {
            kernel,
            divisors: vec![1.0; mean.len()],
            mean,
            points: map.landmarks().clone(),
            coefficients,
            centre: centre.col_as_slice(0).to_vec(),
            offset: vec![0.0; q],
            square: self.mean.iter().map(|m| m * m).sum(),
            variances: self.values.iter().map(|v| v / self.weight).collect(),
            noise: self.noise,
            preimage: preimage(back, kernel, &Mat::zeros(0, q))?,
        };
        // Directions times the mean: Aᵀ K_ZZ c, with the signs that the coefficients have got.
        let unmoved = KernelComponents::new(parts.clone())?;
        let projected = unmoved.coordinates_of_points()?; // K_ZZ A (m × q)
        let dot = |j: usize| projected.col_as_slice(j).iter().zip(&parts.centre).map(|(k, c)| k * c).sum();
        let offset: Vec<f64> = (0..q).map(dot).collect();
        let coordinates = Mat::from_fn(m, q, |i, j| projected[(i, j)] - offset[j]);
        let preimage = preimage(back, kernel, &coordinates)?;
        KernelComponents::new(KernelParts { offset, preimage, ..parts })
    }

    fn report(&self, kernel: Kernel, map: &FeatureMap) -> KernelReport {
        KernelReport {
            left_out: if self.trace > 0.0 { self.left_out / self.trace } else { 0.0 },
            rank: self.rank,
            noise_variance: self.noise,
            ..KernelReport::new(kernel, map.n_features())
        }
    }
}

/// The mean of the eigenvalues that were left out: (trace − kept)/(n − 1 − q).
fn noise(rest: f64, trace: f64, rows: usize, q: usize) -> f64 {
    match (rows - 1).checked_sub(q) {
        None | Some(0) => 0.0,
        Some(_) if rest.abs() <= rounding(rows, &[trace]) => 0.0,
        Some(left) => rest / left as f64,
    }
}

/// How rows are found from coordinates, of which those of the points are given (m × q).
fn preimage(back: WayBack, kernel: Kernel, coordinates: &Mat<f64>) -> Result<Preimage> {
    let table = match crate::data::Rows::from(coordinates) {
        crate::data::Rows::Table(table) => table,
        crate::data::Rows::Source(_) => return back.preimage(kernel, None),
    };
    let known = coordinates.nrows() > 1 && coordinates.ncols() > 0;
    let width = known.then(|| Gamma::Median.kernel(KernelForm::Rbf, &table, 1.0).ok()).flatten();
    back.preimage(kernel, width.map(Kernel::gamma))
}

/// Fits a kernel matrix.
fn fit_matrix(
    family: &KernelPca,
    source: &dyn RowSource,
    control: &Control<'_>,
    started: Instant,
) -> Result<Fit<KernelComponents>> {
    let n = source.n_features();
    let mut weights = Vec::new();
    memory::check("the kernel matrix", &[n, n])?;
    let mut values = Mat::zeros(n, n);
    for index in 0..source.n_chunks() {
        control.check()?;
        let chunk = source.chunk(index)?;
        if let Some(error) = chunk.explain_not_finite("a kernel") {
            return Err(error);
        }
        for i in 0..chunk.nrows() {
            let row = weights.len();
            if row < n {
                (0..n).for_each(|j| values[(j, row)] = chunk.cells().get(i, j));
            }
            weights.push(chunk.weights().map_or(1.0, |w| w[i]));
        }
    }
    if weights.len() != n {
        let (expected, found) = (weights.len(), n);
        return Err(Error::Length {
            what: "columns of the kernel matrix, which must be square",
            expected,
            found,
        });
    }
    check_symmetry(&values, &weights)?;
    without_weightless(&mut values, &weights);
    let rows = weights.iter().filter(|w| **w > 0.0).count();
    check_number(family.components, rows, n)?;
    let size =
        Size { rows: n, features: 0, components: family.components, landmarks: None, memory: usize::MAX };
    let plan = choose(family.solver, &size)?;
    let kernel = Kernel::new(family.form, 1.0)?;
    let centred = CentredKernel::new(values, &weights)?;
    let means = centred.means.clone();
    let found = Exact::of(centred, &weights, family, plan.plan.solver, control)?;
    let coordinates = found.coordinates(&weights);
    let model = found.model(kernel, Mat::zeros(n, 0), means, &weights, family.preimage, &coordinates)?;
    let details = found.report(kernel, n);
    let weight = weights.iter().sum();
    Ok(finished(model, details, plan, (rows, weight), found.spectrum.trace, (1, started)))
}

/// A row of weight 0 is no row, whatever it holds.
fn without_weightless(values: &mut Mat<f64>, weights: &[f64]) {
    for j in (0..weights.len()).filter(|j| weights[*j] == 0.0) {
        values.col_as_slice_mut(j).fill(0.0);
        (0..weights.len()).for_each(|i| values[(j, i)] = 0.0);
    }
}

fn check_symmetry(values: &Mat<f64>, weights: &[f64]) -> Result<()> {
    let counts = |i: &usize| weights[*i] > 0.0;
    let n = weights.len();
    let pairs = || (0..n).filter(counts).flat_map(|j| (j + 1..n).filter(counts).map(move |i| (i, j)));
    let largest = pairs().fold(0.0, |a: f64, ij| a.max(values[ij].abs()));
    match pairs().find(|&(i, j)| (values[(i, j)] - values[(j, i)]).abs() > SYMMETRY * largest) {
        None => Ok(()),
        Some((i, j)) => {
            // The matrix is held with rows as columns.
            let (value, mirrored) = (values[(i, j)], values[(j, i)]);
            Err(Error::AsymmetricKernel { row: j, column: i, value, mirrored })
        }
    }
}

fn finished(
    model: KernelComponents,
    details: KernelReport,
    plan: KernelPlan,
    (rows, weight): (usize, f64),
    trace: f64,
    (passes, started): (usize, Instant),
) -> Fit<KernelComponents> {
    let (features, components) = (model.parts().mean.len(), model.parts().offset.len());
    let report = Report {
        plan: plan.plan,
        rows,
        weight,
        features,
        components,
        log_likelihood: None,
        total_variance: (trace / weight).max(0.0),
        holes: None,
        details: Some(Details::Kernel(details)),
        redundant: None,
        rotation: None,
        scaled: None,
        choice: None,
        stop: Stop::Converged,
        passes,
        trace: Vec::new(),
        seconds: started.elapsed().as_secs_f64(),
        spectrum: None,
    };
    Fit { model, report }
}
