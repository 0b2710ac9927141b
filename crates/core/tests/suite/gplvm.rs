//! GP-LVMs: dual PPCA against PPCA, the Bayesian model on surfaces that are known, new rows, missing values, bad input.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use covary::algorithm::Stop;
use covary::data::{Rows, Table};
use covary::evidence::{Accumulator, LatentPositions, PsiSums};
use covary::kernel::{LatentForm, LatentKernel};
use covary::linalg::Mat;
use covary::model::{Encode, Fill, Generate, LatentProcess, Reconstruct, Reconstruction};
use covary::persist::{Portable, SavedModel};
use covary::{Control, Error, Event, Gplvm, GplvmMethod, Ppca, Request, Scale};

use crate::common::{Dense, Rng, chunk_of, close_all, close_matrix, normal_matrix, table};

/// A helix of one turn in three dimensions with noise: rows and their places along it.
fn helix(n: usize, noise: f64, rng: &mut Rng) -> (Mat<f64>, Vec<f64>) {
    let t: Vec<f64> = (0..n).map(|i| 5.0 * i as f64 / n as f64 - 2.5).collect();
    let x =
        Mat::from_fn(n, 3, |i, j| [t[i].cos() * 2.0, t[i].sin() * 2.0, 0.5 * t[i]][j] + noise * rng.normal());
    (x, t)
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let centred = |x: &[f64]| -> Vec<f64> {
        let mean = x.iter().sum::<f64>() / n;
        x.iter().map(|x| x - mean).collect()
    };
    let (a, b) = (centred(a), centred(b));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
}

fn column(x: &Mat<f64>, j: usize) -> Vec<f64> {
    x.col(j).iter().copied().collect()
}

/// Rows and columns of mean 0.
fn doubly_centred(mut x: Mat<f64>) -> Mat<f64> {
    let (n, p) = (x.nrows(), x.ncols());
    for _ in 0..3 {
        for i in 0..n {
            let mean = (0..p).map(|j| x[(i, j)]).sum::<f64>() / p as f64;
            (0..p).for_each(|j| x[(i, j)] -= mean);
        }
        for j in 0..p {
            let mean = (0..n).map(|i| x[(i, j)]).sum::<f64>() / n as f64;
            (0..n).for_each(|i| x[(i, j)] -= mean);
        }
    }
    x
}

/// Positions are PPCA's coordinates, and the likelihood of the columns is that of PPCA of the transposed table: the same
/// formula with rows and columns exchanged.
#[test]
fn dual_ppca_is_ppca_with_rows_and_columns_exchanged() {
    for (n, p) in [(40, 7), (9, 30)] {
        let x = doubly_centred(Mat::from_fn(n, p, {
            let mut rng = Rng(3);
            let noise = normal_matrix(n, p, &mut rng);
            let (z, w) = (normal_matrix(n, 2, &mut rng), normal_matrix(p, 2, &mut rng));
            move |i, j| 3.0 * z[(i, 0)] * w[(j, 0)] + 1.5 * z[(i, 1)] * w[(j, 1)] + noise[(i, j)]
        }));
        let dual = Gplvm::new(2).method(GplvmMethod::Map).kernel(LatentForm::Linear).fit(&x).unwrap();
        let ppca = Ppca::new(2).fit(&x).unwrap();
        let z = ppca.model.latent_mean(&x).unwrap();
        for k in 0..2 {
            let (a, b) = (column(&dual.model.parts().latent_mean, k), column(&z, k));
            assert!((correlation(&a, &b).abs() - 1.0).abs() < 1e-12, "{k}");
            let size = (b.iter().map(|x| x * x).sum::<f64>() / n as f64).sqrt();
            let whitened: Vec<f64> = b.iter().map(|x| x / size * (a[0] * b[0]).signum()).collect();
            close_all(&a, &whitened, 1e-9, k);
        }
        let other = Ppca::new(2).fit(&x.transpose().to_owned()).unwrap();
        let (found, expected) =
            (dual.report.gplvm().unwrap().objective, other.report.log_likelihood.unwrap());
        assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} {expected}");
        // σ² of the columns, by the same exchange.
        let (found, expected) = (dual.model.parts().noise, other.report.spectrum.unwrap().noise_variance());
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
    }
}

