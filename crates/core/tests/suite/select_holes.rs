//! Choosing the number of components by hidden cells: with holes, of observed cells only, and of complete rows.

use std::collections::HashMap;

use crate::common::holes::{observed, observed_log_likelihood, punched, rows_with_holes};
use crate::common::*;
use covary::data::Rows;
use covary::linalg::Mat;
use covary::select::{CellSplit, CellValidation, Select, Selection};
use covary::{Control, Error, Ppca};

fn chosen(selection: &Selection, method: &str) -> Option<usize> {
    selection.choice(method).map(|c| c.components)
}

/// Which fold hides each cell.
fn dealt(x: &Mat<f64>, splits: &[CellSplit]) -> HashMap<(usize, usize), usize> {
    let mut out = HashMap::new();
    for (k, split) in splits.iter().enumerate() {
        for cell in split.part(&chunk_of(x.as_ref(), 0)).unwrap().1 {
            assert_eq!(cell.value.to_bits(), x[(cell.row, cell.feature)].to_bits());
            assert_eq!(out.insert((cell.row, cell.feature), k), None, "hidden twice");
        }
    }
    out
}

/// What is expected of each missing cell of a row and its variance: conditional normals, by dense linear algebra.
fn conditional(dense: &Dense, row: &[f64], j: usize) -> (f64, f64) {
    let seen: Vec<usize> = (0..row.len()).filter(|k| !row[*k].is_nan()).collect();
    let across: Vec<f64> = seen.iter().map(|k| dense.covariance[(*k, j)]).collect();
    let weights = dense.marginal(&seen).solve(&across);
    let each = || weights.iter().zip(&seen);
    let mean = dense.mean[j] + each().map(|(w, k)| w * (row[*k] - dense.mean[*k])).sum::<f64>();
    let explained: f64 = weights.iter().zip(&across).map(|(w, c)| w * c).sum();
    (mean, dense.covariance[(j, j)] - explained)
}

#[test]
fn every_observed_cell_is_hidden_once() {
    let x = rows_with_holes(60, 5, 2, 0.3, 1, false);
    let splits = CellSplit::folds(&table(&x), 4, 7, &Control::new()).unwrap();
    let dealt = dealt(&x, &splits);
    let there = (0..60).flat_map(|i| (0..5).map(move |j| (i, j))).filter(|at| !x[*at].is_nan());
    assert_eq!(there.clone().count(), splits[0].observed());
    assert!(there.clone().all(|at| dealt.contains_key(&at)));
    // Each takes its share: 4 standard deviations.
    let (n, spread) = (dealt.len() as f64 / 4.0, 4.0 * (dealt.len() as f64 * 0.1875).sqrt());
    (0..4).for_each(|k| close(dealt.values().filter(|f| **f == k).count() as f64, n, spread, k));
    // What is left of each feature has this mean.
    for (k, split) in splits.iter().enumerate() {
        for j in 0..5 {
            let left: Vec<f64> =
                (0..60).filter(|i| dealt.get(&(*i, j)).is_some_and(|f| *f != k)).map(|i| x[(i, j)]).collect();
            close(split.means()[j], left.iter().sum::<f64>() / left.len() as f64, 1e-13, (k, j));
        }
    }
}

#[test]
fn the_last_cells_of_a_feature_stay() {
    let mut x = rows_with_holes(30, 4, 1, 0.0, 2, false);
    (1..30).for_each(|i| x[(i, 2)] = f64::NAN);
    let dealt = dealt(&x, &CellSplit::folds(&table(&x), 3, 0, &Control::new()).unwrap());
    assert!(dealt.keys().all(|(_, j)| *j != 2));
    assert_eq!(dealt.len(), 90);
    let half = CellSplit::of_share(&table(&x), 0.5, 0, &Control::new()).unwrap();
    assert!(half.part(&chunk_of(x.as_ref(), 0)).unwrap().1.iter().all(|cell| cell.feature != 2));
    assert!(CellSplit::of_share(&table(&x), 1.0, 0, &Control::new()).is_err());
}

