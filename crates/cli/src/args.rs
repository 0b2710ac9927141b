//! From raw flags to resolved arguments: every value checked once, before any work begins.

mod factor;
mod groups;
mod impute;
mod report;
mod score;
mod select;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use covary::model::AnyModel;
use covary::{Components, Request, Run};
use covary_io::{Budget, Format, MissingWords, ReadOptions, Selection, TripleColumns};
pub(crate) use factor::{Rotate, RotationName, Towards, cut, kaiser, level, rotation};
pub(crate) use groups::{groups, prior_rows};
pub(crate) use impute::{Filling, Holdout, Impute};
pub(crate) use report::{Report, image};
pub(crate) use score::{Asked, Score};
pub(crate) use select::{GroupsOf, Select};

use crate::console::Console;
use crate::exit::{Failure, Result};
use crate::files::read_model;
use crate::flags;
use crate::kinds::{self, Wanted};
use crate::output::check_apart;
use crate::phrase::file_name;
use crate::source::ModelFeatures;

/// Size of a chunk of rows that are answered one batch after another.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Where rows are, and how they are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) data: &'a Path,
    pub(crate) options: &'a ReadOptions,
    /// The columns that say who, what and how much, if the data give one cell in each row.
    pub(crate) triples: Option<&'a TripleColumns>,
    pub(crate) budget: Budget,
    pub(crate) console: Console,
}

/// What `fit` works with.
#[derive(Clone)]
pub(crate) struct Fit {
    pub(crate) data: PathBuf,
    pub(crate) options: ReadOptions,
    /// The columns that say who, what and how much, if the data give one cell in each row.
    pub(crate) triples: Option<TripleColumns>,
    /// Whether to go on without features that were never observed.
    pub(crate) drop_empty: bool,
    /// How many rows are behind the data, if they are a matrix of covariances.
    pub(crate) matrix: Option<usize>,
    /// What is wanted.
    pub(crate) request: Request,
    /// A model to start from, whose features the rows must have.
    pub(crate) start: Option<Start>,
    /// Why so many components, in words, unless they are chosen.
    pub(crate) components_because: String,
    pub(crate) output: Option<PathBuf>,
    pub(crate) budget: Budget,
    pub(crate) json: bool,
    pub(crate) console: Console,
}

/// A model to start from.
#[derive(Clone)]
pub(crate) struct Start {
    model: AnyModel,
    features: Vec<String>,
    /// Whether the features have names of their own.
    named: bool,
}

impl Start {
    fn read(path: &Path) -> Result<Self> {
        let saved = read_model(path)?;
        Ok(Self { named: saved.named(), model: saved.model, features: saved.features })
    }

    /// The features that the rows must have.
    pub(crate) fn features(&self) -> ModelFeatures<'_> {
        ModelFeatures { names: &self.features, named: self.named }
    }
}

impl Fit {
    pub(crate) fn resolve(flags: flags::Fit) -> Result<Self> {
        if let Some(output) = &flags.output {
            check_model_name(output)?;
            let inputs = std::iter::once(flags.data.as_path()).chain(flags.start.as_deref());
            check_apart(output, &inputs.collect::<Vec<_>>())?;
        }
        if is_moments(&flags.data) {
            check_no_columns(&flags)?;
        }
        let matrix = rows_of_matrix(&flags)?;
        if flags.triples.is_some() && !matches!(flags.solver, flags::Solver::Auto | flags::Solver::Em) {
            return Err(Failure::usage(
                "--triples means that cells are missing, which only --solver em is for; leave --solver out",
            ));
        }
        set_threads(flags.running.threads);
        let budget = Budget::new(flags.memory);
        let start = start(&flags)?;
        let (family, components_because) = kinds::family(&Wanted {
            kind: flags.model,
            components: flags.components,
            groups: Some(&flags.groups),
            start: start.as_ref().map(|start| start.model.n_latent()),
            solver: flags.solver,
            method: flags.bayes.method,
            nu: flags.robust.nu,
            no_noise: flags.bayes.no_noise,
            contrast: flags.bayes.contrast,
            deflation: flags.bayes.deflation,
            factor: Some(&flags.factor),
            kernel: Some(&flags.kernel),
            network: Some(&flags.network),
            inducing: flags.curved.inducing,
            seed: flags.seed,
        })?;
        let run =
            Run { seed: flags.seed, tolerance: flags.tol, max_iterations: flags.max_iter, ..Run::default() };
        let request = Request::of(family).run(run).scale(flags.scaling.scale());
        let request = match &start {
            Some(start) => request.start(start.model.clone()),
            None => request,
        };
        Ok(Self {
            data: flags.data,
            options: options(flags.columns, flags.weights, budget),
            triples: flags.triples,
            drop_empty: flags.drop_empty,
            matrix,
            request,
            start,
            components_because,
            output: flags.output,
            budget,
            json: flags.json,
            console: Console::or_json(flags.running.quiet, flags.json),
        })
    }