#[test]
fn a_curve_is_found_and_the_bound_never_falls() {
    let mut rng = Rng(1);
    let (x, t) = helix(120, 0.05, &mut rng);
    let fit = Gplvm::new(1).inducing(15).fit(&x).unwrap();
    let trace = &fit.report.trace;
    assert!(trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * w[0].abs()), "the bound fell");
    let z = column(&fit.model.parts().latent_mean, 0);
    assert!(correlation(&z, &t).abs() > 0.98, "{}", correlation(&z, &t));
    let noise = fit.model.parts().noise.sqrt();
    assert!((0.04..0.07).contains(&noise), "{noise}");
    // The largest position is positive.
    assert!(z.iter().copied().fold(0.0, |m: f64, x| if x.abs() > m.abs() { x } else { m }) > 0.0);
    // Rows of the fit are placed where they lie: within a tenth of the spread.
    let placed = fit.model.place(&table(&x)).unwrap();
    let spread = (z.iter().map(|x| x * x).sum::<f64>() / 120.0).sqrt();
    for (i, z) in z.iter().enumerate() {
        assert!((placed.mean[(i, 0)] - z).abs() < 0.1 * spread, "{i}: {} {z}", placed.mean[(i, 0)]);
    }
    // PPCA's best plane of one dimension leaves most of the helix; the curve leaves the noise.
    let rebuilt = fit.model.reconstruct(&table(&x), Reconstruction::Orthogonal).unwrap();
    let error = |a: &Mat<f64>| -> f64 {
        ((0..120).map(|i| (0..3).map(|j| (a[(i, j)] - x[(i, j)]).powi(2)).sum::<f64>()).sum::<f64>() / 360.0)
            .sqrt()
    };
    let plane = Ppca::new(1).fit(&x).unwrap().model.reconstruct(&x, Reconstruction::Orthogonal).unwrap();
    assert!(error(&rebuilt) < 0.06 && error(&plane) > 0.5, "{} {}", error(&rebuilt), error(&plane));
}

#[test]
fn of_more_dimensions_than_there_are_the_others_carry_nothing() {
    let (x, _) = helix(100, 0.05, &mut Rng(2));
    let fit = Gplvm::new(3).inducing(20).fit(&x).unwrap();
    let report = fit.report.gplvm().unwrap();
    assert!(report.in_use()[0]);
    assert!(report.relevance.windows(2).all(|w| w[0] >= w[1]), "{:?}", report.relevance);
    let divergence = report.divergence.as_ref().unwrap();
    assert!(divergence[0] > 3.0 * divergence[2], "{divergence:?}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    let (x, _) = helix(700, 0.1, &mut Rng(5));
    let run = |threads| {
        let fit = Gplvm::new(2).inducing(8).max_iterations(12).threads(threads).fit(&x).unwrap();
        SavedModel::new(fit, None).unwrap().to_bytes().unwrap()
    };
    assert!(run(1) == run(2) && run(1) == run(3));
}

fn with_holes(x: &Mat<f64>, share: f64, rng: &mut Rng) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if rng.uniform() < share { f64::NAN } else { x[(i, j)] })
}

