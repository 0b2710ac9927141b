//! Rows with holes: imputation, draws and predictions against the conditional of a dense covariance.

use std::sync::Arc;

use crate::common::*;
use covary::data::{Block, Cells, Observed, Rows, Table};
use covary::linalg::Mat;
use covary::model::{AnyModel, LinearGaussian, Noise, PrincipalComponents, Reconstruction};
use proptest::prelude::*;
use serde_json::Value;

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
    let (c, mu) = (dense_covariance(model), model.mean());
    let (have, miss) = (have(x, i), miss(x, i));
    let part = Dense::new(
        have.iter().map(|&j| mu[j]).collect(),
        Mat::from_fn(have.len(), have.len(), |a, b| c[(have[a], have[b])]),
    );
    let d: Vec<f64> = have.iter().map(|&j| x[(i, j)] - mu[j]).collect();
    let cross = |m: usize| have.iter().map(|&o| c[(m, o)]).collect::<Vec<_>>();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mean = miss.iter().map(|&m| mu[m] + dot(&cross(m), &part.solve(&d))).collect();
    let explained = |m: usize, l: usize| dot(&cross(m), &part.solve(&cross(l)));
    let covariance =
        Mat::from_fn(miss.len(), miss.len(), |a, b| c[(miss[a], miss[b])] - explained(miss[a], miss[b]));
    (mean, covariance)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn imputation_is_the_dense_conditional(seed: u64, p in 1usize..9, q in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, q.min(p), diagonal);
        let lists = stored(&x);
        for rows in [Rows::from(&x), Rows::from(&lists)] {
            let filled = model.impute_with_std(&rows).unwrap();
            assert_eq!(matrix_bits(&filled.cells), matrix_bits(&model.impute(&rows).unwrap()));
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
    }

    /// Single precision is read as it is: the same bits as its cells in double precision.
    #[test]
    fn single_precision_is_the_same_question(seed: u64, p in 1usize..9, q in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, q.min(p), diagonal);
        let narrow = narrowed(&x);
        let wide = widened(&narrow);
        assert_eq!(bits(&model.log_density(&narrow).unwrap()), bits(&model.log_density(&wide).unwrap()));
        let both = [model.impute_with_std(&narrow).unwrap(), model.impute_with_std(&wide).unwrap()];
        assert_eq!(matrix_bits(&both[0].cells), matrix_bits(&both[1].cells));
        assert_eq!(matrix_bits(&both[0].std), matrix_bits(&both[1].std));
        let draws = [model.draw_missing(&narrow, 0..1, 0).unwrap(), model.draw_missing(&wide, 0..1, 0).unwrap()];
        assert_eq!(matrix_bits(&draws[0][0]), matrix_bits(&draws[1][0]));
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
        check_draws(&model, &x, n, 8);
    }
}

/// Draws of the row i: mean and covariance within 5 standard errors of the dense conditional (and 1e-5 of rounding,
/// which is all the spread there is where nearly nothing is left to chance).
fn check_draws(model: &LinearGaussian, x: &Mat<f64>, n: usize, seed: u64) {
    let draws = model.draw_missing(x, 0..n, seed).unwrap();
    for i in 0..x.nrows() {
        let holes = miss(x, i);
        let drawn = Mat::from_fn(n, holes.len(), |d, a| draws[d][(i, holes[a])]);
        let (mean, c) = dense_conditional(model, x, i);
        let (found, spread) = mean_and_covariance(&drawn, None);
        for a in 0..holes.len() {
            close(found[a], mean[a], 5.0 * (c[(a, a)] / n as f64).sqrt() + 1e-5, ("mean", i, a));
            for b in 0..holes.len() {
                let error = ((c[(a, a)] * c[(b, b)] + c[(a, b)].powi(2)) / n as f64).sqrt();
                close(spread[(a, b)], c[(a, b)], 5.0 * error + 1e-5, ("covariance", i, a, b));
            }
        }
        let known = have(x, i);
        let kept = |d: &Mat<f64>| known.iter().all(|&j| d[(i, j)].to_bits() == x[(i, j)].to_bits());
        assert!(draws.iter().all(kept), "observed cells stay");
    }
}

