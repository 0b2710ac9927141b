//! Questions about rows: batch by batch in order and in bounded memory, computed on all cores.

use covary::data::Chunk;
use covary::linalg::Mat;
use covary::persist::SavedModel;
use covary_io::{Batch, Batches, Reader, Schema, Writer, open};
use rayon::prelude::*;

use crate::args::Question;
use crate::exit::{Failure, Result};
use crate::files::read_model;
use crate::interrupt;
use crate::phrase::{about_rows, file_name};
use crate::progress::Progress;

/// Reads the model and opens the data with the model's features, by name or by position.
pub(super) fn prepare(args: &mut Question) -> Result<(SavedModel, Reader)> {
    let saved = read_model(&args.model)?;
    if args.options.columns.is_none() {
        args.options.features = Some(saved.features.clone());
    }
    let reader = open(&args.data, &args.options)?;
    let schema = reader.schema();
    let names = schema.named.then_some(schema.features.as_slice());
    saved.check_features(schema.features.len(), names).map_err(|error| mismatch(&error, schema))?;
    Ok((saved, reader))
}

fn mismatch(error: &covary::Error, schema: &Schema) -> Failure {
    let file = file_name(&schema.path);
    let what = match error {
        covary::Error::FeatureCount { expected, found } => {
            format!("{found} columns are selected where the model has {expected} features")
        }
        covary::Error::FeatureName { position, expected, found } => {
            format!("column {} of the selection is '{found}' where the model has '{expected}'", position + 1)
        }
        other => other.to_string(),
    };
    Failure::data(format!("{file}: {what}; without --columns they are matched by name"))
}

/// Writes one row of answers for each row of the data, behind the columns that are carried along.
pub(super) fn write(
    args: &Question,
    reader: Reader,
    names: &[String],
    compute: impl Fn(&Chunk<'_>) -> covary::Result<Mat<f64>> + Sync,
) -> Result<()> {
    let schema = reader.schema().clone();
    check_names(&schema, names)?;
    let mut writer = Writer::create(&args.output, &schema.carried, names)?;
    // A temporary file wants removing, but nothing is worth waiting for somebody who types rows.
    interrupt::worth_saving(args.output.as_os_str() != "-" && args.data.as_os_str() != "-");
    let progress = Progress::new(args.console, "rows", schema.n_rows);
    let mut batches = reader.batches();
    let mut ready: Vec<Answer> = Vec::new();
    loop {
        let next = || next_group(&mut batches, &compute).map(|group| group.map_err(about_rows(&schema)));
        let (written, next) = rayon::join(|| write_group(&mut writer, &ready, &progress), next);
        written?;
        match next {
            None => break,
            Some(group) => ready = group?,
        }
        if interrupt::requested() {
            return Err(Failure::interrupted());
        }
    }
    writer.finish()?;
    Ok(())
}

/// A batch and the numbers that were computed from it.
type Answer = (Batch, Mat<f64>);

/// The answers to the next few batches, one for each thread; `None` at the end.
fn next_group(
    batches: &mut Batches,
    compute: &(impl Fn(&Chunk<'_>) -> covary::Result<Mat<f64>> + Sync),
) -> Option<covary::Result<Vec<Answer>>> {
    let group: Result<Vec<Batch>, _> = batches.take(rayon::current_num_threads()).collect();
    let group = match group {
        Ok(group) if group.is_empty() => return None,
        Ok(group) => group,
        Err(error) => return Some(Err(error.into())),
    };
    let answers: Vec<_> = group.into_par_iter().map(|b| compute(&b.chunk).map(|x| (b, x))).collect();
    Some(answers.into_iter().collect())
}

fn write_group(writer: &mut Writer, answers: &[Answer], progress: &Progress) -> Result<()> {
    for (batch, numbers) in answers {
        writer.write(&batch.carried, numbers.as_ref())?;
        progress.add(numbers.nrows());
    }
    Ok(())
}

/// A carried column and a column of answers of the same name cannot both be written.
fn check_names(schema: &Schema, names: &[String]) -> Result<()> {
    match schema.carried.iter().find(|c| names.contains(&c.name)) {
        None => Ok(()),
        Some(c) => Err(Failure::usage(format!(
            "{} has a column '{}', which the output would have twice; leave it out with --drop '{}'",
            file_name(&schema.path),
            c.name,
            c.name
        ))),
    }
}

/// z1, z2, … with an ending.
pub(super) fn latent_names(q: usize, ending: &str) -> Vec<String> {
    (1..=q).map(|j| format!("z{j}{ending}")).collect()
}
