//! Latent coordinates of rows under a mixture: those of the most probable component. They are never averaged
//! over components, whose axes have nothing to do with each other.

use super::Mixture;
use crate::data::{Chunk, RowSource, map_chunks};
use crate::error::Result;
use crate::linalg::{Mat, MatRef};
use crate::model::capability::numbered;
use crate::model::limits::Wanted;
use crate::model::questions::{room_for, stack};
use crate::model::{
    Contributions, Encode, Explain, LatentCovariance, LatentPosterior, Limits, LinearGaussian, Model,
    Posterior, Reconstruct, Reconstruction, Sample,
};

impl Mixture {
    /// `width` numbers for each row of a chunk (n × width): `f` gives those of rows of one component. Columns
    /// that a component does not have stay 0.
    fn by_most_probable(
        &self,
        chunk: &Chunk<'_>,
        width: usize,
        f: impl Fn(&LinearGaussian, &Chunk<'_>) -> Result<Mat<f64>>,
    ) -> Result<Mat<f64>> {
        let mut out = Mat::zeros(chunk.nrows(), width);
        let (rows, _) = self.by_component(chunk)?;
        for (component, rows) in self.components.iter().zip(&rows).filter(|(_, rows)| !rows.is_empty()) {
            let found = f(component, &chunk.select(rows)?)?;
            place(&mut out, rows, found.as_ref());
        }
        Ok(out)
    }

    /// The same for all rows.
    fn rows_by_most_probable(
        &self,
        rows: &dyn RowSource,
        width: usize,
        f: impl Fn(&LinearGaussian, &Chunk<'_>) -> Result<Mat<f64>> + Sync,
    ) -> Result<Mat<f64>> {
        room_for("the table of answers", rows, width)?;
        let parts = map_chunks(rows, |chunk| self.by_most_probable(chunk, width, &f))?;
        Ok(stack(width, parts.iter().map(Mat::as_ref)))
    }

    /// T² and SPE of the rows of a chunk under their most probable component (n × 2).
    pub(super) fn distances_of(&self, chunk: &Chunk<'_>) -> Result<Mat<f64>> {
        self.by_most_probable(chunk, 2, |component, rows| {
            let (t2, spe) = component.t2_spe(rows)?;
            Ok(Mat::from_fn(t2.len(), 2, |i, j| if j == 0 { t2[i] } else { spe[i] }))
        })
    }
}

/// Writes rows to their places.
fn place(out: &mut Mat<f64>, rows: &[usize], found: MatRef<'_, f64>) {
    for j in 0..found.ncols() {
        rows.iter().enumerate().for_each(|(i, row)| out[(*row, j)] = found[(i, j)]);
    }
}

impl Encode for Mixture {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', self.n_latent())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.rows_by_most_probable(rows, self.n_latent(), |component, rows| component.latent_mean(rows))
    }
}

impl LatentPosterior for Mixture {
    /// Given that the row is of its most probable component. Coordinates that a component does not have are
    /// 0 for certain.
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        let q = self.n_latent();
        room_for("the table of coordinates", rows, q)?;
        let parts = map_chunks(rows, |chunk| {
            let (of_component, _) = self.by_component(chunk)?;
            let mut mean = Mat::zeros(chunk.nrows(), q);
            let (mut cells, mut pattern) = (Vec::new(), vec![0; chunk.nrows()]);
            let each = self.components.iter().zip(&of_component).filter(|(_, rows)| !rows.is_empty());
            for (component, rows) in each {
                let found = component.posterior(&chunk.select(rows)?)?;
                place(&mut mean, rows, found.mean.as_ref());
                append(&mut cells, &mut pattern, rows, &found.covariance, q);
            }
            Ok((mean, cells, pattern))
        })?;
        let mean = stack(q, parts.iter().map(|(mean, ..)| mean.as_ref()));
        let (mut cells, mut pattern) = (Vec::new(), Vec::new());
        for (_, more, of) in &parts {
            let before = cells.len().checked_div(q * q).unwrap_or(0);
            pattern.extend(of.iter().map(|k| before + k));
            cells.extend_from_slice(more);
        }
        Ok(Posterior { mean, covariance: LatentCovariance::PerPattern { cells, pattern, latent: q } })
    }
}

/// Adds the covariances of some rows, each padded to q × q, once for each pattern.
fn append(
    cells: &mut Vec<f64>,
    pattern: &mut [usize],
    rows: &[usize],
    covariance: &LatentCovariance,
    q: usize,
) {
    let before = cells.len().checked_div(q * q).unwrap_or(0);
    let padded = |c: MatRef<'_, f64>| {
        let cell = |i: usize, j: usize| if i < c.nrows() && j < c.ncols() { c[(i, j)] } else { 0.0 };
        (0..q * q).map(|at| cell(at % q, at / q)).collect::<Vec<_>>()
    };
    match covariance {
        LatentCovariance::Shared(c) => {
            cells.extend(padded(c.as_ref()));
            rows.iter().for_each(|row| pattern[*row] = before);
        }
        LatentCovariance::PerPattern { pattern: of, .. } => {
            let patterns = of.iter().max().map_or(0, |k| k + 1);
            for k in 0..patterns {
                let row = of.iter().position(|other| *other == k).unwrap_or(0);
                cells.extend(padded(covariance.of(row)));
            }
            rows.iter().zip(of).for_each(|(row, k)| pattern[*row] = before + k);
        }
    }
}

impl Reconstruct for Mixture {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        let rebuilt = |component: &LinearGaussian, rows: &Chunk<'_>| component.reconstruct(rows, kind);
        self.rows_by_most_probable(rows, self.n_features(), rebuilt)
    }
}

impl Explain for Mixture {
    /// Under the component that a row most probably belongs to, as its T² and SPE are.
    fn contributions(&self, rows: &dyn RowSource) -> Result<Contributions> {
        let width = Contributions::width(self.n_features());
        let table = self.rows_by_most_probable(rows, width, LinearGaussian::contribution_table)?;
        Ok(Contributions::from_table(&table))
    }

    /// Those of the component that a row most probably belongs to, which was found from its share of the sample.
    fn limits(&self, rows: &dyn RowSource, level: f64, sample: Option<Sample>) -> Result<Limits> {
        let wanted = Wanted::new(level, sample)?;
        let parts = map_chunks(rows, |chunk| {
            let mut out = Mat::zeros(chunk.nrows(), 2);
            let (of_component, _) = self.by_component(chunk)?;
            for (k, rows) in of_component.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
                let share = wanted.share(self.weights[k]);
                let found = self.components[k].limit_table(&chunk.select(rows)?, share)?;
                place(&mut out, rows, found.as_ref());
            }
            Ok(out)
        })?;
        Ok(Limits::from_table(&stack(2, parts.iter().map(Mat::as_ref))))
    }
}