#[test]
fn missing_cells_are_filled_along_the_curve() {
    let mut rng = Rng(7);
    let (x, _) = helix(150, 0.05, &mut rng);
    let holes = with_holes(&x, 0.2, &mut rng);
    let fit = Gplvm::new(1).inducing(15).fit(&holes).unwrap();
    assert!(fit.report.holes.as_ref().unwrap().missing > 0);
    let filled = fit.model.impute_with_std(&table(&holes)).unwrap();
    let plane = Ppca::new(1).fit(&holes).unwrap().model.impute(&holes).unwrap();
    let (mut curve_error, mut plane_error, mut covered, mut count) = (0.0, 0.0, 0.0, 0.0);
    for (i, j) in (0..150).flat_map(|i| (0..3).map(move |j| (i, j))) {
        if holes[(i, j)].is_nan() {
            curve_error += (filled.cells[(i, j)] - x[(i, j)]).abs();
            plane_error += (plane[(i, j)] - x[(i, j)]).abs();
            covered +=
                f64::from(u8::from((filled.cells[(i, j)] - x[(i, j)]).abs() < 1.96 * filled.std[(i, j)]));
            count += 1.0;
        } else {
            assert_eq!((filled.cells[(i, j)], filled.std[(i, j)]), (x[(i, j)], 0.0), "observed cells stay");
        }
    }
    assert!(curve_error < 0.4 * plane_error, "{curve_error} {plane_error}");
    assert!(covered / count > 0.8, "{}", covered / count);
}

/// A model that is known, by numbers: rows drawn from it, cells hidden, and the truth within 95 % intervals as often as
/// they say.
#[test]
fn intervals_cover_cells_of_rows_from_the_model() {
    let (x, _) = helix(100, 0.1, &mut Rng(11));
    let model = Gplvm::new(1).inducing(12).fit(&x).unwrap().model;
    let rows = model.sample_rows(0..600, 4);
    let holes = Mat::from_fn(600, 3, |i, j| if i % 3 == j { f64::NAN } else { rows[(i, j)] });
    let filled = model.impute_with_std(&table(&holes)).unwrap();
    let inside =
        |i: usize| (filled.cells[(i, i % 3)] - rows[(i, i % 3)]).abs() < 1.96 * filled.std[(i, i % 3)];
    let share = (0..600).filter(|i| inside(*i)).count() as f64 / 600.0;
    assert!((0.91..0.985).contains(&share), "{share}");
    // The same rows in parts, and draws around the means.
    let part = model.sample_rows(300..310, 4);
    close_matrix(&part, &rows.subrows(300, 10).to_owned(), 0.0, "parts");
    let few = holes.subrows(0, 2).to_owned();
    let draws = model.draw_missing(&table(&few), 0..400, 1).unwrap();
    let mean = draws.iter().map(|d| d[(0, 0)]).sum::<f64>() / 400.0;
    assert!((mean - filled.cells[(0, 0)]).abs() < 5.0 * filled.std[(0, 0)] / 20.0, "{mean}");
    let conditional = model.conditional(&[f64::NAN, holes[(0, 1)], holes[(0, 2)]], &Control::new()).unwrap();
    assert_eq!(conditional.features, [0]);
    close_all(&conditional.mean, &[filled.cells[(0, 0)]], 1e-12, "conditional mean");
    close_all(&[conditional.covariance[(0, 0)].sqrt()], &[filled.std[(0, 0)]], 1e-9, "conditional deviation");
}