    /// Where the rows are.
    pub(crate) fn reading(&self) -> Reading<'_> {
        let Self { data, options, triples, budget, console, .. } = self;
        Reading { data, options, triples: triples.as_ref(), budget: *budget, console: *console }
    }

    /// Whether the data are moments instead of rows.
    pub(crate) fn of_moments(&self) -> bool {
        is_moments(&self.data)
    }
}

/// What every command works with that asks a model about rows.
pub(crate) struct Question {
    pub(crate) model: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) output: PathBuf,
    pub(crate) options: ReadOptions,
    /// The columns that say who, what and how much, if the data give one cell in each row.
    pub(crate) triples: Option<TripleColumns>,
    pub(crate) console: Console,
}

impl Question {
    pub(crate) fn resolve(flags: flags::Question, triples: Option<TripleColumns>) -> Result<Self> {
        set_threads(flags.running.threads);
        Ok(Self {
            model: flags.model,
            data: flags.data,
            output: output(flags.output)?,
            options: ReadOptions {
                chunk_bytes: BATCH_BYTES,
                ..options(flags.columns, None, Budget::new(None))
            },
            triples,
            console: Console::new(flags.running.quiet),
        })
    }
}

/// What a single pass over rows works with.
pub(crate) struct Pass {
    pub(crate) data: PathBuf,
    pub(crate) options: ReadOptions,
    pub(crate) budget: Budget,
    pub(crate) console: Console,
}

impl Pass {
    fn resolve(flags: flags::Pass) -> Self {
        set_threads(flags.running.threads);
        let budget = Budget::new(flags.memory);
        Self {
            data: flags.data,
            options: options(flags.columns, flags.weights, budget),
            budget,
            console: Console::new(flags.running.quiet),
        }
    }

    /// Where the rows are.
    pub(crate) fn reading(&self) -> Reading<'_> {
        let Self { data, options, budget, console } = self;
        Reading { data, options, triples: None, budget: *budget, console: *console }
    }
}

/// What `moments` works with.
pub(crate) struct Moments {
    pub(crate) pass: Pass,
    pub(crate) output: PathBuf,
}

impl Moments {
    pub(crate) fn resolve(flags: flags::Moments) -> Result<Self> {
        check_moments_name(&flags.output)?;
        Ok(Self { pass: Pass::resolve(flags.pass), output: flags.output })
    }
}

/// The pool that everything runs on.
pub(crate) fn set_threads(threads: Option<usize>) {
    if let Some(threads) = threads {
        // Fails only when the pool exists already, as in the tour: then it is as large as it should be.
        drop(rayon::ThreadPoolBuilder::new().num_threads(threads).build_global());
    }
}

/// Where rows go; the ending is checked before any work is done.
pub(crate) fn output(path: Option<PathBuf>) -> Result<PathBuf> {
    let path = path.unwrap_or_else(|| "-".into());
    Format::of_output(&path)?;
    Ok(path)
}

fn options(columns: flags::Columns, weights: Option<String>, budget: Budget) -> ReadOptions {
    let flags::Columns { columns, drop, id, text } = columns;
    let flags::Text { delimiter, decimal, na, header, encoding, sheet } = text;
    let (chunk_bytes, piece_bytes) = (budget.chunk_bytes(), budget.piece_bytes());
    ReadOptions {
        columns,
        drop,
        id,
        weights,
        delimiter,
        decimal,
        missing: na.into_iter().fold(MissingWords::default(), MissingWords::and),
        header,
        encoding,
        sheet,
        chunk_bytes,
        piece_bytes,
        ..ReadOptions::default()
    }
}

pub(crate) fn is_moments(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("moments"))
}

/// A model under the name of a table would be mistaken for one, or replace one.
fn check_model_name(path: &Path) -> Result<()> {
    let wrong = path.as_os_str() == "-" || is_moments(path) || Format::from_path(path).is_ok();
    match wrong {
        true => Err(Failure::usage(format!(
            "-o {} is where the model goes, and a model is no table; give a name such as model.covary",
            path.display()
        ))),
        false => Ok(()),
    }
}

pub(crate) fn check_moments_name(path: &Path) -> Result<()> {
    match is_moments(path) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the output {} must end in .moments, because covary fit knows moments by that ending",
            file_name(path)
        ))),
    }
}

/// The likelihood, and all that is said of the fit, depends on the number of rows, which a matrix does not
/// tell.
fn rows_of_matrix(flags: &flags::Fit) -> Result<Option<usize>> {
    if flags.matrix && is_moments(&flags.data) {
        return Err(Failure::usage("moments know how many rows they come from; leave --matrix out"));
    }
    match flags.rows {
        None if flags.matrix => Err(Failure::usage(
            "a matrix does not tell how many rows it was computed from, and the likelihood and every measure \
             of fit depend on it; add --rows N",
        )),
        rows => Ok(rows),
    }
}

