//! Fits of autoassociative networks: curves that PCA does not see, missing values, bad input, and how a fit may end.

use std::sync::atomic::{AtomicBool, Ordering};

use covary::algorithm::Stop;
use covary::data::Rows;
use covary::linalg::Mat;
use covary::model::{AutoassociativeNetwork, Encode, Fill, Model, Novelty, Reconstruct, Reconstruction};
use covary::persist::SavedModel;
use covary::{
    Autoencoder, Components, Control, Error, ErrorClass, Event, Fit, Pca, Ppca, Request, Scale, Solver,
};

use crate::common::*;

/// A helix of one and a half turns with noise.
fn helix(n: usize, noise: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    Mat::from_fn(n, 3, |i, j| {
        let t = 9.0 * i as f64 / n as f64 - 4.5;
        [t.cos(), t.sin(), t][j] + noise * rng.normal()
    })
}

/// Mean squared error of reconstructions, by cell.
fn error_of(model: &dyn Reconstruct, x: &Mat<f64>) -> f64 {
    let y = model.reconstruct(&table(x), Reconstruction::Orthogonal).unwrap();
    let cells = (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| (i, j)));
    cells.map(|ij| (x[ij] - y[ij]).powi(2)).sum::<f64>() / (x.nrows() * x.ncols()) as f64
}

/// 1 − Σ(x − x̂)²/Σ(x − mean)².
fn explained(model: &dyn Reconstruct, x: &Mat<f64>) -> f64 {
    let covariance = mean_and_covariance(x, None).1;
    let total: f64 = (0..x.ncols()).map(|j| covariance[(j, j)]).sum();
    1.0 - error_of(model, x) * x.ncols() as f64 / total
}

#[test]
fn a_helix_is_one_latent_variable_and_the_objective_only_falls() {
    let x = helix(600, 0.05, 1);
    let new = helix(300, 0.05, 2);
    let pca = Pca::new(1).fit(&x).unwrap().model;
    for encoder in [true, false] {
        let family = Autoencoder::new(1).encoder(encoder).hidden(12);
        // Searches of each row take longer, and a hundred steps are enough.
        let family = if encoder { family } else { family.max_iterations(120) };
        let Fit { model, report } = family.fit(&x).unwrap();
        assert!(report.trace.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9 * pair[0].abs()));
        let about = report.network().unwrap();
        relative(about.explained_by_pca, explained(&pca, &x), 0.02, "the start is PCA");
        let (seen, unseen) = (explained(&model, &x), explained(&model, &new));
        // The noise is 0.0025 of about 2.6 for each of three features.
        assert!(seen > 0.99 && unseen > 0.985, "{encoder}: {seen} and {unseen}");
        assert!(explained(&pca, &new) < 0.9);
        close(about.explained, seen, 1e-9, "what the report says");
        assert_eq!(about.hidden_error.is_some(), encoder);
        assert!(about.hidden_error.is_none_or(|(before, after)| after < 0.3 * before));
        let z = model.encode(&table(&x)).unwrap();
        // Along the curve: nearly always one way.
        let steps =
            (0..580).filter(|i| (z[(i + 20, 0)] - z[(*i, 0)]) * (z[(599, 0)] - z[(0, 0)]) > 0.0).count();
        assert!(steps > 560, "{steps}");
    }
}