/// The exact model predicts as textbook regression does.
#[test]
fn the_exact_model_is_gaussian_process_regression_at_its_positions() {
    let (x, t) = helix(40, 0.1, &mut Rng(13));
    let fit = Gplvm::new(1).method(GplvmMethod::Map).fit(&x).unwrap();
    let parts = fit.model.parts();
    assert!(correlation(&column(&parts.latent_mean, 0), &t).abs() > 0.97);
    let places = column(&parts.latent_mean, 0);
    let kernel = |a: f64, b: f64| parts.kernel.variance() * (-0.5 * (a - b).powi(2)).exp() + parts.bias;
    let c =
        Mat::from_fn(40, 40, |i, j| kernel(places[i], places[j]) + if i == j { parts.noise } else { 0.0 });
    let at = 0.37;
    let k: Vec<f64> = places.iter().map(|z| kernel(*z, at)).collect();
    let solved = Dense::new(vec![0.0; 40], c).solve(&k);
    let (mean, std) = {
        use covary::model::Decode;
        let z = Mat::from_fn(1, 1, |_, _| at);
        fit.model.decode_with_std(z.as_ref()).unwrap().unwrap()
    };
    let variance = kernel(at, at) + parts.noise - (0..40).map(|i| k[i] * solved[i]).sum::<f64>();
    for j in 0..3 {
        let expected: f64 =
            parts.mean[j] + (0..40).map(|i| solved[i] * (x[(i, j)] - parts.mean[j])).sum::<f64>();
        assert!((mean[(0, j)] - expected).abs() < 1e-7, "{} {expected}", mean[(0, j)]);
        assert!((std[(0, j)] - variance.sqrt()).abs() < 1e-7, "{} {variance}", std[(0, j)]);
    }
    let z = fit.model.encode(&table(&x)).unwrap();
    assert!((0..40).all(|i| (z[(i, 0)] - places[i]).abs() < 0.3), "rows are found again");
}

#[test]
fn ambiguous_rows_are_told_and_an_empty_row_has_the_prior() {
    // A circle, of which one coordinate tells two places.
    let x = Mat::from_fn(80, 2, |i, j| {
        let t = 5.4 * i as f64 / 80.0 + 0.4;
        [t.cos(), t.sin()][j]
    });
    let model = Gplvm::new(1).inducing(15).fit(&x).unwrap().model;
    let rows = Mat::from_fn(3, 2, |i, j| match (i, j) {
        (0, 0) => -0.3,
        (1, _) => x[(40, j)],
        _ => f64::NAN,
    });
    let placed = model.place(&table(&rows)).unwrap();
    assert_eq!(placed.ambiguous, [true, false, false]);
    assert_eq!((placed.mean[(2, 0)], placed.variance[(2, 0)], placed.bound[2]), (0.0, 1.0, 0.0));
    let filled = model.impute_with_std(&table(&rows)).unwrap();
    assert!(filled.std[(2, 0)] > 0.3, "nothing is known of an empty row");
}

#[test]
fn features_of_other_units_are_divided_for_the_fit_only() {
    let (x, _) = helix(80, 0.05, &mut Rng(17));
    let units = [1.0, 1000.0, 0.01];
    let scaled = Mat::from_fn(80, 3, |i, j| x[(i, j)] * units[j]);
    let fit = |x: &Mat<f64>| {
        let family = Gplvm::new(1).inducing(10);
        Request::of(Arc::new(family))
            .scale(Scale::Unit)
            .fit(&table(x) as &dyn covary::data::RowSource, &Control::new())
            .unwrap()
    };
    let (a, b) = (fit(&x), fit(&scaled));
    let of =
        |f: &covary::Fit<covary::model::AnyModel>| f.model.downcast_ref::<LatentProcess>().unwrap().clone();
    let (a, b, bound) =
        (of(&a), of(&b), (a.report.gplvm().unwrap().objective, b.report.gplvm().unwrap().objective));
    let shift: f64 = 80.0 * units.iter().map(|u: &f64| u.ln()).sum::<f64>();
    assert!((bound.0 - bound.1 - shift).abs() < 1e-2 * bound.0.abs(), "{bound:?} {shift}");
    for j in 0..3 {
        let ratio = (b.noise_variances()[j] / a.noise_variances()[j]).sqrt() / units[j];
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    }
    let (ra, rb) = (
        a.reconstruct(&table(&x), Reconstruction::Posterior).unwrap(),
        b.reconstruct(&table(&scaled), Reconstruction::Posterior).unwrap(),
    );
    let back = Mat::from_fn(80, 3, |i, j| rb[(i, j)] / units[j]);
    close_matrix(&back, &ra, 0.05, "in the units of the data");
}