/// Q² and log density of each fold by fits to what is left and dense conditional normals, for rows with and without holes.
#[test]
fn press_by_brute_force() {
    for share in [0.0, 0.15] {
        let x = rows_with_holes(40, 5, 2, share, 3, false);
        let select = Select::new().cells(true).folds(3).max(2).seed(5).tolerance(1e-13);
        let found = select.run(&x).unwrap();
        let splits = CellSplit::folds(&table(&x), 3, 5, &Control::new()).unwrap();
        for q in 0..=2 {
            let folds: Vec<(f64, f64)> = splits.iter().map(|split| brute_force(&x, split, q)).collect();
            let mean = folds.iter().map(|f| f.0).sum::<f64>() / 3.0;
            let error = (folds.iter().map(|f| (f.0 - mean).powi(2)).sum::<f64>() / 6.0).sqrt();
            close(found.table[q].q2.unwrap(), mean, 1e-6, (share, q));
            close(found.table[q].q2_error.unwrap(), error, 1e-6, (share, q, "error"));
            let density = folds.iter().map(|f| f.1).sum::<f64>() / 3.0;
            close(found.table[q].cell_log_density.unwrap(), density, 1e-6, (share, q, "density"));
        }
        assert_eq!(found.table[0].q2, Some(0.0), "by definition");
        assert_eq!(found.holes.is_some(), share > 0.0);
    }
}

fn brute_force(x: &Mat<f64>, split: &CellSplit, q: usize) -> (f64, f64) {
    let (_, hidden) = split.part(&chunk_of(x.as_ref(), 0)).unwrap();
    let mut left = x.clone();
    hidden.iter().for_each(|cell| left[(cell.row, cell.feature)] = f64::NAN);
    let dense = match q {
        0 => without_components(&left),
        _ => Dense::of(&Ppca::new(q).tolerance(1e-13).fit(&left).unwrap().model),
    };
    let (mut press, mut total, mut density) = (0.0, 0.0, 0.0);
    for cell in &hidden {
        let (mean, variance) = conditional(&dense, &row(&left, cell.row), cell.feature);
        let unit = variance_of(x, cell.feature);
        press += (cell.value - mean).powi(2) / unit;
        total += (cell.value - split.means()[cell.feature]).powi(2) / unit;
        density -= 0.5 * ((std::f64::consts::TAU * variance).ln() + (cell.value - mean).powi(2) / variance);
    }
    (1.0 - press / total, density / hidden.len() as f64)
}

/// Variance of the cells of a feature that are there.
fn variance_of(x: &Mat<f64>, j: usize) -> f64 {
    let cells: Vec<f64> = x.col(j).iter().copied().filter(|v| !v.is_nan()).collect();
    let mean = cells.iter().sum::<f64>() / cells.len() as f64;
    cells.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / cells.len() as f64
}

/// Means of what is there, and one variance.
fn without_components(x: &Mat<f64>) -> Dense {
    let column = |j: usize| (0..x.nrows()).map(move |i| x[(i, j)]).filter(|v| !v.is_nan());
    let mean = |j: usize| column(j).sum::<f64>() / column(j).count() as f64;
    let squares: f64 = (0..x.ncols()).flat_map(|j| column(j).map(move |v| (v - mean(j)).powi(2))).sum();
    let variance = squares / (0..x.ncols()).map(|j| column(j).count()).sum::<usize>() as f64;
    let diagonal = Mat::from_fn(x.ncols(), x.ncols(), |i, j| if i == j { variance } else { 0.0 });
    Dense::new((0..x.ncols()).map(mean).collect(), diagonal)
}

#[test]
fn likelihoods_are_those_of_fits() {
    let x = rows_with_holes(150, 6, 2, 0.2, 4, false);
    let found = Select::new().max(3).tolerance(1e-12).run(&x).unwrap();
    assert!(found.converged);
    for line in &found.table {
        let q = line.components;
        let (log_likelihood, noise) = match q {
            0 => {
                let dense = without_components(&x);
                let of = |i: usize| {
                    let seen: Vec<usize> = (0..6).filter(|j| !x[(i, *j)].is_nan()).collect();
                    dense.marginal(&seen).log_density(&seen.iter().map(|j| x[(i, *j)]).collect::<Vec<_>>())
                };
                ((0..150).map(of).sum(), dense.covariance[(0, 0)])
            }
            _ => {
                let fit = Ppca::new(q).tolerance(1e-12).fit(&x).unwrap();
                let total: f64 = fit.spectrum().unwrap().explained_ratio().iter().sum();
                close(line.explained, total, 1e-6, (q, "explained"));
                relative(
                    line.eigenvalue.unwrap(),
                    fit.spectrum().unwrap().eigenvalues()[q - 1],
                    1e-5,
                    (q, "λ"),
                );
                (observed_log_likelihood(&fit.model, &x, None), fit.spectrum().unwrap().noise_variance())
            }
        };
        relative(line.log_likelihood.unwrap(), log_likelihood, 1e-10, (q, "likelihood"));
        relative(line.noise_variance, noise, 1e-6, (q, "noise"));
        let k = (6 * q + 7 - q * q.saturating_sub(1) / 2) as f64;
        relative(line.aic.unwrap(), 2.0 * k - 2.0 * log_likelihood, 1e-9, (q, "aic"));
        relative(line.bic.unwrap(), k * 150f64.ln() - 2.0 * log_likelihood, 1e-9, (q, "bic"));
    }
}

