//! `covary rotate`: the loadings of a model turned so that they can be read.

use std::path::Path;
use std::sync::Arc;

use covary::describe::{Facts, Line, describe_rotated};
use covary::estimator::{Report, turned_with};
use covary::linalg::Mat;
use covary::model::{AnyModel, Factors, Noise};
use covary::persist::SavedModel;
use covary_io::{ReadOptions, matrix};
use serde::Serialize;

use crate::args::{Rotate, Towards};
use crate::console;
use crate::exit::{Code, Failure, Result};
use crate::files::read_model;
use crate::interrupt;
use crate::notice;
use crate::output::new_file;
use crate::phrase::{about_features, count, file_name};
use crate::print::{self, json};

/// Turns, writes and tells.
pub(super) fn run(args: &Rotate) -> Result<Code> {
    let saved = read_model(&args.model)?;
    let target = args.output.as_ref().map(|path| new_file(path, &args.inputs())).transpose()?;
    let saved = rotated(args, saved)?;
    if let Some(target) = target {
        target.write(&saved.to_bytes()?)?;
    }
    tell(args, &saved)?;
    let converged = saved.report.rotation.as_ref().is_none_or(|rotation| rotation.converged);
    Ok(if converged { Code::Done } else { Code::NotConverged })
}

/// The model with its loadings turned, and the report that says how.
fn rotated(args: &Rotate, saved: SavedModel) -> Result<SavedModel> {
    let factors = saved.model.with_loadings()?.factors();
    let method = match &args.towards {
        Towards::Nothing => None,
        Towards::Simple(method) => Some(method.clone()),
        Towards::Target { path, whole, oblique } => {
            let target = read_target(args, path, &saved.features, factors.n_factors())?;
            Some(Towards::aim(target, *whole, *oblique))
        }
    };
    let (factors, rotation) = match method {
        None => (factors.without_turn(), None),
        Some(method) => {
            let turned = turned_with(factors, &args.rotation(method), &interrupt::control());
            let (factors, report) = turned.map_err(about_features(&args.model, &saved.features))?;
            (factors, Some(report))
        }
    };
    let given = SavedModel::of_numbers(unwrapped(factors), Some(saved.features))?;
    Ok(SavedModel { report: Report { rotation, ..saved.report }, ..given })
}

/// Loadings of equal noise that are not turned are those of PPCA.
fn unwrapped(factors: Factors) -> AnyModel {
    match (factors.turn(), factors.gaussian().noise()) {
        (None, Noise::Isotropic(_)) => Arc::new(factors.gaussian().clone()),
        _ => Arc::new(factors),
    }
}

/// The loadings to aim at (p × q), in the order of the model's features.
fn read_target(args: &Rotate, path: &Path, features: &[String], q: usize) -> Result<Mat<f64>> {
    let file = matrix(path, &ReadOptions::default())?;
    notice::header(args.console, path, file.header_guess.as_ref(), false);
    let name = file_name(path);
    if file.columns.len() != q {
        return Err(Failure::data(format!(
            "{name} has {} of loadings, but the model has {}; give a column for each",
            count(file.columns.len(), "column"),
            count(q, "factor")
        )));
    }
    let Some(rows) = &file.rows else {
        return match file.cells.nrows() == features.len() {
            true => Ok(file.cells),
            false => Err(Failure::data(format!(
                "{name} has {}, but the model has {}; give a row for each, or names in a first column",
                count(file.cells.nrows(), "row"),
                count(features.len(), "feature")
            ))),
        };
    };
    let mut target = Mat::full(features.len(), q, f64::NAN);
    for (i, row) in rows.iter().enumerate() {
        let Some(j) = features.iter().position(|feature| feature == row) else {
            return Err(Failure::data(format!("{name}, row {}: the model has no feature '{row}'", i + 1)));
        };
        (0..q).for_each(|k| target[(j, k)] = file.cells[(i, k)]);
    }
    Ok(target)
}

#[derive(Serialize)]
struct Told {
    model_file: Option<String>,
    #[serde(flatten)]
    facts: Facts,
}

fn tell(args: &Rotate, saved: &SavedModel) -> Result<()> {
    let mut description = describe_rotated(saved, args.cut)?;
    let model_file = args.output.as_ref().map(|path| path.display().to_string());
    if args.json {
        return console::print(&json(&Told { model_file, facts: description.facts })?);
    }
    let kept = model_file.unwrap_or_else(|| "not kept; add -o rotated.covary to keep it".into());
    description.lines.push(Line::new("model file", kept));
    args.console.show(&print::text(&description, &print::in_flags))
}
