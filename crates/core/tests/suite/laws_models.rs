//! The laws of evidence that weighs rows by a model: mixtures and robust PPCA.

use std::ops::Range;
use std::sync::Arc;

use covary::algorithm::{MixtureEvidence, mixture_step, robust_step};
use covary::data::Chunk;
use covary::error::Result;
use covary::evidence::{Accumulator, StudentEvidence};
use covary::expectation::LatentParameters;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Memberships, Mixture};
use covary::persist::Portable;
use covary::{Error, MixturePpca, RobustPpca};
use proptest::prelude::*;

use crate::common::holes::punched;
use crate::common::{Rng, chunk_of, close, close_all, dense_covariance, random_model, relative, table};

/// Evidence with the numbers that a step makes of it.
trait Weighted: Accumulator + Portable + Clone {
    /// Log-likelihood, weights, and all numbers of the step that follows.
    fn numbers(&self) -> Result<Vec<f64>>;
}

fn numbers_of(model: &LinearGaussian) -> Vec<f64> {
    let covariance = dense_covariance(model);
    let cells = (0..covariance.ncols()).flat_map(|j| covariance.col(j).iter().copied().collect::<Vec<_>>());
    model.mean().iter().copied().chain(cells).collect()
}

impl Weighted for MixtureEvidence {
    fn numbers(&self) -> Result<Vec<f64>> {
        let better = mixture_step(self)?;
        let of_components = better.components().iter().flat_map(numbers_of);
        let weights = self.component_weights();
        let all = [self.log_likelihood(), self.weight()].into_iter().chain(weights).chain(of_components);
        Ok(all.chain(better.weights().to_vec()).collect())
    }
}

impl Weighted for StudentEvidence {
    fn numbers(&self) -> Result<Vec<f64>> {
        let (parameters, nu) = robust_step(self)?;
        let noise = covary::model::Noise::Isotropic(parameters.noise_variance(0));
        let model = LinearGaussian::new(parameters.mean().to_vec(), parameters.loadings(), noise)?;
        let sums = [self.log_likelihood(), self.weight(), self.counted_weight(), 1.0 / nu];
        Ok(sums.into_iter().chain(numbers_of(&model)).collect())
    }
}

fn names(p: usize) -> Vec<String> {
    (0..p).map(|j| format!("feature {j}")).collect()
}

fn chunk<'a>(x: &'a Mat<f64>, rows: &Range<usize>, w: &'a [f64]) -> Chunk<'a> {
    chunk_of(x.subrows(rows.start, rows.len()), rows.start).with_weights(&w[rows.clone()]).unwrap()
}

fn of<E: Weighted>(none: &E, x: &Mat<f64>, rows: &Range<usize>, w: &[f64]) -> E {
    let mut out = none.clone();
    out.update(&chunk(x, rows, w)).unwrap();
    out
}

fn merged<E: Weighted>(a: &E, b: &E) -> E {
    let mut out = a.clone();
    out.merge(b).unwrap();
    out
}

#[track_caller]
fn same<E: Weighted>(a: &E, b: &E, what: &str) {
    let (a, b) = (a.numbers().unwrap(), b.numbers().unwrap());
    let size = b.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    close_all(&a, &b, 1e-10 * size, what);
}

/// Identity, commutativity, associativity, chunking and bytes, with some rows of no weight.
fn laws<E: Weighted>(none: &E, x: &Mat<f64>, seed: u64) {
    let (n, p) = (x.nrows(), x.ncols());
    let mut rng = Rng(seed ^ 21);
    let w: Vec<f64> = (0..n).map(|i| if i % 7 == 3 { 0.0 } else { 0.5 + rng.uniform() }).collect();
    let bytes = |e: &E| e.to_bytes(&names(p)).unwrap();
    let whole = of(none, x, &(0..n), &w);
    assert_eq!(bytes(&merged(&whole, none)), bytes(&whole), "right identity");
    assert_eq!(bytes(&merged(none, &whole)), bytes(&whole), "left identity");
    let cuts = [0, n / 3, n / 2, n];
    let [a, b, c] = [0, 1, 2].map(|k| of(none, x, &(cuts[k]..cuts[k + 1]), &w));
    same(&merged(&a, &merged(&b, &c)), &whole, "merged");
    same(&merged(&merged(&c, &a), &b), &whole, "in any order");
    let mut updated = none.clone();
    (0..3).for_each(|k| updated.update(&chunk(x, &(cuts[k]..cuts[k + 1]), &w)).unwrap());
    same(&updated, &whole, "updated");
    let read = E::from_bytes(&bytes(&whole)).unwrap();
    assert_eq!((read.features, bytes(&read.evidence)), (names(p), bytes(&whole)), "every bit comes back");
    // What was read can be merged with what was not.
    same(&merged(&E::from_bytes(&bytes(&a)).unwrap().evidence, &merged(&b, &c)), &whole, "read and merged");
}

