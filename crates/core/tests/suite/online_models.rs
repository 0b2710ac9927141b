//! Mixtures and robust PPCA of rows in batches: the first is a fit, each other one step of online EM.

use covary::data::RowSource;
use covary::estimator::{KeptEvidence, Online, OnlineFit};
use covary::linalg::Mat;
use covary::model::{Assign, Density, LinearGaussian, LinearStudent, Mixture, Noise};
use covary::persist::Portable;
use covary::{Control, Error, MixturePpca, Ppca, Request, RobustPpca, Scale};

use crate::common::holes::punched;
use crate::common::*;

/// Three groups of five features, ten deviations of their noise apart.
fn groups(diagonal: bool, rng: &mut Rng) -> Mixture {
    let component = |k: usize, rng: &mut Rng| {
        let w = normal_matrix(5, 1, rng);
        let mean = (0..5).map(|j| if j == k { 8.0 } else { 0.0 }).collect();
        let noise = match diagonal {
            true => Noise::Diagonal((0..5).map(|j| 0.3 + 0.2 * j as f64).collect()),
            false => Noise::Isotropic(0.6),
        };
        LinearGaussian::new(mean, w, noise).unwrap()
    };
    let components = (0..3).map(|k| component(k, rng)).collect();
    Mixture::new(vec![0.5, 0.3, 0.2], components).unwrap()
}

fn part(x: &Mat<f64>, k: usize, size: usize) -> Mat<f64> {
    x.as_ref().subrows(k * size, size).to_owned()
}

fn per_row(model: &dyn Density, x: &Mat<f64>) -> f64 {
    model.log_density(&table(x)).unwrap().iter().sum::<f64>() / x.nrows() as f64
}

/// Rounds over batches of the same size.
fn rounds<M>(
    x: &Mat<f64>,
    batches: usize,
    rounds: usize,
    mut step: impl FnMut(Option<&OnlineFit<M>>, &dyn RowSource) -> covary::Result<OnlineFit<M>>,
) -> OnlineFit<M> {
    let mut seen = None;
    for t in 0..batches * rounds {
        let batch = part(x, t % batches, x.nrows() / batches);
        seen = Some(step(seen.as_ref(), &table(&batch)).unwrap());
    }
    seen.unwrap()
}

/// A fit has about (free parameters)/2n nats per row more than the truth: 35/2400 or 47/2400. Batches that come
/// within a tenth of that have found what the rows tell. EM of factors crawls where values are missing, so there
/// within all of it.
#[test]
fn rounds_over_batches_come_near_the_fit_of_a_mixture() {
    for (diagonal, missing) in [(false, 0.0), (false, 0.2), (true, 0.0), (true, 0.2)] {
        let mut rng = Rng(17);
        let truth = groups(diagonal, &mut rng);
        let x = punched(&truth.sample_rows(0..1200, 3), missing, &mut rng);
        let family = MixturePpca::new(3, 1).diagonal(diagonal);
        let control = Control::new();
        let best = family.clone().start(truth.clone()).fit(table(&x)).unwrap();
        let online = rounds(&x, 6, 8, |seen, rows| family.step(seen, rows, &control));
        let (model, report) = (&online.fit.model, &online.fit.report);
        let gap = per_row(&best.model, &x) - per_row(model, &x);
        let allowed = if diagonal && missing > 0.0 { 47.0 / 2400.0 } else { 3.5 / 2400.0 };
        assert!(gap < allowed, "{gap} with diagonal {diagonal}, missing {missing}");
        let labels = |m: &Mixture| m.assign(&table(&x)).unwrap();
        let apart = labels(&best.model).iter().zip(labels(model)).filter(|(a, b)| **a != *b).count();
        assert!(apart < 10, "{apart} rows in other groups");
        let details = report.mixture().unwrap();
        assert_eq!((report.rows, report.trace.len(), details.online_steps), (9600, 48, Some(48)));
        assert_eq!(
            (report.log_likelihood, report.converged(), report.holes.is_some()),
            (None, false, missing > 0.0)
        );
        assert!(report.plan.reason.contains("48 online steps"), "{}", report.plan.reason);
        // An estimate from log densities of rows under models that were nearly this one.
        relative(details.bic, -2.0 * 9600.0 * per_row(model, &x), 0.02, "BIC");
    }
}

