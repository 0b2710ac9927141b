//! What is told of components along which the variance is largest.

use super::number::{bar, number, numbers, percent};
use super::{Detail, Line, Part, PartFacts, Table};
use crate::error::Result;
use crate::linalg::{Mat, descending};
use crate::persist::SavedModel;

/// Components that are listed one by one.
const LISTED: usize = 24;

/// Components and features that the table of loadings shows.
const SHOWN: usize = 8;

/// Features that are listed by name.
const NAMED: usize = 20;

/// What is told of a model that has components and nothing else.
pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    Ok(with_columns(saved, detail, None))
}

/// The same with one more column in the table of components: its name and its cells.
pub(super) fn with_columns(
    saved: &SavedModel,
    detail: &Detail<'_>,
    column: Option<(&str, Vec<String>)>,
) -> Part {
    let deviations = saved.model.as_loadings().and_then(|loadings| loadings.deviations());
    let deviations = deviations.map(|known| ("standard deviation", known));
    let mut tables = vec![variances(saved, column)];
    if detail.loadings {
        tables.extend(largest_loadings(saved, deviations));
    }
    Part {
        components: saved.report.components.to_string(),
        lines: Vec::from_iter(noise_in_words(saved).map(|noise| Line::new(NOISE, noise))),
        so_far: format!("{} passes", saved.report.passes),
        last: Vec::from_iter(detail.loadings.then(|| feature_line(&saved.features))),
        tables,
        facts: PartFacts::default(),
    }
}

/// What the noise variance is called.
pub(super) const NOISE: &str = "noise variance (σ²)";

/// σ², the mean over the features; `None` for a model without loadings.
pub(super) fn noise(saved: &SavedModel) -> Option<f64> {
    saved.model.as_loadings().map(|loadings| loadings.noise().mean())
}

/// The same for people: of scaled features it is that of the fit, beside which variances are shown.
pub(super) fn noise_in_words(saved: &SavedModel) -> Option<String> {
    let Some(scaled) = &saved.report.scaled else { return noise(saved).map(number) };
    let noise = saved.model.as_loadings()?.noise();
    let each = scaled.factors.iter().enumerate().map(|(j, d)| noise.of(j) / (d * d));
    let mean = each.sum::<f64>() / scaled.factors.len().max(1) as f64;
    Some(format!("{} of the scaled features", number(mean)))
}

/// One line for each component: variance, share, cumulative share, bar.
fn variances(saved: &SavedModel, column: Option<(&str, Vec<String>)>) -> Table {
    let q = saved.report.components;
    if q == 0 {
        return Table::of_note("no component is left: no direction stands out from noise");
    }
    let mut so_far = 0.0;
    let shares = saved.explained_ratio();
    let leading: Vec<f64> = saved.eigenvalues.iter().take(saved.model.n_latent()).copied().collect();
    let (name, cells) = column.unzip();
    let cells = cells.unwrap_or_default();
    let row = |(i, (variance, share)): (usize, (String, &f64))| {
        so_far += share;
        let first = [format!("z{}", i + 1), variance].into_iter().chain(cells.get(i).cloned());
        first.chain([percent(*share), percent(so_far), bar(*share)]).collect::<Vec<_>>()
    };
    let rows = numbers(&leading).into_iter().zip(&shares).enumerate().map(row).take(LISTED).collect();
    let header = ["component", "variance"].into_iter().chain(name).chain(["share", "cumulative", ""]);
    let all: f64 = shares.iter().sum();
    let more = q.checked_sub(LISTED).filter(|more| *more > 0);
    let note = more.map(|more| format!("… and {more} more, {} in all", percent(all)).into());
    Table { note, ..Table::with_text_last(header.map(str::to_owned).collect(), rows) }
}

/// For each component the features that weigh most in it, with their loadings and, where they are known,
/// their errors or deviations (p × q).
pub(super) fn largest_loadings(saved: &SavedModel, errors: Option<(&str, &Mat<f64>)>) -> Option<Table> {
    let w = saved.model.as_loadings()?.shown();
    if w.ncols() == 0 {
        return None;
    }
    let error = |i: usize, j: usize| errors.map(|(_, e)| e[(i, j)]);
    let shown = |i: usize, j: usize| match error(i, j) {
        None => format!("{} {:+.4}", saved.features[i], w[(i, j)]),
        Some(error) => format!("{} {:+.4} ({error:.4})", saved.features[i], w[(i, j)]),
    };
    let row = |j: usize| {
        let order = descending(&w.col(j).iter().map(|w| w.abs()).collect::<Vec<_>>());
        let undetermined = error(0, j) == Some(f64::INFINITY);
        let largest: Vec<String> = order.iter().take(SHOWN).map(|&i| shown(i, j)).collect();
        let direction =
            if undetermined { "; not determined: another direction has this variance" } else { "" };
        vec![format!("z{}", j + 1), largest.join(", ") + direction]
    };
    let beside = errors.map(|(name, _)| format!(" ({name})")).unwrap_or_default();
    let header = vec!["component".into(), format!("largest loadings{beside}")];
    Some(Table::with_text_last(header, (0..w.ncols().min(SHOWN)).map(row).collect()))
}

/// A line for each of so many features, as far as they are listed.
pub(super) fn feature_table(header: &[&str], features: usize, row: impl Fn(usize) -> Vec<String>) -> Table {
    const LISTED: usize = 50;
    let header = header.iter().map(|&name| name.to_owned()).collect();
    let more = features.saturating_sub(LISTED);
    let note = (more > 0).then(|| format!("… and {more} more").into());
    Table { note, ..Table::with_text_last(header, (0..features.min(LISTED)).map(row).collect()) }
}

/// The features by name.
pub(super) fn feature_line(features: &[String]) -> Line {
    Line::new("features", names(features))
}

fn names(features: &[String]) -> String {
    let listed = features.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match features.len().saturating_sub(NAMED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
