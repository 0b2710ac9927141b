//! From a model and its rows to a page.

use covary::data::{Chunk, RowSource};
use covary::model::Encode;
use covary::persist::SavedModel;
use covary::{Control, Error, Result};
use rayon::prelude::*;

use crate::about::{About, RowsTold, described, in_words, lines};
use crate::block::Arrays;
use crate::collect::{Collected, Kept, judge};
use crate::columns::{Carried, Column};
use crate::options::Options;
use crate::{answers, block, choice, linear, page, quantise};

/// Rows and the columns that are carried along with them.
pub type Piece<'a> = (Vec<Column>, Chunk<'a>);

/// A page in the making: rows are added in order, then it is finished.
pub struct Report<'a> {
    saved: &'a SavedModel,
    options: Options,
    names: Vec<String>,
    collected: Collected,
}

impl<'a> Report<'a> {
    /// A page about a model, whose rows come with columns of these names.
    ///
    /// # Errors
    /// When the image that the features are said to be has another size.
    pub fn new(saved: &'a SavedModel, options: Options, carried: &[String]) -> Result<Self> {
        let p = saved.model.n_features();
        options.image.map_or(Ok(()), |image| image.check(p))?;
        let collected = Collected::new(&*saved.model, options.most_rows(p), options.seed);
        Ok(Self { saved, options, names: carried.to_vec(), collected })
    }

    /// Adds rows piece by piece, judged on all threads; `watch` is told how many were added and can end the work.
    ///
    /// # Errors
    /// When the rows have another number of features, an infinite cell, or cannot be judged.
    pub fn add<'c>(
        &mut self,
        mut pieces: impl Iterator<Item = Result<Piece<'c>>>,
        watch: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let model = &*self.saved.model;
        loop {
            let some = pieces.by_ref().take(rayon::current_num_threads()).collect::<Result<Vec<_>>>()?;
            if some.is_empty() {
                return Ok(());
            }
            let check = |chunk: &Chunk<'_>| match chunk.ncols() == model.n_features() {
                true => judge(model, chunk),
                false => Err(Error::FeatureCount { expected: model.n_features(), found: chunk.ncols() }),
            };
            let judged = some.par_iter().map(|(_, chunk)| check(chunk)).collect::<Result<Vec<_>>>()?;
            for ((carried, chunk), judged) in some.iter().zip(&judged) {
                self.collected.add(chunk, carried, judged)?;
                watch(chunk.nrows())?;
            }
        }
    }

    /// Adds all rows of a source, with whole columns beside them.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_source(
        &mut self,
        source: &dyn RowSource,
        carried: &[Column],
        watch: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        if let Some((rows, column)) =
            source.n_rows().and_then(|n| Some((n, carried.iter().find(|c| c.len() != n)?)))
        {
            return Err(Error::Length {
                what: "cells of a carried column",
                expected: rows,
                found: column.len(),
            });
        }
        let pieces = (0..source.n_chunks()).map(|index| {
            let chunk = source.chunk(index)?;
            let rows = chunk.first_row()..chunk.first_row() + chunk.nrows();
            Ok((carried.iter().map(|column| column.part(rows.clone())).collect(), chunk))
        });
        self.add(pieces, watch)
    }

    /// How many of the rows the page will hold, and how many there are.
    pub fn rows(&self) -> (usize, usize) {
        (self.collected.rows.min(self.options.most_rows(self.saved.model.n_features())), self.collected.rows)
    }

    /// The page.
    ///
    /// # Errors
    /// When arithmetic breaks down.
    pub fn finish(mut self) -> Result<String> {
        self.collected.finish();
        let Self { saved, options, collected, .. } = &self;
        let description = described(saved, &Control::new())?;
        let facts = serde_json::to_value(&description.facts)
            .map_err(|error| Error::Format(format!("the facts of the model cannot be written: {error}")))?;
        let (mut arrays, (n, p)) = (Arrays::default(), (collected.kept.len(), saved.model.n_features()));
        let cells: Vec<f64> = collected.kept.iter().flat_map(|row| row.cells.iter().copied()).collect();
        let linear = linear::add(saved, &facts, &mut arrays)?;
        let answers = answers::add(saved, &cells, linear.is_some(), options.sample, &mut arrays)?;
        quantise::add(&mut arrays, &cells, n, p);
        if collected.is_sample() {
            let number = |row: &Kept| u32::try_from(row.number).unwrap_or(u32::MAX);
            arrays.words("numbers", [n, 1], &collected.kept.iter().map(number).collect::<Vec<_>>());
        }
        let carried = self.carried(&mut arrays);
        let about = About {
            made_by: format!("covary {}", env!("CARGO_PKG_VERSION")),
            title: options.title.as_deref(),
            kind: saved.model.kind().name,
            kind_title: saved.model.kind().title,
            components: saved.model.kind().components,
            features: &saved.features,
            coordinates: saved.model.as_encode().map(Encode::coordinate_names).unwrap_or_default(),
            model: options.model.as_deref(),
            data: options.data.as_deref(),
            rows: RowsTold::new(collected, options),
            missing: &collected.missing,
            sentences: in_words(saved, collected)?,
            lines: lines(&description),
            tables: description.tables.iter().map(Into::into).collect(),
            facts: &facts,
            eigenvalues: &saved.eigenvalues,
            explained: saved.explained_ratio(),
            trace: &saved.report.trace,
            choice: (!collected.is_sample()).then(|| choice::choice(saved, &cells, options.seed)).flatten(),
            image: options.image,
            stick: options.stick.as_ref(),
            carried,
            id: options.id,
            linear,
            answers,
        };
        Ok(page::with(&block::encode(&about, &arrays)?))
    }

    fn carried(&self, arrays: &mut Arrays) -> Vec<Carried> {
        let column = |(index, name): (usize, &String)| {
            let cells: Vec<_> = self.collected.kept.iter().map(|row| &row.carried[index]).collect();
            Carried::new(name, index, &cells, arrays)
        };
        self.names.iter().enumerate().map(column).collect()
    }
}
