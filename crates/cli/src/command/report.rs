//! `covary report`: one interactive page about a model and its rows.

use std::path::Path;

use covary::data::RowSource;
use covary::model::Sample;
use covary::persist::SavedModel;
use covary_io::arrow_array::ArrayRef;
use covary_io::{Schema, texts};
use covary_report::{Column, Image, Options, Piece, Report, Stick};

use super::answer::{Input, prepare};
use crate::args;
use crate::exit::{Code, Failure, Result};
use crate::interrupt;
use crate::output::new_file;
use crate::phrase::{about_rows, count, file_name};
use crate::progress::Progress;

/// Reads the rows once and writes the page.
pub(super) fn run(mut args: args::Report) -> Result<Code> {
    let (saved, input) = prepare(&mut args.question)?;
    let schema = input.schema().clone();
    let names: Vec<String> = schema.carried.iter().map(|column| column.name.clone()).collect();
    check_image(args.image, &saved)?;
    let stick = args.stick.as_deref().map(|path| read_stick(path, &saved)).transpose()?;
    let file = new_file(&args.question.output, &[&args.question.model, &args.question.data])?;
    let sample = Sample::of_rows(saved.report.weight);
    let options = Options { stick, sample, ..options(&args, &schema) };
    let mut report = Report::new(&saved, options, &names)?;
    let progress = Progress::new(args.question.console, "rows", schema.n_rows);
    let mut watch = |rows: usize| {
        progress.add(rows);
        if interrupt::requested() { Err(covary::Error::Interrupted) } else { Ok(()) }
    };
    let added = match input {
        Input::Rows(reader) => report.add(reader.batches().map(|batch| piece(&schema, batch)), &mut watch),
        Input::Cells(triples) => {
            let names = triples.cells.row_names().unwrap_or_default();
            let ids = Column::Texts(names.iter().cloned().map(Some).collect());
            let rows: &dyn RowSource = &triples.cells;
            report.add_source(rows, &[ids], &mut watch)
        }
    };
    added.map_err(about_rows(&schema))?;
    drop(progress);
    say(&args, report.rows());
    file.write(report.finish()?.as_bytes())?;
    Ok(Code::Done)
}

/// What the page shall hold and be called.
fn options(args: &args::Report, schema: &Schema) -> Options {
    let text = |path: &Path| Some(path.display().to_string());
    let id = schema.carried.iter().position(|column| {
        args.question.triples.is_some() || Some(&column.name) == args.question.options.id.as_ref()
    });
    Options {
        rows: args.rows,
        seed: args.seed,
        title: args.title.clone(),
        model: text(&args.question.model),
        data: text(&args.question.data),
        id,
        sample: None,
        image: args.image,
        stick: None,
    }
}

/// Rows of a file with the columns that are carried along, as text.
fn piece(schema: &Schema, batch: covary_io::Result<covary_io::Batch>) -> covary::Result<Piece<'static>> {
    let batch = batch?;
    let column = |(index, cells): (usize, &ArrayRef)| Ok(Column::Texts(texts(schema, index, cells)?));
    let carried = batch.carried.iter().enumerate().map(column).collect::<covary_io::Result<Vec<_>>>()?;
    Ok((carried, batch.chunk))
}

fn check_image(image: Option<Image>, saved: &SavedModel) -> Result<()> {
    let p = saved.model.n_features();
    match image {
        Some(Image { height, width }) if height.checked_mul(width) != Some(p) => {
            Err(Failure::usage(format!(
                "--image {height}x{width} has {} pixels, but the model has {}; give the height and width of the image",
                height.saturating_mul(width),
                count(p, "feature")
            )))
        }
        _ => Ok(()),
    }
}

fn read_stick(path: &Path, saved: &SavedModel) -> Result<Stick> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::file(format!("cannot read {}: {error}", file_name(path))))?;
    Stick::parse(&text, &saved.features)
        .map_err(|error| Failure::usage(format!("--stick {}: {error}", path.display())))
}

/// Says when the page holds some of the rows only.
fn say(args: &args::Report, (shown, all): (usize, usize)) {
    if shown < all && shown > 0 {
        args.question.console.note(&format!(
            "the page shows {shown} of {all} rows: the most unusual ones and a sample of the others; --rows N for more"
        ));
    }
}