/// What complete rows say about a single component does not depend on its parameters.
#[test]
fn a_single_component_is_ppca_of_all_batches() {
    let x = rows_with_deviations(900, &falling(6, 0.6), 3.0, &mut Rng(4));
    let control = Control::new();
    let (ppca, mut moments) = (Ppca::new(2), Online::empty(6));
    (0..3).for_each(|k| ppca.take_in(&mut moments, table(&part(&x, k, 300)), &control).unwrap());
    let exact = ppca.fit_online(&moments).unwrap().model;
    let mixture = rounds(&x, 3, 1, |seen, rows| MixturePpca::new(1, 2).step(seen, rows, &control));
    let component = &mixture.fit.model.components()[0];
    close_matrix(&dense_covariance(component), &dense_covariance(&exact), 1e-10, "mixture");
    close_all(component.mean(), exact.mean(), 1e-12, "mixture");
    // So do those of a t distribution that is normal.
    let robust = RobustPpca::new(2).nu(f64::INFINITY);
    let normal = rounds(&x, 3, 1, |seen, rows| robust.step(seen, rows, &control)).fit.model;
    close_matrix(&dense_covariance(normal.scale()), &dense_covariance(&exact), 1e-10, "normal");
    close_all(normal.scale().mean(), exact.mean(), 1e-12, "normal");
}

/// A batch of weights 2 is the batch with each row twice.
#[test]
fn weights_are_repetitions() {
    let mut rng = Rng(6);
    let x = punched(&groups(false, &mut rng).sample_rows(0..400, 8), 0.1, &mut rng);
    let (family, control) = (MixturePpca::new(3, 1), Control::new());
    let first = family.step(None, &table(&part(&x, 0, 200)), &control).unwrap();
    let second = part(&x, 1, 200);
    let twice = Mat::from_fn(400, 5, |i, j| second[(i / 2, j)]);
    let repeated = family.step(Some(&first), &table(&twice), &control).unwrap();
    let weighted = table(&second).with_weights(vec![2.0; 200]).unwrap();
    let weighted = family.step(Some(&first), &weighted, &control).unwrap();
    assert_eq!(weighted.fit.report.weight, 600.0);
    for (a, b) in weighted.fit.model.components().iter().zip(repeated.fit.model.components()) {
        close_matrix(&dense_covariance(a), &dense_covariance(b), 1e-9, "components");
    }
    let none = table(&second).with_weights(vec![0.0; 200]).unwrap();
    let same = family.step(Some(&first), &none, &control).unwrap();
    assert_eq!(same.fit.model, first.fit.model, "rows of no weight are no rows");
}

/// What is kept goes to bytes and back without a difference in the last bit.
#[test]
fn what_is_kept_survives_bytes() {
    let mut rng = Rng(7);
    let (family, control) = (MixturePpca::new(3, 1), Control::new());
    let names: Vec<String> = (0..5).map(|j| j.to_string()).collect();
    for missing in [0.0, 0.15] {
        let x = punched(&groups(false, &mut rng).sample_rows(0..600, 9), missing, &mut rng);
        let two = rounds(&part(&x, 0, 400), 2, 1, |seen, rows| family.step(seen, rows, &control));
        let Some(KeptEvidence::Mixture(kept)) = &two.kept else { panic!("evidence about a mixture") };
        let kept = covary::algorithm::MixtureEvidence::from_bytes(&kept.to_bytes(&names).unwrap()).unwrap();
        let read = OnlineFit { fit: two.fit.clone(), kept: Some(KeptEvidence::Mixture(kept.evidence)) };
        let last = part(&x, 2, 200);
        let [a, b] =
            [two, read].map(|seen| family.step(Some(&seen), &table(&last), &control).unwrap().fit.model);
        assert_eq!(a, b);
    }
}

/// Complete batches before and after one with missing values: the order hardly matters.
#[test]
fn missing_values_may_come_later() {
    let mut rng = Rng(18);
    let x = groups(false, &mut rng).sample_rows(0..1500, 3);
    let holes = punched(&x, 0.2, &mut rng);
    let (family, control) = (MixturePpca::new(3, 1), Control::new());
    let best = per_row(&family.fit(table(&x)).unwrap().model, &x);
    let mut seen = None;
    for t in 0..30 {
        let batch = part(if t % 3 == 1 { &holes } else { &x }, t % 5, 300);
        seen = Some(family.step(seen.as_ref(), &table(&batch), &control).unwrap());
    }
    let gap = best - per_row(&seen.unwrap().fit.model, &x);
    // Two thirds of the rows are complete: near the fit of all of them.
    assert!((0.0..3e-3).contains(&gap), "{gap}");
}

