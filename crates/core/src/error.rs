//! The one error type of the library: facts in fields, saying where and what to do.

use std::fmt;

/// Shorthand for results of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where a cell stands: row and column count from 0; the name is there when the source knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Row, counted from 0 over the whole source.
    pub row: usize,
    /// Feature, counted from 0 among the modelled features.
    pub column: usize,
    /// Name of the feature, when known.
    pub name: Option<String>,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "row {}, column '{}'", self.row, name),
            None => write!(f, "row {}, column {}", self.row, self.column),
        }
    }
}

/// A feature by its position, counted from 0, and its name when that is known.
pub type Feature = (usize, Option<String>);

/// Everything that can go wrong, whatever the surface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A cell is infinite.
    #[error("the data contain {value} at {cell}; replace it by a number or, if it is unknown, by NaN")]
    Infinite {
        /// The offending value.
        value: f64,
        /// Where it stands.
        cell: Cell,
    },
    /// A cell is missing where complete rows are needed.
    #[error(
        "the data have a missing value at {cell}, and {operation} needs complete rows; drop or fill such \
         rows first"
    )]
    Missing {
        /// Where the first missing value stands.
        cell: Cell,
        /// What could not be done.
        operation: &'static str,
    },
    /// A cell is given twice.
    #[error("the cell at {cell} is given twice; keep one value, or their mean")]
    DuplicateCell {
        /// Where it stands.
        cell: Cell,
    },
    /// Some features have no observed cell.
    #[error("{} never observed; leave {} out", features_are(.features), if .features.len() == 1 { "it" } else { "them" })]
    NeverObserved {
        /// Positions, counted from 0, and names when the source knows them.
        features: Vec<(usize, Option<String>)>,
    },
    /// Noise and components cannot be told apart: a plane passes through all cells.
    #[error(
        "{cells} observed cells cannot tell {requested} component(s) from noise, because a plane can pass \
         through all of them; ask for at most {possible}, or add cells to the rows"
    )]
    TooFewCells {
        /// Components asked for.
        requested: usize,
        /// The largest number that the cells support; 0 when none.
        possible: usize,
        /// Observed cells.
        cells: u64,
    },
    /// There are no rows at all.
    #[error("there are no rows")]
    NoRows,
    /// There are no features at all.
    #[error("there are no features")]
    NoFeatures,
    /// Fewer rows than a covariance needs.
    #[error("{rows} row(s) of positive weight are too few: a covariance needs at least {needed}")]
    TooFewRows {
        /// Rows of positive weight.
        rows: usize,
        /// The least number that works.
        needed: usize,
    },
    /// Every feature is constant.
    #[error("all features are constant, so there is no variance to explain")]
    Constant,
    /// Some features are constant where each needs a variance.
    #[error("{} constant, so that factors have nothing to explain there; leave {} out", features_are(.features), if .features.len() == 1 { "it" } else { "them" })]
    ConstantFeatures {
        /// Positions, counted from 0, and names when the source knows them.
        features: Vec<(usize, Option<String>)>,
    },
    /// Two features are the same up to scale and sign.
    #[error("{} the same up to scale and shift (correlation ±1), so that the likelihood of factors has no \
        maximum; leave one of them out", features_are(.features))]
    SameFeatures {
        /// Positions, counted from 0, and names when the source knows them: two.
        features: Vec<(usize, Option<String>)>,
    },
    /// More factors than a covariance can tell apart.
    #[error("{requested} factor(s) of {features} features leave fewer than 0 degrees of freedom; {}", if *.possible == 0 { "factor analysis needs at least 3 features".to_string() } else { format!("ask for at most {possible}") })]
    Factors {
        /// Asked for.
        requested: usize,
        /// The largest number that leaves degrees of freedom; 0 when none does.
        possible: usize,
        /// Features.
        features: usize,
    },
    /// A component of a mixture that shrinks onto a few rows, where its likelihood has no limit.
    #[error(
        "component {component} of the mixture has shrunk onto rows of total weight {weight:.3}, where the \
         likelihood has no maximum; ask for fewer components or latent variables, or for the prior"
    )]
    ShrunkComponent {
        /// Which, counted from 0.
        component: usize,
        /// Total weight of its rows.
        weight: f64,
    },
    /// A covariance that is not symmetric.
    #[error(
        "the covariance is not symmetric: {value} at row {row}, column {column}, but {mirrored} on the other \
         side of the diagonal"
    )]
    Asymmetric {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// What stands there.
        value: f64,
        /// What stands at the mirrored place.
        mirrored: f64,
    },
    /// A kernel matrix that is not symmetric.
    #[error(
        "the kernel matrix is not symmetric: {value} at row {row}, column {column}, but {mirrored} on the other \
         side of the diagonal; k(x, y) and k(y, x) must be the same, such as (K + Kᵀ)/2"
    )]
    AsymmetricKernel {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// What stands there.
        value: f64,
        /// What stands at the mirrored place.
        mirrored: f64,
    },
    /// A matrix of covariances or correlations that no data can have.
    #[error(
        "the covariance is not positive semidefinite: in units of the features' deviations it has the \
         eigenvalue {eigenvalue:e}; no data have such a covariance (one of pairwise available cases may)"
    )]
    Indefinite {
        /// The smallest eigenvalue, of the correlations.
        eigenvalue: f64,
    },
    /// The variance cannot be represented in double precision.
    #[error("the variance of the data overflows or underflows double precision; rescale the features")]
    Scale,
    /// Features of such different scales that arithmetic cannot tell the noise of the small ones.
    #[error(
        "{} varies {ratio:.0e} times as much as {}, so that the variance of the smaller ones is lost in \
         rounding; rescale {}, or leave it out",
        feature_is(&.features[0]), feature_is(&.features[1]), feature_is(&.features[0])
    )]
    ScaleGap {
        /// The feature of largest and the one of smallest variance: positions, counted from 0, and names when
        /// known.
        features: Vec<Feature>,
        /// Of their deviations.
        ratio: f64,
    },
    /// A feature of large scale that another one all but determines: what it adds is lost in the rounding of
    /// its own variance, which is coarser than the variance of other features.
    #[error(
        "{} is all but determined by {}: what it adds is lost in the rounding of its variance, which is \
         larger than the noise; put the difference of the two in its place",
        feature_is(&.features[0]), feature_is(&.features[1])
    )]
    AllButDetermined {
        /// The feature and the one that determines most of it: positions, counted from 0, and names when
        /// known.
        features: Vec<Feature>,
    },
    /// Rows of the wrong width.
    #[error("{found} features where the model has {expected}")]
    FeatureCount {
        /// What the model has.
        expected: usize,
        /// What the data have.
        found: usize,
    },
    /// A feature of another name than the model's.
    #[error("feature {position} is '{found}' where the model has '{expected}'")]
    FeatureName {
        /// Position, counted from 0.
        position: usize,
        /// The model's name.
        expected: String,
        /// The data's name.
        found: String,
    },
    /// A weight that is negative or not finite.
    #[error("the weight of row {row} is {value}; weights must be finite and not negative")]
    Weight {
        /// Row, counted from 0.
        row: usize,
        /// The offending weight.
        value: f64,
    },
    /// Two lengths that must agree do not.
    #[error("{what}: {found} where {expected} are needed")]
    Length {
        /// Of what.
        what: &'static str,
        /// Needed.
        expected: usize,
        /// Given.
        found: usize,
    },
    /// More (or fewer) components than the data allow.
    #[error("{requested} components asked for, but {rows} rows of {features} features allow 1 to {possible}")]
    Components {
        /// Asked for.
        requested: usize,
        /// The largest number that is possible.
        possible: usize,
        /// Rows of positive weight.
        rows: usize,
        /// Features.
        features: usize,
    },
    /// An option outside its range.
    #[error("{name} is {value}, but must be {allowed}")]
    Parameter {
        /// Name of the option.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A solver that cannot work on these data.
    #[error("the {solver} solver cannot be used here: {reason}")]
    Solver {
        /// Name of the solver.
        solver: &'static str,
        /// Why not.
        reason: String,
    },
    /// A question that a kind of model has no answer to.
    #[error("{kind} does not have {lacks}; {} {}", listed(.kinds), if .kinds.len() == 1 { "has" } else { "have" })]
    Capability {
        /// The kind, in words.
        kind: &'static str,
        /// What it lacks, in words.
        lacks: &'static str,
        /// The kinds that have it, as people type them.
        kinds: Vec<&'static str>,
    },
    /// A matrix that must be positive definite is not.
    #[error("{what} is not positive definite (pivot {index})")]
    NotPositiveDefinite {
        /// Which matrix.
        what: &'static str,
        /// The pivot at which the factorisation broke down, counted from 0.
        index: usize,
    },
    /// A correlation matrix that has no inverse.
    #[error("the correlation matrix is singular (smallest eigenvalue {eigenvalue:.3e}){}", why_singular(.copies))]
    Singular {
        /// Its smallest eigenvalue, 0 up to rounding.
        eigenvalue: f64,
        /// Pairs of features that are copies of each other, up to scale and sign.
        copies: Vec<(Feature, Feature)>,
    },
    /// A row of loadings that has no length to be normalised by.
    #[error(
        "{} has no loadings, so Kaiser's normalisation cannot give its row length 1; leave it out, or rotate \
         without the normalisation",
        feature_is(.feature)
    )]
    ZeroLoadings {
        /// Position, counted from 0, and name when the caller knows it.
        feature: (usize, Option<String>),
    },
    /// An oblique rotation in which factors became one, or loadings that span fewer dimensions than they have
    /// columns.
    #[error(
        "the {rotation} rotation has no answer: factors fall together; ask for fewer factors, or for an \
         orthogonal rotation{hint}"
    )]
    Collapsed {
        /// Name of the rotation.
        rotation: &'static str,
        /// What else might help; empty when nothing.
        hint: &'static str,
    },
    /// A decomposition did not converge.
    #[error("the {0} did not converge")]
    Decomposition(&'static str),
    /// A model without noise has no density on the whole space.
    #[error(
        "the model has no noise and spans only {rank} of {features} dimensions, so rows have no density; fit \
         with fewer components"
    )]
    NoDensity {
        /// Dimensions that the loadings span.
        rank: usize,
        /// Features.
        features: usize,
    },
    /// A number that must be finite is not.
    #[error(
        "{what} is not finite: arithmetic broke down; scale the features, or look for cells of an extreme size"
    )]
    NotFinite {
        /// Which.
        what: &'static str,
    },
    /// The objective of an iteration moved the wrong way by more than rounding: a bug or broken arithmetic.
    #[error("iteration {iteration}: the objective went the wrong way, from {before} to {after}")]
    ObjectiveWorsened {
        /// Iteration, counted from 1.
        iteration: usize,
        /// Value before.
        before: f64,
        /// Value after.
        after: f64,
    },
    /// Bytes that are not a file of this library, or a damaged one.
    #[error("not a usable covary file: {0}")]
    Format(String),
    /// A file of a newer (or unknown) format version.
    #[error(
        "the file has format version {found}; this covary reads up to version {supported}: upgrade covary"
    )]
    Version {
        /// In the file.
        found: u64,
        /// The newest that is understood.
        supported: u64,
    },
    /// A source of rows failed (file trouble, bad text in a cell, …).
    #[error("{error}")]
    Source {
        /// The kind of trouble.
        class: ErrorClass,
        /// What the source says.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// More memory than there is.
    #[error("{what} needs {} of memory, {}", bytes(*.needed), free(*.available))]
    Memory {
        /// What would have been made.
        what: &'static str,
        /// Bytes that it takes; the largest number when they cannot be counted.
        needed: usize,
        /// Bytes that could still be had, when known.
        available: Option<usize>,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What kind of trouble an error is; the surfaces map it to exit codes and exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The request makes no sense.
    Usage,
    /// The data do not allow it.
    Data,
    /// Arithmetic broke down.
    Numerical,
    /// A file or a model in it.
    File,
    /// More memory than there is.
    Memory,
    /// The caller asked to stop.
    Interrupted,
}

/// "12.3 GB"; the largest number stands for all beyond.
fn bytes(count: usize) -> String {
    const UNITS: [&str; 7] = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    let least = if count == usize::MAX { "more than " } else { "" };
    format!("{least}{size:.*} {}", unit.min(1), UNITS[unit])
}

/// What there is of memory instead, and what to do.
fn free(available: Option<usize>) -> String {
    let there = available.map_or("which cannot be had".into(), |n| format!("and {} are free", bytes(n)));
    format!("{there}; ask for less at a time, or free memory")
}

/// "feature 'a'" or "feature 3".
fn feature_is((j, name): &(usize, Option<String>)) -> String {
    name.as_ref().map_or_else(|| format!("feature {j}"), |name| format!("feature '{name}'"))
}

/// "feature 'a' was" or "features 'a', 'b' and 3 more were".
fn features_are(features: &[(usize, Option<String>)]) -> String {
    const SHOWN: usize = 8;
    let show = |(j, name): &(usize, Option<String>)| match name {
        Some(name) => format!("'{name}'"),
        None => j.to_string(),
    };
    let mut list: Vec<String> = features.iter().take(SHOWN).map(show).collect();
    if features.len() > SHOWN {
        list.push(format!("{} more", features.len() - SHOWN));
    }
    match list.split_last() {
        Some((last, [])) => format!("feature {last} was"),
        Some((last, others)) => format!("features {} and {last} were", others.join(", ")),
        None => "no feature was".into(),
    }
}

/// What can be told of the reason, and what to do.
fn why_singular(copies: &[(Feature, Feature)]) -> String {
    let pair = |(a, b): &(Feature, Feature)| format!("{} = {}", feature_is(a), feature_is(b));
    match copies {
        [] => {
            "; some features are combinations of others, or there are too few rows: leave features out".into()
        }
        _ => {
            let list = shortened(copies.iter().map(pair).collect());
            format!(": copies of each other are {list}; keep one of each")
        }
    }
}

/// The first few, and how many more.
fn shortened(mut list: Vec<String>) -> String {
    const SHOWN: usize = 8;
    let more = list.len().saturating_sub(SHOWN);
    list.truncate(SHOWN);
    let shown = list.join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// a, b and c.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "no kind".into(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

impl Error {
    /// Wraps the error of a row source.
    pub fn source(class: ErrorClass, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Source { class, error: error.into() }
    }

    /// The kind of trouble.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Parameter { .. } | Self::Solver { .. } | Self::Capability { .. } => ErrorClass::Usage,
            Self::NotPositiveDefinite { .. }
            | Self::Decomposition(_)
            | Self::Collapsed { .. }
            | Self::ShrunkComponent { .. }
            | Self::NoDensity { .. }
            | Self::NotFinite { .. }
            | Self::ObjectiveWorsened { .. } => ErrorClass::Numerical,
            Self::Format(_) | Self::Version { .. } => ErrorClass::File,
            Self::Source { class, .. } => *class,
            Self::Memory { .. } => ErrorClass::Memory,
            Self::Interrupted => ErrorClass::Interrupted,
            _ => ErrorClass::Data,
        }
    }

    /// Adds names to an error that points to a cell or to features, where the names of all features are
    /// known.
    pub fn named(mut self, names: Option<&[String]>) -> Self {
        let name = |column: usize| names.and_then(|n| n.get(column)).cloned();
        match &mut self {
            Self::Infinite { cell, .. } | Self::Missing { cell, .. } | Self::DuplicateCell { cell } => {
                cell.name = name(cell.column);
            }
            Self::ZeroLoadings { feature } => feature.1 = name(feature.0),
            Self::Singular { copies, .. } => {
                copies.iter_mut().flat_map(|(a, b)| [a, b]).for_each(|f| f.1 = name(f.0));
            }
            Self::NeverObserved { features }
            | Self::ConstantFeatures { features }
            | Self::SameFeatures { features }
            | Self::AllButDetermined { features, .. }
            | Self::ScaleGap { features, .. } => features.iter_mut().for_each(|(j, n)| *n = name(*j)),
            _ => (),
        }
        self
    }
}
