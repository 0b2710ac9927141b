//! `covary impute --holdout`: hides observed cells, predicts them and tells how well that went.

use std::time::Instant;

use covary::data::{Observed, RowSource, map_chunks};
use covary::model::{LinearGaussian, Model};
use serde::Serialize;

use super::answer::check_features;
use super::fit::fit_rows;
use crate::args::Holdout;
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::files::read_model;
use crate::hiding::{HiddenCell, Hiding, Shown};
use crate::interrupt;
use crate::phrase::{about_rows, count, file_name};
use crate::source::{Rows, Source};
use crate::summary::json;
use crate::table::{number, pairs, percent};

/// Half the width of a 95 % interval, in standard deviations.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// Hides, predicts and tells.
pub(super) fn run(args: &Holdout) -> Result<Code> {
    let started = Instant::now();
    let (source, hiding, given) = prepare(args)?;
    let about = about_rows(&source.schema);
    let exam = Exam::new(&source, &hiding).map_err(&about)?;
    let judged = match given {
        Some(model) => Judged { model, converged: true },
        None => fit(args, &source, &exam)?,
    };
    interrupt::worth_saving(false);
    let tally = exam.mark(&*judged.model.gaussian()?).map_err(&about)?;
    if tally.cells == 0 {
        return Err(Failure::data(format!(
            "{} has {}, and none of them could be hidden; give a larger share",
            file_name(&args.fit.data),
            count(hiding.observed, "observed cell")
        )));
    }
    let outcome = Outcome::new(args, &judged, &hiding, &tally, started.elapsed().as_secs_f64());
    match args.fit.json {
        true => print(&json(&outcome)?)?,
        false => args.fit.console.show(&outcome.text())?,
    }
    Ok(if judged.converged { Code::Done } else { Code::NotConverged })
}

/// The rows, what is hidden of them, and the model if one is given.
fn prepare(args: &Holdout) -> Result<(Source, Hiding, Option<Model>)> {
    let saved = args.model.as_ref().map(|path| read_model(path)).transpose()?;
    let source = Source::open(&args.fit, saved.as_ref().map(|s| s.features.as_slice()))?;
    if let Some(saved) = &saved {
        check_features(saved, &source.schema)?;
    }
    let hiding = hide(args, &source)?;
    if saved.is_some() || hiding.empty.is_empty() {
        return Ok((source, hiding, saved.map(|s| s.model)));
    }
    let source = source.without(&args.fit, &hiding.empty)?;
    let hiding = hide(args, &source)?;
    Ok((source, hiding, None))
}

fn hide(args: &Holdout, source: &Source) -> Result<Hiding> {
    let rows = source.again().ok_or_else(|| {
        Failure::usage(format!(
            "{} passes only once and does not fit in the memory limit; raise --memory, or give a plain file",
            file_name(&args.fit.data)
        ))
    })?;
    Hiding::new(rows, args.share, args.seed).map_err(about_rows(&source.schema))
}

/// A model that is judged.
struct Judged {
    model: Model,
    converged: bool,
}

/// Fits what is not hidden.
fn fit(args: &Holdout, source: &Source, exam: &Exam<'_>) -> Result<Judged> {
    let fitted = fit_rows(&args.fit, source, exam.shown()).map_err(about_rows(&source.schema))?;
    if interrupt::requested() {
        return Err(Failure::interrupted());
    }
    Ok(Judged { converged: fitted.report.converged(), model: fitted.model })
}

/// Cells that are shown and cells that are hidden.
enum Exam<'a> {
    Rows(Shown<'a>),
    Cells { shown: Observed<'static>, hidden: Vec<HiddenCell>, hiding: &'a Hiding },
}

impl<'a> Exam<'a> {
    fn new(source: &'a Source, hiding: &'a Hiding) -> covary::Result<Self> {
        match (&source.rows, source.again()) {
            (Rows::Cells(cells), _) => {
                let (shown, hidden) = hiding.part_cells(cells)?;
                Ok(Self::Cells { shown, hidden, hiding })
            }
            (_, Some(source)) => Ok(Self::Rows(Shown { source, hiding })),
            (_, None) => Err(covary::Error::NoRows),
        }
    }

    fn shown(&self) -> &dyn RowSource {
        match self {
            Self::Rows(shown) => shown,
            Self::Cells { shown, .. } => shown,
        }
    }

