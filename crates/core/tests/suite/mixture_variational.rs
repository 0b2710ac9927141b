//! Mixtures by variational Bayes: how many groups and latent variables are kept, what is known of small groups,
//! missing values, threads, bad input.

use covary::data::RowSource;
use covary::linalg::Mat;
use covary::model::{Assign, Density, Fill, Imputed, LinearGaussian, Mixture, Noise};
use covary::{BayesianPca, Components, Control, Error, MixturePpca};

use crate::common::{Rng, bits, close, normal_matrix, orthogonal, relative, stored, table};

/// Groups of p features with q latent variables of deviations 2 to 3 and noise of deviation ½, whose means lie
/// about `apart` from each other.
fn groups(k: usize, q: usize, p: usize, apart: f64, rng: &mut Rng) -> Mixture {
    let component = |rng: &mut Rng| {
        let axes = orthogonal(p, rng);
        let mean = (0..p).map(|_| apart * rng.normal() / (2.0 * p as f64).sqrt()).collect();
        let w = Mat::from_fn(p, q, |j, i| axes[(j, i)] * (2.0 + 1.0 / (1.0 + i as f64)));
        LinearGaussian::new(mean, w, Noise::Isotropic(0.25)).unwrap()
    };
    Mixture::new(vec![1.0; k], (0..k).map(|_| component(rng)).collect()).unwrap()
}

/// The same rows with a share of the cells missing.
fn with_missing(x: &Mat<f64>, share: f64, rng: &mut Rng) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if rng.uniform() < share { f64::NAN } else { x[(i, j)] })
}

#[test]
fn groups_that_lie_apart_are_found_with_their_latent_variables() {
    let mut rng = Rng(5);
    let truth = groups(3, 2, 7, 30.0, &mut rng);
    let x = truth.sample_rows(0..450, 1);
    for share in [0.0, 0.2] {
        let rows = with_missing(&x, share, &mut rng);
        let fit = MixturePpca::new(6, Components::All).variational(true).fit(&rows).unwrap();
        assert_eq!(fit.model.n_components(), 3, "{share}");
        assert!(fit.model.components().iter().all(|c| c.n_latent() == 2), "{share}");
        let report = fit.report.mixture().unwrap();
        let found = report.variational.as_ref().unwrap();
        // 150 rows of 5 free directions each know σ² to about 5 %.
        found.noise.iter().for_each(|noise| relative(*noise, 0.25, 0.2, share));
        assert!(found.precisions.iter().all(|of| of.len() == 2));
        assert_eq!(report.grown.iter().filter(|row| row.bound.is_some()).count(), report.grown.len());
        // The same rows as lists of their cells.
        if share > 0.0 {
            let listed = MixturePpca::new(6, Components::All).variational(true).fit(&stored(&rows)).unwrap();
            let listed = listed.report.mixture().unwrap().variational.clone().unwrap();
            close(listed.bound, found.bound, 1e-5, "lists");
        }
    }
}

/// A prior worth one row says little beside 2000: noise and loadings are those of Bayesian PCA.
#[test]
fn one_group_of_many_rows_is_bayesian_pca() {
    let mut rng = Rng(8);
    let x = groups(1, 2, 6, 3.0, &mut rng).sample_rows(0..2000, 2);
    let group = MixturePpca::new(1, 4).variational(true).fit(&x).unwrap();
    let whole = BayesianPca::new(4).fit(&x).unwrap();
    let (component, found) = (&group.model.components()[0], group.report.mixture().unwrap());
    assert_eq!((component.n_latent(), whole.model.n_latent()), (2, 2));
    relative(found.variational.as_ref().unwrap().noise[0], whole.model.noise_variance(), 2e-3, "noise");
    let (a, b) = (component.covariance(), whole.model.gaussian().covariance());
    (0..6).for_each(|i| (0..6).for_each(|j| close(a[(i, j)], b[(i, j)], 0.02, (i, j))));
}

#[test]
fn noise_without_groups_is_one_sphere() {
    let x = normal_matrix(200, 5, &mut Rng(3));
    let fit = MixturePpca::new(4, Components::All).variational(true).fit(&x).unwrap();
    assert_eq!((fit.model.n_components(), fit.model.components()[0].n_latent()), (1, 0));
}

