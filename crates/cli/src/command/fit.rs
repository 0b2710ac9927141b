//! `covary fit`: from rows or moments to a model file and a summary.

use std::time::Instant;

use covary::data::{RowSource, Table};
use covary::estimator::{FromSpectrum, Request, Spectral, choose};
use covary::evidence::{Moments, gather_stream};
use covary::model::{LinearGaussian, Model, PrincipalComponents};
use covary::persist::SavedModel;
use covary::{Control, Fit as Fitted, Solver};
use covary_io::{CarriedBecause, Grid, LeftOutBecause, Loaded, NewFile, Schema, Stream, open};
use serde::Serialize;

use crate::args::Fit;
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::files::read_moments;
use crate::flags::Kind;
use crate::interrupt;
use crate::phrase::{about_file, about_rows, file_name};
use crate::progress::Progress;
use crate::summary::{Facts, json};

/// Fits, writes and tells.
pub(crate) fn run(args: &Fit) -> Result<Code> {
    let started = Instant::now();
    let target = args.output.as_ref().map(NewFile::create).transpose()?;
    let (saved, schema) = match args.kind {
        Kind::Ppca => fit::<LinearGaussian>(args)?,
        Kind::Pca => fit::<PrincipalComponents>(args)?,
    };
    if let Some(target) = target {
        target.write(&saved.to_bytes()?)?;
    }
    tell(args, &saved, schema.as_ref(), started.elapsed().as_secs_f64())?;
    Ok(match (saved.report.converged(), interrupt::requested()) {
        (true, _) => Code::Done,
        (false, true) => Code::Interrupted,
        (false, false) => Code::NotConverged,
    })
}

/// The model, and what the file of rows was if there was one.
fn fit<M: FromSpectrum + Into<Model>>(args: &Fit) -> Result<(SavedModel, Option<Schema>)> {
    if args.of_moments() {
        let part = read_moments(&args.data)?;
        let fitted = estimator::<M>(args).fit_moments(&part.evidence).map_err(about_file(&args.data))?;
        return Ok((SavedModel::new(fitted, Some(part.features))?, None));
    }
    let reader = open(&args.data, &args.options)?;
    let schema = reader.schema().clone();
    mention_columns(args, &schema);
    let loaded = {
        let progress = Progress::new(args.console, "reading", schema.n_rows);
        reader.load_watched(args.budget.table(), &|rows| progress.add(rows))?
    };
    let fitted = match loaded {
        Loaded::Table(table) => fit_table::<M>(args, &schema, table),
        Loaded::Grid(grid) => fit_grid::<M>(args, &schema, &grid),
        Loaded::Stream(stream) => fit_stream::<M>(args, &schema, stream),
    }?;
    let features = schema.features.clone();
    Ok((SavedModel::new(fitted, Some(features))?, Some(schema)))
}

fn estimator<M>(args: &Fit) -> Spectral<M> {
    let mut estimator = Spectral::new(args.components).solver(args.solver).seed(args.seed);
    if let Some(tolerance) = args.tolerance {
        estimator = estimator.tolerance(tolerance);
    }
    if let Some(limit) = args.max_iterations {
        estimator = estimator.max_iterations(limit);
    }
    estimator
}

fn fit_table<M: FromSpectrum>(args: &Fit, schema: &Schema, table: Table<'_>) -> Result<Fitted<M>> {
    let (rows, features) = table.shape();
    let cell = if schema.single_precision { 4 } else { 8 };
    let memory = args.budget.solver(rows * features * cell);
    check_memory(args, &table, memory)?;
    watched(args, rows, |control| estimator(args).memory(memory).fit_with(table, control))
        .map_err(about_rows(schema))
}

fn fit_grid<M: FromSpectrum>(args: &Fit, schema: &Schema, grid: &Grid) -> Result<Fitted<M>> {
    let memory = args.budget.solver(0);
    let threads = args.budget.threads(rayon::current_num_threads(), schema.features.len());
    check_memory(args, grid, memory)?;
    let estimator = estimator(args).memory(memory).threads(threads);
    watched(args, grid.n_rows().unwrap_or(0), |control| estimator.fit_with(grid, control))
        .map_err(about_rows(schema))
}

/// Rows that pass once: their moments are all that can be had.
fn fit_stream<M: FromSpectrum>(args: &Fit, schema: &Schema, mut stream: Stream) -> Result<Fitted<M>> {
    let p = schema.features.len();
    let file = file_name(&args.data);
    if !matches!(args.solver, Solver::Auto | Solver::Eigen) {
        return Err(Failure::usage(format!(
            "the {} solver reads the rows more than once, but {file} passes only once and does not fit in the memory limit; raise --memory, give a plain file, or use --solver eigen",
            args.solver.name()
        )));
    }
    if let Some(needed) = args.budget.too_many_for_moments(p) {
        return Err(Failure::usage(format!(
            "{file} passes only once, and the covariance of its {p} features needs about {} MiB; raise --memory, or give a plain file and a number of components",
            needed >> 20
        )));
    }
    let moments = watched(args, 0, |control| gather_stream(&mut stream, || Moments::empty(p), control))
        .map_err(about_rows(schema))?;
    let mut fitted = estimator::<M>(args).fit_moments(&moments).map_err(about_rows(schema))?;
    fitted.report.plan.reason = format!("the rows pass once: one pass gives the {p} × {p} covariance");
    Ok(fitted)
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

/// A solver that somebody asked for must keep to the limit too.
fn check_memory(args: &Fit, source: &dyn RowSource, memory: usize) -> Result<()> {
    let request = Request {
        rows: source.n_rows(),
        features: source.n_features(),
        in_memory: source.as_table().is_some(),
        components: args.components,
        memory,
    };
    let plan = choose(args.solver, &request)?;
    match plan.memory <= memory {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the {} solver would hold about {} MiB here, more than the memory limit leaves; raise --memory or let --solver auto choose",
            plan.solver.name(),
            plan.memory >> 20
        ))),
    }
}

/// Columns that are not modelled must not surprise anybody.
fn mention_columns(args: &Fit, schema: &Schema) {
    let because = |c: &&covary_io::CarriedColumn| c.because == CarriedBecause::NotNumeric;
    let text: Vec<String> = schema.carried.iter().filter(because).map(|c| format!("'{}'", c.name)).collect();
    if !text.is_empty() {
        args.console.note(&format!("not numeric, so not modelled: {}", text.join(", ")));
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
        false => args.console.show(&text(&summary)),
    }
}

fn carried(schema: &Schema) -> Vec<Column<'_>> {
    let because = |c: &covary_io::CarriedColumn| match c.because {
        CarriedBecause::Id => "id",
        CarriedBecause::NotNumeric => "not numeric",
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

fn text(summary: &Summary<'_>) -> String {
    let kept = match &summary.model_file {
        Some(path) => path.clone(),
        None => "not kept; add -o model.covary to keep it".into(),
    };
    let mut more = Vec::new();
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
