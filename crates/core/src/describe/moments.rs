//! What is told of moments.

use serde::Serialize;

use super::components::feature_table;
use super::number::number;
use super::{Description, Facts, Line, Told};
use crate::evidence::Moments;
use crate::persist::SavedEvidence;

/// The facts about moments.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MomentsFacts {
    model: &'static str,
    rows: usize,
    weight: f64,
    features: usize,
    total_variance: f64,
    feature_names: Vec<String>,
    mean: Vec<f64>,
    variances: Vec<f64>,
}

/// Describes the moments of rows.
pub fn describe_moments(part: &SavedEvidence<Moments>) -> Description {
    let facts = MomentsFacts::new(part);
    let lines = vec![
        Line::new("moments of", format!("{} rows, total weight {}", facts.rows, number(facts.weight))),
        Line::new("features (p)", facts.features.to_string()),
        Line::new("total variance", number(facts.total_variance)),
    ];
    let row = |j: usize| {
        vec![number(facts.mean[j]), number(facts.variances[j].sqrt()), facts.feature_names[j].clone()]
    };
    let table = feature_table(&["mean", "deviation", "feature"], facts.features, row);
    Description { lines, tables: vec![table], facts: Facts(Told::Moments(facts)) }
}

impl MomentsFacts {
    fn new(part: &SavedEvidence<Moments>) -> Self {
        let moments = &part.evidence;
        let variance = |i| moments.scatter_lower()[(i, i)] / moments.weight();
        Self {
            model: "moments",
            rows: moments.rows(),
            weight: moments.weight(),
            features: moments.n_features(),
            total_variance: moments.total_variance(),
            mean: moments.mean().to_vec(),
            variances: (0..moments.n_features()).map(variance).collect(),
            feature_names: part.features.clone(),
        }
    }
}
