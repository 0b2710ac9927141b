//! `covary fit`: from rows or moments to a model file and a summary.

use std::time::Instant;

use covary::data::{RowSource, RowStream};
use covary::describe::{Description, Detail, Facts, Line, describe};
use covary::evidence::Moments;
use covary::persist::SavedModel;
use covary::select::Select;
use covary::{Components, Control, Error, Run};
use covary_io::{CarriedBecause, LeftOutBecause, Matrix, NewFile, Schema, Stream, shown, square_matrix};
use serde::Serialize;

use super::choose;
use crate::args::{Fit, Start};
use crate::console;
use crate::exit::{Code, Failure, Result};
use crate::files::read_moments;
use crate::interrupt;
use crate::notice;
use crate::phrase::{about_features, about_rows, file_name, place};
use crate::print::{self, json};
use crate::progress::Progress;
use crate::source::{Rows, Source};

/// Fits, writes and tells.
pub(crate) fn run(args: &Fit) -> Result<Code> {
    let started = Instant::now();
    let target = args.output.as_ref().map(NewFile::create).transpose()?;
    let (saved, schema) = fit(args)?;
    if let Some(target) = target {
        target.write(&saved.to_bytes()?)?;
    }
    tell(args, &saved, schema.as_ref(), started.elapsed().as_secs_f64())?;
    let at_rest = saved.report.rotation.as_ref().is_none_or(|rotation| rotation.converged);
    Ok(match (saved.report.converged() && at_rest, interrupt::requested()) {
        (true, _) => Code::Done,
        (false, true) => Code::Interrupted,
        (false, false) => Code::NotConverged,
    })
}

/// The model, and what the file of rows was if there was one.
fn fit(args: &Fit) -> Result<(SavedModel, Option<Schema>)> {
    if args.of_moments() {
        let part = read_moments(&args.data)?;
        return Ok((fit_moments(args, &part.evidence, &part.features)?, None));
    }
    if let Some(rows) = args.matrix {
        return Ok((fit_matrix(args, rows)?, None));
    }
    let source = Source::open(&args.reading(), args.start.as_ref().map(Start::features))?;
    notice::carried(args.console, &source.schema);
    fit_source(args, source)
}

fn fit_moments(args: &Fit, moments: &Moments, features: &[String]) -> Result<SavedModel> {
    let fitted = watched(args, 0, |control| args.request.fit(moments, control));
    let saved = fitted.and_then(|fit| SavedModel::new(fit, Some(features.to_vec())));
    saved.map_err(about_features(&args.data, features))
}

/// Covariances or correlations as if so many rows had them.
fn fit_matrix(args: &Fit, rows: usize) -> Result<SavedModel> {
    let matrix = square_matrix(&args.data, &args.options)?;
    notice::text(args.console, &args.data, &matrix.recognised, matrix.header_guess.as_ref());
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
            "{file}: the cell in row '{row}', column '{column}' is empty, and every covariance is needed; \
             leave a feature out with --drop"
        )));
    }
    match (0..p).find(|&j| cells[(j, j)] <= 0.0) {
        Some(j) => Err(Failure::data(format!(
            "{file}: the variance of '{}', on the diagonal, is {}; variances are positive, so leave the \
             feature out with --drop '{}'",
            columns[j],
            shown(cells[(j, j)]),
            columns[j]
        ))),
        None => Ok(()),
    }
}

/// Why there is no model: the core's reason, or one that is told already.
pub(super) enum Trouble {
    Core(Error),
    Told(Failure),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Told(failure)
    }
}

impl Trouble {
    /// In the words of the command.
    pub(super) fn in_words(self, args: &Fit, schema: &Schema) -> Failure {
        match self {
            Self::Told(failure) => failure,
            // All components are more than can be found of very many features: then a number helps.
            Self::Core(error @ Error::Solver { .. })
                if args.request.family().components() == Components::All =>
            {
                Failure::usage(format!("{error}: the most that may be kept, with -q, such as -q 20"))
            }
            Self::Core(error) => about_rows(schema)(error),
        }
    }
}

/// Fits the rows, without the features that were never observed if that is allowed.
fn fit_source(args: &Fit, mut source: Source) -> Result<(SavedModel, Option<Schema>)> {
    let fitted = match try_fit(args, &mut source) {
        Err(Trouble::Core(Error::NeverObserved { features })) if args.drop_empty => {
            let empty: Vec<usize> = features.into_iter().map(|(j, _)| j).collect();
            source = source.without(&args.reading(), &empty)?;
            try_fit(args, &mut source)
        }
        fitted => fitted,
    };
    match fitted {
        Ok(saved) => Ok((saved, Some(source.schema))),
        Err(trouble) => Err(trouble.in_words(args, &source.schema)),
    }
}

