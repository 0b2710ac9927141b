//! What a page is told in words and small numbers; its arrays stand beside.

use covary::describe::{Advice, Description, Detail, Errors, Seen, Table, choices, describe, sentences};
use covary::persist::SavedModel;
use covary::select::Selection;
use covary::{Control, Result};
use serde::Serialize;
use serde_json::Value;

use crate::answers::Answers;
use crate::collect::{Collected, LEVEL};
use crate::columns::Carried;
use crate::linear::Linear;
use crate::options::Options;
use crate::shapes::{Image, Stick};

/// Loadings for which standard errors are worth their time.
const ERRORS: usize = 400;

/// Everything that the page is told.
#[derive(Serialize)]
pub(crate) struct About<'a> {
    pub(crate) made_by: String,
    pub(crate) title: Option<&'a str>,
    pub(crate) kind: &'static str,
    pub(crate) kind_title: &'static str,
    pub(crate) components: &'static str,
    pub(crate) features: &'a [String],
    pub(crate) coordinates: Vec<String>,
    pub(crate) model: Option<&'a str>,
    pub(crate) data: Option<&'a str>,
    pub(crate) rows: RowsTold,
    pub(crate) missing: &'a [u64],
    pub(crate) sentences: Vec<String>,
    pub(crate) lines: Vec<(String, String)>,
    pub(crate) tables: Vec<TableTold>,
    pub(crate) facts: &'a Value,
    pub(crate) eigenvalues: &'a [f64],
    pub(crate) explained: Vec<f64>,
    pub(crate) trace: &'a [f64],
    pub(crate) choice: Option<Selection>,
    pub(crate) image: Option<Image>,
    pub(crate) stick: Option<&'a Stick>,
    pub(crate) carried: Vec<Carried>,
    pub(crate) id: Option<usize>,
    pub(crate) linear: Option<Linear>,
    pub(crate) answers: Answers,
}

/// How many rows there are and are shown.
#[derive(Serialize)]
pub(crate) struct RowsTold {
    total: usize,
    shown: usize,
    sampled: bool,
    /// Rows that a sample keeps because they are unusual.
    unusual: usize,
    seed: u64,
    incomplete: usize,
    empty: usize,
    level: f64,
    outside: Option<usize>,
}

impl RowsTold {
    pub(crate) fn new(collected: &Collected, options: &Options) -> Self {
        Self {
            total: collected.rows,
            shown: collected.kept.len(),
            sampled: collected.is_sample() && !collected.kept.is_empty(),
            unusual: collected.unusual(),
            seed: options.seed,
            incomplete: collected.incomplete,
            empty: collected.empty,
            level: LEVEL,
            outside: collected.outside,
        }
    }
}

/// A table of the core's description.
#[derive(Serialize)]
pub(crate) struct TableTold {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    right: [usize; 2],
    note: Option<String>,
}

impl From<&Table> for TableTold {
    fn from(table: &Table) -> Self {
        Self {
            header: table.header.clone(),
            rows: table.rows.clone(),
            right: [table.right.start, table.right.end],
            note: table.note.as_ref().map(|words| words.with(&advised)),
        }
    }
}

/// The description of the model, with standard errors where it has some and they are found quickly.
pub(crate) fn described(saved: &SavedModel, control: &Control<'_>) -> Result<Description> {
    let cells = saved.model.n_features().saturating_mul(saved.model.n_latent());
    let possible = choices(saved.model.kind()).errors && cells <= ERRORS;
    let with = Detail { errors: possible.then_some(Errors { level: None, control }), ..Detail::default() };
    describe(saved, &with).or_else(|_| describe(saved, &Detail::default()))
}

/// The lines of a description.
pub(crate) fn lines(description: &Description) -> Vec<(String, String)> {
    description.lines.iter().map(|line| (line.label.clone(), line.words.with(&advised))).collect()
}

/// The model and its rows in sentences.
pub(crate) fn in_words(saved: &SavedModel, collected: &Collected) -> Result<Vec<String>> {
    let seen = Seen {
        rows: collected.rows,
        missing: collected.missing.iter().sum(),
        incomplete: collected.incomplete,
        empty: collected.empty,
        unusual: collected.outside,
        level: LEVEL,
        groups: collected.groups.clone(),
    };
    sentences(saved, &seen)
}

/// What to do, in the words of the command.
fn advised(advice: Advice) -> String {
    match advice {
        Advice::MoreIterations => "raise --max-iter, or --tol".into(),
        Advice::LargerTolerance => "raise --tol".into(),
        Advice::Factors(q) => format!("ask for -q {q}"),
        Advice::AllLoadings => "all are under Loadings".into(),
    }
}
