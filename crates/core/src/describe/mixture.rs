//! What is told of a mixture: its components, how far they lie apart, and what numbers of them have reached.

use serde::Serialize;

use super::number::{bar, number, percent};
use super::{Detail, Line, Part, PartFacts, Table, rows};
use crate::error::Result;
use crate::estimator::{MixtureReport, NumberOfGroups};
use crate::linalg::Mat;
use crate::model::{LinearGaussian, Mixture, Noise};
use crate::persist::SavedModel;

/// Features whose means a table shows.
const SHOWN: usize = 8;

/// The facts about a mixture.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MixtureFacts {
    groups: usize,
    weights: Vec<f64>,
    means: Vec<Vec<f64>>,
    latent: Vec<usize>,
    noise: &'static str,
    noise_variances: Vec<Vec<f64>>,
    explained: Vec<f64>,
    separation: Vec<Option<f64>>,
    loadings: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(flatten)]
    fit: Option<MixtureReport>,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let Some(model) = saved.model.downcast_ref::<Mixture>() else {
        return super::components::part(saved, detail);
    };
    let report = saved.report.mixture();
    let separations = separations(model)?;
    let mut tables = vec![components(model, saved, &separations)];
    tables.extend(report.filter(|r| r.grown.len() > 1).map(|r| grown(&r.grown, model.n_components())));
    Ok(Part {
        components: saved.report.components.to_string(),
        lines: lines(model, report),
        so_far: format!("{} passes", saved.report.passes),
        last: Vec::new(),
        tables,
        facts: PartFacts {
            mixture: Some(MixtureFacts::new(model, report, &separations, detail.loadings)),
            ..PartFacts::default()
        },
    })
}

impl MixtureFacts {
    fn new(
        model: &Mixture,
        report: Option<&MixtureReport>,
        separations: &[Option<f64>],
        with_loadings: bool,
    ) -> Self {
        let of = model.components();
        let noise = |c: &LinearGaussian| match c.noise() {
            Noise::Isotropic(v) => vec![*v],
            Noise::Diagonal(psi) => psi.clone(),
        };
        Self {
            groups: model.n_components(),
            weights: model.weights().to_vec(),
            means: of.iter().map(|c| c.mean().to_vec()).collect(),
            latent: of.iter().map(LinearGaussian::n_latent).collect(),
            noise: noise_in_words(model),
            noise_variances: of.iter().map(noise).collect(),
            explained: of.iter().map(explained).collect(),
            separation: separations.to_vec(),
            loadings: with_loadings.then(|| of.iter().map(|c| rows(c.loadings().as_ref())).collect()),
            fit: report.cloned(),
        }
    }
}

fn noise_in_words(model: &Mixture) -> &'static str {
    match model.components()[0].noise() {
        Noise::Isotropic(_) => "isotropic",
        Noise::Diagonal(_) => "diagonal",
    }
}

/// Share of the variance of a component that its latent variables explain.
fn explained(component: &LinearGaussian) -> f64 {
    let (p, w) = (component.n_features(), component.loadings());
    let signal: f64 = (0..p).map(|j| w.row(j).squared_norm_l2()).sum();
    let noise: f64 = (0..p).map(|j| component.noise().of(j)).sum();
    if signal + noise > 0.0 { signal / (signal + noise) } else { 0.0 }
}

/// How far the nearest other mean lies from that of each component: its Mahalanobis distance under the
/// component, in deviations; `None` for a single component.
fn separations(model: &Mixture) -> Result<Vec<Option<f64>>> {
    let of = model.components();
    let (groups, p) = (of.len(), model.n_features());
    let means = Mat::from_fn(groups, p, |k, j| of[k].mean()[j]);
    let nearest = |k: usize| -> Result<Option<f64>> {
        let distances = of[k].mahalanobis(&means)?;
        let others = distances.iter().enumerate().filter(|(l, _)| *l != k).map(|(_, d)| d.sqrt());
        Ok(others.min_by(f64::total_cmp))
    };
    (0..groups).map(nearest).collect()
}

