//! Rows with holes: imputation, draws and predictions against the conditional of a dense covariance.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::doc_markdown)]

mod common;

use common::*;
use covary::data::{Block, Cells, Chunk, Observed, RowSource, Rows};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Model, Noise, PrincipalComponents};
use proptest::prelude::*;

const TOLERANCE: f64 = 1e-10;

/// A model and rows with every kind of pattern: complete, one hole, one cell, fewer than q cells, empty, random.
fn case(seed: u64, p: usize, q: usize, diagonal: bool) -> (LinearGaussian, Mat<f64>) {
    let mut rng = Rng(seed);
    let model = random_model(p, q, diagonal, &mut rng);
    let n = 12;
    let mut x = normal_matrix(n, p, &mut rng);
    for i in 0..n {
        let kept = match i {
            0 => p,
            1 => p - 1,
            2 => 1,
            3 => q.saturating_sub(1).min(p),
            4 => 0,
            _ => rng.below(p + 1),
        };
        let order = rng.shuffled(p);
        for (at, &j) in order.iter().enumerate() {
            x[(i, j)] = if at < kept { model.mean()[j] + 2.0 * x[(i, j)] } else { f64::NAN };
        }
    }
    (model, x)
}

fn have(x: &Mat<f64>, i: usize) -> Vec<usize> {
    (0..x.ncols()).filter(|&j| !x[(i, j)].is_nan()).collect()
}

fn miss(x: &Mat<f64>, i: usize) -> Vec<usize> {
    (0..x.ncols()).filter(|&j| x[(i, j)].is_nan()).collect()
}

/// μ_m + C_mo C_oo⁻¹ (x_o − μ_o) and C_mm − C_mo C_oo⁻¹ C_om of the missing cells of a row.
fn dense_conditional(model: &LinearGaussian, x: &Mat<f64>, i: usize) -> (Vec<f64>, Mat<f64>) {
    let dense = Dense::of(model);
    let (have, miss) = (have(x, i), miss(x, i));
    let part = dense.marginal(&have);
    let d: Vec<f64> = have.iter().map(|&j| x[(i, j)] - dense.mean[j]).collect();
    let cross = |m: usize| have.iter().map(|&o| dense.covariance[(m, o)]).collect::<Vec<_>>();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mean = miss.iter().map(|&m| dense.mean[m] + dot(&cross(m), &part.solve(&d))).collect();
    let explained = |m: usize, l: usize| dot(&cross(m), &part.solve(&cross(l)));
    let covariance = Mat::from_fn(miss.len(), miss.len(), |a, b| {
        dense.covariance[(miss[a], miss[b])] - explained(miss[a], miss[b])
    });
    (mean, covariance)
}

/// The same rows as stored cells only.
fn stored(x: &Mat<f64>) -> Observed<'static> {
    let cells = (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| (i, j, x[(i, j)])));
    Observed::from_triples(x.nrows(), x.ncols(), cells).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn imputation_is_the_dense_conditional(seed: u64, p in 1usize..9, q in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, q.min(p), diagonal);
        let filled = model.impute_with_std(&x).unwrap();
        assert_eq!(matrix_bits(&filled.cells), matrix_bits(&model.impute(&x).unwrap()));
        for i in 0..x.nrows() {
            let (mean, covariance) = dense_conditional(&model, &x, i);
            for (a, j) in miss(&x, i).into_iter().enumerate() {
                close(filled.cells[(i, j)], mean[a], TOLERANCE, ("mean", i, j));
                close(filled.std[(i, j)], covariance[(a, a)].sqrt(), TOLERANCE, ("deviation", i, j));
            }
            for j in have(&x, i) {
                assert_eq!(filled.cells[(i, j)].to_bits(), x[(i, j)].to_bits(), "observed cells stay");
                assert_eq!(filled.std[(i, j)], 0.0, "observed cells are known");
            }
        }
    }

    #[test]
    fn predictions_are_the_dense_conditional(seed: u64, p in 1usize..9, q in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, q.min(p), diagonal);
        let mut rng = Rng(seed ^ 3);
        let cells: Vec<(usize, usize)> = (0..40).map(|_| (rng.below(x.nrows()), rng.below(p))).collect();
        let found = model.predict(&stored(&x), &cells).unwrap();
        assert_eq!((found.mean.len(), found.std.len()), (40, 40));
        for (at, &(i, j)) in cells.iter().enumerate() {
            if !x[(i, j)].is_nan() {
                assert_eq!((found.mean[at], found.std[at]), (x[(i, j)], 0.0));
                continue;
            }
            let (mean, covariance) = dense_conditional(&model, &x, i);
            let a = miss(&x, i).iter().position(|m| *m == j).unwrap();
            close(found.mean[at], mean[a], TOLERANCE, ("mean", i, j));
            close(found.std[at], covariance[(a, a)].sqrt(), TOLERANCE, ("deviation", i, j));
        }
    }
}

#[test]
fn cells_that_do_not_exist_are_errors() {
    let (model, x) = case(1, 4, 2, false);
    let rows = stored(&x);
    let row = model.predict(&rows, &[(0, 0), (12, 1)]).unwrap_err().to_string();
    assert!(row.contains("the row of a cell is 12 (counted from 0) of 12"), "{row}");
    let feature = model.predict(&rows, &[(0, 4)]).unwrap_err().to_string();
    assert!(feature.contains("the feature of a cell is 4 (counted from 0) of 4"), "{feature}");
    assert_eq!(model.predict(&rows, &[]).unwrap().mean.len(), 0);
    let narrow = Observed::from_triples(1, 3, [(0, 0, 1.0)]).unwrap();
    assert!(matches!(model.predict(&narrow, &[(0, 0)]), Err(covary::Error::FeatureCount { .. })));
}

