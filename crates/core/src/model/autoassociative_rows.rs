//! What can be asked of an autoassociative network about rows, complete or with missing values.

use std::ops::Range;

use super::autoassociative::names;
use super::capability::{Decode, Encode, Fill, LatentPosterior, Novelty, Reconstruct};
use super::impute::{check_below, dense, generator, normal};
use super::posterior::LatentCovariance;
use super::questions::{room_for, stack};
use super::{AutoassociativeNetwork, Conditional, Imputed, Model, Posterior, Predicted, Reconstruction};
use crate::control::Control;
use crate::data::{Chunk, Observed, RowSource, Rows, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::{ColRef, Mat, MatRef, dot, product};
use crate::memory;
use crate::network::{Mode, ModeSearch};

/// A row with its place on the surface.
struct Placed<'a> {
    /// Number in its chunk.
    row: usize,
    /// Coordinates (q).
    z: &'a [f64],
    /// x̂ in the frame (p).
    image: &'a [f64],
    /// x in the frame, NaN where a cell is missing (p).
    cells: &'a [f64],
}

impl AutoassociativeNetwork {
    /// Calls `f` with blocks of rows in the frame (p × n), the first row of each, and the network's search.
    fn for_each_block(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(usize, MatRef<'_, f64>, &ModeSearch<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(problem) = unweighted(chunk).explain_infinite() {
            return Err(problem);
        }
        let (p, search, mut ended) = (self.n_features(), ModeSearch::new(self.network()), Ok(()));
        self.frame().for_each_block(chunk.cells(), |first, cells| {
            if ended.is_ok() {
                ended = f(first, MatRef::from_column_major_slice(cells, p, cells.len() / p), &search);
            }
        });
        ended
    }

