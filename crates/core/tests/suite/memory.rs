//! What does not fit in memory is refused before it is made; what is kept of a posterior is as little as it can be.

use std::sync::atomic::AtomicBool;

use crate::common::*;
use covary::data::{Rows, Watched};
use covary::estimator::Online;
use covary::linalg::Mat;
use covary::model::{LatentCovariance, LinearGaussian, Noise, Reconstruction};
use covary::{Control, Error, ErrorClass, FactorAnalysis, FactorSolver, Pca, Ppca, Result, Solver, memory};

/// Features whose covariance takes 80 GB.
const MANY: usize = 100_000;

/// As if 8 GB were left, on any machine.
fn with_eight_gigabytes() {
    memory::available_from(|| Some(8_000_000_000));
}

#[track_caller]
fn too_much<T>(result: Result<T>, least: usize) {
    let error = result.map(|_| ()).unwrap_err();
    let Error::Memory { needed, available, .. } = &error else { panic!("{error}") };
    assert!(*needed >= least, "{needed} of at least {least}");
    assert_eq!((*available, error.class()), (Some(8_000_000_000), ErrorClass::Memory));
    let text = error.to_string();
    assert!(text.contains(" of memory, and 8.0 GB are free; ask for less"), "{text}");
}

fn wide() -> LinearGaussian {
    LinearGaussian::new(vec![0.0; MANY], Mat::full(MANY, 1, 1.0), Noise::Isotropic(1.0)).unwrap()
}

#[test]
fn questions_whose_answers_do_not_fit() {
    with_eight_gigabytes();
    let (model, square) = (wide(), 8 * MANY.pow(2));
    too_much(model.try_covariance(), square);
    too_much(model.precision(), square);
    too_much(model.conditional(&vec![f64::NAN; MANY]), square);
    too_much(model.sample_with(1_000_000_000_000, 0, &Control::new()), 8 * 10usize.pow(17));
    too_much(model.sample_with(usize::MAX, 0, &Control::new()), usize::MAX);
    let x = Mat::full(2, MANY, f64::NAN);
    too_much(model.draw_missing(&x, 0..10_000_000_000, 0), 16 * 10usize.pow(15));
}

#[test]
fn fits_whose_matrices_do_not_fit() {
    with_eight_gigabytes();
    let (x, square) = (normal_matrix(20, MANY, &mut Rng(1)), 8 * MANY.pow(2));
    too_much(Ppca::new(2).solver(Solver::Eigen).fit(&x), square);
    too_much(Pca::new(2).solver(Solver::Eigen).fit(&x), square);
    too_much(FactorAnalysis::new(2).solver(FactorSolver::Newton).fit(&x), square);
    too_much(Online::try_empty(MANY), square);
    assert_eq!(Online::try_empty(3).unwrap().n_features(), 3);
}

/// One missing cell in a thousand rows is a second covariance, not a thousand.
#[test]
fn posterior_covariances_are_kept_once_for_each_pattern() {
    let mut rng = Rng(3);
    let model = random_model(40, 3, true, &mut rng);
    let mut x = model.sample(1000, 1);
    for (row, column) in [(500, 7), (900, 39), (901, 39)] {
        x[(row, column)] = f64::NAN;
    }
    for rows in [Rows::from(&x), Rows::from(&stored(&x))] {
        let posterior = model.posterior(&rows).unwrap();
        let LatentCovariance::PerPattern { cells, pattern, latent } = &posterior.covariance else { panic!() };
        assert_eq!((cells.len(), pattern.len(), *latent), (3 * 9, 1000, 3));
        assert_eq!(pattern[900], pattern[901]);
        for i in [0, 500, 901, 999] {
            let have: Vec<usize> = (0..40).filter(|j| !x[(i, *j)].is_nan()).collect();
            let alone = model.marginal(&have).unwrap();
            let cells = Mat::from_fn(1, have.len(), |_, j| x[(i, have[j])]);
            let expected = alone.posterior(&cells).unwrap();
            let found = posterior.covariance.of(i).to_owned();
            close_matrix(&found, &expected.covariance.of(0).to_owned(), 1e-13, ("row", i));
        }
    }
}

#[test]
fn a_posterior_of_no_latent_variables_has_all_rows() {
    let model = LinearGaussian::new(vec![0.0; 2], Mat::zeros(2, 0), Noise::Isotropic(1.0)).unwrap();
    let x = Mat::from_fn(5, 2, |i, j| if (i, j) == (3, 1) { f64::NAN } else { 1.0 });
    let posterior = model.posterior(&x).unwrap();
    let LatentCovariance::PerPattern { pattern, .. } = &posterior.covariance else { panic!() };
    assert_eq!((pattern.len(), posterior.covariance.of(4).nrows(), posterior.mean.nrows()), (5, 0, 5));
}

#[test]
fn a_watched_sample_is_the_sample() {
    let model = random_model(4, 2, false, &mut Rng(5));
    for n in [0, 1, 256, 700] {
        let watched = model.sample_with(n, 3, &Control::new()).unwrap();
        assert_eq!(matrix_bits(&watched), matrix_bits(&model.sample(n, 3)));
    }
}

#[test]
fn questions_stop_when_the_caller_asks() {
    let model = random_model(4, 2, false, &mut Rng(5));
    let (x, flag) = (model.sample(50, 1), AtomicBool::new(true));
    let control = Control::new().cancel(&flag);
    let rows = table(&x);
    let watched = Watched::new(&rows, &control);
    let answers = [
        model.log_density(&watched).map(|_| ()),
        model.posterior(&watched).map(|_| ()),
        model.impute(&watched).map(|_| ()),
        model.reconstruct(&watched, Reconstruction::Orthogonal).map(|_| ()),
        model.outliers(&watched).map(|_| ()),
        model.sample_with(10, 0, &control).map(|_| ()),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(Error::Interrupted)));
    }
    let unwatched = Control::new();
    let same = model.log_density(&Watched::new(&rows, &unwatched)).unwrap();
    assert_eq!(bits(&same), bits(&model.log_density(&x).unwrap()));
}