/// Two factors of four features with noise of their own are not determined: a step may end anywhere.
fn mixture(diagonal: bool, rng: &mut Rng) -> Arc<Mixture> {
    let most = if diagonal { 1 } else { 2 };
    let components = [most, 1, 0].map(|q| random_model(4, q, diagonal, rng)).to_vec();
    Arc::new(Mixture::new(vec![0.5, 0.3, 0.2], components).unwrap())
}

/// Rows of a mixture, with missing values when asked for.
fn rows(mixture: &Mixture, n: usize, missing: bool, rng: &mut Rng) -> Mat<f64> {
    let x = covary::model::Density::sample_rows(mixture, 0..n, rng.next());
    if missing { punched(&x, 0.25, rng) } else { x }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_mixtures(seed: u64, n in 60usize..150, diagonal: bool, missing: bool) {
        let mut rng = Rng(seed);
        let model = mixture(diagonal, &mut rng);
        let x = rows(&model, n, missing, &mut rng);
        let none = match missing {
            true => MixtureEvidence::incomplete(model),
            false => MixtureEvidence::complete(model),
        };
        laws(&none, &x, seed);
    }

    #[test]
    fn of_t_rows(seed: u64, n in 40usize..150, missing: bool, k in 0usize..3) {
        let (mut rng, nu) = (Rng(seed), [1.5, 6.0, f64::INFINITY][k]);
        let truth = random_model(4, 2, false, &mut rng);
        let x = truth.sample(n, rng.next());
        let x = if missing { punched(&x, 0.25, &mut rng) } else { x };
        let parameters = LatentParameters::new(truth.mean().to_vec(), truth.loadings().as_ref(), 0.7).unwrap();
        let none = match missing {
            true => StudentEvidence::incomplete(Arc::new(parameters), nu),
            false => StudentEvidence::complete(Arc::new(parameters), nu),
        };
        laws(&none.unwrap(), &x, seed);
    }
}

/// Sums by their definition: responsibilities from dense normals.
#[test]
fn sums_of_a_mixture_are_what_they_say() {
    let mut rng = Rng(5);
    let model = mixture(false, &mut rng);
    let x = rows(&model, 80, true, &mut rng);
    let w: Vec<f64> = (0..80).map(|_| 0.2 + rng.uniform()).collect();
    let found = of(&MixtureEvidence::incomplete(Arc::clone(&model)), &x, &(0..80), &w);
    let r = model.probabilities(&table(&x)).unwrap();
    let has_cell = |i: usize| (0..4).any(|j| !x[(i, j)].is_nan());
    for k in 0..3 {
        let expected: f64 = (0..80).filter(|i| has_cell(*i)).map(|i| w[i] * r[(i, k)]).sum();
        // Responsibilities below 1e-10 are left out.
        close(found.component_weights()[k], expected, 80.0 * 1e-10, k);
    }
    let likelihood: f64 = model.log_density(&table(&x)).unwrap().iter().zip(&w).map(|(l, w)| l * w).sum();
    relative(found.log_likelihood(), likelihood, 1e-12, "log-likelihood");
}