    /// Calls `f` with each row: where the encoder puts it if there is one and the row is complete, otherwise at the
    /// mode.
    fn for_each_place(
        &self,
        chunk: &Chunk<'_>,
        check: &dyn Fn() -> Result<()>,
        mut f: impl FnMut(Placed<'_>),
    ) -> Result<()> {
        self.for_each_block(chunk, |first, x, search| {
            let coded = self.network().encoder.as_ref().map(|encoder| encoder.apply(x).out);
            let images = coded.as_ref().map(|z| self.network().decoder.apply(z.as_ref()).out);
            for (i, cells) in columns(x).enumerate() {
                check()?;
                let row = first + i;
                match (&coded, &images) {
                    (Some(z), Some(image)) if cells.iter().all(|x| !x.is_nan()) => {
                        f(Placed { row, z: z.col_as_slice(i), image: image.col_as_slice(i), cells });
                    }
                    _ => {
                        let mode = search.mode(cells)?;
                        f(Placed { row, z: &mode.z, image: &mode.image, cells });
                    }
                }
            }
            Ok(())
        })
    }

    /// Calls `f` with the posterior of rows: of all, or of those that miss cells.
    fn for_each_mode(
        &self,
        chunk: &Chunk<'_>,
        incomplete_only: bool,
        check: &dyn Fn() -> Result<()>,
        mut f: impl FnMut(usize, &ModeSearch<'_>, Mode) -> Result<()>,
    ) -> Result<()> {
        self.for_each_block(chunk, |first, x, search| {
            let coded = self.network().encoder.as_ref().map(|encoder| encoder.apply(x).out);
            for (i, cells) in columns(x).enumerate() {
                check()?;
                let complete = cells.iter().all(|x| !x.is_nan());
                if complete && incomplete_only {
                    continue;
                }
                let mode = match coded.as_ref().filter(|_| complete) {
                    Some(coded) => search.mode_at(cells, coded.col_as_slice(i).to_vec())?,
                    None => search.mode(cells)?,
                };
                f(first + i, search, mode)?;
            }
            Ok(())
        })
    }

    fn check_features(&self, rows: &dyn RowSource) -> Result<()> {
        let (expected, found) = (self.n_features(), rows.n_features());
        if expected == found { Ok(()) } else { Err(Error::FeatureCount { expected, found }) }
    }

    /// A matrix of some columns for each chunk, stacked.
    fn of_places(
        &self,
        rows: &dyn RowSource,
        columns: usize,
        f: impl Fn(&mut Mat<f64>, Placed<'_>) + Sync,
    ) -> Result<Mat<f64>> {
        self.check_features(rows)?;
        room_for("the answers for the rows", rows, columns)?;
        let parts = map_chunks(rows, |chunk| {
            let mut out = Mat::zeros(chunk.nrows(), columns);
            self.for_each_place(chunk, &|| rows.check(), |placed| f(&mut out, placed))?;
            Ok(out)
        })?;
        Ok(stack(columns, parts.iter().map(Mat::as_ref)))
    }

    /// x̂ of one feature in the units of the data.
    fn outside(&self, feature: usize, image: f64) -> f64 {
        self.frame().outside(feature, image)
    }

    /// √(σ² + jᵀCj) of a cell in the units of the data, j a row of J and C = RRᵀ.
    fn deviation(&self, feature: usize, mode: &Mode, root: &Mat<f64>) -> f64 {
        let j: Vec<f64> = mode.jacobian.row(feature).iter().copied().collect();
        let along = |column: usize| dot(root.col_as_slice(column), &j);
        let spread: f64 = (0..root.ncols()).map(|k| along(k).powi(2)).sum();
        self.unit_of(feature) * (self.network().noise + spread).sqrt()
    }

    /// Fills the missing cells of rows (n × p), with deviations if they are wanted.
    fn filled(&self, rows: &dyn RowSource, deviations: bool) -> Result<Imputed> {
        self.check_features(rows)?;
        let p = self.n_features();
        room_for("the table of filled rows", rows, if deviations { 2 * p } else { p })?;
        let parts = map_chunks(rows, |chunk| {
            let mut cells = dense(chunk);
            let mut std = Mat::zeros(if deviations { chunk.nrows() } else { 0 }, p);
            if !chunk.has_missing() {
                return Ok((cells, std));
            }
            self.for_each_mode(chunk, true, &|| rows.check(), |i, search, mode| {
                let missing: Vec<usize> = (0..p).filter(|j| cells[(i, *j)].is_nan()).collect();
                let root = deviations.then(|| mode.root(search.noise()));
                for j in missing {
                    cells[(i, j)] = self.outside(j, mode.image[j]);
                    if let Some(root) = &root {
                        std[(i, j)] = self.deviation(j, &mode, root);
                    }
                }
                Ok(())
            })?;
            Ok((cells, std))
        })?;
        let cells = stack(p, parts.iter().map(|(cells, _)| cells.as_ref()));
        Ok(Imputed { cells, std: stack(p, parts.iter().map(|(_, std)| std.as_ref())) })
    }
}

/// The columns of a block whose columns lie side by side.
fn columns<'a>(x: MatRef<'a, f64>) -> impl Iterator<Item = &'a [f64]> {
    (0..x.ncols()).filter_map(move |i| x.col(i).try_as_col_major().map(ColRef::as_slice))
}

/// Questions about rows count every row, whatever its weight.
fn unweighted<'a>(chunk: &'a Chunk<'_>) -> Chunk<'a> {
    Chunk::new(chunk.first_row(), chunk.borrowed().cells().clone())
}

impl Encode for AutoassociativeNetwork {
    fn coordinate_names(&self) -> Vec<String> {
        names(self)
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.of_places(rows, self.n_latent(), |out, Placed { row, z, .. }| {
            z.iter().enumerate().for_each(|(k, z)| out[(row, k)] = *z);
        })
    }
}

/// Of a complete row of a network with an encoder the mean is the encoder's; the covariance is σ²M⁻¹ there.
impl LatentPosterior for AutoassociativeNetwork {
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        let q = self.n_latent();
        self.check_features(rows)?;
        room_for("the table of posterior covariances", rows, q + q * q)?;
        let parts = map_chunks(rows, |chunk| {
            let (mut mean, mut cells) = (Mat::zeros(chunk.nrows(), q), Vec::new());
            self.for_each_mode(chunk, false, &|| rows.check(), |i, search, mode| {
                let root = mode.root(search.noise());
                let covariance = product(root.as_ref(), root.transpose());
                mode.z.iter().enumerate().for_each(|(k, z)| mean[(i, k)] = *z);
                covariance.col_iter().for_each(|column| cells.extend(column.iter().copied()));
                Ok(())
            })?;
            Ok((mean, cells))
        })?;
        let mean = stack(q, parts.iter().map(|(mean, _)| mean.as_ref()));
        let (cells, pattern) = (parts.into_iter().flat_map(|(_, cells)| cells).collect(), (0..mean.nrows()));
        let covariance = LatentCovariance::PerPattern { cells, pattern: pattern.collect(), latent: q };
        Ok(Posterior { mean, covariance })
    }
}

impl Decode for AutoassociativeNetwork {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let (expected, found, p) = (self.n_latent(), latent.ncols(), self.n_features());
        if expected != found {
            return Err(Error::Length { what: "coordinates of each row", expected, found });
        }
        memory::check("the table of decoded rows", &[2, latent.nrows(), p])?;
        let columns = latent.transpose().to_owned();
        let out = self.network().decoder.apply(columns.as_ref()).out;
        Ok(Mat::from_fn(latent.nrows(), p, |i, j| self.outside(j, out[(j, i)])))
    }
}

/// Each row from its coordinates, in either kind of reconstruction.
impl Reconstruct for AutoassociativeNetwork {
    fn reconstruct(&self, rows: &dyn RowSource, _: Reconstruction) -> Result<Mat<f64>> {
        self.of_places(rows, self.n_features(), |out, Placed { row, image, .. }| {
            image.iter().enumerate().for_each(|(j, x)| out[(row, j)] = self.outside(j, *x));
        })
    }
}

