//! Tables of factor loadings the way they are read: sorted, small ones blank, and what the factors explain
//! under them.

use super::{Advice, Table, Words};
use crate::linalg::Mat;

/// Features that are listed.
const LISTED: usize = 200;

/// Loadings, and what stands beside and under them.
pub(super) struct Loadings<'a> {
    pub(super) features: &'a [String],
    /// Standardised (p × q).
    pub(super) pattern: &'a Mat<f64>,
    /// Their standard errors, if they are wanted (p × q).
    pub(super) errors: Option<&'a Mat<f64>>,
    pub(super) communalities: &'a [f64],
    pub(super) uniquenesses: &'a [f64],
    pub(super) complexities: &'a [f64],
    /// Loadings below this are left out.
    pub(super) cut: f64,
}

impl Loadings<'_> {
    /// One line for each feature: those that load most on the first factor, then on the second, …, each group
    /// descending.
    pub(super) fn table(&self) -> Table {
        let q = self.pattern.ncols();
        let names = ["h²".to_owned(), "u²".into(), "complexity".into()];
        let header = [vec!["feature".into()], factor_names(q), names.to_vec()].concat();
        let rows: Vec<Vec<String>> =
            reading_order(self.pattern).into_iter().take(LISTED).map(|j| self.row(j)).collect();
        let more = self.features.len().saturating_sub(LISTED);
        let note = Words::advised(format!("… and {more} more features"), Advice::AllLoadings);
        Table { note: (more > 0).then_some(note), ..Table::of_numbers(header, rows) }
    }

    fn row(&self, j: usize) -> Vec<String> {
        let loadings = (0..self.pattern.ncols()).map(|k| self.cell(j, k));
        let beside = [three(self.communalities[j]), three(self.uniquenesses[j])];
        let complexity = format!("{:.1}", self.complexities[j]);
        let name = std::iter::once(self.features[j].clone());
        name.chain(loadings).chain(beside).chain([complexity]).collect()
    }

    fn cell(&self, j: usize, k: usize) -> String {
        let loading = self.pattern[(j, k)];
        match self.errors {
            _ if loading.abs() < self.cut => String::new(),
            Some(errors) => format!("{} ({:.3})", three(loading), errors[(j, k)]),
            None => three(loading),
        }
    }
}

/// What each factor explains of features of variance 1: the sum of squares, its share of all variance, and of
/// all so far.
pub(super) fn explained(variances: &[f64], proportions: &[f64], cumulative: &[f64]) -> Table {
    let line = |name: &str, values: &[f64]| {
        std::iter::once(name.to_owned()).chain(values.iter().map(|v| three(*v))).collect::<Vec<_>>()
    };
    let header = [vec![String::new()], factor_names(variances.len())].concat();
    let rows = [
        line("SS loadings", variances),
        line("proportion of variance", proportions),
        line("cumulative", cumulative),
    ];
    Table::of_numbers(header, rows.to_vec())
}

/// The correlations of factors, below the diagonal.
pub(super) fn correlations(phi: &[Vec<f64>]) -> Table {
    let names = factor_names(phi.len());
    let row = |(i, name): (usize, &String)| {
        std::iter::once(name.clone()).chain(phi[i][..=i].iter().map(|v| three(*v))).collect::<Vec<_>>()
    };
    let header = [vec!["factor correlations".to_owned()], names.clone()].concat();
    Table::of_numbers(header, names.iter().enumerate().map(row).collect())
}

/// f1, f2, …
fn factor_names(q: usize) -> Vec<String> {
    (1..=q).map(|k| format!("f{k}")).collect()
}

/// Features by the factor on which they load most, then by the size of that loading.
fn reading_order(pattern: &Mat<f64>) -> Vec<usize> {
    let size = |j: usize, k: usize| pattern[(j, k)].abs();
    let leading = |j: usize| (0..pattern.ncols()).rev().max_by(|&a, &b| size(j, a).total_cmp(&size(j, b)));
    let mut order: Vec<(usize, f64, usize)> = (0..pattern.nrows())
        .map(|j| (j, leading(j).unwrap_or(0)))
        .map(|(j, k)| (k, if pattern.ncols() > 0 { size(j, k) } else { 0.0 }, j))
        .collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    order.into_iter().map(|(_, _, j)| j).collect()
}

/// Three decimals; no −0.000.
fn three(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read_by_factor_and_size() {
        let pattern = Mat::from_fn(4, 2, |i, j| [[0.1, 0.5], [-0.9, 0.2], [0.4, 0.3], [0.0, -0.8]][i][j]);
        assert_eq!(reading_order(&pattern), [1, 2, 3, 0]);
    }

    #[test]
    fn small_loadings_are_blank() {
        let pattern = Mat::from_fn(1, 2, |_, j| [0.29, -0.31][j]);
        let table = Loadings {
            features: &["a".into()],
            pattern: &pattern,
            errors: None,
            communalities: &[0.2],
            uniquenesses: &[0.8],
            complexities: &[2.0],
            cut: 0.3,
        };
        assert_eq!(table.table().rows, [["a", "", "-0.310", "0.200", "0.800", "2.0"]]);
    }
}
