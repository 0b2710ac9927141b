//! The arguments of `covary report`.

use std::path::{Path, PathBuf};

use covary_io::{Budget, Carry, ReadOptions};
use covary_report::Image;

use super::{BATCH_BYTES, Question, options, set_threads};
use crate::console::Console;
use crate::exit::{Failure, Result};
use crate::flags;
use crate::output::check_apart;
use crate::phrase::file_name;

/// What `report` works with.
pub(crate) struct Report {
    pub(crate) question: Question,
    /// Most rows; 0 for none, nothing for as many as suit a page.
    pub(crate) rows: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) title: Option<String>,
    pub(crate) image: Option<Image>,
    pub(crate) stick: Option<PathBuf>,
}

impl Report {
    pub(crate) fn resolve(flags: flags::Report) -> Result<Self> {
        check_page_name(&flags.output)?;
        let inputs = [Some(flags.model.as_path()), Some(flags.data.as_path()), flags.stick.as_deref()];
        check_apart(&flags.output, &inputs.into_iter().flatten().collect::<Vec<_>>())?;
        set_threads(flags.running.threads);
        let read = options(flags.columns, None, Budget::new(None));
        Ok(Self {
            question: Question {
                model: flags.model,
                data: flags.data,
                output: flags.output,
                options: ReadOptions { chunk_bytes: BATCH_BYTES, carry: Carry::Others, ..read },
                triples: flags.triples,
                console: Console::new(flags.running.quiet),
            },
            rows: if flags.no_rows { Some(0) } else { flags.rows },
            seed: flags.seed,
            title: flags.title,
            image: flags.image,
            stick: flags.stick,
        })
    }
}

/// A page under another name would not open by double click.
fn check_page_name(path: &Path) -> Result<()> {
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    match ending.is_some_and(|e| e == "html" || e == "htm") {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "the page {} must end in .html, so that a double click opens it in a browser",
            file_name(path)
        ))),
    }
}

/// `8x8`, `28x20`.
pub(crate) fn image(text: &str) -> Result<Image, String> {
    text.parse()
}
