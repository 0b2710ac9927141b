//! `covary fit`: from rows or moments to a model file and a summary.

use std::time::Instant;

use covary::data::RowSource;
use covary::error::Cell;
use covary::estimator::{Request, choose};
use covary::evidence::{Moments, gather_stream};
use covary::persist::SavedModel;
use covary::select::Select;
use covary::{Components, Control, Error, Solver};
use covary_io::{CarriedBecause, LeftOutBecause, Matrix, NewFile, Schema, Stream, shown, square_matrix};
use serde::Serialize;

use super::choose;
use crate::args::{Fit, Start};
use crate::console::print;
use crate::estimator::Estimator;
use crate::exit::{Code, Failure, Result};
use crate::files::read_moments;
use crate::interrupt;
use crate::notice;
use crate::phrase::{about_features, about_rows, file_name, place};
use crate::progress::Progress;
use crate::source::{Rows, Source};
use crate::summary::{Facts, json};

/// Fits, writes and tells.
pub(crate) fn run(args: &Fit) -> Result<Code> {
    let started = Instant::now();
    let target = args.output.as_ref().map(NewFile::create).transpose()?;
    let Fitted { args, saved, schema } = &fit(args)?;
    if let Some(target) = target {
        target.write(&saved.to_bytes()?)?;
    }
    tell(args, saved, schema.as_ref(), started.elapsed().as_secs_f64())?;
    let at_rest = saved.report.rotation.as_ref().is_none_or(|rotation| rotation.converged);
    Ok(match (saved.report.converged() && at_rest, interrupt::requested()) {
        (true, _) => Code::Done,
        (false, true) => Code::Interrupted,
        (false, false) => Code::NotConverged,
    })
}

/// What came out, by which arguments after all choices, and what the file of rows was if there was one.
struct Fitted {
    args: Fit,
    saved: SavedModel,
    schema: Option<Schema>,
}

fn fit(args: &Fit) -> Result<Fitted> {
    if args.of_moments() {
        let part = read_moments(&args.data)?;
        return fit_moments(args, &part.evidence, &part.features);
    }
    if let Some(rows) = args.matrix {
        return fit_matrix(args, rows);
    }
    let source = Source::open(&args.reading(), args.wanted.start().map(Start::features))?;
    notice::carried(args.console, &source.schema);
    fit_source(args, source)
}

fn fit_moments(args: &Fit, moments: &Moments, features: &[String]) -> Result<Fitted> {
    let about = about_features(&args.data, features);
    let args = match args.choose {
        true => choose::settled(args, &chooser(args).run_moments(moments).map_err(&about)?)?,
        false => args.clone(),
    };
    let saved = Estimator::new(&args).fit_moments(moments, features).map_err(about)?;
    Ok(Fitted { args, saved, schema: None })
}

/// What chooses the number of components.
fn chooser(args: &Fit) -> Select {
    Select::new().seed(args.seed)
}

/// Covariances or correlations as if so many rows had them.
fn fit_matrix(args: &Fit, rows: usize) -> Result<Fitted> {
    let matrix = square_matrix(&args.data, &args.options)?;
    notice::header(args.console, &args.data, matrix.header_guess.as_ref(), true);
    check_matrix(&matrix)?;
    let moments = Moments::from_covariance(matrix.cells.as_ref(), None, rows);
    let moments = moments.map_err(about_features(&args.data, &matrix.columns))?;
    fit_moments(args, &moments, &matrix.columns)
}

/// Every cell is known and every variance positive.
fn check_matrix(matrix: &Matrix) -> Result<()> {
    let Matrix { path, columns, cells, .. } = matrix;
    let (p, file) = (columns.len(), file_name(path));
    let mut places = (0..p).flat_map(|i| (0..p).map(move |j| (i, j)));
    if let Some((i, j)) = places.find(|ij| cells[*ij].is_nan()) {
        let (row, column) = (&columns[i], &columns[j]);
        return Err(Failure::data(format!(
            "{file}: the cell in row '{row}', column '{column}' is empty, and every covariance is needed; leave a feature out with --drop"
        )));
    }
    match (0..p).find(|&j| cells[(j, j)] <= 0.0) {
        Some(j) => Err(Failure::data(format!(
            "{file}: the variance of '{}', on the diagonal, is {}; variances are positive, so leave the feature out with --drop '{}'",
            columns[j],
            shown(cells[(j, j)]),
            columns[j]
        ))),
        None => Ok(()),
    }
}

