//! A fit: a look at the rows, then the kernel matrix itself or landmarks and a pass.

use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::{Details, Fit, KMeans, Report};
use super::by_landmarks::ByLandmarks;
use super::exact::Exact;
use super::matrix::fit_matrix;
use super::plan::{KernelPlan, Size, choose};
use super::report::{KernelReport, LandmarkMethod};
use super::{KernelPca, Landmarks};
use crate::algorithm::kernel::CentredKernel;
use crate::algorithm::landmarks::{independent, pivoted};
use crate::algorithm::{Components, Stop};
use crate::blocks::Frame;
use crate::control::Control;
use crate::data::{RowSource, Table, map_chunks};
use crate::error::{Error, Result};
use crate::evidence::{Coreset, CoresetDesign, KernelFeatures, Survey, gather};
use crate::kernel::{FeatureMap, Kernel, KernelForm, Points};
use crate::linalg::Mat;
use crate::memory;
use crate::model::KernelComponents;

/// Rows from which landmarks are drawn: so many, and so many for each landmark.
const SAMPLE_ROWS: usize = 1 << 13;
const ROWS_PER_LANDMARK: usize = 16;
/// The stream of the generator that draws landmarks.
const STREAM: u64 = 1 << 42;

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

pub(super) fn check_number(components: Components, rows: usize, features: usize) -> Result<()> {
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
        let centred = CentredKernel::new(compared.gram_tiles(), &weights)?;
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

pub(super) fn finished(
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
