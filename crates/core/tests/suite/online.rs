//! Rows in batches: exact while they are complete, one step of online EM for each batch with holes.

use std::sync::Arc;

use crate::common::*;
use covary::algorithm::em_step;
use covary::data::Rows;
use covary::estimator::Online;
use covary::evidence::{Latent, Moments, gather};
use covary::expectation::LatentParameters;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::{Control, Error, Pca, Ppca};

fn holey(n: usize, p: usize, q: usize, share: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let x = random_model(p, q, false, &mut rng).sample(n, seed);
    Mat::from_fn(n, p, |i, j| if rng.uniform() < share { f64::NAN } else { x[(i, j)] })
}

fn part(x: &Mat<f64>, first: usize, rows: usize) -> Mat<f64> {
    x.as_ref().subrows(first, rows).to_owned()
}

fn score(model: &LinearGaussian, x: &Mat<f64>) -> f64 {
    model.log_density(table(x)).unwrap().iter().sum::<f64>() / x.nrows() as f64
}

#[test]
fn one_batch_is_one_em_step_from_the_start() {
    let x = holey(120, 5, 2, 0.2, 1);
    let start = random_model(5, 2, false, &mut Rng(9));
    let Noise::Isotropic(noise) = *start.noise() else { panic!("one noise for all") };
    let parameters = LatentParameters::new(start.mean().to_vec(), start.loadings().as_ref(), noise).unwrap();
    let evidence =
        gather(&table(&x), || Latent::empty(Arc::new(parameters.clone())), &Control::new()).unwrap();
    let expected = em_step(&evidence).unwrap();

    let (ppca, mut seen) = (Ppca::new(2).start(start), Online::empty(5));
    ppca.take_in(&mut seen, table(&x), &Control::new()).unwrap();
    let fit = ppca.fit_online(&seen).unwrap();
    let w = expected.loadings();
    let same = |i: usize, j: usize| if i == j { expected.noise_variance(0) } else { 0.0 };
    let covariance = Mat::from_fn(5, 5, |i, j| (w.row(i) * w.row(j).transpose()) + same(i, j));
    close_matrix(&dense_covariance(&fit.model), &covariance, 1e-10 * max_abs(&covariance), "covariance");
    close_all(fit.model.mean(), expected.mean(), 1e-10, "mean");
    relative(fit.report.trace[0], evidence.log_likelihood() / evidence.weight(), 1e-12, "trace");
}

#[test]
fn rounds_over_batches_come_near_the_maximum() {
    let x = holey(2000, 8, 2, 0.25, 3);
    let best = score(&Ppca::new(2).fit(table(&x)).unwrap().model, &x);
    let (ppca, mut seen) = (Ppca::new(2), Online::empty(8));
    let mut gaps = Vec::new();
    for _ in 0..10 {
        for k in 0..10 {
            ppca.take_in(&mut seen, table(&part(&x, 200 * k, 200)), &Control::new()).unwrap();
        }
        gaps.push(best - score(&ppca.fit_online(&seen).unwrap().model, &x));
    }
    // A maximum of n rows is about (free parameters)/2n nats per row above the truth, here 0.006: well inside that.
    assert!(gaps.iter().all(|gap| *gap > -1e-9) && gaps[9] < 1e-3 && gaps[9] < 0.5 * gaps[0], "{gaps:?}");
    let report = ppca.fit_online(&seen).unwrap().report;
    assert_eq!((report.rows, report.trace.len(), report.converged()), (20_000, 100, false));
    assert_eq!((report.log_likelihood, report.holes.unwrap().online_steps), (None, Some(100)));
}

#[test]
fn complete_batches_are_exact_before_holes_and_count_fully_after() {
    let x = holey(3000, 6, 2, 0.0, 5);
    let (ppca, mut seen) = (Ppca::new(2), Online::empty(6));
    for k in 0..3 {
        ppca.take_in(&mut seen, table(&part(&x, 900 * k, 900)), &Control::new()).unwrap();
    }
    let moments = gather(&table(&part(&x, 0, 2700)), || Moments::empty(6), &Control::new()).unwrap();
    let (ours, exact) = (ppca.fit_online(&seen).unwrap(), ppca.fit_moments(&moments).unwrap());
    close_matrix(&dense_covariance(&ours.model), &dense_covariance(&exact.model), 1e-11, "complete");
    assert!(ours.report.holes.is_none());

    // A few rows with holes on top, again and again: near the maximum of all, though most rows are seen as moments only.
    let mut last = part(&x, 2700, 300);
    (0..300).for_each(|i| last[(i, i % 6)] = f64::NAN);
    let all = Mat::from_fn(3000, 6, |i, j| if i < 2700 { x[(i, j)] } else { last[(i - 2700, j)] });
    ppca.take_in(&mut seen, table(&last), &Control::new()).unwrap();
    let fit = ppca.fit_online(&seen).unwrap();
    let best = score(&Ppca::new(2).fit(table(&all)).unwrap().model, &all);
    assert!(best - score(&fit.model, &all) < 1e-4, "{best} {}", score(&fit.model, &all));
    assert_eq!(fit.report.rows, 3000);
    let pca = Pca::new(2).fit_online(&seen).unwrap();
    relative(
        pca.model.noise_variance(),
        fit.spectrum().unwrap().noise_variance(),
        1e-12,
        "the same spectrum",
    );
}

#[test]
fn steps_cannot_be_added_up_and_empty_rows_are_no_step() {
    let x = holey(60, 4, 1, 0.2, 7);
    let (ppca, mut seen) = (Ppca::new(1), Online::empty(4));
    ppca.take_in(&mut seen, table(&x), &Control::new()).unwrap();
    let before = ppca.fit_online(&seen).unwrap();
    let nothing = [f64::NAN; 8];
    ppca.take_in(&mut seen, Rows::from_slice(&nothing, 4).unwrap(), &Control::new()).unwrap();
    let after = ppca.fit_online(&seen).unwrap();
    assert_eq!(matrix_bits(before.model.loadings()), matrix_bits(after.model.loadings()));
    let error = seen.clone().merge(&Online::empty(4)).unwrap_err();
    assert!(
        matches!(error, Error::Parameter { .. }) && error.to_string().contains("fit all rows"),
        "{error}"
    );
    assert!(ppca.take_in(&mut seen, Rows::from_slice(&nothing, 2).unwrap(), &Control::new()).is_err());
    let (complete, steps) = seen.parts();
    let steps = steps.map(|(latent, tally)| (latent.clone(), tally.clone()));
    assert!(Online::from_parts(Moments::empty(3), steps.clone()).is_err());
    assert_eq!(Online::from_parts(complete.clone(), steps).unwrap().rows(), 60);
}
