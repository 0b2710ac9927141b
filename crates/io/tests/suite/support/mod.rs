//! What the tests share: files in a folder of their own, and readings of them in every way.
#![allow(dead_code, clippy::unwrap_used, clippy::missing_errors_doc, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use covary::data::{Cells, Chunk, RowSource, RowStream};
use covary_io::{Error, Loaded, ReadOptions, Result, open};

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), contents).unwrap();
        self.path(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn small(chunk_bytes: usize) -> ReadOptions {
    ReadOptions { chunk_bytes, ..ReadOptions::default() }
}

/// Rows whose holes can be compared.
pub(crate) type Row = Vec<Option<f64>>;

pub(crate) fn rows_of(cells: &Cells<'_>) -> Vec<Row> {
    let (n, p) = cells.shape();
    let cell = |i, j| Some(cells.get(i, j)).filter(|x| !x.is_nan());
    (0..n).map(|i| (0..p).map(|j| cell(i, j)).collect()).collect()
}

/// A carried column of text.
pub(crate) type Texts = Vec<Option<String>>;

/// The error of an operation that must fail.
pub(crate) fn failure<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("this should have failed"),
        Err(error) => error,
    }
}

/// All rows through the table.
pub(crate) fn load(path: &Path, options: &ReadOptions) -> Result<Vec<Row>> {
    match open(path, options)?.load(usize::MAX)? {
        Loaded::Table(table) => Ok(rows_of(table.cells())),
        _ => panic!("everything fits"),
    }
}

/// All rows through the grid, last chunk first.
pub(crate) fn read_grid(path: &Path, options: &ReadOptions) -> covary::Result<Vec<Row>> {
    let grid = open(path, options)?.grid().unwrap();
    let mut rows = Vec::new();
    for index in (0..grid.n_chunks()).rev() {
        let chunk: Chunk<'_> = grid.chunk(index)?;
        let mut these = rows_of(chunk.cells());
        these.extend(rows);
        rows = these;
    }
    assert_eq!(grid.n_rows(), Some(rows.len()));
    Ok(rows)
}

/// All rows through the stream; checks that first rows add up.
pub(crate) fn read_stream(mut stream: impl RowStream) -> covary::Result<Vec<Row>> {
    let mut rows = Vec::new();
    while let Some(chunk) = stream.next_chunk()? {
        assert_eq!(chunk.first_row(), rows.len());
        assert!(chunk.nrows() > 0);
        rows.extend(rows_of(chunk.cells()));
    }
    Ok(rows)
}

/// Rows and carried text through batches.
pub(crate) fn read_batches(path: &Path, options: &ReadOptions) -> Result<(Vec<Row>, Vec<Texts>)> {
    let reader = open(path, options)?;
    let mut carried = vec![Vec::new(); reader.schema().carried.len()];
    let mut rows = Vec::new();
    for batch in reader.batches() {
        let batch = batch?;
        assert_eq!(batch.chunk.first_row(), rows.len());
        rows.extend(rows_of(batch.chunk.cells()));
        for (texts, column) in carried.iter_mut().zip(&batch.carried) {
            let column = column.as_string::<i32>();
            texts.extend((0..column.len()).map(|i| column.is_valid(i).then(|| column.value(i).to_owned())));
        }
    }
    Ok((rows, carried))
}

/// How often a property is tried: few times as a rule, many when `COVARY_SOAK` is set, as `make soak` does.
pub(crate) fn soak(small: usize, large: usize) -> usize {
    if std::env::var_os("COVARY_SOAK").is_some() { large } else { small }
}