/// Fewer cells than latent variables, and little noise or none: the latent variables keep a free direction.
#[test]
fn draws_keep_what_few_cells_leave_free() {
    for noise in [1e-7, 0.0] {
        let mut rng = Rng(21);
        let w = normal_matrix(5, 3, &mut rng);
        let model = LinearGaussian::new(vec![1.0; 5], w, Noise::Isotropic(noise)).unwrap();
        let x = Mat::from_fn(4, 5, |i, j| if j < i.min(2) { 0.7 + j as f64 } else { f64::NAN });
        check_draws(&model, &x, 20_000, 5);
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
    let (gaussian, model) = (pca.gaussian().clone(), Arc::new(pca) as AnyModel);
    let (model, source) = (model.imputer().unwrap(), table(&x));
    assert_eq!(matrix_bits(&model.impute(&source).unwrap()), matrix_bits(&gaussian.impute(&x).unwrap()));
    let std = model.impute_with_std(&source).unwrap().std;
    assert_eq!(matrix_bits(&std), matrix_bits(&gaussian.impute_with_std(&x).unwrap().std));
    let draw = model.draw_missing(&source, 4..5, 2).unwrap();
    assert_eq!(matrix_bits(&draw[0]), matrix_bits(&gaussian.draw_missing(&x, 4..5, 2).unwrap()[0]));
    let cells = [(4, 2), (0, 1)];
    let rows = stored(&x);
    assert_eq!(model.predict(&rows, &cells).unwrap(), gaussian.predict(&rows, &cells).unwrap());
}

/// Every question about many rows, most with holes of their own, some with the same: from a table, from a list of
/// cells and in chunks of any size the answers are the same.
#[test]
fn sources_and_chunks_agree() {
    for noise in [0.4, 0.0] {
        let (model, x) = many_rows(15, 500, 9, 3, noise);
        let lists = stored(&x);
        let (small, odd) = (Cut { x: &x, rows: 1 }, Cut { x: &x, rows: 131 });
        let whole = answers(&model, &(&x).into(), noise > 0.0);
        for rows in [Rows::from(&lists), Rows::from(&small), Rows::from(&odd)] {
            let part = answers(&model, &rows, noise > 0.0);
            for (k, (a, b)) in whole.iter().zip(&part).enumerate() {
                close_matrix(a, b, 1e-9, ("answer", k, noise));
            }
        }
    }
}

fn answers(model: &LinearGaussian, rows: &Rows<'_>, density: bool) -> Vec<Mat<f64>> {
    let column = |v: &[f64]| Mat::from_fn(v.len(), 1, |i, _| v[i]);
    let posterior = model.posterior(rows).unwrap();
    let q = model.n_latent();
    let n = posterior.mean.nrows();
    let covariances = Mat::from_fn(n, q * q, |i, k| posterior.covariance.of(i)[(k % q, k / q)]);
    let filled = model.impute_with_std(rows).unwrap();
    let (t2, spe) = model.t2_spe(rows).unwrap();
    let mut all = vec![posterior.mean, covariances, filled.cells, filled.std, column(&t2), column(&spe)];
    all.push(model.reconstruct(rows, Reconstruction::Orthogonal).unwrap());
    all.push(model.reconstruct(rows, Reconstruction::Posterior).unwrap());
    if density {
        all.push(column(&model.log_density(rows).unwrap()));
        all.push(column(&model.outliers(rows).unwrap().p_value));
    }
    all
}

/// More features than a word has bits, more rows than a block: against the dense marginal normal.
#[test]
fn wide_rows_with_holes_of_their_own() {
    let mut rng = Rng(31);
    for diagonal in [false, true] {
        let model = random_model(70, 6, diagonal, &mut rng);
        let mut x = model.sample(300, 2);
        for i in 0..300 {
            (0..70).filter(|_| rng.uniform() < 0.3).for_each(|j| x[(i, j)] = f64::NAN);
        }
        let dense = Dense::of(&model);
        let lists = stored(&x);
        for rows in [Rows::from(&x), Rows::from(&lists)] {
            let density = model.log_density(&rows).unwrap();
            let filled = model.impute_with_std(&rows).unwrap();
            for i in (0..300).step_by(7) {
                let have = have(&x, i);
                let cells: Vec<f64> = have.iter().map(|&j| x[(i, j)]).collect();
                let expected = dense.marginal(&have).log_density(&cells);
                close(density[i], expected, TOLERANCE * expected.abs(), ("density", i));
                let (mean, covariance) = dense_conditional(&model, &x, i);
                for (a, j) in miss(&x, i).into_iter().enumerate() {
                    close(filled.cells[(i, j)], mean[a], TOLERANCE, ("mean", i, j));
                    close(filled.std[(i, j)], covariance[(a, a)].sqrt(), TOLERANCE, ("deviation", i, j));
                }
            }
        }
    }
}

/// Without noise, rows of the model's plane are known wholly from q cells; fewer leave what the dense conditional says.
#[test]
fn no_noise() {
    let (p, q) = (7, 3);
    let mut rng = Rng(41);
    let model =
        LinearGaussian::new(vec![2.0; p], normal_matrix(p, q, &mut rng), Noise::Isotropic(0.0)).unwrap();
    let truth = model.sample(40, 1);
    let kept = |i: usize| i % p;
    let x = Mat::from_fn(40, p, |i, j| if (j + i / p) % p < kept(i) { truth[(i, j)] } else { f64::NAN });
    let filled = model.impute_with_std(&x).unwrap();
    let cells: Vec<(usize, usize)> = (0..40).flat_map(|i| (0..p).map(move |j| (i, j))).collect();
    let predicted = model.predict(&stored(&x), &cells).unwrap();
    for (at, &(i, j)) in cells.iter().enumerate() {
        close(predicted.mean[at], filled.cells[(i, j)], 1e-9, ("prediction", i, j));
        close(predicted.std[at], filled.std[(i, j)], 1e-7, ("its deviation", i, j));
        if kept(i) >= q {
            close(filled.cells[(i, j)], truth[(i, j)], 1e-7, ("known", i, j));
            close(filled.std[(i, j)], 0.0, 1e-7, ("for sure", i, j));
        } else if x[(i, j)].is_nan() {
            let (mean, covariance) = dense_conditional(&model, &x, i);
            let a = miss(&x, i).iter().position(|m| *m == j).unwrap();
            close(filled.cells[(i, j)], mean[a], 1e-8, ("mean", i, j));
            close(filled.std[(i, j)].powi(2), covariance[(a, a)], 1e-8, ("variance", i, j));
        }
    }
}

/// Two-sided 95 % intervals hold 95 % of the hidden cells: the model that made them is the model that is asked. Of
/// 20 000 cells the share has a standard error of 0.0015.
#[test]
fn intervals_cover_what_they_say() {
    let z = 1.959_963_984_540_054;
    for q in [1, 3, 8] {
        for noise in [0.05, 1.0, 6.0] {
            let mut rng = Rng(50 + q as u64);
            let model =
                LinearGaussian::new(vec![1.0; 20], normal_matrix(20, q, &mut rng), Noise::Isotropic(noise))
                    .unwrap();
            let truth = model.sample(4000, 7);
            let mut x = truth.clone();
            (0..4000).for_each(|i| {
                (0..20).filter(|_| rng.uniform() < 0.25).for_each(|j| x[(i, j)] = f64::NAN);
            });
            let filled = model.impute_with_std(&x).unwrap();
            let (mut inside, mut holes) = (0.0, 0.0);
            for i in 0..4000 {
                for j in miss(&x, i) {
                    holes += 1.0;
                    let error = (truth[(i, j)] - filled.cells[(i, j)]).abs();
                    inside += f64::from(u8::from(error <= z * filled.std[(i, j)]));
                }
            }
            let share = inside / holes;
            assert!(holes > 19_000.0 && (0.94..=0.96).contains(&share), "q {q}, noise {noise}: {share}");
        }
    }
}

/// An infinite cell among holes is named, whatever the question.
#[test]
fn an_infinite_cell_among_holes_is_named() {
    let (model, mut x) = many_rows(61, 200, 5, 2, 0.3);
    x[(150, 3)] = f64::NEG_INFINITY;
    x[(150, 2)] = f64::NAN;
    let names = "abcde".chars().map(String::from).collect();
    let rows = Table::new(Cells::F64(Block::View(x.as_ref()))).with_names(names).unwrap();
    let errors = [
        model.impute(&rows).unwrap_err(),
        model.impute_with_std(&rows).map(|_| ()).unwrap_err(),
        model.draw_missing(&rows, 0..1, 0).map(|_| ()).unwrap_err(),
        model.log_density(&rows).map(|_| ()).unwrap_err(),
        model.posterior(&rows).map(|_| ()).unwrap_err(),
        model.outliers(&rows).map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("-inf") && text.contains("row 150, column 'd'"), "{text}");
    }
}

