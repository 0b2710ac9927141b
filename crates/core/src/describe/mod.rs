//! One description of a fitted model: facts for programs, lines and tables for people.
//!
//! The command's text and JSON, Python's `summary()` and its notebook view are printers of it. A family that
//! has more to tell than its components has a file here and a line in `FAMILIES`; its facts are a field of
//! `PartFacts`.
//!
//! ```
//! use covary::data::Rows;
//! use covary::describe::{Detail, describe};
//! use covary::persist::SavedModel;
//!
//! let cells = [2.5, 2.4, 0.5, 0.7, 2.2, 2.9, 1.9, 2.2];
//! let fit = covary::Ppca::new(1).fit(Rows::from_slice(&cells, 2)?)?;
//! let told = describe(&SavedModel::new(fit, None)?, &Detail::default())?;
//! assert_eq!((told.lines[0].label.as_str(), told.lines[0].words.text.as_str()), ("model", "ppca"));
//! assert_eq!(told.tables[0].header[..2], ["component", "variance"]);
//! # Ok::<(), covary::Error>(())
//! ```

mod bayes;
mod cell;
mod clusters;
mod common;
mod components;
mod curved;
mod factors;
mod kernel;
mod loadings;
mod mixture;
mod moments;
mod network;
mod number;
mod ppca;
mod robust;
mod sentences;
mod sources;
mod words;

use serde::Serialize;

use common::ModelFacts;
use factors::RotatedFacts;
use moments::MomentsFacts;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::estimator::NetworkReport;
use crate::linalg::MatRef;
use crate::model::Kind;
use crate::persist::SavedModel;

pub use cell::cell_in_words;
pub use clusters::numbers_of_clusters;
pub use factors::describe_rotated;
pub use moments::describe_moments;
pub use number::{bar, count, level, number, numbers, percent};
pub use sentences::{Seen, sentences};
pub use words::{Advice, Line, Table, Words};

/// Standardised loadings of factors below this are left blank, unless another limit is asked for.
pub const CUT: f64 = 0.3;

/// What is told of something.
#[derive(Debug, Clone)]
pub struct Description {
    /// For programs. The keys are a contract.
    pub facts: Facts,
    /// For people: what it is and how it was found.
    pub lines: Vec<Line>,
    /// For people: its numbers.
    pub tables: Vec<Table>,
}

/// Facts that can be serialised.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Facts(Told);

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Told {
    Model(Box<ModelFacts>),
    Rotated(Box<RotatedFacts>),
    Moments(MomentsFacts),
}

/// How much is told of a model.
#[derive(Clone, Copy)]
pub struct Detail<'a> {
    /// Why there are so many components, told beside their number.
    pub because: Option<&'a str>,
    /// Whether the features, their means and their loadings are told too.
    pub loadings: bool,
    /// Standardised loadings of factors below this are left blank.
    pub cut: f64,
    /// Standard errors, if they are wanted.
    pub errors: Option<Errors<'a>>,
}

impl Default for Detail<'_> {
    fn default() -> Self {
        Self { because: None, loadings: false, cut: CUT, errors: None }
    }
}

/// Standard errors that are wanted.
#[derive(Clone, Copy)]
pub struct Errors<'a> {
    /// The probability of the intervals; `None` for the usual one.
    pub level: Option<f64>,
    /// Ends the work.
    pub control: &'a Control<'a>,
}

/// Which details the description of a kind of model can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// A limit below which loadings are left blank.
    pub cut: bool,
    /// Standard errors.
    pub errors: bool,
    /// The probability of intervals.
    pub level: bool,
}

/// A family with a part of its own.
struct Family {
    kind: &'static str,
    choices: Choices,
    part: fn(&SavedModel, &Detail<'_>) -> Result<Part>,
}

/// Every family that tells more than its components.
static FAMILIES: &[Family] = &[
    Family { kind: "ppca", choices: Choices { cut: false, errors: true, level: true }, part: ppca::part },
    Family { kind: "fa", choices: Choices { cut: true, errors: true, level: false }, part: factors::part },
    Family { kind: "bpca", choices: NO_CHOICES, part: bayes::part },
    Family { kind: "mixture", choices: NO_CHOICES, part: mixture::part },
    Family { kind: "robust", choices: NO_CHOICES, part: robust::part },
    Family { kind: "kmeans", choices: NO_CHOICES, part: clusters::part },
    Family { kind: "ica", choices: NO_CHOICES, part: sources::part },
    Family { kind: "kpca", choices: NO_CHOICES, part: kernel::part },
    Family { kind: "autoencoder", choices: NO_CHOICES, part: network::part },
    Family { kind: "gplvm", choices: NO_CHOICES, part: curved::part },
];

const NO_CHOICES: Choices = Choices { cut: false, errors: false, level: false };

/// The family of all other kinds.
static OTHERS: Family = Family { kind: "", choices: NO_CHOICES, part: components::part };

fn family(kind: &Kind) -> &'static Family {
    FAMILIES.iter().find(|family| family.kind == kind.name).unwrap_or(&OTHERS)
}

