//! `covary impute --holdout`: hides observed cells, predicts them and tells how well that went.

use std::time::Instant;

use covary::Control;
use covary::data::RowSource;
use covary::describe::{number, percent};
use covary::model::AnyModel;
use covary::select::{CellScores, CellSplit, CellValidation};
use serde::Serialize;

use super::answer::check_features;
use super::fit::fit_rows;
use crate::args::Holdout;
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::files::read_model;
use crate::interrupt;
use crate::phrase::{about_rows, count, file_name};
use crate::print::json;
use crate::source::{ModelFeatures, Source};
use crate::table::pairs;

/// Hides, predicts and tells.
pub(super) fn run(args: &Holdout) -> Result<Code> {
    let started = Instant::now();
    let (source, hiding, given) = prepare(args)?;
    let about = about_rows(&source.schema);
    let rows = again(args, &source)?;
    let exam = CellValidation::new(rows, &hiding).map_err(&about)?;
    let judged = match given {
        Some(model) => Judged { model, converged: true },
        None => fit(args, &source, &exam)?,
    };
    interrupt::worth_saving(false);
    let marks = exam.score(judged.model.imputer()?).map_err(&about)?;
    if marks.cells == 0 {
        return Err(Failure::data(format!(
            "{} has {}, and none of them could be hidden; give a larger share",
            file_name(&args.fit.data),
            count(hiding.observed(), "observed cell")
        )));
    }
    let outcome = Outcome::new(args, &judged, &hiding, &marks, started.elapsed().as_secs_f64());
    match args.fit.json {
        true => print(&json(&outcome)?)?,
        false => args.fit.console.show(&outcome.text())?,
    }
    Ok(if judged.converged { Code::Done } else { Code::NotConverged })
}

/// The rows, what is hidden of them, and the model if one is given.
fn prepare(args: &Holdout) -> Result<(Source, CellSplit, Option<AnyModel>)> {
    let saved = args.model.as_ref().map(|path| read_model(path)).transpose()?;
    let source = Source::open(&args.fit.reading(), saved.as_ref().map(ModelFeatures::from))?;
    if let Some(saved) = &saved {
        check_features(saved, &source.schema)?;
    }
    let hiding = hide(args, &source)?;
    let empty = hiding.empty_features();
    if saved.is_some() || empty.is_empty() {
        return Ok((source, hiding, saved.map(|s| s.model)));
    }
    let source = source.without(&args.fit.reading(), &empty)?;
    let hiding = hide(args, &source)?;
    Ok((source, hiding, None))
}

fn hide(args: &Holdout, source: &Source) -> Result<CellSplit> {
    let control = Control::new().cancel(interrupt::flag());
    let hiding = CellSplit::of_share(again(args, source)?, args.share, args.seed, &control);
    hiding.map_err(about_rows(&source.schema))
}

fn again<'a>(args: &Holdout, source: &'a Source) -> Result<&'a dyn RowSource> {
    source.again().ok_or_else(|| {
        Failure::usage(format!(
            "{} passes only once and does not fit in the memory limit; raise --memory, or give a plain file",
            file_name(&args.fit.data)
        ))
    })
}

/// A model that is judged.
struct Judged {
    model: AnyModel,
    converged: bool,
}

/// Fits what is not hidden.
fn fit(args: &Holdout, source: &Source, exam: &CellValidation<'_>) -> Result<Judged> {
    let fitted = fit_rows(&args.fit, source, exam.training());
    let fitted = fitted.map_err(|trouble| trouble.in_words(&args.fit, &source.schema))?;
    if interrupt::requested() {
        return Err(Failure::interrupted());
    }
    Ok(Judged { converged: fitted.report.converged(), model: fitted.model })
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
    fn new(args: &Holdout, judged: &Judged, hiding: &CellSplit, marks: &CellScores, seconds: f64) -> Self {
        Self {
            data: args.fit.data.display().to_string(),
            model_file: args.model.as_ref().map(|path| path.display().to_string()),
            model: judged.model.kind().name,
            components: judged.model.n_latent(),
            share: args.share,
            seed: args.seed,
            hidden: marks.cells,
            observed: hiding.observed(),
            rmse: marks.rmse(),
            baseline_rmse: marks.baseline_rmse(),
            mean_log_density: Some(marks.mean_log_density()).filter(|x| x.is_finite()),
            coverage_95: marks.coverage(),
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
