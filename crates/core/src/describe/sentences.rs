//! A model and the rows that were put to it, in five to ten sentences for people who have not fitted it.

use super::number::{count, percent};
use crate::algorithm::Stop;
use crate::error::Result;
use crate::model::{Encode, Factors, Loadings, Noise};
use crate::persist::SavedModel;

/// Components whose meaning is told.
const COMPONENTS: usize = 3;
/// Features that are named for each side of a component.
const NAMED: usize = 4;
/// Correlation with a component from which a feature is named.
const LARGE: f64 = 0.5;
/// Characters of a name that are shown.
const LONGEST: usize = 40;

/// What was seen of the rows that a model is asked about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Rows.
    pub rows: usize,
    /// Cells without a value.
    pub missing: u64,
    /// Rows that miss some cell.
    pub incomplete: usize,
    /// Rows without a single cell.
    pub empty: usize,
    /// Rows less probable than [`level`](Self::level) under the model; `None` where it has no density.
    pub unusual: Option<usize>,
    /// The p-value below which a row does not belong.
    pub level: f64,
    /// Rows of each group, where the model has some.
    pub groups: Option<Vec<usize>>,
}

/// What the data are, what is missing, how many components and why, what the first ones mean, how many rows do not
/// belong, how well it fits.
///
/// ```
/// use covary::data::Rows;
/// use covary::describe::{Seen, sentences};
/// use covary::persist::SavedModel;
///
/// let cells = [2.5, 2.4, 0.5, 0.7, 2.2, 2.9, 1.9, 2.2];
/// let fit = covary::Ppca::new(1).fit(Rows::from_slice(&cells, 2)?)?;
/// let told = sentences(&SavedModel::new(fit, None)?, &Seen { rows: 4, ..Seen::default() })?;
/// assert_eq!(told[0], "The table has 4 rows and 2 features: x1 and x2.");
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// When arithmetic breaks down.
pub fn sentences(saved: &SavedModel, seen: &Seen) -> Result<Vec<String>> {
    let mut told = vec![the_data(saved, seen), what_is_missing(saved, seen)];
    told.push(how_many(saved));
    if saved.model.as_loadings().is_none() {
        told.push(format!("What it is: {}.", saved.model.kind().about));
    }
    if let Some(loadings) = saved.model.as_loadings() {
        told.extend(meanings(saved, loadings));
    }
    told.extend(seen.groups.as_deref().map(groups));
    told.extend(who_does_not_belong(seen));
    told.extend(how_well(saved));
    Ok(told)
}

fn the_data(saved: &SavedModel, seen: &Seen) -> String {
    let features = &saved.features;
    let shown: Vec<String> = features.iter().take(5).map(|name| short(name)).collect();
    let names = match features.len().saturating_sub(5) {
        0 => listed(&shown),
        more => format!("{} and {more} more", shown.join(", ")),
    };
    format!("The table has {} and {}: {names}.", count(seen.rows, "row"), count(features.len(), "feature"))
}

fn what_is_missing(saved: &SavedModel, seen: &Seen) -> String {
    let cells = seen.rows as f64 * saved.features.len() as f64;
    if seen.missing == 0 {
        return "No cell is missing.".into();
    }
    let empty = match seen.empty {
        0 => String::new(),
        1 => "; one row has no value at all".into(),
        n => format!("; {n} rows have no value at all"),
    };
    format!(
        "{} of the cells are missing, in {}{empty}; the model uses those that are there.",
        percent(seen.missing as f64 / cells.max(1.0)),
        count(seen.incomplete, "row"),
    )
}

/// What the model is, how many components it has and why.
fn how_many(saved: &SavedModel) -> String {
    let (kind, q) = (saved.model.kind(), saved.report.components);
    let title = kind.title;
    let singular = kind.components.strip_suffix('s').unwrap_or(kind.components);
    let scaled = match &saved.report.scaled {
        Some(scaled) => format!(", each feature divided by {}", scaled.scale.in_words()),
        None => String::new(),
    };
    let because = saved.report.choice.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    if q == 0 {
        return format!(
            "The model, {title}{scaled}, keeps no {singular}: no direction stands out from noise."
        );
    }
    let shares = saved.explained_ratio();
    let explained = shares.iter().sum::<f64>();
    let of_variance = match (shares.is_empty(), q) {
        (true, _) => String::new(),
        (false, 1) => format!(", which explains {} of the variance", percent(explained)),
        // Shares belong to directions of largest variance, which turned factors and sources are not.
        _ if kind.components != "components" => {
            format!(", which explain {} of the variance", percent(explained))
        }
        _ => format!(
            ", which explain {} of the variance, the first alone {}",
            percent(explained),
            percent(shares[0])
        ),
    };
    format!("The model, {title}{scaled}, has {}{because}{of_variance}.", count(q, singular))
}