fn try_fit(args: &Fit, source: &mut Source) -> Result<SavedModel, Trouble> {
    if let Rows::Stream(stream) = &mut source.rows {
        return fit_stream(args, &source.schema, stream);
    }
    let Some(rows) = source.again() else { return Err(Error::NoRows.into()) };
    fit_rows(args, source, rows)
}

/// Fits rows that can be read more than once: those of a source, or a part of them.
pub(super) fn fit_rows(args: &Fit, source: &Source, rows: &dyn RowSource) -> Result<SavedModel, Trouble> {
    let (in_memory, p) = (source.in_memory(), rows.n_features());
    let apart = matches!(source.rows, Rows::Grid(_));
    let threads = apart.then(|| args.budget.threads(rayon::current_num_threads(), p, 1));
    let run = Run { memory: Some(args.budget.solver(in_memory)), threads, ..args.request.how() };
    let mut request = args.request.clone().run(run);
    // Kernel PCA looks at some rows alone, whatever the number of features.
    if request.chooses() && request.family().as_kernel_pca().is_none() {
        let select = Select::new().seed(run.seed);
        request = request.select(choose::within(&args.reading(), &select, rows, in_memory)?);
    }
    let fit = watched(args, rows.n_rows().unwrap_or(0), |control| request.fit(rows, control))?;
    Ok(SavedModel::new(fit, Some(source.schema.features.clone()))?)
}

/// Rows that pass once: their moments are all that can be had.
fn fit_stream(args: &Fit, schema: &Schema, stream: &mut Stream) -> Result<SavedModel, Trouble> {
    let p = schema.features.len();
    let file = file_name(&args.data);
    if let Some(needed) = args.budget.too_many_for_moments(p, 1) {
        return Err(Trouble::Told(Failure::usage(format!(
            "{file} passes only once, and the covariance of its {p} features needs about {} MiB; raise \
             --memory, or give a plain file and a number of components",
            needed >> 20
        ))));
    }
    let data: &mut dyn RowStream = stream;
    match watched(args, 0, |control| args.request.fit(data, control)) {
        Ok(fit) => Ok(SavedModel::new(fit, Some(schema.features.clone()))?),
        Err(Error::Missing { cell, .. }) => Err(Trouble::Told(Failure::usage(format!(
            "{}: the cell is empty, and rows with missing values are read more than once, but these pass \
             only once and do not fit in the memory limit; raise --memory, or give a plain file",
            place(&file_name(&schema.path), &cell, &schema.features)
        )))),
        Err(Error::Solver { solver, .. }) => Err(Trouble::Told(Failure::usage(format!(
            "the {solver} solver reads the rows more than once, but {file} passes only once and does not fit \
             in the memory limit; raise --memory, give a plain file, or use --solver eigen"
        )))),
        Err(error) => Err(error.into()),
    }
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
    facts: &'a Facts,
    components_because: &'a str,
    carried: Vec<Column<'a>>,
    left_out: Vec<Column<'a>>,
    seconds: f64,
}

fn tell(args: &Fit, saved: &SavedModel, schema: Option<&Schema>, seconds: f64) -> Result<()> {
    let because = saved.report.choice.as_deref().unwrap_or(&args.components_because);
    let description = describe(saved, &Detail { because: Some(because), ..Detail::default() })?;
    let summary = Summary {
        data: args.data.display().to_string(),
        model_file: args.output.as_ref().map(|path| path.display().to_string()),
        facts: &description.facts,
        components_because: because,
        carried: schema.map(carried).unwrap_or_default(),
        left_out: schema.map(left_out).unwrap_or_default(),
        seconds,
    };
    match args.json {
        true => console::print(&json(&summary)?),
        false => {
            let lines = [description.lines.clone(), lines(&summary, args.matrix.is_some())].concat();
            args.console.show(&print::text(&Description { lines, ..description }, &print::in_flags))
        }
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

/// What the command itself has to tell.
fn lines(summary: &Summary<'_>, of_matrix: bool) -> Vec<Line> {
    let kept = match &summary.model_file {
        Some(path) => path.clone(),
        None => "not kept; add -o model.covary to keep it".into(),
    };
    let mut lines = Vec::new();
    if of_matrix {
        lines.push(Line::new("mean", "taken as 0, because a matrix does not tell it"));
    }
    let lists = [("columns carried", &summary.carried), ("columns left out", &summary.left_out)];
    lines.extend(lists.into_iter().filter(|(_, l)| !l.is_empty()).map(|(name, l)| Line::new(name, list(l))));
    lines.push(Line::new("model file", kept));
    lines.push(Line::new("seconds", format!("{:.3}", summary.seconds)));
    lines
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
