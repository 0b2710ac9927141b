//! A fit: a look at the rows, then the kernel matrix itself or landmarks and a pass.

use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::{Details, Fit, KMeans, MissingCells, Report};
use super::by_landmarks::ByLandmarks;
use super::exact::Exact;
use super::matrix::fit_matrix;
use super::missing::{RowsWithCells, drawn, filling, table_of};
use super::plan::{KernelPlan, Size, choose};
use super::report::{KernelReport, LandmarkMethod};
use super::{KernelPca, Landmarks};
use crate::algorithm::kernel::CentredKernel;
use crate::algorithm::landmarks::{independent, pivoted};
use crate::algorithm::{Components, Stop};
use crate::blocks::Frame;
use crate::control::Control;
use crate::data::{RowSource, Table};
use crate::error::{Error, Result};
use crate::evidence::{Coreset, CoresetDesign, KernelFeatures, Survey, gather};
use crate::kernel::{Compared, FeatureMap, Filling, Kernel, KernelForm, Points};
use crate::linalg::Mat;
use crate::memory;
use crate::model::{KernelComponents, LinearGaussian, check_expected};

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
    let look = Look::at(source, family, control)?;
    let size = Size {
        rows: look.rows,
        features: source.n_features(),
        components: family.components,
        landmarks: family.landmarks.asked(),
        memory: family.run.memory,
    };
    check_number(family.components, look.rows, source.n_features())?;
    let plan = choose(family.solver, &size)?;
    match plan.landmarks {
        None => look.exact(family, plan, control, started),
        Some(wanted) => look.by_landmarks(family, plan, wanted, size.usual(), control, started),
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
pub(super) struct Look<'a> {
    source: &'a dyn RowSource,
    pub(super) rows: usize,
    pub(super) weight: f64,
    mean: Vec<f64>,
    design: CoresetDesign, // of all rows, as they are up to a power of two
    pub(super) filling: Option<Arc<LinearGaussian>>,
    pub(super) holes: Option<MissingCells>,
}

impl<'a> Look<'a> {
    /// One pass; those of a model of the cells where some are missing.
    pub(super) fn at(source: &'a dyn RowSource, family: &KernelPca, control: &Control<'_>) -> Result<Self> {
        let p = source.n_features();
        let survey = |rows: &dyn RowSource| gather(rows, || Survey::empty(p), control)?.finish();
        let (mut census, mut margins) = survey(source)?;
        let holes = Some(MissingCells::new(&census, None)).filter(|holes| holes.missing > 0);
        let filling = match holes {
            None => None,
            Some(_) if source.remote().is_some() => {
                let (name, value) = ("the rows of a kernel on other machines", "missing values".into());
                return Err(Error::Parameter {
                    name,
                    value,
                    allowed: "complete; fill them first, by PPCA say",
                });
            }
            Some(_) => {
                check_expected(family.form)?;
                Some(Arc::new(filling(source, &census, family.run, control)?))
            }
        };
        if census.empty_rows() > 0 {
            (census, margins) = survey(&RowsWithCells(source))?;
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
        let (rows, weight) = (census.rows(), census.weight());
        Ok(Self { source, rows, weight, mean, design, filling, holes })
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

    pub(super) fn unit(&self) -> f64 {
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
        let weights = sample.weights().map_or_else(|| vec![1.0; sample.shape().0], <[f64]>::to_vec);
        let points = self.cells(&sample);
        let kernel = self.kernel(family, &sample, &points)?;
        drop(sample);
        let n = points.nrows();
        memory::check("the kernel matrix of the rows", &[n, n])?;
        let p = self.mean.len();
        let compared =
            Compared::around(kernel, points.as_ref(), &self.mean, &vec![1.0; p], self.dyn_filling())?;
        let centred = CentredKernel::new(compared.gram_tiles()?, &weights)?;
        let within = compared.within().iter().zip(&weights).map(|(v, w)| v * w).sum();
        drop(compared);
        let found = Exact::of(centred, (&weights, within), family, plan.plan.solver, control)?;
        let coordinates = found.coordinates(&weights);
        let model = found.model(kernel, points, self.centre(), &weights, family.preimage, &coordinates)?;
        let details = KernelReport { filling_components: self.filled_by(), ..found.report(kernel, n) };
        let trace = found.spectrum.trace;
        let holes = self.holes.clone();
        Ok(finished(model, details, plan, (self.rows, self.weight), trace, holes, (2, started)))
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
        let kernel = self.kernel(family, &sample, &self.cells(&sample))?;
        let (landmarks, method) = self.landmarks(family, kernel, wanted, &sample, control)?;
        let map = FeatureMap::new(kernel, landmarks, &self.mean)?;
        let map = Arc::new(match self.dyn_filling() {
            Some(filling) => map.with_filling(filling),
            None => map,
        });
        let seen = RowsWithCells(self.source);
        let rows: &dyn RowSource = if self.filling.is_some() { &seen } else { self.source };
        let evidence = gather(rows, || KernelFeatures::empty(Arc::clone(&map)), control)?;
        let found = ByLandmarks::of(&map, &evidence, family)?;
        let model = found.model(kernel, &map, self.centre(), family.preimage)?;
        let (asked, filling_components) = (Some(wanted), self.filled_by());
        let landmarks = Some(method);
        let details = KernelReport { landmarks, asked, filling_components, ..found.report(kernel, &map) };
        let (trace, holes) = (found.trace, self.holes.clone());
        Ok(finished(model, details, plan, (self.rows, self.weight), trace, holes, (3, started)))
    }

    /// The kernel, whose width a sample tells: in the frame, and in the units of the data (n × p).
    fn kernel(&self, family: &KernelPca, sample: &Table<'_>, points: &Mat<f64>) -> Result<Kernel> {
        match &self.filling {
            None => family.gamma.kernel(family.form, sample, self.unit()),
            Some(model) => {
                let drawn = drawn(model, points, self.unit(), family.run.seed)?;
                family.gamma.kernel(family.form, &table_of(&drawn)?, self.unit())
            }
        }
    }

    /// Rows (n × p) with missing cells filled by their means.
    fn filled(&self, points: Mat<f64>) -> Result<Mat<f64>> {
        match &self.filling {
            None => Ok(points),
            Some(model) => model.impute(&points),
        }
    }

    fn dyn_filling(&self) -> Option<Arc<dyn Filling>> {
        self.filling.clone().map(|model| model as Arc<dyn Filling>)
    }

    /// What the model holds of all rows: their mean and what is known of missing cells.
    fn centre(&self) -> (Vec<f64>, Option<LinearGaussian>) {
        (self.mean.clone(), self.filling.as_deref().cloned())
    }

    /// Components of the model of missing cells.
    fn filled_by(&self) -> Option<usize> {
        self.filling.as_ref().map(|model| model.n_latent())
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
                let points = self.filled(self.cells(sample))?;
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
    holes: Option<MissingCells>,
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
        holes,
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
