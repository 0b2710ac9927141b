//! The interactive page about a model and its rows.

use std::path::PathBuf;
use std::sync::Arc;

use covary::data::{RowSource, Watched};
use covary::persist::SavedModel;
use covary_report::{Column, Image, Options, Report, Stick};
use pyo3::prelude::*;

use crate::door::{Manner, run};
use crate::input::{Rows, write};
use crate::model::Model;
use crate::threads::Threads;

/// A column that is carried along, as Python hands it over.
#[derive(FromPyObject)]
enum Carried {
    Numbers(Vec<f64>),
    Texts(Vec<Option<String>>),
}

impl From<Carried> for Column {
    fn from(carried: Carried) -> Self {
        match carried {
            Carried::Numbers(cells) => Self::Numbers(cells),
            Carried::Texts(cells) => Self::Texts(cells),
        }
    }
}

#[pymethods]
impl Model {
    /// Writes the page; `columns` are carried along, and the one at `id` names the rows.
    #[pyo3(signature = (rows, path, columns, id=None, most_rows=None, image=None, stick=None, title=None, seed=0, whiten=false, threads=None))]
    #[allow(clippy::too_many_arguments, reason = "Python names them all")]
    fn page(
        &self,
        py: Python<'_>,
        rows: &Rows,
        path: PathBuf,
        columns: Vec<(String, Carried)>,
        id: Option<usize>,
        most_rows: Option<usize>,
        image: Option<(usize, usize)>,
        stick: Option<Vec<(String, String)>>,
        title: Option<String>,
        seed: u64,
        whiten: bool,
        threads: Option<Threads>,
    ) -> PyResult<()> {
        // As Python reads it, so that the page says what the methods say.
        let saved = SavedModel { model: self.whitened(whiten), ..self.saved().clone() };
        let (names, columns): (Vec<String>, Vec<Column>) =
            columns.into_iter().map(|(name, cells)| (name, cells.into())).unzip();
        let (held, sample) = (Arc::clone(&rows.held), self.sample_of_fit());
        let page = run(py, &Manner { threads, progress: None }, move |control| {
            let stick = stick.map(|links| Stick::new(&links, &saved.features)).transpose()?;
            let image = image.map(|(height, width)| Image { height, width });
            let options =
                Options { rows: most_rows, seed, title, id, sample, image, stick, ..Options::default() };
            let mut report = Report::new(&saved, options, &names)?;
            let rows = Watched::new(held.source()?, control);
            report.add_source(&rows, &columns, &mut |_| rows.check())?;
            report.finish()
        })?;
        write(py, path, page.as_bytes())
    }
}
