//! What can be asked of a GP-LVM about rows and latent coordinates.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::LatentProcess;
use super::place::table;
use super::predict::Predicted as AtPlaces;
use crate::control::Control;
use crate::data::{Observed, RowSource, Rows};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::memory;
use crate::model::capability::{Decode, Encode, Fill, Generate, LatentPosterior, Reconstruct, numbered};
use crate::model::impute::{check_below, generator};
use crate::model::questions::room_for;
use crate::model::sample::{SAMPLE_BLOCK, sample_in_blocks, sample_watched};
use crate::model::{Conditional, Imputed, LatentCovariance, Model, Posterior, Predicted, Reconstruction};

impl LatentProcess {
    /// A value of a feature in the units of the data.
    fn outside(&self, feature: usize, value: f64) -> f64 {
        self.parts().mean[feature] + self.parts().divisors[feature] * value
    }

    /// A deviation of a new cell in the units of the data, for the variance of the function.
    fn deviation(&self, feature: usize, variance: f64) -> f64 {
        self.parts().divisors[feature] * (variance + self.parts().noise).sqrt()
    }

    fn check_latent(&self, latent: MatRef<'_, f64>) -> Result<()> {
        let (expected, found) = (self.n_latent(), latent.ncols());
        if expected != found {
            return Err(Error::Length { what: "latent coordinates", expected, found });
        }
        match latent.is_all_finite() {
            true => Ok(()),
            false => {
                let (name, value) = ("a latent coordinate", "not finite".into());
                Err(Error::Parameter { name, value, allowed: "finite" })
            }
        }
    }

    /// Missing cells and their mean and deviation, of each row.
    fn filled(&self, rows: &dyn RowSource) -> Result<Vec<Vec<(f64, f64)>>> {
        self.with_places(rows, 2 * self.n_features(), |_, row, mean, variance| {
            let missing: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_nan()).collect();
            let mut out: Vec<(f64, f64)> = row.iter().map(|x| (*x, 0.0)).collect();
            if !missing.is_empty() {
                let (means, variances) = self.moments(mean, variance, &missing);
                for (c, j) in missing.iter().enumerate() {
                    out[*j] = (self.outside(*j, means[c]), self.deviation(*j, variances[c]));
                }
            }
            out
        })
    }

    /// Features at a place that is drawn: mean, variance of the function and noise, of the given features.
    fn draw(&self, mean: &[f64], variance: &[f64], features: &[usize], rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let spread = |v: f64, z: f64| if self.has_points() { 0.0 } else { v.sqrt() * z };
        let place: Vec<f64> = mean.iter().zip(variance).map(|(m, v)| m + spread(*v, normal())).collect();
        let at = self.at(MatRef::from_row_major_slice(&place, 1, place.len()));
        let cell = |j: &usize| {
            let own = at.variance[(0, self.group(*j))] + self.parts().noise;
            self.outside(*j, at.mean[(0, *j)] + own.sqrt() * normal())
        };
        features.iter().map(cell).collect()
    }

    /// Rows of a block: positions of N(0, I), function and noise.
    fn sample_block(&self, seed: u64, block: usize) -> Mat<f64> {
        let (p, q) = (self.n_features(), self.n_latent());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(block as u64);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let places = Mat::from_fn(SAMPLE_BLOCK, q, |_, _| normal());
        let AtPlaces { mean, variance } = self.at(places.as_ref());
        Mat::from_fn(SAMPLE_BLOCK, p, |i, j| {
            let own = variance[(i, self.group(j))] + self.parts().noise;
            self.outside(j, mean[(i, j)] + own.sqrt() * normal())
        })
    }
}

impl Encode for LatentProcess {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', self.n_latent())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        Ok(self.place(rows)?.mean)
    }
}

/// Diagonal covariances, one for each row: they depend on where the row lies.
impl LatentPosterior for LatentProcess {
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        let q = self.n_latent();
        room_for("the table of posterior covariances", rows, q * q)?;
        let placed = self.place(rows)?;
        let n = placed.mean.nrows();
        let mut cells = vec![0.0; n * q * q];
        for (i, k) in (0..n).flat_map(|i| (0..q).map(move |k| (i, k))) {
            cells[i * q * q + k * q + k] = placed.variance[(i, k)];
        }
        let covariance = LatentCovariance::PerPattern { cells, pattern: (0..n).collect(), latent: q };
        Ok(Posterior { mean: placed.mean, covariance })
    }
}