/// Fits the rows, without the features that were never observed if that is allowed.
fn fit_source(args: &Fit, mut source: Source) -> Result<Fitted> {
    let fitted = match try_fit(args, &mut source)? {
        Err(Error::NeverObserved { features }) if args.drop_empty => {
            let empty: Vec<usize> = features.into_iter().map(|(j, _)| j).collect();
            source = source.without(&args.reading(), &empty)?;
            try_fit(args, &mut source)?
        }
        fitted => fitted,
    };
    let (args, saved) = fitted.map_err(with_a_number(args, about_rows(&source.schema)))?;
    Ok(Fitted { args, saved, schema: Some(source.schema) })
}

/// What the core says to rows that it may be asked about.
fn try_fit(args: &Fit, source: &mut Source) -> Result<covary::Result<(Fit, SavedModel)>> {
    if let Rows::Stream(stream) = &mut source.rows {
        return fit_stream(args, &source.schema, stream);
    }
    match source.again() {
        Some(rows) => {
            let args = match settled(args, source, rows)? {
                Ok(args) => args,
                Err(error) => return Ok(Err(error)),
            };
            check_memory(&args, rows, args.budget.solver(source.in_memory()))?;
            Ok(fit_rows(&args, source, rows).map(|saved| (args, saved)))
        }
        None => Ok(Err(Error::NoRows)),
    }
}

/// The arguments with a number of components that was chosen for the rows, if one was to be chosen.
pub(super) fn settled(args: &Fit, source: &Source, rows: &dyn RowSource) -> Result<covary::Result<Fit>> {
    if !args.choose {
        return Ok(Ok(args.clone()));
    }
    match choose::of_rows(&args.reading(), &chooser(args), rows, source.in_memory())? {
        Ok(selection) => choose::settled(args, &selection).map(Ok),
        Err(error) => Ok(Err(error)),
    }
}

/// Fits rows that can be read more than once: those of a source, or a part of them.
pub(super) fn fit_rows(args: &Fit, source: &Source, rows: &dyn RowSource) -> covary::Result<SavedModel> {
    let mut estimator = Estimator::new(args).memory(args.budget.solver(source.in_memory()));
    if let Rows::Grid(_) = source.rows {
        estimator =
            estimator.threads(args.budget.threads(rayon::current_num_threads(), rows.n_features(), 1));
    }
    let features = &source.schema.features;
    watched(args, rows.n_rows().unwrap_or(0), |control| estimator.fit_with(rows, features, control))
}

/// Rows that pass once: their moments are all that can be had.
fn fit_stream(args: &Fit, schema: &Schema, stream: &mut Stream) -> Result<covary::Result<(Fit, SavedModel)>> {
    let p = schema.features.len();
    let file = file_name(&args.data);
    let solver = args.wanted.axes().map_or(Solver::Auto, |axes| axes.solver);
    if !matches!(solver, Solver::Auto | Solver::Eigen) {
        return Err(Failure::usage(format!(
            "the {} solver reads the rows more than once, but {file} passes only once and does not fit in the memory limit; raise --memory, give a plain file, or use --solver eigen",
            solver.name()
        )));
    }
    if let Some(needed) = args.budget.too_many_for_moments(p, 1) {
        return Err(Failure::usage(format!(
            "{file} passes only once, and the covariance of its {p} features needs about {} MiB; raise --memory, or give a plain file and a number of components",
            needed >> 20
        )));
    }
    let moments = watched(args, 0, |control| gather_stream(stream, || Moments::empty(p), control));
    let moments = match moments {
        Err(Error::Hole { cell, .. }) => return Err(holes_in_stream(schema, &cell)),
        Err(error) => return Ok(Err(error)),
        Ok(moments) => moments,
    };
    let Fitted { args, mut saved, .. } = fit_moments(args, &moments, &schema.features)?;
    saved.report.passes = 1;
    saved.report.plan.reason = format!("the rows pass once: one pass gives the {p} × {p} covariance");
    Ok(Ok((args, saved)))
}

/// Rows with holes are read again and again.
fn holes_in_stream(schema: &Schema, cell: &Cell) -> Failure {
    Failure::usage(format!(
        "{}: the cell is empty, and rows with holes are read more than once, but these pass only once and do not fit in the memory limit; raise --memory, or give a plain file",
        place(&file_name(&schema.path), cell, &schema.features)
    ))
}