/// helix.csv with one latent variable, complete and with one of three cells blanked in each row; a quarter of the rows and
/// a hundred steps in `make test`.
#[test]
fn soak_the_helix_of_pcamethods() {
    let Some(all) = data_set("helix") else { return };
    let fit = Autoencoder::new(1).fit(&all).unwrap();
    let r2 = explained(&fit.model, &all);
    assert!(r2 >= 0.99, "{r2}");
    let step = soak(4, 1);
    let x = Mat::from_fn(all.nrows() / step, 3, |i, j| all[(step * i, j)]);
    let family = Autoencoder::new(1).hidden(12).max_iterations(soak(120, 500));
    let fit = family.clone().encoder(false).fit(&x).unwrap();
    let noise = fit.model.noise_variance().sqrt();
    let r2 = explained(&fit.model, &x);
    assert!(r2 >= 0.99, "{r2}");
    let mut rng = Rng(6);
    let blanked: Vec<usize> = (0..x.nrows()).map(|_| rng.below(3)).collect();
    let y = Mat::from_fn(x.nrows(), 3, |i, j| if blanked[i] == j { f64::NAN } else { x[(i, j)] });
    let fit = family.fit(&y).unwrap();
    assert!(!fit.report.network().unwrap().encoder && fit.report.plan.reason.contains("missing"));
    let filled = fit.model.impute_with_std(&table(&y)).unwrap();
    let mut errors: Vec<f64> =
        (0..x.nrows()).map(|i| (filled.cells[(i, blanked[i])] - x[(i, blanked[i])]).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    assert!(median < 2.0 * noise, "median {median} of noise {noise}");
}

/// Hidden cells of rows of the model itself are in their 95 % intervals about as often.
#[test]
fn deviations_of_filled_cells_are_right() {
    let x = helix(500, 0.1, 3);
    let mut rng = Rng(9);
    let blanked: Vec<usize> = (0..500).map(|_| rng.below(6)).collect();
    let y = Mat::from_fn(500, 3, |i, j| if blanked[i] == j { f64::NAN } else { x[(i, j)] });
    let family = Autoencoder::new(1).hidden(12).max_iterations(120);
    let model = family.fit(&y).unwrap().model;
    let filled = model.impute_with_std(&table(&y)).unwrap();
    let hidden: Vec<usize> = (0..500).filter(|i| blanked[*i] < 3).collect();
    let inside = |i: &&usize| {
        let j = blanked[**i];
        (filled.cells[(**i, j)] - x[(**i, j)]).abs() <= 1.96 * filled.std[(**i, j)]
    };
    let share = hidden.iter().filter(inside).count() as f64 / hidden.len() as f64;
    // Where a cell leaves two turns possible the mode is one of them: below 95 %, but not far.
    assert!((0.80..=1.0).contains(&share), "{share}");
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let x = helix(3000, 0.05, 4);
    let y = Mat::from_fn(600, 3, |i, j| if (i + j) % 4 == 0 { f64::NAN } else { x[(5 * i, j)] });
    let bytes = |family: Autoencoder, x: &Mat<f64>| {
        SavedModel::new(family.fit(x).unwrap(), None).unwrap().to_bytes().unwrap()
    };
    for (family, x) in [
        (Autoencoder::new(1).hidden(5).max_iterations(8), &x),
        (Autoencoder::new(1).hidden(4).solver(Solver::Adam).max_iterations(3), &x),
        (Autoencoder::new(1).hidden(4).max_iterations(5), &y),
    ] {
        let one = bytes(family.clone().threads(1), x);
        for threads in [2, 5] {
            assert!(one == bytes(family.clone().threads(threads), x), "{threads} threads");
        }
    }
}

#[test]
fn batches_come_near_to_what_all_rows_find() {
    let x = helix(4000, 0.05, 5);
    let fit = Autoencoder::new(1).hidden(12).solver(Solver::Adam).max_iterations(60).fit(&x).unwrap();
    assert_eq!(fit.report.plan.solver, Solver::Adam);
    let (r2, pca) = (explained(&fit.model, &x), explained(&Pca::new(1).fit(&x).unwrap().model, &x));
    assert!(r2 > pca + 0.5 * (1.0 - pca), "{r2} beside {pca}");
}

/// A row far from the curve is new, though it lies near PCA's line.
#[test]
fn rows_off_the_curve_are_outliers() {
    let x = helix(500, 0.05, 7);
    let model = Autoencoder::new(1).fit(&x).unwrap().model;
    let usual = model.novelty(&table(&x)).unwrap();
    let far = model.novelty(Rows::from_slice(&[0.0, 0.0, 1.0], 3).unwrap().source()).unwrap()[0];
    let above = usual.iter().filter(|spe| **spe >= far).count();
    assert!(above == 0, "{above} rows are farther than {far}");
}

#[test]
fn what_is_asked_of_too_little_is_refused() {
    let x = helix(50, 0.1, 1);
    let refused = |family: Autoencoder, x: &Mat<f64>| family.fit(x).map(|_| ()).unwrap_err();
    assert!(matches!(refused(Autoencoder::new(0), &x), Error::Parameter { .. }));
    assert!(matches!(refused(Autoencoder::new(4), &x), Error::Components { possible: 3, .. }));
    let few = x.subrows(0, 3).to_owned();
    assert!(matches!(refused(Autoencoder::new(3), &few), Error::Components { possible: 2, rows: 3, .. }));
    let one = x.subrows(0, 1).to_owned();
    assert!(refused(Autoencoder::new(1), &one).class() == ErrorClass::Data);
    let same = Mat::from_fn(20, 3, |_, j| j as f64);
    assert!(refused(Autoencoder::new(1), &same).class() == ErrorClass::Data, "constant features");
    let mut infinite = x.clone();
    infinite[(7, 1)] = f64::INFINITY;
    let error = refused(Autoencoder::new(1), &infinite);
    assert!(matches!(&error, Error::Infinite { cell, .. } if (cell.row, cell.column) == (7, 1)), "{error}");
    for family in [
        Autoencoder::new(1).hidden(0),
        Autoencoder::new(1).hidden(3).activation(covary::Activation::Linear),
        Autoencoder::new(1).alpha(-1.0),
        Autoencoder::new(1).alpha(f64::NAN),
        Autoencoder::new(1).solver(Solver::Svd),
        Autoencoder::new(1).tolerance(0.0),
        Autoencoder::new(1).max_iterations(0),
        Autoencoder::new(1).memory(1000),
    ] {
        assert!(matches!(refused(family.clone(), &x), Error::Parameter { .. }), "{family:?}");
    }
    // Two rows, written often, vary along one direction only.
    let twice = Mat::from_fn(30, 3, |i, j| ((i % 2) * (j + 1)) as f64);
    assert!(matches!(refused(Autoencoder::new(2), &twice), Error::Components { .. }));
}

/// As many latent variables as features lose nothing: the network is PCA, rows come back as they are, and a missing cell is
/// what PPCA with p components expects.
#[test]
fn as_many_latent_variables_as_features_give_rows_back() {
    let x = helix(150, 0.1, 1);
    for x in [x.clone(), x.subcols(0, 1).to_owned()] {
        let p = x.ncols();
        for components in [Components::Count(p), Components::All] {
            let Fit { model, report } = Autoencoder::new(components).fit(&x).unwrap();
            assert_eq!((model.n_latent(), report.stop), (p, Stop::Converged));
            close(report.network().unwrap().explained, 1.0, 1e-12, "explained");
            close(report.network().unwrap().noise_variance, 0.0, 1e-12, "noise");
            let rebuilt = model.reconstruct(&table(&x), Reconstruction::Orthogonal).unwrap();
            close_matrix(&rebuilt, &x, 1e-9, "rebuilt");
            SavedModel::new(Fit { model, report }, None).unwrap().to_bytes().unwrap();
        }
    }
    let model = Autoencoder::new(3).fit(&x).unwrap().model;
    let holes = Mat::from_fn(20, 3, |i, j| if j == i % 3 { f64::NAN } else { x[(i, j)] });
    let filled = model.impute_with_std(&table(&holes)).unwrap();
    let plane = Ppca::new(3).fit(&x).unwrap().model.impute_with_std(&holes).unwrap();
    close_matrix(&filled.cells, &plane.cells, 1e-3, "filled");
    close_matrix(&filled.std, &plane.std, 1e-3, "deviations");
    // Without an encoder the rows are searched for, under a noise that is not 0.
    let family = Autoencoder::new(3).encoder(false).max_iterations(5);
    assert!(explained(&family.fit(&x).unwrap().model, &x) > 0.999);
}

/// Constant features, duplicated rows, rows without a cell, features of very different size: a fit all the same.
#[test]
fn odd_data_are_fitted() {
    let x = helix(60, 0.1, 1);
    let fits = |x: &Mat<f64>, what: &str| -> Fit<AutoassociativeNetwork> {
        let fit = Autoencoder::new(1).max_iterations(60).fit(x).unwrap();
        let y = fit.model.reconstruct(&table(x), Reconstruction::Orthogonal).unwrap();
        assert!(y.as_ref().is_all_finite(), "{what}");
        assert!(fit.report.network().unwrap().explained >= 0.5, "{what}");
        fit
    };
    let constant = Mat::from_fn(60, 4, |i, j| if j == 3 { 7.0 } else { x[(i, j)] });
    let filled = fits(&constant, "a constant feature").model;
    let filled = filled.reconstruct(&table(&constant), Reconstruction::Orthogonal).unwrap();
    assert!((0..60).all(|i| (filled[(i, 3)] - 7.0).abs() < 0.2));
    fits(&Mat::from_fn(120, 3, |i, j| x[(i / 2, j)]), "duplicated rows");
    let empty = Mat::from_fn(61, 3, |i, j| if i == 60 { f64::NAN } else { x[(i, j)] });
    let fit = fits(&empty, "a row without a cell");
    let z = fit.model.encode(&table(&empty)).unwrap();
    close(z[(60, 0)], 0.0, 1e-6, "what is expected of any row");
    let filled = fit.model.impute_with_std(&table(&empty)).unwrap();
    assert!((0..3).all(|j| filled.cells[(60, j)].is_finite() && filled.std[(60, j)] > 0.0));
    fits(&Mat::from_fn(60, 3, |i, j| 1e150 * x[(i, j)]), "large features");
    fits(&Mat::from_fn(60, 3, |i, j| 1e-150 * x[(i, j)]), "small features");
    fits(&Mat::from_fn(60, 3, |i, j| x[(i, j)] * [1e6, 1.0, 1e-6][j]), "different sizes");
}

/// Features of different sizes count alike when they are scaled, and answers are in the units of the data.
#[test]
fn scaled_features_are_fitted_in_units_of_their_own() {
    let x = helix(300, 0.05, 8);
    let sizes = [1e3, 1.0, 1e-3];
    let y = Mat::from_fn(300, 3, |i, j| x[(i, j)] * sizes[j]);
    let fit = |x: &Mat<f64>| {
        let family = Autoencoder::new(1).hidden(8).max_iterations(40);
        Request::new(family)
            .scale(Scale::Unit)
            .fit(&table(x) as &dyn covary::data::RowSource, &Control::new())
    };
    let (a, b) = (fit(&x).unwrap().model, fit(&y).unwrap().model);
    let rebuilt = |m: &covary::model::AnyModel, x: &Mat<f64>| {
        m.reconstructor().unwrap().reconstruct(&table(x), Reconstruction::Orthogonal).unwrap()
    };
    let (a, b) = (rebuilt(&a, &x), rebuilt(&b, &y));
    let back = Mat::from_fn(300, 3, |i, j| b[(i, j)] / sizes[j]);
    // Forty steps of rounding that differs.
    close_matrix(&back, &a, 1e-4, "rebuilt");
}

#[test]
fn an_iteration_limit_is_a_value_and_an_interrupted_fit_is_usable() {
    let x = helix(400, 0.05, 9);
    let short = Autoencoder::new(1).max_iterations(3).fit(&x).unwrap();
    assert_eq!((short.report.stop, short.report.trace.len()), (Stop::IterationLimit, 3));
    for (after, family) in [
        (3, Autoencoder::new(1)),
        (2, Autoencoder::new(1).solver(Solver::Adam)),
        (2, Autoencoder::new(1).encoder(false)),
    ] {
        let flag = AtomicBool::new(false);
        let observer = |event: Event| {
            if matches!(event, Event::Iteration { number, measure, .. } if number == after && measure != "captured variance")
            {
                flag.store(true, Ordering::Relaxed);
            }
        };
        let control = Control::new().observer(&observer).cancel(&flag);
        let fit = family.fit_with(&x, &control).unwrap();
        assert_eq!((fit.report.stop, fit.report.trace.len()), (Stop::Interrupted, after));
        assert!(explained(&fit.model, &x) >= 0.8);
        SavedModel::new(fit, None).unwrap().to_bytes().unwrap();
    }
    let flag = AtomicBool::new(true);
    let stopped = Autoencoder::new(1).fit_with(&x, &Control::new().cancel(&flag)).map(|_| ());
    assert!(matches!(stopped, Err(Error::Interrupted)));
}

/// Rows that the fit has not seen, with the settings of everybody: below PCA's error at every number of latent
/// variables.
#[test]
fn soak_digits_and_faces_are_rebuilt_better_than_by_pca() {
    let all = soak(1, 2) == 2;
    for name in ["digits", "frey_faces"] {
        let Some(x) = data_set(name) else { return };
        if !all && name == "frey_faces" {
            continue;
        }
        let part = |test: bool| -> Mat<f64> {
            let rows: Vec<usize> = (0..x.nrows()).filter(|i| (i % 4 == 0) == test).collect();
            Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)])
        };
        let (seen, unseen) = (part(false), part(true));
        for q in if all { &[2, 5, 10][..] } else { &[2] } {
            let family = Autoencoder::new(*q);
            let family = if all { family } else { family.max_iterations(30) };
            let model = family.fit(&seen).unwrap().model;
            let (ours, pca) =
                (error_of(&model, &unseen), error_of(&Pca::new(*q).fit(&seen).unwrap().model, &unseen));
            assert!(ours < pca, "{name} q {q}: {ours} and {pca}");
        }
    }
}
