//! What `covary impute` was asked for: one of three things, each with what it needs.

use std::path::PathBuf;

use covary::{Request, Run};
use covary_io::Budget;

use super::{Fit, Question, options, set_threads};
use crate::console::Console;
use crate::exit::{Failure, Result};
use crate::flags;
use crate::kinds::{self, Wanted};

/// What `impute` works with.
pub(crate) enum Impute {
    /// The data with their missing values imputed.
    Fill { question: Question, filling: Filling },
    /// Cells that a file names.
    Pairs { question: Question, pairs: PathBuf, std: bool },
    /// How well hidden cells are predicted.
    Holdout(Box<Holdout>),
}

/// What goes into the missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filling {
    Means,
    MeansAndDeviations,
    Draws { count: usize, seed: u64 },
}

/// What `impute --holdout` works with.
pub(crate) struct Holdout {
    /// A model to be judged; without one, a model is fitted to what is not hidden.
    pub(crate) model: Option<PathBuf>,
    pub(crate) share: f64,
    pub(crate) seed: u64,
    /// How to read the data, and to fit them.
    pub(crate) fit: Fit,
}

impl Impute {
    pub(crate) fn resolve(mut flags: flags::Impute) -> Result<Self> {
        let (model, data) = match flags.second.take() {
            Some(data) => (Some(std::mem::take(&mut flags.first)), data),
            None => (None, std::mem::take(&mut flags.first)),
        };
        if let Some(share) = flags.holdout {
            return Ok(Self::Holdout(Box::new(holdout(flags, model, data, share)?)));
        }
        let Some(model) = model else {
            return Err(Failure::usage(format!(
                "impute needs a model and data, but only '{}' is given; fit a model first, or add --holdout \
                 0.1 to see how well missing values of these data can be filled",
                data.display()
            )));
        };
        Self::of_model(flags, model, data)
    }

    fn of_model(flags: flags::Impute, model: PathBuf, data: PathBuf) -> Result<Self> {
        if flags.triples.is_some() && flags.pairs.is_none() {
            return Err(Failure::usage(
                "the whole table of all users and items would mostly be predictions; name the cells that you \
                 want in a file, with --pairs FILE",
            ));
        }
        let flags::Impute { output, columns, triples, running, .. } = flags;
        let question = flags::Question { model, data, output, columns, running };
        let question = Question::resolve(question, triples)?;
        let filling = match flags.draws {
            Some(count) => Filling::Draws { count, seed: flags.seed },
            None if flags.std => Filling::MeansAndDeviations,
            None => Filling::Means,
        };
        Ok(match flags.pairs {
            Some(pairs) => Self::Pairs { question, pairs, std: flags.std },
            None => Self::Fill { question, filling },
        })
    }
}

fn holdout(flags: flags::Impute, model: Option<PathBuf>, data: PathBuf, share: f64) -> Result<Holdout> {
    if model.is_some() && flags.components.is_some() {
        return Err(Failure::usage(
            "-q is for a model that is fitted, but a model is given; give only the data, or leave -q out",
        ));
    }
    set_threads(flags.running.threads);
    let budget = Budget::new(flags.memory);
    let (family, components_because) = kinds::family(&Wanted {
        kind: flags.model,
        components: flags.components,
        groups: None,
        start: None,
        solver: flags::Solver::Auto,
        method: None,
        nu: None,
        no_noise: false,
        contrast: None,
        deflation: false,
        factor: None,
        kernel: None,
        network: None,
        inducing: None,
        seed: flags.seed,
    })?;
    let run = Run { seed: flags.seed, ..Run::default() };
    let fit = Fit {
        data,
        options: options(flags.columns, None, budget),
        triples: flags.triples,
        drop_empty: true,
        matrix: None,
        request: Request::of(family).run(run).scale(flags.scaling.scale()),
        start: None,
        components_because,
        output: None,
        budget,
        json: flags.json,
        console: Console::or_json(flags.running.quiet, flags.json),
    };
    Ok(Holdout { model, share, seed: flags.seed, fit })
}