/// What the family of a model tells.
struct Part {
    /// The number of components.
    components: String,
    /// How it was found, after the solver.
    lines: Vec<Line>,
    /// How far a fit came that did not end by itself.
    so_far: String,
    /// What stands after all other lines.
    last: Vec<Line>,
    tables: Vec<Table>,
    facts: PartFacts,
}

/// The facts of the families; those of other families are null.
#[derive(Debug, Clone, Default, Serialize)]
struct PartFacts {
    /// σ² without bias and the interval around it. It has keys of its own among the common facts.
    #[serde(skip)]
    noise: Option<ppca::NoiseEstimate>,
    factors: Option<factors::FactorFacts>,
    bayes: Option<bayes::BayesFacts>,
    mixture: Option<mixture::MixtureFacts>,
    robust: Option<robust::RobustFacts>,
    clusters: Option<clusters::ClusterFacts>,
    sources: Option<sources::SourceFacts>,
    kernel: Option<kernel::KernelFacts>,
    network: Option<NetworkReport>,
    gplvm: Option<curved::GplvmFacts>,
    #[serde(flatten)]
    precision: Option<ppca::Precision>,
}

/// Describes a fitted model.
///
/// # Errors
/// When standard errors are asked for and the model or its fit has none.
pub fn describe(saved: &SavedModel, detail: &Detail<'_>) -> Result<Description> {
    let kind = saved.model.kind();
    if detail.errors.is_some() && !choices(kind).errors {
        return Err(Error::Parameter {
            name: "the model whose standard errors are asked for",
            value: kind.name.into(),
            allowed: "ppca or fa",
        });
    }
    let part = (family(kind).part)(saved, detail)?;
    let lines = common::lines(saved, detail.because, &part);
    let facts = Facts(Told::Model(Box::new(ModelFacts::new(saved, part.facts, detail.loadings))));
    Ok(Description { facts, lines: [lines, part.last].concat(), tables: part.tables })
}

/// Which details the description of a kind of model can be asked for.
pub fn choices(kind: &Kind) -> Choices {
    family(kind).choices
}