/// ‖x − x̂‖² over the observed cells, in the units of the divided features: what SPE is for PCA.
impl Novelty for AutoassociativeNetwork {
    fn novelty(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        let squares = self.of_places(rows, 1, |out, Placed { row, image, cells, .. }| {
            let seen = cells.iter().zip(image).filter(|(x, _)| !x.is_nan());
            out[(row, 0)] = self.frame().square(seen.map(|(x, y)| (x - y) * (x - y)).sum());
        })?;
        Ok(squares.col_as_slice(0).to_vec())
    }
}

/// By the Laplace posterior: cells are x̂ⱼ(z) with variance σ² + jᵀσ²M⁻¹j, j their row of J.
impl Fill for AutoassociativeNetwork {
    fn impute(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        Ok(self.filled(rows, false)?.cells)
    }

    fn impute_with_std(&self, rows: &dyn RowSource) -> Result<Imputed> {
        self.filled(rows, true)
    }

    /// z is drawn from the Laplace posterior, decoded, and noise is added: draws follow the surface.
    fn draw_missing(&self, rows: &dyn RowSource, draws: Range<usize>, seed: u64) -> Result<Vec<Mat<f64>>> {
        self.check_features(rows)?;
        let (p, q) = (self.n_features(), self.n_latent());
        room_for("the table of draws", rows, draws.len().saturating_mul(p))?;
        let parts = map_chunks(rows, |chunk| {
            memory::check("the table of draws", &[draws.len(), chunk.nrows(), p])?;
            let first = dense(chunk);
            let mut all: Vec<Mat<f64>> = draws.clone().map(|_| first.clone()).collect();
            if !chunk.has_missing() {
                return Ok(all);
            }
            self.for_each_mode(chunk, true, &|| rows.check(), |i, search, mode| {
                let missing: Vec<usize> = (0..p).filter(|j| first[(i, *j)].is_nan()).collect();
                if missing.is_empty() {
                    return Ok(());
                }
                let root = mode.root(search.noise());
                for (draw, cells) in draws.clone().zip(&mut all) {
                    let mut rng = generator(seed, chunk.first_row() + i, draw);
                    let u: Vec<f64> = (0..q).map(|_| normal(&mut rng)).collect();
                    let along = |k: usize| (0..q).map(|a| root[(k, a)] * u[a]).sum::<f64>();
                    let z = Mat::from_fn(q, 1, |k, _| mode.z[k] + along(k));
                    let image = self.network().decoder.apply(z.as_ref()).out;
                    for &j in &missing {
                        let noise = self.network().noise.sqrt() * normal(&mut rng);
                        cells[(i, j)] = self.outside(j, image[(j, 0)] + noise);
                    }
                }
                Ok(())
            })?;
            Ok(all)
        })?;
        Ok((0..draws.len()).map(|d| stack(p, parts.iter().map(|all| all[d].as_ref()))).collect())
    }

    fn conditional(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional> {
        let rows = Rows::from(MatRef::from_row_major_slice(row, 1, row.len()));
        self.check_features(rows.source())?;
        let features: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_nan()).collect();
        let m = features.len();
        memory::check("the covariance of the missing cells", &[2, m, m])?;
        let mut found = None;
        self.for_each_mode(&rows.source().chunk(0)?, false, &|| control.check(), |_, search, mode| {
            let mean = features.iter().map(|j| self.outside(*j, mode.image[*j])).collect();
            let loadings = Mat::from_fn(m, self.n_latent(), |a, k| {
                self.unit_of(features[a]) * mode.jacobian[(features[a], k)]
            });
            let along = product(loadings.as_ref(), mode.root(search.noise()).as_ref());
            let mut covariance = product(along.as_ref(), along.transpose());
            (0..m).for_each(|a| {
                covariance[(a, a)] += self.network().noise * self.unit_of(features[a]).powi(2);
            });
            found = Some((mean, covariance));
            Ok(())
        })?;
        let (mean, covariance) = found.ok_or(Error::NoRows)?;
        Ok(Conditional { features, mean, covariance })
    }

    fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        self.check_features(rows)?;
        check_below("the row of a cell", cells.iter().map(|c| c.0), rows.nrows())?;
        check_below("the feature of a cell", cells.iter().map(|c| c.1), self.n_features())?;
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|i| cells[*i].0);
        let mut out = Predicted { mean: vec![0.0; cells.len()], std: vec![0.0; cells.len()] };
        for of_row in order.chunk_by(|a, b| cells[*a].0 == cells[*b].0) {
            let row = cells[of_row[0]].0;
            let chunk = Chunk::new(row, crate::data::Cells::Observed(rows.rows(row..row + 1)));
            let known = dense(&chunk);
            self.for_each_mode(&chunk, false, &|| Ok(()), |_, search, mode| {
                let root = mode.root(search.noise());
                for &cell in of_row {
                    let j = cells[cell].1;
                    (out.mean[cell], out.std[cell]) = match known[(0, j)] {
                        x if x.is_nan() => (self.outside(j, mode.image[j]), self.deviation(j, &mode, &root)),
                        x => (x, 0.0),
                    };
                }
                Ok(())
            })?;
        }
        Ok(out)
    }
}