/// Steps over halves that lie apart end where a fit of all rows ends, and never fall on their way.
#[test]
fn steps_over_two_halves_lead_to_the_fit() {
    let mut rng = Rng(8);
    let far = |shift: f64, rng: &mut Rng| {
        let c = random_model(4, 1, false, rng);
        let mean = c.mean().iter().map(|m| m + shift).collect();
        LinearGaussian::new(mean, c.loadings().clone(), c.noise().clone()).unwrap()
    };
    let truth = Mixture::new(vec![0.6, 0.4], vec![far(0.0, &mut rng), far(5.0, &mut rng)]).unwrap();
    for missing in [false, true] {
        let x = rows(&truth, 400, missing, &mut rng);
        let fit = MixturePpca::new(2, 1).prior(None).fit(table(&x)).unwrap();
        let (mut mixture, mut last, w) = (Arc::new(truth.clone()), f64::NEG_INFINITY, vec![1.0; 400]);
        for _ in 0..300 {
            let none = match missing {
                true => MixtureEvidence::incomplete(Arc::clone(&mixture)),
                false => MixtureEvidence::complete(Arc::clone(&mixture)),
            };
            let halves = [0..200, 200..400].map(|half| of(&none, &x, &half, &w).to_bytes(&names(4)).unwrap());
            let [a, b] = halves.map(|bytes| MixtureEvidence::from_bytes(&bytes).unwrap().evidence);
            let all = merged(&a, &b);
            assert!(all.log_likelihood() >= last - 1e-9 * last.abs(), "{} {last}", all.log_likelihood());
            last = all.log_likelihood();
            mixture = Arc::new(mixture_step(&all).unwrap());
        }
        close(last, fit.report.log_likelihood.unwrap(), 1e-4, missing);
    }
}

#[test]
fn robust_steps_over_two_halves_lead_to_the_fit() {
    let mut rng = Rng(9);
    let truth = random_model(5, 2, false, &mut rng);
    let mut x = truth.sample(300, 4);
    (0..12).for_each(|i| (0..5).for_each(|j| x[(25 * i, j)] += 40.0 * rng.normal()));
    for missing in [false, true] {
        let x = if missing { punched(&x, 0.15, &mut rng) } else { x.clone() };
        let fit = RobustPpca::new(2).fit(table(&x)).unwrap();
        let start = LatentParameters::new(truth.mean().to_vec(), truth.loadings().as_ref(), 1.0).unwrap();
        let (mut parameters, mut nu) = (Arc::new(start), 4.0);
        let (mut last, w) = (f64::NEG_INFINITY, vec![1.0; 300]);
        for _ in 0..400 {
            let none = match missing {
                true => StudentEvidence::incomplete(Arc::clone(&parameters), nu),
                false => StudentEvidence::complete(Arc::clone(&parameters), nu),
            };
            let none = none.unwrap();
            let all = merged(&of(&none, &x, &(0..150), &w), &of(&none, &x, &(150..300), &w));
            assert!(all.log_likelihood() >= last - 1e-9 * last.abs(), "{} {last}", all.log_likelihood());
            last = all.log_likelihood();
            let (better, found) = robust_step(&all).unwrap();
            (parameters, nu) = (Arc::new(better), found);
        }
        close(last, fit.report.log_likelihood.unwrap(), 1e-4, missing);
        relative(nu, fit.model.degrees_of_freedom(), 1e-2, "ν");
    }
}

#[test]
fn evidence_about_other_models_is_not_merged() {
    let mut rng = Rng(3);
    let (a, b) = (mixture(false, &mut rng), mixture(false, &mut rng));
    let mut complete = MixtureEvidence::complete(Arc::clone(&a));
    let refused = |result: Result<()>| matches!(result, Err(Error::Parameter { .. }));
    assert!(refused(complete.merge(&MixtureEvidence::complete(b))));
    assert!(refused(complete.merge(&MixtureEvidence::incomplete(Arc::clone(&a)))));
    assert!(matches!(mixture_step(&complete), Err(Error::NoRows)));
    let mut incomplete = MixtureEvidence::incomplete(a);
    let x = Mat::from_fn(3, 5, |i, j| (i * j) as f64);
    assert!(matches!(incomplete.update(&chunk_of(x.as_ref(), 0)), Err(Error::FeatureCount { .. })));
}