impl Decode for LatentProcess {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        self.check_latent(latent)?;
        let mean = self.mean_at(latent);
        Ok(Mat::from_fn(mean.nrows(), mean.ncols(), |i, j| self.outside(j, mean[(i, j)])))
    }

    fn decode_with_std(&self, latent: MatRef<'_, f64>) -> Result<Option<(Mat<f64>, Mat<f64>)>> {
        self.check_latent(latent)?;
        let AtPlaces { mean, variance } = self.at(latent);
        let (n, p) = (mean.nrows(), mean.ncols());
        let std = Mat::from_fn(n, p, |i, j| self.deviation(j, variance[(i, self.group(j))]));
        Ok(Some((Mat::from_fn(n, p, |i, j| self.outside(j, mean[(i, j)])), std)))
    }
}

/// Orthogonal: the surface at the mean of the row's position. Posterior: the mean of the surface over the position.
impl Reconstruct for LatentProcess {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        if kind == Reconstruction::Orthogonal {
            return self.decode(self.encode(rows)?.as_ref());
        }
        let all: Vec<usize> = (0..self.n_features()).collect();
        let rebuilt = self.with_places(rows, self.n_features(), |_, _, mean, variance| {
            let (means, _) = self.moments(mean, variance, &all);
            means.iter().enumerate().map(|(j, m)| self.outside(j, *m)).collect()
        })?;
        Ok(table(&rebuilt, self.n_features()))
    }
}

/// x ~ N(0, I), each feature from its distribution at x, and noise.
impl Generate for LatentProcess {
    fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64> {
        sample_in_blocks(self.n_features(), &rows, |block| self.sample_block(seed, block))
    }

    fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        sample_watched(self.n_features(), n, control, |block| self.sample_block(seed, block))
    }
}

impl Fill for LatentProcess {
    fn impute(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        Ok(self.impute_with_std(rows)?.cells)
    }

    fn impute_with_std(&self, rows: &dyn RowSource) -> Result<Imputed> {
        let (filled, p) = (self.filled(rows)?, self.n_features());
        let part = |of: fn(&(f64, f64)) -> f64| Mat::from_fn(filled.len(), p, |i, j| of(&filled[i][j]));
        Ok(Imputed { cells: part(|c| c.0), std: part(|c| c.1) })
    }

    /// The place is drawn from the row's distribution, then the function and the noise.
    fn draw_missing(&self, rows: &dyn RowSource, draws: Range<usize>, seed: u64) -> Result<Vec<Mat<f64>>> {
        let p = self.n_features();
        let drawn = self.with_places(rows, draws.len().saturating_mul(p), |index, row, mean, variance| {
            let missing: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_nan()).collect();
            let one = |d: usize| {
                let mut out = row.to_vec();
                if !missing.is_empty() {
                    let cells = self.draw(mean, variance, &missing, &mut generator(seed, index, d));
                    missing.iter().zip(cells).for_each(|(j, x)| out[*j] = x);
                }
                out
            };
            draws.clone().map(one).collect()
        })?;
        let of = |d: usize| Mat::from_fn(drawn.len(), p, |i, j| drawn[i][d][j]);
        Ok((0..draws.len()).map(of).collect())
    }

    fn conditional(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional> {
        control.check()?;
        let rows = Rows::from(MatRef::from_row_major_slice(row, 1, row.len()));
        let placed = self.place(rows.source())?;
        let features: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_nan()).collect();
        memory::check("the covariance of the missing cells", &[2, features.len(), features.len()])?;
        let numbers = |m: &Mat<f64>| m.row(0).iter().copied().collect::<Vec<f64>>();
        let (mean, spread) = self.around(&numbers(&placed.mean), &numbers(&placed.variance), &features);
        let d = &self.parts().divisors;
        let covariance = Mat::from_fn(features.len(), features.len(), |i, j| {
            let noise = if i == j { self.parts().noise } else { 0.0 };
            d[features[i]] * d[features[j]] * (spread[(i, j)] + noise)
        });
        let mean = features.iter().zip(mean).map(|(j, m)| self.outside(*j, m)).collect();
        Ok(Conditional { features, mean, covariance })
    }

    fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        if rows.n_features() != self.n_features() {
            return Err(Error::FeatureCount { expected: self.n_features(), found: rows.n_features() });
        }
        check_below("the row of a cell", cells.iter().map(|c| c.0), rows.nrows())?;
        check_below("the feature of a cell", cells.iter().map(|c| c.1), self.n_features())?;
        let mut wanted: Vec<usize> = cells.iter().map(|c| c.0).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let all = rows.rows(0..rows.nrows());
        let mut dense = Mat::full(wanted.len(), self.n_features(), f64::NAN);
        for (i, row) in wanted.iter().enumerate() {
            let (columns, values) = all.row(*row);
            columns.iter().zip(values).for_each(|(j, x)| dense[(i, *j as usize)] = *x);
        }
        let filled = self.filled(Rows::from(&dense).source())?;
        let of = |c: &(usize, usize)| filled[wanted.partition_point(|row| *row < c.0)][c.1];
        let (mean, std) = cells.iter().map(of).unzip();
        Ok(Predicted { mean, std })
    }
}