    /// Predicts all hidden cells; the grid of the rows decides the order of every sum.
    fn mark(&self, model: &LinearGaussian) -> covary::Result<Tally> {
        match self {
            Self::Rows(Shown { source, hiding }) => {
                let parts = map_chunks(*source, |chunk| {
                    let (shown, hidden) = hiding.part(chunk)?;
                    let told = model.impute_with_std(&shown)?;
                    let cell =
                        |(i, j, x): HiddenCell| (x, told.cells[(i, j)], told.std[(i, j)], hiding.means[j]);
                    Ok(Tally::of(hidden.into_iter().map(cell)))
                })?;
                Ok(parts.iter().fold(Tally::default(), Tally::merged))
            }
            Self::Cells { shown, hidden, hiding } => {
                let asked: Vec<(usize, usize)> = hidden.iter().map(|(i, j, _)| (*i, *j)).collect();
                let told = model.predict(shown, &asked)?;
                let cell =
                    |(k, (_, j, x)): (usize, &HiddenCell)| (*x, told.mean[k], told.std[k], hiding.means[*j]);
                Ok(Tally::of(hidden.iter().enumerate().map(cell)))
            }
        }
    }
}

/// Sums over hidden cells.
#[derive(Debug, Default)]
struct Tally {
    cells: usize,
    squares: f64,
    baseline_squares: f64,
    log_density: f64,
    covered: usize,
}

impl Tally {
    /// Of cells with value, prediction, its standard deviation and the mean of the feature.
    fn of(cells: impl Iterator<Item = (f64, f64, f64, f64)>) -> Self {
        let mut tally = Self::default();
        for (value, mean, std, baseline) in cells {
            let error = value - mean;
            tally.cells += 1;
            tally.squares += error * error;
            tally.baseline_squares += (value - baseline) * (value - baseline);
            tally.log_density -= 0.5 * (std::f64::consts::TAU.ln() + (error / std).powi(2)) + std.ln();
            tally.covered += usize::from(error.abs() <= QUANTILE * std);
        }
        tally
    }

    fn merged(self, other: &Self) -> Self {
        Self {
            cells: self.cells + other.cells,
            squares: self.squares + other.squares,
            baseline_squares: self.baseline_squares + other.baseline_squares,
            log_density: self.log_density + other.log_density,
            covered: self.covered + other.covered,
        }
    }
}

/// What is told; the keys are part of the command's contract.
#[derive(Serialize)]
struct Outcome {
    data: String,
    model_file: Option<String>,
    model: &'static str,
    components: usize,
    share: f64,
    seed: u64,
    hidden: usize,
    observed: usize,
    rmse: f64,
    baseline_rmse: f64,
    mean_log_density: Option<f64>,
    coverage_95: f64,
    converged: bool,
    seconds: f64,
}

impl Outcome {
    fn new(args: &Holdout, judged: &Judged, hiding: &Hiding, tally: &Tally, seconds: f64) -> Self {
        let n = tally.cells as f64;
        Self {
            data: args.fit.data.display().to_string(),
            model_file: args.model.as_ref().map(|path| path.display().to_string()),
            model: judged.model.kind(),
            components: judged.model.n_latent(),
            share: args.share,
            seed: args.seed,
            hidden: tally.cells,
            observed: hiding.observed,
            rmse: (tally.squares / n).sqrt(),
            baseline_rmse: (tally.baseline_squares / n).sqrt(),
            mean_log_density: Some(tally.log_density / n).filter(|x| x.is_finite()),
            coverage_95: tally.covered as f64 / n,
            converged: judged.converged,
            seconds,
        }
    }

    fn text(&self) -> String {
        let components = count(self.components, "component");
        let model = match &self.model_file {
            Some(file) => format!(
                "{} of {components}, '{file}' as given: judged too kindly if it has seen these cells",
                self.model
            ),
            None => format!("{} of {components}, fitted to the other cells", self.model),
        };
        let share = percent(self.hidden as f64 / self.observed.max(1) as f64);
        let density = match self.mean_log_density {
            Some(value) => format!("{} per cell", number(value)),
            None => "none: the model has no noise".into(),
        };
        let mut all = vec![
            ("model", model),
            ("hidden cells", format!("{} of {} observed, {share}", self.hidden, self.observed)),
            ("RMSE", number(self.rmse)),
            ("RMSE of each feature's mean", number(self.baseline_rmse)),
            ("log predictive density", density),
            ("95 % intervals cover", percent(self.coverage_95)),
        ];
        if !self.converged {
            all.push(("not converged", "the fit stopped at its limit of iterations".into()));
        }
        all.push(("seconds", format!("{:.3}", self.seconds)));
        pairs(&all)
    }
}