#[test]
fn three_of_ten_with_holes() {
    for seed in 0..4 {
        let deviations = [5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        let mut rng = Rng(seed);
        let x = rows_with_deviations(300, &deviations, 0.0, &mut rng);
        let x = punched(&x, 0.2, &mut rng);
        let found = Select::new().max(6).run(&x).unwrap();
        assert_eq!((chosen(&found, "cells"), chosen(&found, "bic")), (Some(3), Some(3)), "seed {seed}");
        assert_eq!(found.recommended, 3);
        assert!(found.reason.starts_with("cells: predicts hidden cells"), "{}", found.reason);
        assert!(found.absent.iter().any(|a| a.method == "evidence" && a.reason.contains("complete rows")));
        let holes = found.holes.as_ref().unwrap();
        assert_eq!(holes.observed + holes.missing, 3000);
    }
}

/// Rows made from a model of two components, hidden in five folds. Fewer are never chosen. More are when the best
/// number of components is larger and beats two by more than a standard error: where nothing is to be gained that is a
/// t statistic of four degrees of freedom above 1, a chance of 0.19. More components predict worse than two, so it is
/// less than that.
#[test]
fn hidden_cells_of_complete_rows_find_the_truth_in_most_data_sets() {
    let (trials, chance) = (40_u64, 0.19_f64);
    let choice = |seed: u64| {
        let x = rows_with_deviations(200, &[4.0, 3.0, 1.0, 1.0, 1.0, 1.0], 0.0, &mut Rng(500 + seed));
        chosen(&Select::new().cells(true).folds(5).seed(seed).run(&x).unwrap(), "cells").unwrap()
    };
    let choices: Vec<usize> = (0..trials).map(choice).collect();
    assert!(choices.iter().all(|q| *q >= 2), "{choices:?}");
    let more = choices.iter().filter(|q| **q > 2).count() as f64;
    let (mean, deviation) = (trials as f64 * chance, (trials as f64 * chance * (1.0 - chance)).sqrt());
    assert!(more < mean + 3.0 * deviation, "{more} of {trials}: {choices:?}");
}

#[test]
fn a_limit_that_is_reached_is_said() {
    let x = rows_with_deviations(300, &[5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0], 0.0, &mut Rng(13));
    let found = Select::new().cells(true).max(2).run(&x).unwrap();
    let reason = &found.choice("cells").unwrap().reason;
    assert_eq!(reason, "predicts hidden cells best, and more were not looked at");
    let found = Select::new().cells(true).run(&x).unwrap();
    assert_eq!(found.choice("cells").unwrap().components, 3);
    assert!(!found.choice("cells").unwrap().reason.contains("not looked at"));
}

#[test]
fn noise_alone_predicts_nothing() {
    let mut rng = Rng(8);
    let x = punched(&normal_matrix(300, 6, &mut rng), 0.1, &mut rng);
    let found = Select::new().run(&x).unwrap();
    assert_eq!((chosen(&found, "cells"), chosen(&found, "bic")), (Some(0), Some(0)));
    assert_eq!(found.recommended, 1, "a fit needs one");
    assert!(found.table.len() <= 5, "the search ends when nothing is predicted better");
}

/// A grid of other chunks, cells alone, and other numbers of threads.
#[test]
fn the_same_however_rows_come() {
    let x = rows_with_holes(700, 6, 2, 0.3, 6, false);
    let select = Select::new().max(3).tolerance(1e-10);
    let found = select.run(&x).unwrap();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(one.install(|| select.run(&x).unwrap()), found);
    assert_eq!(three.install(|| select.run(&x).unwrap()), found);
    let cut = Cut { x: &x, rows: 37 };
    let cells = observed(&x);
    for (name, other) in
        [("chunks", select.run(&cut).unwrap()), ("cells", select.run(Rows::Source(&cells)).unwrap())]
    {
        assert_eq!(other.table.len(), found.table.len(), "{name}");
        for (a, b) in other.table.iter().zip(&found.table) {
            close(a.q2.unwrap(), b.q2.unwrap(), 1e-5, (name, a.components, "q2"));
            close(a.q2_error.unwrap(), b.q2_error.unwrap(), 1e-5, (name, a.components, "error"));
            relative(a.bic.unwrap(), b.bic.unwrap(), 1e-8, (name, a.components, "bic"));
        }
        assert_eq!((&other.choices, other.recommended), (&found.choices, found.recommended), "{name}");
    }
}

/// Weights that sum to 1 are shares: criteria are those of rows without weights.
#[test]
fn shares_as_weights_choose_as_rows_do() {
    let x = rows_with_holes(80, 5, 2, 0.1, 3, false);
    let select = Select::new().max(3).folds(3);
    let plain = select.run(&x).unwrap();
    let shares = select.run(table(&x).with_weights(vec![1.0 / 80.0; 80]).unwrap()).unwrap();
    assert_eq!(shares.recommended, plain.recommended);
    for (a, b) in shares.table.iter().zip(&plain.table) {
        relative(a.bic.unwrap(), b.bic.unwrap(), 1e-6, "bic");
        relative(a.aic.unwrap(), b.aic.unwrap(), 1e-6, "aic");
    }
}

/// Rows of no weight are no rows, whatever they hold; rows without a cell change no criterion.
#[test]
fn rows_that_do_not_count() {
    let x = rows_with_holes(90, 4, 1, 0.2, 7, false);
    let select = Select::new().max(2).tolerance(1e-11);
    let found = select.run(&x).unwrap();
    let more = Mat::from_fn(93, 4, |i, j| if i < 90 { x[(i, j)] } else { f64::INFINITY });
    let weights: Vec<f64> = (0..93).map(|i| if i < 90 { 1.0 } else { 0.0 }).collect();
    let weighted = select.run(table(&more).with_weights(weights.clone()).unwrap()).unwrap();
    let empty = Mat::from_fn(93, 4, |i, j| if i < 90 { x[(i, j)] } else { f64::NAN });
    let empty = select.run(&empty).unwrap();
    let cells = observed(&Mat::from_fn(93, 4, |i, j| if i < 90 { x[(i, j)] } else { 1e3 }));
    let cells = cells.with_weights(weights).unwrap();
    let cells = select.run(Rows::Source(&cells)).unwrap();
    for (name, other) in [("weighted", weighted), ("empty", empty), ("cells", cells)] {
        for (a, b) in other.table.iter().zip(&found.table) {
            close(a.q2.unwrap(), b.q2.unwrap(), 1e-6, (name, a.components, "q2"));
            relative(a.bic.unwrap(), b.bic.unwrap(), 1e-9, (name, a.components, "bic"));
        }
    }
}

#[test]
fn units_and_origins_do_not_matter() {
    let x = rows_with_holes(80, 5, 2, 0.2, 9, false);
    let found = Select::new().max(2).run(&x).unwrap();
    for (scale, origin) in [(1e150, 0.0), (1e-150, 0.0), (1.0, 1e8)] {
        let moved = Mat::from_fn(80, 5, |i, j| x[(i, j)] * scale + origin);
        let other = Select::new().max(2).run(&moved).unwrap();
        for (a, b) in other.table.iter().zip(&found.table) {
            close(a.q2.unwrap(), b.q2.unwrap(), 1e-4, (scale, origin, a.components));
        }
        assert_eq!(chosen(&other, "cells"), chosen(&found, "cells"), "{scale} {origin}");
    }
}

#[test]
fn odd_but_fair_data() {
    // A feature that does not vary, and one that is a copy.
    let mut x = rows_with_holes(60, 5, 2, 0.15, 10, false);
    (0..60).for_each(|i| x[(i, 4)] = if i % 7 == 0 { f64::NAN } else { 3.0 });
    (0..60).for_each(|i| x[(i, 1)] = x[(i, 0)]);
    let found = Select::new().run(&x).unwrap();
    assert!(found.recommended >= 1 && found.recommended < 5);
    // Two features; and so few cells that split some leaves too little.
    let two =
        Mat::from_fn(40, 2, |i, j| if (i, j) == (3, 0) { f64::NAN } else { ((i + 3 * j) as f64).sin() });
    assert_eq!(Select::new().run(&two).unwrap().table.len(), 2);
    let few = Mat::from_fn(4, 2, |i, j| if (i, j) == (3, 0) { f64::NAN } else { ((3 * i + j) as f64).sin() });
    let found = Select::new().run(&few).unwrap();
    assert_eq!((chosen(&found, "cells"), found.recommended), (None, 1));
    assert!(found.absent.iter().any(|a| a.method == "cells" && a.reason.contains("too little is left")));
    // Rows in a plane: no noise is left, and no more components are tried.
    let plane = Mat::from_fn(50, 9, |i, j| {
        if (i + 5 * j) % 11 == 0 { f64::NAN } else { (i as f64 * 0.3).sin() * (j + 1) as f64 }
    });
    let found = Select::new().run(&plane).unwrap();
    assert_eq!((chosen(&found, "cells"), found.recommended), (Some(1), 1));
    close(found.table[1].q2.unwrap(), 1.0, 1e-9, "a plane");
}

/// On these rows a step of the fit of three components once led to a noise of e⁵¹⁷, and out of the range of numbers.
#[test]
fn a_leap_too_far() {
    let mut rng = Rng(1014);
    let x = rows_with_deviations(200, &[5.0, 3.0, 1.0, 1.0, 1.0, 1.0], 0.0, &mut rng);
    let found = Select::new().max(5).run(&punched(&x, 0.15, &mut rng)).unwrap();
    assert_eq!(chosen(&found, "bic"), Some(2));
}

#[test]
fn what_cannot_be_done_is_said() {
    let x = rows_with_holes(30, 3, 1, 0.2, 11, false);
    assert!(Select::new().folds(1).run(&x).unwrap_err().to_string().contains("folds"));
    let mut infinite = x.clone();
    infinite[(4, 1)] = f64::INFINITY;
    assert!(matches!(Select::new().run(&infinite), Err(Error::Infinite { .. })));
    let constant = Mat::from_fn(9, 2, |i, j| if (i, j) == (0, 0) { f64::NAN } else { 1.0 });
    assert!(matches!(Select::new().run(&constant), Err(Error::Constant)));
    let unseen = Mat::from_fn(9, 3, |i, j| if j == 1 { f64::NAN } else { (i * (j + 1)) as f64 });
    let names = ["a", "b", "c"].map(String::from).to_vec();
    let error = Select::new().run(table(&unseen).with_names(names).unwrap()).unwrap_err();
    assert!(error.to_string().contains("'b' was never observed"), "{error}");
    let stop = std::sync::atomic::AtomicBool::new(true);
    let control = Control::new().cancel(&stop);
    assert!(matches!(Select::new().run_with(&x, &control), Err(Error::Interrupted)));
}

/// Validation of complete rows is a fit to rows in which the hidden cells are NaN.
#[test]
fn validation_fits_what_is_not_hidden() {
    let x = rows_with_deviations(200, &[5.0, 3.0, 1.0, 1.0, 1.0], 2.0, &mut Rng(12));
    let source = table(&x);
    let split = CellSplit::of_share(&source, 0.3, 1, &Control::new()).unwrap();
    let validation = CellValidation::new(&source, &split).unwrap();
    assert_eq!(validation.training().n_rows(), Some(200));
    let fit = Ppca::new(1).fit(validation.training()).unwrap();
    let mut left = x.clone();
    let (_, hidden) = split.part(&chunk_of(x.as_ref(), 0)).unwrap();
    hidden.iter().for_each(|cell| left[(cell.row, cell.feature)] = f64::NAN);
    let same = Ppca::new(1).fit(&left).unwrap();
    assert_eq!(matrix_bits(fit.model.loadings()), matrix_bits(same.model.loadings()));
    let marks = validation.score(&fit.model).unwrap();
    let filled = same.model.impute(&left).unwrap();
    let error = |cell: &covary::select::HiddenCell| cell.value - filled[(cell.row, cell.feature)];
    let squares: f64 = hidden.iter().map(|cell| error(cell).powi(2)).sum();
    relative(marks.rmse(), (squares / hidden.len() as f64).sqrt(), 1e-12, "rmse");
    assert_eq!(marks.cells, hidden.len());
    // Predictions are better than means, and intervals cover about what they say.
    assert!(marks.q2() > 0.0 && marks.rmse() < marks.baseline_rmse() && marks.coverage() > 0.8);
}

/// Three components, and beside them a feature of its own that is a thousand million times as large: it takes
/// one component more, and its unit does not decide about the others.
#[test]
fn a_large_feature_does_not_decide_alone() {
    for seed in 0..3 {
        let mut rng = Rng(40 + seed);
        let x = rows_with_deviations(200, &[4.0, 3.0, 2.0, 0.5, 0.5, 0.5, 0.5, 0.5], 0.0, &mut rng);
        let large: Vec<f64> = (0..200).map(|_| 1e9 * rng.normal()).collect();
        let x = Mat::from_fn(200, 9, |i, j| if j < 8 { x[(i, j)] } else { large[i] });
        let holes = punched(&x, 0.1, &mut rng);
        let found = Select::new().max(6).run(&holes).unwrap();
        assert_eq!(chosen(&found, "cells"), Some(4), "{found:?}");
        assert_eq!(Select::new().run(&x).unwrap().recommended, 4, "as rows that are held out say");
    }
}
