//! `covary score`: how well each row fits the model.

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::model::{Density, Explain, Novelty, Sample, kind};
use covary::persist::SavedModel;

use super::answer::{prepare, write};
use super::{score_cells, score_worst};
use crate::args::{Asked, Score};
use crate::console::Console;
use crate::exit::{Code, Result};

/// Writes log density, T², SPE and p-value, and of a robust model the weight of each row; SPE alone of a model
/// without a density. Of the cells of rows, what they contribute.
pub(super) fn run(args: Score) -> Result<Code> {
    let Score { question: mut args, worst, asked } = args;
    let (saved, input) = prepare(&mut args)?;
    let limits = if let Asked::Rows { limits } = asked { limits } else { None };
    match (worst, asked) {
        (None, Asked::Cells) => score_cells::run(&args, input, &saved)?,
        (None, _) => {
            let scoring = Scoring::new(&saved, limits, args.console)?;
            write(&args, input, &scoring.names, |chunk| scoring.of(chunk))?;
        }
        (Some(n), _) => {
            let scoring = Scoring::new(&saved, limits, args.console)?;
            score_worst::run(&args, input, &saved, &scoring, n, asked)?;
        }
    }
    Ok(Code::Done)
}

/// What is told of each row.
pub(super) struct Scoring<'m> {
    /// Names of the columns.
    pub(super) names: Vec<String>,
    of: RowsOf<'m>,
    limits: Option<(&'m dyn Explain, f64, Option<Sample>)>,
}

/// Who scores rows.
enum RowsOf<'m> {
    Density(&'m dyn Density),
    /// A model without noise, which has T² and SPE only.
    Plane(&'m dyn Density),
    Novelty(&'m dyn Novelty),
}

impl<'m> Scoring<'m> {
    fn new(saved: &'m SavedModel, level: Option<f64>, console: Console) -> Result<Self> {
        let model = saved.model.as_ref();
        let limits = match level {
            Some(level) => Some((model.explainer()?, level, Sample::of_rows(saved.report.weight))),
            None => None,
        };
        let of = match model.as_novelty() {
            Some(model) => RowsOf::Novelty(model),
            None => of_density(model.density()?, console)?,
        };
        let mut names: Vec<&str> = match of {
            RowsOf::Novelty(_) => vec!["spe"],
            _ => vec!["log_density", "t2", "spe", "p_value"],
        };
        if model.kind() == &kind::ROBUST {
            names.push("weight");
        }
        if limits.is_some() {
            names.extend(["t2_limit", "spe_limit"]);
        }
        Ok(Self { names: names.into_iter().map(String::from).collect(), of, limits })
    }

    /// The numbers of the rows of a chunk (n × columns).
    pub(super) fn of(&self, chunk: &Chunk<'_>) -> covary::Result<Mat<f64>> {
        let mut columns = match self.of {
            RowsOf::Density(model) => scores(model, chunk)?,
            RowsOf::Plane(model) => distances(model, chunk)?,
            RowsOf::Novelty(model) => vec![model.novelty(chunk)?],
        };
        if let Some((model, level, sample)) = self.limits {
            columns.resize(self.names.len() - 2, vec![f64::NAN; chunk.nrows()]);
            let limits = model.limits(chunk, level, sample)?;
            columns.extend([limits.t2, limits.spe]);
        }
        let cell = |i: usize, j: usize| columns.get(j).map_or(f64::NAN, |column| column[i]);
        Ok(Mat::from_fn(chunk.nrows(), self.names.len(), cell))
    }

    /// The place of a column.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|column| column == name)
    }
}

fn of_density(model: &dyn Density, console: Console) -> Result<RowsOf<'_>> {
    if model.is_proper()? {
        return Ok(RowsOf::Density(model));
    }
    console.note(
        "the model has no noise, so rows have no density: log_density and p_value stay empty; fit with \
         fewer components to have them",
    );
    Ok(RowsOf::Plane(model))
}

fn scores(model: &dyn Density, chunk: &Chunk<'_>) -> covary::Result<Vec<Vec<f64>>> {
    let log_density = model.log_density(chunk)?;
    let outliers = model.outliers(chunk)?;
    let mut columns = vec![log_density, outliers.t2, outliers.spe, outliers.p_value];
    columns.extend(model.row_weights(chunk)?);
    Ok(columns)
}

/// What exists without a density; NaN is written as an empty cell.
fn distances(model: &dyn Density, chunk: &Chunk<'_>) -> covary::Result<Vec<Vec<f64>>> {
    let (t2, spe) = model.distances(chunk)?;
    Ok(vec![vec![f64::NAN; t2.len()], t2, spe])
}

/// The model's contributions, or the sentence that it has none.
pub(super) fn explainer(saved: &SavedModel) -> Result<&dyn Explain> {
    Ok(saved.model.explainer()?)
}