/// Draws of one row: mean and covariance within 5 standard errors of the dense conditional.
#[test]
fn draws_have_the_moments_of_the_conditional() {
    let n = 20_000;
    for (seed, diagonal) in [(3, false), (4, true)] {
        let (model, x) = case(seed, 5, 3, diagonal);
        let draws = model.draw_missing(&x, 0..n, 8).unwrap();
        for i in 0..x.nrows() {
            let holes = miss(&x, i);
            let drawn = Mat::from_fn(n, holes.len(), |d, a| draws[d][(i, holes[a])]);
            let (mean, covariance) = dense_conditional(&model, &x, i);
            let (found, spread) = mean_and_covariance(&drawn, None);
            let c = &covariance;
            for a in 0..holes.len() {
                close(found[a], mean[a], 5.0 * (c[(a, a)] / n as f64).sqrt(), ("mean", i, a));
                for b in 0..holes.len() {
                    let error = ((c[(a, a)] * c[(b, b)] + c[(a, b)].powi(2)) / n as f64).sqrt();
                    close(spread[(a, b)], c[(a, b)], 5.0 * error, ("covariance", i, a, b));
                }
            }
            let known = have(&x, i);
            assert!(
                draws[..9].iter().all(|d| known.iter().all(|&j| d[(i, j)].to_bits() == x[(i, j)].to_bits()))
            );
        }
    }
}

/// Rows in chunks of a given size.
struct Cut<'a> {
    x: &'a Mat<f64>,
    rows: usize,
}

impl RowSource for Cut<'_> {
    fn n_features(&self) -> usize {
        self.x.ncols()
    }
    fn n_chunks(&self) -> usize {
        self.x.nrows().div_ceil(self.rows)
    }
    fn chunk(&self, index: usize) -> covary::Result<Chunk<'_>> {
        let start = index * self.rows;
        let len = self.rows.min(self.x.nrows() - start);
        Ok(Chunk::new(start, Cells::F64(Block::View(self.x.subrows(start, len)))))
    }
}

/// Many rows with holes of their own; some patterns come again and again.
fn many_rows(seed: u64, n: usize, p: usize, q: usize, noise: f64) -> (LinearGaussian, Mat<f64>) {
    let mut rng = Rng(seed);
    let mean = (0..p).map(|_| 3.0 * rng.normal()).collect();
    let model = LinearGaussian::new(mean, normal_matrix(p, q, &mut rng), Noise::Isotropic(noise)).unwrap();
    let mut x = model.sample(n, seed);
    for i in 0..n {
        for j in 0..p {
            let hidden = if i % 3 == 0 { j % 2 == 0 } else { rng.uniform() < 0.3 };
            x[(i, j)] = if hidden { f64::NAN } else { x[(i, j)] };
        }
    }
    (model, x)
}

#[test]
fn draws_depend_on_seed_row_and_draw_alone() {
    for noise in [0.4, 0.0] {
        let (model, x) = many_rows(5, 300, 7, 3, noise);
        let bits = |rows: Rows<'_>, draws: std::ops::Range<usize>, seed: u64| {
            model.draw_missing(rows, draws, seed).unwrap().iter().map(matrix_bits).collect::<Vec<_>>()
        };
        let all = bits((&x).into(), 0..5, 1);
        for rows in [1, 7, 64, 299] {
            assert_eq!(all, bits((&Cut { x: &x, rows }).into(), 0..5, 1), "chunks of {rows} rows");
        }
        assert_eq!(all, bits((&stored(&x)).into(), 0..5, 1), "only the cells that were seen");
        assert_eq!(all[2..4], bits((&x).into(), 2..4, 1), "some of the draws");
        assert!(bits((&x).into(), 3..3, 1).is_empty());
        assert_ne!(all, bits((&x).into(), 0..5, 2), "another seed");
        assert_ne!(all[0], all[1]);
        let one = rayon_threads(1, || bits((&x).into(), 0..5, 1));
        assert_eq!(all, one, "one thread");
    }
}

fn rayon_threads<R: Send>(n: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(f)
}

/// Any kind of model answers by its density.
#[test]
fn every_model_fills_holes() {
    let (_, x) = case(9, 3, 1, false);
    let u = Mat::from_fn(3, 1, |i, _| [0.6, 0.8, 0.0][i]);
    let pca = PrincipalComponents::new(vec![1.0; 3], u, vec![2.0], 0.5).unwrap();
    let (gaussian, model) = (pca.gaussian().unwrap(), Model::from(pca));
    assert_eq!(matrix_bits(&model.impute(&x).unwrap()), matrix_bits(&gaussian.impute(&x).unwrap()));
    let std = model.impute_with_std(&x).unwrap().std;
    assert_eq!(matrix_bits(&std), matrix_bits(&gaussian.impute_with_std(&x).unwrap().std));
    let draw = model.draw_missing(&x, 4..5, 2).unwrap();
    assert_eq!(matrix_bits(&draw[0]), matrix_bits(&gaussian.draw_missing(&x, 4..5, 2).unwrap()[0]));
    let cells = [(4, 2), (0, 1)];
    let rows = stored(&x);
    assert_eq!(model.predict(&rows, &cells).unwrap(), gaussian.predict(&rows, &cells).unwrap());
}