/// What the first components mean: the features that go with them.
fn meanings(saved: &SavedModel, loadings: &dyn Loadings) -> Vec<String> {
    let factors = loadings.factors();
    let names = saved.model.as_encode().map(Encode::coordinate_names).unwrap_or_default();
    let shown = factors.n_factors().min(COMPONENTS);
    (0..shown)
        .filter_map(|k| Some(format!("{} {}.", names.get(k)?, meaning(&factors, k, &saved.features)?)))
        .collect()
}

fn meaning(factors: &Factors, component: usize, names: &[String]) -> Option<String> {
    let correlations = factors.standardised_structure();
    let r = |j: &usize| correlations[(*j, component)];
    let mut order: Vec<usize> = (0..names.len()).filter(|j| r(j) != 0.0).collect();
    order.sort_by(|a, b| r(b).abs().total_cmp(&r(a).abs()).then(a.cmp(b)));
    let strong = order.iter().filter(|j| r(j).abs() >= LARGE).count();
    let weak = strong == 0;
    order.truncate(if weak { 3 } else { strong });
    let side = |sign: f64| -> Option<String> {
        let of: Vec<usize> = order.iter().copied().filter(|j| r(j) * sign > 0.0).collect();
        let shown: Vec<String> =
            of.iter().take(NAMED).map(|j| format!("{} ({})", short(&names[*j]), signed(r(j)))).collect();
        match of.len().saturating_sub(NAMED) {
            _ if of.is_empty() => None,
            0 => Some(listed(&shown)),
            more => Some(format!("{} and {more} more", shown.join(", "))),
        }
    };
    let weakly = if weak { "weakly " } else { "" };
    match (side(1.0), side(-1.0)) {
        (Some(up), Some(down)) => Some(format!("rises {weakly}with {up}, and falls with {down}")),
        (Some(up), None) => Some(format!("rises {weakly}with {up}")),
        (None, Some(down)) => Some(format!("falls {weakly}with {down}")),
        (None, None) => None,
    }
}

fn groups(sizes: &[usize]) -> String {
    let total = sizes.iter().sum::<usize>().max(1) as f64;
    let shares: Vec<String> = sizes.iter().take(8).map(|n| percent(*n as f64 / total)).collect();
    match (sizes.len(), sizes.len().saturating_sub(8)) {
        (1, _) => "All rows are of one group.".into(),
        (k, 0) => format!("The rows fall into {k} groups, of {} of the rows.", listed(&shares)),
        (k, more) => {
            format!(
                "The rows fall into {k} groups, of {} and {more} more shares of the rows.",
                shares.join(", ")
            )
        }
    }
}

fn who_does_not_belong(seen: &Seen) -> Option<String> {
    let (found, expected) = (seen.unusual?, seen.level * seen.rows as f64);
    let rate = format!("one in {:.0}", 1.0 / seen.level);
    Some(match found {
        0 => format!("No row lies so far out that only {rate} rows of the model would."),
        n => format!(
            "{} ({}) {} so far out that only {rate} rows of the model would, where chance alone would put {}.",
            count(n, "row"),
            percent(n as f64 / seen.rows.max(1) as f64),
            if n == 1 { "lies" } else { "lie" },
            if expected < 0.05 { "hardly any".into() } else { format!("about {expected:.1}") },
        ),
    })
}

/// The noise, the fit indices of factors, and whether the fit converged.
fn how_well(saved: &SavedModel) -> Vec<String> {
    let mut told = Vec::new();
    let assessed = saved.report.factor().and_then(|factor| factor.assessment.as_ref()).map(|a| &a.fit);
    if let Some((rmsea, fit)) = assessed.and_then(|fit| Some((fit.rmsea?, fit))) {
        let words = match rmsea {
            x if x <= 0.05 => "a close fit",
            x if x <= 0.08 => "a fair fit",
            x if x <= 0.10 => "a mediocre fit",
            _ => "a poor fit",
        };
        let cfi = fit.cfi.map(|cfi| format!(", CFI {cfi:.3}")).unwrap_or_default();
        told.push(format!(
            "The factors are {words} to the correlations: RMSEA {rmsea:.3}{cfi}, SRMR {:.3}.",
            fit.srmr
        ));
    } else if let Some(loadings) = saved.model.as_loadings() {
        told.push(residue(loadings));
    }
    told.push(match saved.report.stop {
        _ if saved.report.rows == 0 => "Its numbers were given, not fitted.".into(),
        Stop::Converged => {
            format!("It was fitted to {}, and the fit converged.", count(saved.report.rows, "row"))
        }
        _ => format!(
            "It was fitted to {}, but the fit did not converge: its numbers may still move.",
            count(saved.report.rows, "row")
        ),
    });
    told
}

