//! Which model is wanted, with its own options; an option of another model is a mistake that is told.

use std::path::Path;

use covary::model::LinearGaussian;
use covary::rotate::Rotate;
use covary::{BayesMethod, Components, FactorSolver, Solver};
use covary_io::shown;

use super::Asked;
use super::factor::{RotationName, kaiser};
use crate::exit::{Failure, Result};
use crate::files::read_model;
use crate::flags;
use crate::source::ModelFeatures;

/// Share of the variance to explain when nobody asks for a number of components.
const DEFAULT_SHARE: f64 = 0.9;

/// Stands for a number of components until one is chosen.
const UNCHOSEN: usize = 1;

/// A model that is to be fitted.
#[derive(Clone)]
pub(crate) enum Wanted {
    Ppca(Axes),
    Pca(Axes),
    Fa(Factors),
    Bpca(Axes, BayesMethod),
}

/// What principal axes are found by.
#[derive(Clone)]
pub(crate) struct Axes {
    pub(crate) components: Components,
    pub(crate) solver: Solver,
    /// A model to start from.
    pub(crate) start: Option<Start>,
}

/// What factors are found by.
#[derive(Clone)]
pub(crate) struct Factors {
    pub(crate) count: usize,
    pub(crate) solver: FactorSolver,
    pub(crate) lower: Option<f64>,
    pub(crate) starts: Option<usize>,
    pub(crate) rotate: Option<Rotate>,
}

/// A model to start from.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) model: LinearGaussian,
    features: Vec<String>,
    /// Whether the features have names of their own.
    named: bool,
}

impl Start {
    fn read(path: &Path) -> Result<Self> {
        let saved = read_model(path)?;
        let named = saved.named();
        Ok(Self { model: saved.model.gaussian()?.into_owned(), features: saved.features, named })
    }

    /// The features that the rows must have.
    pub(crate) fn features(&self) -> ModelFeatures<'_> {
        ModelFeatures { names: &self.features, named: self.named }
    }
}

impl Wanted {
    /// What the flags of `fit` ask for, and why so many components, in words.
    pub(super) fn of_fit(flags: &flags::Fit) -> Result<(Self, String)> {
        let method = bayes_method(flags)?;
        if flags.model == flags::Kind::Fa {
            return Ok((Self::Fa(Factors::resolve(flags)?), "asked for".into()));
        }
        only_for_factors(flags)?;
        if flags.start.is_some() && flags.components == Some(Asked::Auto) {
            return Err(Failure::usage(
                "a model to start from says how many components there are; leave -q auto or --start out",
            ));
        }
        let start = flags.start.as_deref().map(Start::read).transpose()?;
        let solver = spectral_solver(flags.solver, flags.model)?;
        Ok(Self::of_axes(flags.model, method, flags.components, solver, start))
    }

    /// A model to be judged by hidden cells.
    pub(super) fn of_holdout(kind: flags::Kind, asked: Option<Asked>) -> Result<(Self, String)> {
        if kind == flags::Kind::Fa {
            return Ok((Self::Fa(Factors::new(number_of_factors(asked)?)), "asked for".into()));
        }
        Ok(Self::of_axes(kind, BayesMethod::default(), asked, Solver::Auto, None))
    }

    fn of_axes(
        kind: flags::Kind,
        method: BayesMethod,
        asked: Option<Asked>,
        solver: Solver,
        start: Option<Start>,
    ) -> (Self, String) {
        let (components, because) = explain_components(kind, asked, start.as_ref());
        let axes = Axes { components, solver, start };
        let wanted = match kind {
            flags::Kind::Pca => Self::Pca(axes),
            flags::Kind::Bpca => Self::Bpca(axes, method),
            flags::Kind::Ppca | flags::Kind::Fa => Self::Ppca(axes),
        };
        (wanted, because)
    }

    /// The same with another number of components.
    pub(super) fn with_components(self, count: usize) -> Self {
        let components = Components::Count(count);
        match self {
            Self::Ppca(axes) => Self::Ppca(Axes { components, ..axes }),
            Self::Pca(axes) => Self::Pca(Axes { components, ..axes }),
            Self::Fa(factors) => Self::Fa(Factors { count, ..factors }),
            Self::Bpca(axes, method) => Self::Bpca(Axes { components, ..axes }, method),
        }
    }

    /// Of principal axes.
    pub(crate) fn axes(&self) -> Option<&Axes> {
        match self {
            Self::Ppca(axes) | Self::Pca(axes) | Self::Bpca(axes, _) => Some(axes),
            Self::Fa(_) => None,
        }
    }

    /// A model to start from.
    pub(crate) fn start(&self) -> Option<&Start> {
        self.axes().and_then(|axes| axes.start.as_ref())
    }
}

impl Factors {
    fn new(count: usize) -> Self {
        Self { count, solver: FactorSolver::Auto, lower: None, starts: None, rotate: None }
    }

