//! `covary impute --pairs`: what is expected of cells that a file names.

use std::path::Path;

use covary::data::{Observed, RowSource};
use covary::linalg::Mat;
use covary::model::Fill;
use covary_io::{PairBatch, pairs};

use super::answer::{check_names, read_triples, start};
use crate::args::Question;
use crate::exit::{Code, Failure, Result};
use crate::files::read_model;
use crate::interrupt;
use crate::notice;
use crate::output::check_apart;
use crate::phrase::{about_rows, count, file_name};
use crate::progress::Progress;

/// Writes the file's rows with a prediction for each.
pub(super) fn run(args: &Question, file: &Path, std: bool) -> Result<Code> {
    let Some(columns) = args.triples.clone() else {
        return Err(Failure::usage("--pairs goes with --triples, which says what the columns are"));
    };
    let saved = read_model(&args.model)?;
    let data = read_triples(args, columns.clone(), &saved)?;
    let rows = data.cells.row_names().unwrap_or_default();
    let asked = pairs(file, &columns, rows, &saved.features, &args.options)?;
    let schema = asked.schema().clone();
    notice::schema(args.console, &schema);
    check_apart(&args.output, &[file])?;
    let names = if std { vec!["prediction".into(), "std".into()] } else { vec!["prediction".into()] };
    check_names(&schema, &names)?;
    let mut writer = start(args, &schema.carried, &names)?;
    let model = saved.model.imputer()?;
    let predictions = Predictions::new(model, &data.cells)?;
    let progress = Progress::new(args.console, "pairs", schema.n_rows);
    let (mut strangers, mut all) = (0, 0);
    for batch in asked {
        let batch = batch?;
        let numbers = predictions.predict(&batch, std).map_err(about_rows(&schema))?;
        writer.write(&batch.carried, numbers.as_ref())?;
        progress.add(numbers.nrows());
        all += batch.rows.len();
        strangers += batch.rows.iter().filter(|row| row.is_none()).count();
        if interrupt::requested() {
            return Err(Failure::interrupted());
        }
    }
    writer.finish()?;
    drop(progress);
    if strangers > 0 {
        args.console.note(&format!(
            "{strangers} of {} ask about an id that {} does not have: those get the mean",
            count(all, "pair"),
            file_name(&args.data)
        ));
    }
    Ok(Code::Done)
}

/// What predicts cells.
struct Predictions<'a> {
    model: &'a dyn Fill,
    cells: &'a Observed<'static>,
    /// A row without cells, for everybody who is not in the data.
    nobody: Observed<'static>,
}

impl<'a> Predictions<'a> {
    fn new(model: &'a dyn Fill, cells: &'a Observed<'static>) -> covary::Result<Self> {
        let nobody = Observed::from_triples(1, cells.n_features(), [])?;
        Ok(Self { model, cells, nobody })
    }

    /// Means, and deviations if wanted (pairs × 1 or 2).
    fn predict(&self, batch: &PairBatch, std: bool) -> covary::Result<Mat<f64>> {
        let mut out = Mat::zeros(batch.rows.len(), if std { 2 } else { 1 });
        let (known, strangers): (Vec<usize>, Vec<usize>) =
            (0..batch.rows.len()).partition(|&i| batch.rows[i].is_some());
        for (which, rows) in [(known, self.cells), (strangers, &self.nobody)] {
            let asked: Vec<_> = which.iter().map(|&i| (batch.rows[i].unwrap_or(0), batch.items[i])).collect();
            let told = self.model.predict(rows, &asked)?;
            for (k, &i) in which.iter().enumerate() {
                out[(i, 0)] = told.mean[k];
                if std {
                    out[(i, 1)] = told.std[k];
                }
            }
        }
        Ok(out)
    }
}