fn lines(model: &Mixture, report: Option<&MixtureReport>) -> Vec<Line> {
    let each = match model.components()[0].noise() {
        Noise::Isotropic(_) => "isotropic: components of PPCA",
        Noise::Diagonal(_) => "diagonal: factor analysers",
    };
    let shared = if report.is_some_and(|r| r.shared_noise) { ", the same in all components" } else { "" };
    let mut lines = vec![
        Line::new("groups (K)", groups_in_words(model, report)),
        Line::new("noise", format!("{each}{shared}")),
    ];
    let Some(report) = report else { return lines };
    let prior = report.prior_rows.map(|rows| format!("counts as {} in each component", rows_in_words(rows)));
    lines.push(Line::new("prior", prior.unwrap_or_else(|| "none: maximum likelihood".into())));
    let criteria = [report.bic, report.aic, report.icl].map(number);
    let [bic, aic, icl] = criteria;
    lines.push(Line::new("BIC, AIC, ICL", format!("{bic}, {aic}, {icl}")));
    if let Some(found) = &report.variational {
        lines.push(Line::new("bound", format!("{} on the log evidence", number(found.bound))));
    }
    lines
}

fn rows_in_words(rows: f64) -> String {
    if rows == 1.0 { "one row".into() } else { format!("{} rows", number(rows)) }
}

fn groups_in_words(model: &Mixture, report: Option<&MixtureReport>) -> String {
    let groups = model.n_components();
    match report.map_or(0, |r| r.dropped) {
        0 => groups.to_string(),
        dropped => format!("{groups}: {dropped} more would have been left with too few rows"),
    }
}

/// One line for each component: share of the rows, latent variables, what they explain, distance to the
/// nearest, means.
fn components(model: &Mixture, saved: &SavedModel, separations: &[Option<f64>]) -> Table {
    let shown = saved.features.len().min(SHOWN);
    let row = |k: usize| {
        let (weight, of) = (model.weights()[k], &model.components()[k]);
        let separation = separations[k].map_or_else(String::new, |d| format!("{d:.2}"));
        let first = [
            format!("{}", k + 1),
            percent(weight),
            of.n_latent().to_string(),
            percent(explained(of)),
            number(of.noise().mean()),
            separation,
        ];
        let means = of.mean()[..shown].iter().map(|m| number(*m));
        first.into_iter().chain(means).chain([bar(weight)]).collect()
    };
    let header = ["group", "share", "latent", "explained", "noise", "nearest"].map(str::to_owned);
    let names = saved.features[..shown].iter().map(|name| format!("mean {name}"));
    let header = header.into_iter().chain(names).chain([String::new()]).collect();
    let more = saved.features.len() - shown;
    let note = (more > 0).then(|| format!("… and the means of {more} more features").into());
    Table { note, ..Table::with_text_last(header, (0..model.n_components()).map(row).collect()) }
}

/// What each number of components has reached.
fn grown(table: &[NumberOfGroups], chosen: usize) -> Table {
    let bound = table.iter().any(|of| of.bound.is_some()).then_some("bound");
    let header = ["groups", "log-likelihood", "BIC", "AIC", "ICL"].into_iter().chain(bound).chain([""]);
    let header = header.map(str::to_owned).collect();
    let row = |of: &NumberOfGroups| {
        let mark = if of.groups == chosen { "taken" } else { "" };
        let numbers = [of.log_likelihood, of.bic, of.aic, of.icl].into_iter().chain(of.bound).map(number);
        [of.groups.to_string()].into_iter().chain(numbers).chain([mark.to_owned()]).collect()
    };
    Table::with_text_last(header, table.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two components of variance 4 + 1 along the first feature, 10 apart along the second, whose variance
    /// is 1: 10 deviations.
    #[test]
    fn separations_are_in_deviations() {
        let w = Mat::from_fn(2, 1, |i, _| [2.0, 0.0][i]);
        let at = |y: f64| LinearGaussian::new(vec![0.0, y], w.clone(), Noise::Isotropic(1.0)).unwrap();
        let model = Mixture::new(vec![3.0, 1.0], vec![at(0.0), at(10.0)]).unwrap();
        let found = separations(&model).unwrap();
        assert!(found.iter().all(|d| (d.unwrap() - 10.0).abs() < 1e-12), "{found:?}");
        assert!((explained(&model.components()[0]) - 4.0 / 6.0).abs() < 1e-15);
        let told = super::super::describe(&SavedModel::given(model, None).unwrap(), &Detail::default());
        let table = &told.unwrap().tables[0];
        assert_eq!(table.rows[0][..6], ["1", "75.0 %", "1", "66.7 %", "1.00000", "10.00"]);
    }
}