/// What the components leave of the features.
fn residue(loadings: &dyn Loadings) -> String {
    let noise = loadings.noise().mean();
    if noise == 0.0 {
        return "The components leave nothing over: the rows lie in their plane.".into();
    }
    let unique = loadings.factors().uniquenesses();
    let mut sorted = unique.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let size = match loadings.noise() {
        Noise::Isotropic(noise) => format!(", whose standard deviation is {}", three_figures(noise.sqrt())),
        Noise::Diagonal(_) => String::new(),
    };
    format!("Of a typical feature {} of the variance is left over as noise{size}.", percent(median))
}

/// A correlation with its sign.
fn signed(r: f64) -> String {
    format!("{r:+.2}").replace('-', "−")
}

/// A number as people say it.
fn three_figures(x: f64) -> String {
    match x.abs() {
        size if !(1e-3..1e6).contains(&size) => format!("{x:.2e}"),
        size if size >= 100.0 => format!("{x:.0}"),
        size if size >= 10.0 => format!("{x:.1}"),
        size if size >= 1.0 => format!("{x:.2}"),
        size if size >= 0.1 => format!("{x:.3}"),
        _ => format!("{x:.4}"),
    }
}

/// a, b and c.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A name as far as a sentence can bear it; what is not printable is left out.
fn short(name: &str) -> String {
    let printable: String = name.chars().filter(|c| !c.is_control()).collect();
    match printable.chars().count() > LONGEST {
        true => printable.chars().take(LONGEST - 1).chain(['…']).collect(),
        false => printable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pca;
    use crate::data::Rows;
    use crate::linalg::Mat;
    use crate::model::LinearGaussian;

    fn names(of: [&str; 3]) -> Option<Vec<String>> {
        Some(of.map(str::to_owned).to_vec())
    }

    /// Correlations with the two components: 0.8 and 0 for a, −0.6 and 0 for b, 0 and 0.8 for c.
    fn known() -> SavedModel {
        let w = Mat::from_fn(3, 2, |i, j| [[0.8, 0.0], [-0.6, 0.0], [0.0, 0.8]][i][j]);
        let model = LinearGaussian::new(vec![0.0; 3], w, Noise::Diagonal(vec![0.36, 0.64, 0.36])).unwrap();
        SavedModel::given(Factors::new(model), names(["a", "b", "c"])).unwrap()
    }

    fn seen() -> Seen {
        Seen { rows: 2000, level: 0.001, unusual: Some(7), ..Seen::default() }
    }

    #[test]
    fn five_to_ten_sentences_tell_the_whole() {
        let told = sentences(&known(), &seen()).unwrap();
        assert!((5..=10).contains(&told.len()), "{told:#?}");
        assert_eq!(told[0], "The table has 2000 rows and 3 features: a, b and c.");
        assert_eq!(told[1], "No cell is missing.");
        assert_eq!(told[3], "f1 rises with a (+0.80), and falls with b (−0.60).");
        assert_eq!(told[4], "f2 rises with c (+0.80).");
        assert_eq!(
            told[5],
            "7 rows (0.4 %) lie so far out that only one in 1000 rows of the model would, where chance alone would \
             put about 2.0."
        );
        assert_eq!(told.last().unwrap(), "Its numbers were given, not fitted.");
    }

    #[test]
    fn what_is_missing_is_told_in_cells_and_rows() {
        let holes = Seen { rows: 10, missing: 3, incomplete: 2, empty: 1, ..Seen::default() };
        let told = sentences(&known(), &holes).unwrap();
        assert_eq!(
            told[1],
            "10.0 % of the cells are missing, in 2 rows; one row has no value at all; the model uses those that are there."
        );
    }

    #[test]
    fn components_say_what_they_explain() {
        // Variances 3, 4/3 and 1/3 along the axes: 64.3, 28.6 and 7.1 %.
        let cells =
            [3.0, 0.0, 0.0, -3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, -1.0];
        let fit = Pca::new(2).fit(Rows::from_slice(&cells, 3).unwrap()).unwrap();
        let told = sentences(&SavedModel::new(fit, None).unwrap(), &Seen::default()).unwrap();
        assert_eq!(
            told[2],
            "The model, classical PCA, has 2 components, which explain 92.9 % of the variance, the first alone 64.3 %."
        );
    }

    #[test]
    fn groups_are_told_by_their_shares() {
        assert_eq!(
            groups(&[50, 30, 20]),
            "The rows fall into 3 groups, of 50.0 %, 30.0 % and 20.0 % of the rows."
        );
        assert_eq!(groups(&[9]), "All rows are of one group.");
    }

    #[test]
    fn names_are_cut_and_cleaned() {
        assert_eq!(short("a\u{0}b\n"), "ab");
        assert_eq!(short(&"x".repeat(10_000)).chars().count(), LONGEST);
    }
}