fn check_no_columns(flags: &flags::Fit) -> Result<()> {
    let flags::Columns { columns, drop, id, text } = &flags.columns;
    if let Some(flag) = text.used() {
        return Err(Failure::usage(format!("moments are no text, so {flag} has no meaning; leave it out")));
    }
    let used = columns.is_some()
        || drop.is_some()
        || id.is_some()
        || flags.weights.is_some()
        || flags.triples.is_some();
    match used {
        true => Err(Failure::usage(
            "moments hold their features and weights already; choose columns when they are made, with covary \
             moments",
        )),
        false => Ok(()),
    }
}

/// The model to start from, which says how many components there are.
fn start(flags: &flags::Fit) -> Result<Option<Start>> {
    match &flags.start {
        Some(_) if flags.components == Some(Components::Auto) => Err(Failure::usage(
            "a model to start from says how many components there are; leave -q auto or --start out",
        )),
        path => path.as_deref().map(Start::read).transpose(),
    }
}

/// `5`, `0.95` or `auto`.
pub(crate) fn components(text: &str) -> Result<Components, String> {
    if text == "auto" {
        return Ok(Components::Auto);
    }
    let wanted = "give a number of components such as 5, a share of the variance such as 0.95, or auto";
    if let Ok(count) = text.parse::<usize>() {
        return if count > 0 { Ok(Components::Count(count)) } else { Err(wanted.into()) };
    }
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(Components::Fraction(share)),
        _ => Err(wanted.into()),
    }
}

/// `512M`, `4G`, `100000000`.
pub(crate) fn memory(text: &str) -> Result<usize, String> {
    let text = text.trim().to_ascii_uppercase();
    let text = text.strip_suffix('B').unwrap_or(&text);
    let text = text.strip_suffix('I').unwrap_or(text);
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        Some((at, 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let size = digits.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    let bytes = size.map(|n| (n * (1u64 << shift) as f64) as usize);
    match bytes {
        None => Err("give a size such as 512M or 4G".into()),
        Some(bytes) if bytes < Budget::LEAST => Err("at least 16M are needed".into()),
        Some(bytes) => Ok(bytes),
    }
}

pub(crate) fn selection(text: &str) -> Result<Selection, String> {
    Selection::parse(text).map_err(|error| error.to_string())
}

/// Whatever says itself what is wrong with a text.
pub(crate) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(crate) fn missing_words(text: &str) -> Result<MissingWords, String> {
    MissingWords::parse(text).map_err(|error| error.to_string())
}

pub(crate) fn triples(text: &str) -> Result<TripleColumns, String> {
    TripleColumns::parse(text).map_err(|error| error.to_string())
}

/// A share of the observed cells.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let wanted = "give a number between 0 and 1, such as 0.1";
    text.parse().ok().filter(|x| *x > 0.0 && *x < 1.0).ok_or_else(|| wanted.into())
}

pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number, such as 0.5".into())
}

pub(crate) fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "give a whole number, at least 1".into())
}

/// More threads than cores help nobody, and thousands of them may be more than the system has.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 256;
    let most = std::thread::available_parallelism().map_or(MOST, |cores| cores.get().max(MOST));
    positive(text).ok().filter(|n| *n <= most).ok_or_else(|| format!("give a whole number from 1 to {most}"))
}

pub(crate) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("say yes or no".into()),
    }
}

pub(crate) fn tolerance(text: &str) -> Result<f64, String> {
    let wanted = "give a number between 0 and 1, such as 1e-8";
    text.parse().ok().filter(|x| *x > 0.0 && *x < 1.0).ok_or_else(|| wanted.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbers_or_shares() {
        assert_eq!(components("5"), Ok(Components::Count(5)));
        assert_eq!(components("0.95"), Ok(Components::Fraction(0.95)));
        assert_eq!(components("1e-1"), Ok(Components::Fraction(0.1)));
        assert_eq!(components("auto"), Ok(Components::Auto));
        for wrong in ["0", "-1", "1.0", "1.5", "nan", "many", ""] {
            assert!(components(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_as_people_write_them() {
        assert_eq!(memory("512M"), Ok(512 << 20));
        assert_eq!(memory("1.5 GiB"), Ok(3 << 29));
        assert_eq!(memory("100000000"), Ok(100_000_000));
        assert_eq!(memory("64mb"), Ok(64 << 20));
        for wrong in ["", "M", "1K", "-4G", "much", "infG", "15M"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_model_is_not_written_over_a_table() {
        assert!(check_model_name(Path::new("wine.covary")).is_ok());
        assert!(check_model_name(Path::new("wine")).is_ok());
        for wrong in ["wine.csv", "-", "wine.npy", "wine.moments"] {
            assert!(check_model_name(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