#[test]
fn an_interrupted_fit_gives_a_usable_model() {
    let (x, _) = helix(60, 0.1, &mut Rng(19));
    let (flag, steps) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    let observer = |event: Event| {
        if matches!(event, Event::Iteration { .. }) && steps.fetch_add(1, Ordering::Relaxed) == 4 {
            flag.store(true, Ordering::Relaxed);
        }
    };
    let control = Control::new().observer(&observer).cancel(&flag);
    let fit = Gplvm::new(1).inducing(8).fit_with(&x, &control).unwrap();
    assert_eq!((fit.report.stop, fit.report.trace.len()), (Stop::Interrupted, 5));
    assert!(fit.model.impute(&table(&x)).is_ok());
    let at_once = AtomicBool::new(true);
    let control = Control::new().cancel(&at_once);
    assert!(matches!(Gplvm::new(1).fit_with(&x, &control), Err(Error::Interrupted)));
}

/// Noise is held for fifty steps, then free; who watches sees one search, and its bound.
#[test]
fn steps_are_told_one_after_the_other_with_the_bound() {
    let (x, _) = helix(40, 0.1, &mut Rng(19));
    let told = std::sync::Mutex::new(Vec::new());
    let observer = |event: Event| {
        if let Event::Iteration { number, measure, objective, .. } = event {
            told.lock().unwrap().push((number, measure, objective));
        }
    };
    let family = Gplvm::new(1).inducing(5).tolerance(1e-300).max_iterations(60);
    let fit = family.fit_with(&x, &Control::new().observer(&observer)).unwrap();
    let expected: Vec<_> =
        fit.report.trace.iter().enumerate().map(|(i, value)| (i + 1, "bound", *value)).collect();
    assert_eq!(expected.len(), 60);
    assert_eq!(told.into_inner().unwrap(), expected);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let (x, _) = helix(30, 0.1, &mut Rng(23));
    let refused =
        |family: Gplvm, x: &Mat<f64>| family.fit(x).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused(Gplvm::new(0), &x).contains("the number of latent dimensions is 0"));
    assert!(refused(Gplvm::new(1).inducing(0), &x).contains("inducing points is 0"));
    assert!(refused(Gplvm::new(4), &x).contains("allow 1 to 3"));
    let few = x.subrows(0, 3).to_owned();
    assert!(refused(Gplvm::new(3), &few).contains("allow 1 to 2"), "{}", refused(Gplvm::new(3), &few));
    let one = x.subrows(0, 1).to_owned();
    assert!(matches!(Gplvm::new(1).fit(&one), Err(Error::TooFewRows { rows: 1, .. })));
    let constant = Mat::from_fn(9, 2, |_, j| j as f64);
    assert!(matches!(Gplvm::new(1).fit(&constant), Err(Error::Constant)));
    let mut infinite = x.clone();
    infinite[(4, 1)] = f64::INFINITY;
    assert!(matches!(Gplvm::new(1).fit(&infinite), Err(Error::Infinite { .. })));
    // The bound would not be finite.
    for size in [1e200, 1e80, 1e-80] {
        let beyond = Mat::from_fn(30, 3, |i, j| size * x[(i, j)]);
        assert!(matches!(Gplvm::new(1).fit(&beyond), Err(Error::Scale)), "{size}");
    }
    let large = Mat::from_fn(30, 3, |i, j| 1e40 * x[(i, j)]);
    let fit = Gplvm::new(1).max_iterations(5).fit(&large).unwrap();
    assert!(fit.report.gplvm().unwrap().objective.is_finite());
    let many = Mat::from_fn(2001, 2, |i, j| ((i * (j + 1)) as f64).sin());
    let told = refused(Gplvm::new(1).method(GplvmMethod::Map), &many);
    assert!(told.contains("at most 2000") && told.contains("the method bayes takes any number"), "{told}");
    let holes = with_holes(&x, 0.1, &mut Rng(1));
    assert!(
        refused(Gplvm::new(1).method(GplvmMethod::Map), &holes)
            .contains("the method bayes takes missing values")
    );
    let weights: Vec<f64> = (0..30).map(|i| 1.0 + i as f64).collect();
    let Rows::Table(weighted) = Rows::from(&x) else { unreachable!() };
    let weighted: Table<'_> = weighted.with_weights(weights).unwrap();
    let told = Gplvm::new(1).method(GplvmMethod::Map).fit(weighted).unwrap_err().to_string();
    assert!(told.contains("the method bayes takes weights"), "{told}");
    let moments = {
        let mut m = covary::evidence::Moments::empty(3);
        m.update(&chunk_of(x.as_ref(), 0)).unwrap();
        m
    };
    let told = Request::of(Arc::new(Gplvm::new(1))).fit(&moments, &Control::new()).unwrap_err().to_string();
    assert!(told.contains("does not tell curved surfaces"), "{told}");
}