/// SciPy's multivariate normal, row by row, at the parameters in the file.
#[test]
fn scipy_row_by_row() {
    let Some(file) = reference("missing_fixed.json") else { return };
    for entry in file["results"].as_array().unwrap() {
        let name = entry["file"].as_str().unwrap();
        let Some(csv) = read_csv(name) else { continue };
        let wanted = entry["columns"].as_str().unwrap();
        let listed = wanted.split(' ').count() > 2 || !wanted.ends_with("columns");
        let x = match (name, listed) {
            ("iris", _) => data_set("iris").unwrap(),
            (_, true) => csv.columns(|c| wanted.split(' ').any(|w| w == c)),
            (_, false) => csv.columns(|_| true),
        };
        let x = if entry["scale"] == "none" { x } else { scaled(&x) };
        assert_eq!((x.nrows() as u64, x.ncols() as u64), (whole(&entry["N"]), whole(&entry["d"])), "{name}");
        let w = matrix(&entry["W"]);
        let noise = [Noise::Isotropic(number(&entry["sigma2"])), Noise::Diagonal(vector(&entry["psi"]))];
        for (kind, noise) in ["ppca", "fa"].into_iter().zip(noise) {
            let model = LinearGaussian::new(vector(&entry["mu"]), w.clone(), noise).unwrap();
            scipy_one(&model, &x, &entry[kind], (name, kind, w.ncols()));
        }
    }
}