    fn resolve(flags: &flags::Fit) -> Result<Self> {
        if flags.start.is_some() {
            return Err(Failure::usage(
                "--start is for ppca, pca and bpca; factor analysis starts from the data, with --starts N from N places",
            ));
        }
        let flags::Factor { rotate, lower, starts, .. } = &flags.factor;
        Ok(Self {
            solver: factor_solver(flags.solver)?,
            lower: *lower,
            starts: *starts,
            rotate: rotation(rotate.as_ref(), &flags.factor, flags.seed)?,
            ..Self::new(number_of_factors(flags.components)?)
        })
    }
}

fn rotation(name: Option<&RotationName>, flags: &flags::Factor, seed: u64) -> Result<Option<Rotate>> {
    match name {
        None | Some(RotationName::None) => Ok(None),
        Some(RotationName::Named(method)) => {
            let rotate = Rotate::new(method.clone()).seed(seed);
            Ok(Some(kaiser(rotate, flags.kaiser, flags.no_kaiser)))
        }
        Some(RotationName::Target | RotationName::Procrustes) => Err(Failure::usage(
            "a rotation to a target needs the target; fit without --rotate, then covary rotate MODEL --target FILE",
        )),
    }
}

/// The number itself: factors explain covariances, so no share of the variance says how many there are.
fn number_of_factors(asked: Option<Asked>) -> Result<usize> {
    match asked {
        Some(Asked::Known(Components::Count(count))) => Ok(count),
        Some(Asked::Auto) => Ok(UNCHOSEN),
        Some(_) => Err(Failure::usage(
            "factor analysis needs the number of factors, such as -q 3 or -q auto; a share of the variance is for ppca and pca",
        )),
        None => Err(Failure::usage(
            "factor analysis needs the number of factors: add, for example, -q 3 or -q auto",
        )),
    }
}

/// Flags that other models do not use would mislead.
fn only_for_factors(flags: &flags::Fit) -> Result<()> {
    let flags::Factor { rotate, starts, lower, .. } = &flags.factor;
    let kind = flags.model.name();
    if rotate.is_some() {
        return Err(Failure::usage(format!(
            "--rotate is for factor analysis; add --model fa, or turn the components of {kind} afterwards with covary rotate"
        )));
    }
    let used = [("--starts", starts.is_some()), ("--lower", lower.is_some())];
    match used.iter().find(|(_, used)| *used) {
        Some((name, _)) => Err(Failure::usage(format!("{name} is for factor analysis; add --model fa"))),
        None => Ok(()),
    }
}

fn bayes_method(flags: &flags::Fit) -> Result<BayesMethod> {
    match (flags.bayes.method, flags.model) {
        (None, _) => Ok(BayesMethod::default()),
        (Some(method), flags::Kind::Bpca) => Ok(method.into()),
        (Some(_), _) => {
            Err(Failure::usage("--method is for Bayesian PCA; add --model bpca, or leave it out"))
        }
    }
}

fn spectral_solver(solver: flags::Solver, kind: flags::Kind) -> Result<Solver> {
    Ok(match solver {
        flags::Solver::Auto => Solver::Auto,
        flags::Solver::Eigen => Solver::Eigen,
        flags::Solver::Svd => Solver::Svd,
        flags::Solver::Dual => Solver::Dual,
        flags::Solver::Krylov => Solver::Krylov,
        flags::Solver::Em => Solver::Em,
        flags::Solver::Newton => {
            return Err(Failure::usage(format!(
                "the newton solver is for factor analysis; {} has auto, eigen, svd, dual, krylov and em",
                kind.name()
            )));
        }
    })
}

fn factor_solver(solver: flags::Solver) -> Result<FactorSolver> {
    match solver {
        flags::Solver::Auto => Ok(FactorSolver::Auto),
        flags::Solver::Newton => Ok(FactorSolver::Newton),
        flags::Solver::Krylov => Ok(FactorSolver::Krylov),
        flags::Solver::Em => Ok(FactorSolver::Em),
        _ => Err(Failure::usage(
            "that solver finds principal components; factor analysis has auto, newton, krylov and em",
        )),
    }
}

fn explain_components(
    kind: flags::Kind,
    asked: Option<Asked>,
    start: Option<&Start>,
) -> (Components, String) {
    match (asked, start) {
        (None | Some(Asked::Auto), None) if kind == flags::Kind::Bpca => {
            (Components::All, "all that the data allow".into())
        }
        (Some(Asked::Known(Components::Fraction(share))), _) => {
            (Components::Fraction(share), share_because(share))
        }
        (Some(Asked::Known(components)), _) => (components, "asked for".into()),
        (Some(Asked::Auto), _) => (Components::Count(UNCHOSEN), "to be chosen".into()),
        (None, Some(start)) => {
            (Components::Count(start.model.n_latent()), "as the model to start from has".into())
        }
        (None, None) => {
            let because = format!("{}, as nothing else was asked for with -q", share_because(DEFAULT_SHARE));
            (Components::Fraction(DEFAULT_SHARE), because)
        }
    }
}

fn share_because(share: f64) -> String {
    // As it was typed: 0.29 is 29 %, not 28.999999999999996 %.
    let percent = format!("{:.12e}", 100.0 * share).parse().unwrap_or(100.0 * share);
    format!("the fewest that explain {} % of the variance", shown(percent))
}