/// A fitted model stands for its rows: one more batch of the same rows hardly moves it.
#[test]
fn a_fit_goes_on_with_batches() {
    let mut rng = Rng(19);
    let x = groups(false, &mut rng).sample_rows(0..1000, 3);
    let (family, control) = (MixturePpca::new(3, 1), Control::new());
    let fit = family.fit(table(&x)).unwrap();
    let next = family.step(Some(&fit.clone().into()), &table(&x), &control).unwrap();
    assert_eq!((next.fit.report.rows, next.fit.report.mixture().unwrap().online_steps), (2000, Some(2)));
    let gap = per_row(&fit.model, &x) - per_row(&next.fit.model, &x);
    assert!(gap.abs() < 1e-5, "{gap}");
    // Given parameters stand for no rows: a batch is then one step of EM from them, which gains.
    let given = OnlineFit::from(fitted_without_rows(groups(false, &mut Rng(19))));
    let stepped = family.step(Some(&given), &table(&x), &control).unwrap();
    assert!(per_row(&stepped.fit.model, &x) > per_row(&given.fit.model, &x));
}

fn fitted_without_rows(model: Mixture) -> covary::Fit<Mixture> {
    let report = covary::estimator::Report::of_numbers(&model).unwrap();
    covary::Fit { model, report }
}

#[test]
fn batches_of_other_features_are_refused() {
    let (family, control) = (MixturePpca::new(2, 1), Control::new());
    let x = normal_matrix(40, 4, &mut Rng(1));
    let seen = family.step(None, &table(&x), &control).unwrap();
    let y = normal_matrix(40, 5, &mut Rng(1));
    let error = family.step(Some(&seen), &table(&y), &control).err().unwrap();
    assert!(matches!(error, Error::FeatureCount { expected: 4, found: 5 }), "{error}");
    let infinite = Mat::from_fn(40, 4, |i, j| if (i, j) == (3, 2) { f64::INFINITY } else { x[(i, j)] });
    assert!(family.step(Some(&seen), &table(&infinite), &control).is_err());
    let scaled = Request::new(family).scale(Scale::Unit);
    let error = scaled.step(None, &table(&x), &control).err().unwrap().to_string();
    assert!(error.contains("scale"), "{error}");
    let error = Request::new(Ppca::new(1)).step(None, &table(&x), &control).err().unwrap().to_string();
    assert!(error.contains("batches"), "{error}");
}

/// Gross outliers in each batch, by the tolerance of the fit of all rows: its plane within 2° and its noise within
/// 25 % of the truth.
#[test]
fn rounds_over_batches_come_near_the_robust_fit() {
    for missing in [0.0, 0.15] {
        let mut rng = Rng(23);
        let u = orthogonal(8, &mut rng);
        let w = Mat::from_fn(8, 2, |i, k| u[(i, k)] * [6.0, 4.0][k]);
        let truth = LinearGaussian::new(vec![3.0; 8], w, Noise::Isotropic(0.5)).unwrap();
        let mut x = truth.sample(2000, 5);
        (0..100).for_each(|i| (0..8).for_each(|j| x[(20 * i, j)] += 50.0 * rng.normal()));
        let x = punched(&x, missing, &mut rng);
        let (family, control) = (RobustPpca::new(2), Control::new());
        let best = family.fit(table(&x)).unwrap();
        let online = rounds(&x, 10, 6, |seen, rows| family.step(seen, rows, &control));
        let model: &LinearStudent = &online.fit.model;
        let gap = per_row(&best.model, &x) - per_row(model, &x);
        // 24 free parameters of 2000 rows are worth 0.006.
        assert!((-1e-9..1e-3).contains(&gap), "{gap}");
        relative(model.degrees_of_freedom(), best.model.degrees_of_freedom(), 0.1, "ν");
        relative(model.scale().noise().mean(), best.model.scale().noise().mean(), 0.05, "σ²");
        let details = online.fit.report.robust().unwrap();
        assert_eq!((online.fit.report.rows, details.online_steps), (12_000, Some(60)));
        assert!(details.low_rows >= 600 && details.least_weight < 0.05, "{details:?}");
        // A fit goes on, and bytes of what is kept change nothing.
        let again = family.step(Some(&best.clone().into()), &table(&x), &control).unwrap();
        let gap = per_row(&best.model, &x) - per_row(&again.fit.model, &x);
        assert!(gap.abs() < 1e-4, "{gap}");
    }
}