/// More inducing points than rows, constant and repeated features, rows that are copies, rows without any cell: all are
/// fitted, and said.
#[test]
fn degenerate_rows_are_fitted() {
    let (x, _) = helix(30, 0.1, &mut Rng(29));
    let quick = |m: usize| Gplvm::new(1).inducing(m).max_iterations(60);
    let fit = quick(50).fit(&x).unwrap();
    let report = fit.report.gplvm().unwrap();
    assert_eq!((report.inducing, report.asked), (30, Some(50)));
    let constant = Mat::from_fn(30, 4, |i, j| if j == 3 { 7.0 } else { x[(i, j)] });
    let fit = quick(10).fit(&constant).unwrap();
    let rebuilt = fit.model.reconstruct(&table(&constant), Reconstruction::Orthogonal).unwrap();
    assert!((0..30).all(|i| (rebuilt[(i, 3)] - 7.0).abs() < 1e-6));
    let copies = Mat::from_fn(60, 3, |i, j| x[(i / 2, j)]);
    let fit = quick(40).fit(&copies).unwrap();
    assert!(fit.report.gplvm().unwrap().objective.is_finite());
    let mut empty = x.clone();
    (0..3).for_each(|j| empty[(7, j)] = f64::NAN);
    let fit = quick(10).fit(&empty).unwrap();
    assert_eq!(fit.report.holes.as_ref().unwrap().empty_rows, 1);
    let parts = fit.model.parts();
    assert!(parts.latent_mean[(7, 0)].abs() < 1e-9 && (parts.latent_variance[(7, 0)] - 1.0).abs() < 1e-9);
    // The limit on steps is a value, not an error.
    assert_eq!(Gplvm::new(1).max_iterations(3).fit(&x).unwrap().report.stop, Stop::IterationLimit);
    // Features of very different size: the large one rules, as in PPCA.
    let wild = Mat::from_fn(30, 3, |i, j| x[(i, j)] * [1.0, 1e6, 1e-6][j]);
    assert!(quick(10).fit(&wild).unwrap().report.gplvm().unwrap().objective.is_finite());
}

/// The linear kernel in the Bayesian model finds a plane: about what PPCA finds.
#[test]
fn the_linear_bayesian_model_is_near_ppca() {
    let mut rng = Rng(31);
    let (z, w) = (normal_matrix(80, 1, &mut rng), normal_matrix(5, 1, &mut rng));
    let x = Mat::from_fn(80, 5, |i, j| 2.0 * z[(i, 0)] * w[(j, 0)] + 0.3 * rng.normal());
    let fit = Gplvm::new(1).kernel(LatentForm::Linear).fit(&x).unwrap();
    let ppca = Ppca::new(1).fit(&x).unwrap();
    let a = fit.model.reconstruct(&table(&x), Reconstruction::Posterior).unwrap();
    let b = ppca.model.reconstruct(&x, Reconstruction::Posterior).unwrap();
    close_matrix(&a, &b, 0.05, "reconstruction");
    let scores = ppca.model.latent_mean(&x).unwrap();
    assert!(correlation(&column(&fit.model.parts().latent_mean, 0), &column(&scores, 0)).abs() > 0.999);
}

