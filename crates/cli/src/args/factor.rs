//! What `covary rotate` was asked for, and the words that factor analysis adds to the command.

use std::path::{Path, PathBuf};

use covary::linalg::Mat;
use covary::rotate::{self, Method};

use super::{check_model_name, set_threads};
use crate::console::Console;
use crate::exit::{Failure, Result};
use crate::flags;

/// A rotation as people type it.
#[derive(Debug, Clone)]
pub(crate) enum RotationName {
    None,
    Target,
    Procrustes,
    Named(Method),
}

/// What `rotate` works with.
pub(crate) struct Rotate {
    pub(crate) model: PathBuf,
    pub(crate) output: Option<PathBuf>,
    pub(crate) towards: Towards,
    pub(crate) cut: f64,
    pub(crate) json: bool,
    pub(crate) console: Console,
    kaiser: bool,
    no_kaiser: bool,
    starts: Option<usize>,
    seed: u64,
}

/// What the loadings are turned to.
pub(crate) enum Towards {
    /// As they were found.
    Nothing,
    /// What a method finds simple.
    Simple(Method),
    /// A table of loadings.
    Target { path: PathBuf, whole: bool, oblique: bool },
}

impl Towards {
    /// A method that aims at loadings.
    pub(crate) fn aim(target: Mat<f64>, whole: bool, oblique: bool) -> Method {
        match whole {
            true => Method::Procrustes { target, oblique },
            false => Method::Target { target, oblique },
        }
    }
}

impl Rotate {
    pub(crate) fn resolve(flags: flags::Rotate) -> Result<Self> {
        if let Some(output) = &flags.output {
            check_model_name(output)?;
        }
        set_threads(flags.running.threads);
        Ok(Self {
            towards: towards(&flags)?,
            model: flags.model,
            output: flags.output,
            cut: flags.cut,
            json: flags.json,
            console: Console::or_json(flags.running.quiet, flags.json),
            kaiser: flags.kaiser,
            no_kaiser: flags.no_kaiser,
            starts: flags.starts,
            seed: flags.seed,
        })
    }

    /// The files that are read.
    pub(crate) fn inputs(&self) -> Vec<&Path> {
        let target = match &self.towards {
            Towards::Target { path, .. } => Some(path.as_path()),
            Towards::Nothing | Towards::Simple(_) => None,
        };
        std::iter::once(self.model.as_path()).chain(target).collect()
    }

    /// The rotation with all that was asked for.
    pub(crate) fn rotation(&self, method: Method) -> rotate::Rotate {
        let rotate = kaiser(rotate::Rotate::new(method), self.kaiser, self.no_kaiser).seed(self.seed);
        self.starts.map_or(rotate.clone(), |starts| rotate.starts(starts))
    }
}

/// With Kaiser's normalisation or without, or as is usual for the method.
pub(crate) fn kaiser(rotate: rotate::Rotate, on: bool, off: bool) -> rotate::Rotate {
    if on || off { rotate.kaiser(on) } else { rotate }
}

fn towards(flags: &flags::Rotate) -> Result<Towards> {
    check_parameters(flags)?;
    match (flags.method.clone().unwrap_or(RotationName::Target), &flags.target) {
        (RotationName::None, None) => Ok(Towards::Nothing),
        (RotationName::Named(method), None) => Ok(Towards::Simple(with_parameter(method, flags))),
        (name @ (RotationName::Target | RotationName::Procrustes), Some(path)) => Ok(Towards::Target {
            path: path.clone(),
            whole: matches!(name, RotationName::Procrustes),
            oblique: flags.oblique,
        }),
        (RotationName::Target | RotationName::Procrustes, None) => {
            Err(Failure::usage("a rotation to a target needs the loadings to aim at; add --target FILE"))
        }
        (_, Some(_)) => Err(Failure::usage("--target is for --method target and --method procrustes")),
    }
}

/// A parameter of another method would mislead.
fn check_parameters(flags: &flags::Rotate) -> Result<()> {
    let name = match &flags.method {
        Some(RotationName::Named(method)) => method.name(),
        _ => "",
    };
    let given = [
        ("--gamma", flags.gamma.is_some(), "oblimin", name == "oblimin"),
        ("--power", flags.power.is_some(), "promax", name == "promax"),
        ("--delta", flags.delta.is_some(), "geomin", name.starts_with("geomin")),
    ];
    match given.iter().find(|(_, given, _, fits)| *given && !fits) {
        Some((flag, _, method, _)) => {
            Err(Failure::usage(format!("{flag} is for --method {method}; leave it out")))
        }
        None => Ok(()),
    }
}

fn with_parameter(method: Method, flags: &flags::Rotate) -> Method {
    match method {
        Method::Oblimin { gamma } => Method::Oblimin { gamma: flags.gamma.unwrap_or(gamma) },
        Method::Promax { power } => Method::Promax { power: flags.power.unwrap_or(power) },
        Method::Geomin { delta, oblique } => Method::Geomin { delta: flags.delta.unwrap_or(delta), oblique },
        method => method,
    }
}

/// `varimax`, `oblimin`, …, `target`, `none`.
pub(crate) fn rotation(text: &str) -> Result<RotationName, String> {
    match text.to_ascii_lowercase().as_str() {
        "none" => Ok(RotationName::None),
        "target" => Ok(RotationName::Target),
        "procrustes" => Ok(RotationName::Procrustes),
        _ => text.parse().map(RotationName::Named).map_err(|error: covary::Error| error.to_string()),
    }
}

/// A probability of intervals.
pub(crate) fn level(text: &str) -> Result<f64, String> {
    let wanted = "give a probability between 0 and 1, such as 0.95";
    text.parse().ok().filter(|x| *x > 0.0 && *x < 1.0).ok_or_else(|| wanted.into())
}

/// A size of loadings.
pub(crate) fn cut(text: &str) -> Result<f64, String> {
    let wanted = "give a size of loadings such as 0.3; 0 shows them all";
    text.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| wanted.into())
}