/// Runs a fit under the eyes of whoever watches, until Ctrl-C.
fn watched<T>(
    args: &Fit,
    rows: usize,
    fit: impl FnOnce(&Control<'_>) -> covary::Result<T>,
) -> covary::Result<T> {
    let progress = Progress::new(args.console, "fitting", Some(rows).filter(|n| *n > 0));
    let observer = |event| progress.follow(event);
    fit(&Control::new().observer(&observer).cancel(interrupt::flag()))
}

/// A solver that somebody asked for must keep to the limit too; factor analysis sees to that itself.
fn check_memory(args: &Fit, source: &dyn RowSource, memory: usize) -> Result<()> {
    let Some(axes) = args.wanted.axes() else { return Ok(()) };
    let request = Request {
        rows: source.n_rows(),
        features: source.n_features(),
        in_memory: source.as_table().is_some(),
        components: axes.components,
        memory,
    };
    let plan = choose(axes.solver, &request).map_err(with_a_number(args, Failure::from))?;
    match plan.memory <= memory {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the {} solver would hold about {} MiB here, more than the memory limit leaves; raise --memory or let --solver auto choose",
            plan.solver.name(),
            plan.memory >> 20
        ))),
    }
}

/// All components are more than can be found of very many features: then a number helps.
fn with_a_number(args: &Fit, otherwise: impl Fn(Error) -> Failure) -> impl Fn(Error) -> Failure {
    let all = args.wanted.axes().is_some_and(|axes| axes.components == Components::All);
    move |error| match error {
        Error::Solver { .. } if all => {
            Failure::usage(format!("{error}: the most that may be kept, with -q, such as -q 20"))
        }
        error => otherwise(error),
    }
}

#[derive(Serialize)]
struct Column<'a> {
    name: &'a str,
    because: &'static str,
}

#[derive(Serialize)]
struct Summary<'a> {
    data: String,
    model_file: Option<String>,
    #[serde(flatten)]
    facts: Facts,
    components_because: &'a str,
    carried: Vec<Column<'a>>,
    left_out: Vec<Column<'a>>,
    seconds: f64,
}

fn tell(args: &Fit, saved: &SavedModel, schema: Option<&Schema>, seconds: f64) -> Result<()> {
    let summary = Summary {
        data: args.data.display().to_string(),
        model_file: args.output.as_ref().map(|path| path.display().to_string()),
        facts: Facts::new(saved)?,
        components_because: &args.components_because,
        carried: schema.map(carried).unwrap_or_default(),
        left_out: schema.map(left_out).unwrap_or_default(),
        seconds,
    };
    match args.json {
        true => print(&json(&summary)?),
        false => args.console.show(&text(&summary, args.matrix.is_some())),
    }
}

fn carried(schema: &Schema) -> Vec<Column<'_>> {
    let because = |c: &covary_io::CarriedColumn| match c.because {
        CarriedBecause::Id => "id",
        CarriedBecause::NotNumeric => "not numeric",
        CarriedBecause::Index => "index",
        CarriedBecause::NotInModel => "not in the model",
    };
    schema.carried.iter().map(|c| Column { name: &c.name, because: because(c) }).collect()
}

fn left_out(schema: &Schema) -> Vec<Column<'_>> {
    let because = |c: &covary_io::LeftOutColumn| match c.because {
        LeftOutBecause::NotSelected => "not selected",
        LeftOutBecause::Dropped => "dropped",
        LeftOutBecause::Empty => "never observed",
    };
    schema.left_out.iter().map(|c| Column { name: &c.name, because: because(c) }).collect()
}

fn text(summary: &Summary<'_>, of_matrix: bool) -> String {
    let kept = match &summary.model_file {
        Some(path) => path.clone(),
        None => "not kept; add -o model.covary to keep it".into(),
    };
    let mut more = Vec::new();
    if of_matrix {
        more.push(("mean", "taken as 0, because a matrix does not tell it".into()));
    }
    let lists = [("columns carried", &summary.carried), ("columns left out", &summary.left_out)];
    more.extend(lists.into_iter().filter(|(_, l)| !l.is_empty()).map(|(name, l)| (name, list(l))));
    more.push(("model file", kept));
    more.push(("seconds", format!("{:.3}", summary.seconds)));
    summary.facts.text(Some(summary.components_because), more)
}

fn list(columns: &[Column<'_>]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> =
        columns.iter().take(SHOWN).map(|c| format!("{} ({})", c.name, c.because)).collect();
    match columns.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