fn scipy_one(model: &LinearGaussian, x: &Mat<f64>, expected: &Value, what: (&str, &str, usize)) {
    let density = model.log_density(x).unwrap();
    relative(density.iter().sum(), number(&expected["loglik_total"]), 1e-11, (what, "total"));
    for (i, v) in vector(&expected["loglik_rows"]).into_iter().enumerate() {
        relative(density[i], v, 1e-10, (what, "row", i));
    }
    let posterior = model.posterior(x).unwrap();
    for (i, row) in list(&expected["latent_mean_first_rows"]).iter().enumerate() {
        close_all(&crate::common::row(&posterior.mean, i), &vector(row), 1e-10, (what, "latent mean", i));
    }
    for (i, c) in list(&expected["latent_cov_first_rows"]).iter().enumerate() {
        close_matrix(&posterior.covariance.of(i).to_owned(), &matrix(c), 1e-10, (what, "latent", i));
    }
    let traces = |i: usize| (0..model.n_latent()).map(|k| posterior.covariance.of(i)[(k, k)]).sum::<f64>();
    let trace: f64 = (0..x.nrows()).map(traces).sum();
    relative(trace, number(&expected["trace_sum_latent_cov"]), 1e-10, (what, "traces"));
    let filled = model.impute_with_std(x).unwrap();
    for cell in list(&expected["missing_cells_first40"]) {
        let at = (whole(&cell["row"]) as usize, whole(&cell["col"]) as usize);
        relative(filled.cells[at], number(&cell["mean"]), 1e-9, (what, "mean", at));
        let variance = filled.std[at].powi(2);
        relative(variance, number(&cell["variance_including_noise"]), 1e-10, (what, "variance", at));
    }
    let all: f64 = (0..x.nrows())
        .flat_map(|i| miss(x, i).into_iter().map(move |j| (i, j)))
        .map(|at| filled.std[at].powi(2))
        .sum();
    relative(all, number(&expected["missing_cells_sum_of_variances"]), 1e-10, (what, "variances"));
}

/// Columns of mean 0 and unit variance over the observed cells.
fn scaled(x: &Mat<f64>) -> Mat<f64> {
    let mut out = x.clone();
    for j in 0..x.ncols() {
        let seen: Vec<f64> = (0..x.nrows()).map(|i| x[(i, j)]).filter(|v| !v.is_nan()).collect();
        let n = seen.len() as f64;
        let mean = seen.iter().sum::<f64>() / n;
        let deviation = (seen.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        (0..x.nrows()).for_each(|i| out[(i, j)] = (x[(i, j)] - mean) / deviation);
    }
    out
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn vector(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

fn matrix(value: &Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = list(value).iter().map(vector).collect();
    Mat::from_fn(rows.len(), rows.first().map_or(0, Vec::len), |i, j| rows[i][j])
}