/// A matrix for JSON.
fn rows(matrix: MatRef<'_, f64>) -> Vec<Vec<f64>> {
    matrix.row_iter().map(|row| row.iter().copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::evidence::Moments;
    use crate::linalg::Mat;
    use crate::model::{Factors, LinearGaussian, Noise};
    use crate::persist::SavedEvidence;
    use crate::{Pca, Ppca};

    /// The mean is (1, 2, 3); the variances along the axes are 3, 4/3 and 1/3.
    const CROSS: [f64; 18] =
        [4.0, 2.0, 3.0, -2.0, 2.0, 3.0, 1.0, 4.0, 3.0, 1.0, 0.0, 3.0, 1.0, 2.0, 4.0, 1.0, 2.0, 2.0];

    fn cross() -> Rows<'static> {
        Rows::from_slice(&CROSS, 3).unwrap()
    }

    fn ppca(q: usize) -> SavedModel {
        SavedModel::new(Ppca::new(q).fit(cross()).unwrap(), None).unwrap()
    }

    /// Two factors of three features with correlation 0.5, and variances of 1.
    fn factors() -> SavedModel {
        let w = Mat::from_fn(3, 2, |i, j| [[0.8, 0.0], [0.6, 0.2], [0.0, 0.5]][i][j]);
        let model = LinearGaussian::new(vec![0.0; 3], w, Noise::Diagonal(vec![0.36, 0.6, 0.75])).unwrap();
        SavedModel::given(Factors::new(model), None).unwrap()
    }

    fn value<'a>(told: &'a Description, label: &str) -> &'a str {
        let line = told.lines.iter().find(|line| line.label == label);
        line.map_or("", |line| line.words.text.as_str())
    }

    fn facts(told: &Description) -> serde_json::Value {
        serde_json::to_value(&told.facts).unwrap()
    }

    #[test]
    fn components_have_their_variances_and_shares() {
        let told = describe(&ppca(2), &Detail { because: Some("asked for"), ..Detail::default() }).unwrap();
        assert_eq!(value(&told, "components (q)"), "2: asked for");
        assert_eq!(told.tables.len(), 1);
        let table = &told.tables[0];
        assert_eq!(table.header, ["component", "variance", "share", "cumulative", ""]);
        assert_eq!(table.right, 0..4);
        assert_eq!(table.rows[1][..4], ["z2", "1.33333", "28.6 %", "92.9 %"]);
        let facts = facts(&told);
        assert_eq!((facts["components"].as_u64(), facts["factors"].is_null()), (Some(2), true));
        assert!(facts.get("loadings").is_none());
    }

    #[test]
    fn loadings_come_with_the_features() {
        let told = describe(&ppca(1), &Detail { loadings: true, ..Detail::default() }).unwrap();
        assert_eq!(value(&told, "features"), "x1, x2, x3");
        assert_eq!(told.tables[1].header[1], "largest loadings");
        assert_eq!(facts(&told)["feature_names"][2], "x3");
    }

    #[test]
    fn errors_are_told_where_there_are_some() {
        let control = Control::new();
        let errors = Some(Errors { level: Some(0.9), control: &control });
        let detail = Detail { loadings: true, errors, ..Detail::default() };
        let told = describe(&ppca(1), &detail).unwrap();
        assert_eq!(told.tables[1].header[1], "largest loadings (standard error)");
        assert_eq!(told.tables[2].header[2], "90 % from");
        assert_eq!(facts(&told)["intervals"]["level"], 0.9);
        let plain = SavedModel::new(Pca::new(1).fit(cross()).unwrap(), None).unwrap();
        assert_eq!(choices(plain.model.kind()), NO_CHOICES);
        assert!(matches!(describe(&plain, &detail), Err(Error::Parameter { .. })));
    }

    #[test]
    fn factors_have_loadings_and_blanks_below_the_cut() {
        let told = describe(&factors(), &Detail::default()).unwrap();
        assert_eq!((value(&told, "factors (q)"), value(&told, "rotation")), ("2", "none"));
        assert_eq!(told.tables.len(), 2, "no correlations and no fit to assess");
        assert_eq!(told.tables[0].rows[1], ["x2", "0.600", "", "0.400", "0.600", "1.2"]);
        let all = describe(&factors(), &Detail { cut: 0.0, ..Detail::default() }).unwrap();
        assert_eq!(all.tables[0].rows[1][2], "0.200");
        assert_eq!(facts(&told)["factors"]["standardised_loadings"][1][1], 0.2);
    }

    #[test]
    fn a_rotation_tells_loadings_of_any_model() {
        let told = describe_rotated(&ppca(2), CUT).unwrap();
        assert_eq!(told.lines.len(), 1);
        assert_eq!(told.tables[0].header[1..3], ["f1", "f2"]);
        assert!(facts(&told).get("converged").is_none());
    }

    #[test]
    fn advice_is_in_the_words_of_the_surface() {
        let mut saved = ppca(1);
        saved.report.stop = crate::algorithm::Stop::IterationLimit;
        let told = describe(&saved, &Detail::default()).unwrap();
        let line = told.lines.iter().find(|line| line.label == "not converged").unwrap();
        assert_eq!(line.words.advice, Some(Advice::MoreIterations));
        let shown = line.words.with(&|advice| format!("{advice:?}"));
        assert_eq!(shown, format!("{}; MoreIterations", line.words.text));
    }

    #[test]
    fn moments_have_means_and_deviations() {
        let variances = Mat::from_fn(3, 3, |i, j| if i == j { [3.0, 4.0 / 3.0, 1.0 / 3.0][i] } else { 0.0 });
        let evidence = Moments::from_covariance(variances.as_ref(), Some(&[1.0, 2.0, 3.0]), 6).unwrap();
        let features = ["a", "b", "c"].map(str::to_owned).to_vec();
        let told = describe_moments(&SavedEvidence { evidence, features });
        assert_eq!(told.tables[0].rows[0], ["1.00000", "1.73205", "a"]);
        assert_eq!(facts(&told)["model"], "moments");
    }
}