/// 25 rows of 8 features do not say all about a group: cells that they miss are filled with a deviation that
/// includes it.
#[test]
fn intervals_of_cells_in_small_groups_cover_what_they_say() {
    let (mut inside, mut cells) = (0, 0);
    for seed in 0..12 {
        let mut rng = Rng(40 + seed);
        let x = groups(2, 1, 8, 25.0, &mut rng).sample_rows(0..50, seed);
        let rows = with_missing(&x, 0.15, &mut rng);
        let fit = MixturePpca::new(2, 3).variational(true).fit(&rows).unwrap();
        let Imputed { cells: filled, std } = fit.model.impute_with_std(&table(&rows)).unwrap();
        for (i, j) in
            (0..50).flat_map(|i| (0..8).map(move |j| (i, j))).filter(|(i, j)| rows[(*i, *j)].is_nan())
        {
            cells += 1;
            inside += usize::from((filled[(i, j)] - x[(i, j)]).abs() < 1.96 * std[(i, j)]);
        }
    }
    // 700 cells: a share of 0.95 has a standard error of 0.008.
    let share = f64::from(inside as u32) / f64::from(cells as u32);
    assert!((0.92..0.975).contains(&share), "{share} of {cells}");
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut rng = Rng(21);
    let x = groups(2, 1, 5, 12.0, &mut rng).sample_rows(0..200, 4);
    let rows = with_missing(&x, 0.1, &mut rng);
    let fit = |threads: usize| {
        let fit = MixturePpca::new(3, 2).variational(true).threads(threads).fit(&rows).unwrap();
        let labels = fit.model.assign(&table(&rows)).unwrap();
        (bits(fit.model.weights()), fit.report.mixture().unwrap().variational.clone(), labels)
    };
    let one = fit(1);
    [2, 3].into_iter().for_each(|threads| assert_eq!(fit(threads), one, "{threads}"));
}

/// Weights that add up to 1 count as many rows as there are: a prior stands beside rows, not beside shares.
#[test]
fn weights_that_are_shares_count_rows() {
    let mut rng = Rng(30);
    let x = groups(2, 1, 4, 15.0, &mut rng).sample_rows(0..120, 9);
    let with = |weight: f64, family: &MixturePpca| {
        let rows = table(&x).with_weights(vec![weight; 120]).unwrap();
        family.fit(&rows as &dyn RowSource).unwrap()
    };
    for family in [MixturePpca::new(2, 1), MixturePpca::new(2, 1).variational(true)] {
        let (shares, counts) = (with(1.0 / 120.0, &family), with(1.0, &family));
        assert_eq!((shares.model.n_components(), counts.model.n_components()), (2, 2));
        let noise = |k: usize| {
            (shares.model.components()[k].noise().mean(), counts.model.components()[k].noise().mean())
        };
        (0..2).for_each(|k| relative(noise(k).0, noise(k).1, 1e-9, k));
        close(shares.report.weight, 1.0, 1e-12, "weight");
        let likelihood = |report: &covary::estimator::Report| report.log_likelihood.unwrap();
        relative(likelihood(&shares.report), likelihood(&counts.report) / 120.0, 1e-9, "likelihood");
    }
}

#[test]
fn options_that_variational_bayes_does_not_have() {
    let x = normal_matrix(40, 3, &mut Rng(1));
    let family = || MixturePpca::new(2, 1).variational(true);
    for (family, told) in [
        (family().diagonal(true), "noise"),
        (family().shared_noise(true), "noise"),
        (family().prior(None), "prior"),
    ] {
        match family.fit(&x) {
            Err(Error::Parameter { name, .. }) => assert!(name.contains(told), "{name}"),
            other => panic!("{told}: {:?}", other.map(|fit| fit.report.passes)),
        }
    }
    let step = family().step(None, &table(&x), &Control::new());
    assert!(matches!(step, Err(Error::Parameter { name: "the method of a mixture of batches", .. })));
}
