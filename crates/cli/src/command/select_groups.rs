//! `covary select --model mixture` and `--model kmeans`: tables over the number of groups.

use covary::KMeans;
use covary::describe::numbers_of_clusters;
use covary::estimator::{Details, KTable};
use covary::select::{GroupLine, GroupSelection};
use serde::Serialize;

use super::choose::watched;
use crate::args::{self, GroupsOf, Reading};
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::phrase::{about_rows, count};
use crate::print::json;
use crate::source::Source;
use crate::table;

/// The numbers of groups of k-means, as JSON.
#[derive(Serialize)]
struct Clusters {
    rows: usize,
    features: usize,
    recommended: usize,
    #[serde(flatten)]
    chosen: KTable,
}

/// An answer with the name of its data.
#[derive(Serialize)]
pub(super) struct Told<'a, T> {
    data: String,
    #[serde(flatten)]
    selection: &'a T,
}

/// Looks and tells.
pub(super) fn run(args: &args::Select, of: &GroupsOf) -> Result<Code> {
    if args::is_moments(&args.pass.data) {
        return Err(Failure::usage("moments do not tell groups: give the rows"));
    }
    let reading = Reading { triples: args.triples.as_ref(), ..args.pass.reading() };
    let source = Source::open(&reading, None)?;
    let Some(rows) = source.again() else {
        let reason = "groups take several passes over the rows, and these pass only once: give a file";
        return Err(Failure::usage(reason));
    };
    match of {
        GroupsOf::Mixture(select) => {
            let found = watched(&reading, rows.n_rows(), |control| select.run_with(rows, control));
            let found = found.map_err(about_rows(&source.schema))?;
            tell(args, &found, || mixtures(&found))?;
        }
        GroupsOf::KMeans(groups) => {
            let family = KMeans::new(*groups);
            let found = watched(&reading, rows.n_rows(), |control| family.fit_with(rows, control));
            let report = found.map_err(about_rows(&source.schema))?.report;
            let Some(Details::Clusters(details)) = report.details else { return Ok(Code::Done) };
            let Some(chosen) = details.chosen else { return Ok(Code::Done) };
            let recommended = details.found;
            let found = Clusters { rows: report.rows, features: report.features, recommended, chosen };
            tell(args, &found, || clusters(&found))?;
        }
    }
    Ok(Code::Done)
}

pub(super) fn tell<T: Serialize>(
    args: &args::Select,
    selection: &T,
    text: impl Fn() -> String,
) -> Result<()> {
    if args.json {
        return print(&json(&Told { data: args.pass.data.display().to_string(), selection })?);
    }
    args.pass.console.show(&text())
}

pub(super) fn head(rows: usize, features: usize) -> String {
    format!("{} of {}", count(rows, "row"), count(features, "feature"))
}

/// A table over both numbers, what each method chooses, and what to take.
fn mixtures(found: &GroupSelection) -> String {
    let mut lines: Vec<&GroupLine> = found.table.iter().collect();
    lines.sort_by_key(|line| (line.latent, line.groups));
    let column = |name: &'static str, of: fn(&GroupLine) -> Option<f64>| {
        table::column(name, &lines.iter().map(|line| of(line)).collect::<Vec<_>>())
    };
    let whole = |of: fn(&GroupLine) -> usize| lines.iter().map(|line| of(line).to_string()).collect();
    let columns: Vec<_> = [
        Some(("q", whole(|line| line.latent))),
        Some(("groups", whole(|line| line.groups))),
        Some(("parameters", whole(|line| line.parameters))),
        column("log-likelihood", |line| Some(line.log_likelihood)),
        column("BIC", |line| Some(line.bic)),
        column("ICL", |line| Some(line.icl)),
        column("held out", |line| line.cross_validated),
        column("± error", |line| line.cross_validated_error),
        column("Q² of cells", |line| line.q2),
        column("± error", |line| line.q2_error),
    ]
    .into_iter()
    .flatten()
    .collect();
    let choices = found
        .choices
        .iter()
        .map(|c| [c.method.clone(), c.groups.to_string(), c.latent.to_string(), c.reason.clone()]);
    let chosen = table::columns(&["method", "groups", "q", "because"], choices);
    let best = &found.recommended;
    let latent = count(best.latent, "latent variable");
    let advice = format!(
        "take {} of {latent} each (-k {} -q {}): {}: {}\n",
        count(best.groups, "group"),
        best.groups,
        best.latent,
        best.method,
        best.reason
    );
    format!("{}\n\n{}\n{chosen}\n{advice}", head(found.rows, found.features), table::side_by_side(&columns))
}

/// A table over the number of clusters, and what to take.
fn clusters(found: &Clusters) -> String {
    let table = table::cells(&numbers_of_clusters(&found.chosen));
    let advice = format!("take {}: {}\n", found.recommended, found.chosen.reason);
    format!("{}\n\n{table}\n{advice}", head(found.rows, found.features))
}
