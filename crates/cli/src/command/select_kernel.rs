//! `covary select --model kpca`: a table over widths of the kernel.

use covary::describe::{number, percent};
use covary::select::{KernelLine, KernelSelection, SelectKernel};

use super::choose::watched;
use super::select_groups::{head, tell};
use crate::args::{self, Reading};
use crate::exit::{Code, Failure, Result};
use crate::phrase::{about_rows, count};
use crate::source::Source;
use crate::table;

/// Looks and tells.
pub(super) fn run(args: &args::Select, select: &SelectKernel) -> Result<Code> {
    if args::is_moments(&args.pass.data) {
        return Err(Failure::usage("moments do not tell kernels: give the rows"));
    }
    let reading = Reading { triples: args.triples.as_ref(), ..args.pass.reading() };
    let source = Source::open(&reading, None)?;
    let Some(rows) = source.again() else {
        let reason = "kernels take several passes over the rows, and these pass only once: give a file";
        return Err(Failure::usage(reason));
    };
    let found = watched(&reading, rows.n_rows(), |control| select.run_with(rows, control));
    let found = found.map_err(about_rows(&source.schema))?;
    tell(args, &found, || text(&found))?;
    Ok(Code::Done)
}

fn text(found: &KernelSelection) -> String {
    let lines = &found.table;
    let column = |name: &'static str, of: fn(&KernelLine) -> Option<f64>| {
        table::column(name, &lines.iter().map(of).collect::<Vec<_>>())
    };
    let of = |of: fn(&KernelLine) -> String| lines.iter().map(of).collect::<Vec<String>>();
    let columns: Vec<_> = [
        column("gamma", |line| line.gamma),
        Some(("q", of(|line| line.components.to_string()))),
        Some(("excess", of(|line| percent(line.excess)))),
        Some(("explained", of(|line| percent(line.explained)))),
        column("largest", |line| Some(line.eigenvalue)),
        column("noise", |line| Some(line.noise_eigenvalue)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let some = match found.sampled < found.rows {
        true => format!(", of which {} were looked at", found.sampled),
        false => String::new(),
    };
    let best = &found.recommended;
    let width = best.gamma.map(|gamma| format!(" --gamma {}", number(gamma))).unwrap_or_default();
    let advice = format!(
        "take {} (-q {}{width}): {}\n",
        count(best.components, "component"),
        best.components,
        found.reason
    );
    let head = head(found.rows, found.features);
    format!("{head}{some}, {} kernel\n\n{}\n{advice}", found.kernel, table::side_by_side(&columns))
}