// ------------------------------------------------------------------------------------------------- the evidence

fn positions(n: usize, p: usize, masked: bool, rng: &mut Rng) -> Arc<LatentPositions> {
    let kernel = LatentKernel::new(LatentForm::Rbf, 1.3, vec![0.7, 2.0]).unwrap();
    let mean = (0..2 * n).map(|_| rng.normal()).collect();
    let variance = (0..2 * n).map(|_| 0.1 + rng.uniform()).collect();
    let centre = vec![0.2; p];
    Arc::new(
        LatentPositions::new(kernel, normal_matrix(4, 2, rng), (mean, variance), centre, masked).unwrap(),
    )
}

#[test]
fn psi_statistics_obey_the_laws_of_evidence() {
    let (n, p) = (90, 3);
    for masked in [false, true] {
        let mut rng = Rng(37);
        let at = positions(n, p, masked, &mut rng);
        let x = normal_matrix(n, p, &mut rng);
        let x = if masked { with_holes(&x, 0.3, &mut rng) } else { x };
        let names: Vec<String> = (0..p).map(|j| format!("f{j}")).collect();
        let bytes = |e: &PsiSums| e.to_bytes(&names).unwrap();
        let w: Vec<f64> = (0..n).map(|i| if i % 7 == 3 { 0.0 } else { 0.5 + rng.uniform() }).collect();
        let none = PsiSums::empty(Arc::clone(&at));
        let of = |rows: std::ops::Range<usize>| {
            let mut out = none.clone();
            let part = x.subrows(rows.start, rows.len());
            out.update(&chunk_of(part, rows.start).with_weights(&w[rows.clone()]).unwrap()).unwrap();
            out
        };
        let merged = |a: &PsiSums, b: &PsiSums| {
            let mut out = a.clone();
            out.merge(b).unwrap();
            out
        };
        let same = |a: &PsiSums, b: &PsiSums, what: &str| {
            let (a, b) = (SavedEvidenceNumbers::of(&bytes(a)), SavedEvidenceNumbers::of(&bytes(b)));
            close_all(&a.0, &b.0, 1e-11, what);
        };
        let whole = of(0..n);
        assert!(
            bytes(&merged(&whole, &none)) == bytes(&whole) && bytes(&merged(&none, &whole)) == bytes(&whole)
        );
        let (a, b, c) = (of(0..30), of(30..45), of(45..n));
        same(&merged(&a, &merged(&b, &c)), &whole, "merged");
        same(&merged(&merged(&c, &a), &b), &whole, "in any order");
        let read = PsiSums::from_bytes(&bytes(&whole)).unwrap();
        assert_eq!((read.features, bytes(&read.evidence)), (names.clone(), bytes(&whole)));
        same(
            &merged(&PsiSums::from_bytes(&bytes(&a)).unwrap().evidence, &merged(&b, &c)),
            &whole,
            "read and merged",
        );
        assert!(PsiSums::from_bytes(&bytes(&whole)[..200]).is_err());
        assert!(none.clone().merge(&PsiSums::empty(positions(n, p, masked, &mut rng))).is_err());
        // Rows without a position are refused.
        assert!(none.clone().update(&chunk_of(x.as_ref(), 5)).is_err());
    }
}

/// The numbers of evidence, from its bytes: all tensors.
struct SavedEvidenceNumbers(Vec<f64>);

impl SavedEvidenceNumbers {
    fn of(bytes: &[u8]) -> Self {
        let tensors = safetensors::SafeTensors::deserialize(bytes).unwrap();
        let mut names = tensors.names();
        names.sort();
        let numbers = names.into_iter().flat_map(|name| {
            let data = tensors.tensor(name).unwrap().data().to_vec();
            data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
        });
        Self(numbers.collect())
    }
}
