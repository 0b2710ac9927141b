//! Mixtures of PPCA and of factor analysers: brute force, limits that theory promises, optima that other
//! software has found, missing values, bad input.

use std::sync::Arc;

use covary::data::{Cells, RowSource, Table};
use covary::linalg::Mat;
use covary::model::{
    Assign, Density, Encode, Fill, LinearGaussian, Memberships, Mixture, Model, Noise, Reconstruction,
};
use covary::{Control, Error, FactorAnalysis, MixturePpca, Ppca, Request, Scale};

use crate::common::{
    Dense, Rng, bits, close, close_all, close_matrix, data_set, matrix_bits, normal_matrix, random_model,
    relative, row, standardised, stored, table,
};

/// Three components of five features, with one, two and no latent variables.
fn mixture(diagonal: bool, rng: &mut Rng) -> Mixture {
    let components = [1, 2, 0].map(|q| random_model(5, q, diagonal, rng)).to_vec();
    Mixture::new(vec![0.5, 0.3, 0.2], components).unwrap()
}

/// Rows near the components, a third of the cells missing, one row without any.
fn rows_with_missing(model: &Mixture, n: usize, rng: &mut Rng) -> Mat<f64> {
    let x = model.sample_rows(0..n, 3);
    Mat::from_fn(n, 5, |i, j| if i == 4 || rng.uniform() < 0.33 { f64::NAN } else { x[(i, j)] })
}

/// Weights πₖpₖ of the observed cells of a row by dense normals, and their logarithmic sum.
fn responsibilities(model: &Mixture, x: &[f64]) -> (Vec<f64>, f64) {
    let observed: Vec<usize> = (0..x.len()).filter(|j| !x[*j].is_nan()).collect();
    let cells: Vec<f64> = observed.iter().map(|j| x[*j]).collect();
    let joint = |k: usize| {
        let dense = Dense::of(&model.components()[k]).marginal(&observed);
        model.weights()[k].ln() + if cells.is_empty() { 0.0 } else { dense.log_density(&cells) }
    };
    let joint: Vec<f64> = (0..model.n_components()).map(joint).collect();
    let largest = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = largest + joint.iter().map(|j| (j - largest).exp()).sum::<f64>().ln();
    (joint.iter().map(|j| (j - total).exp()).collect(), total)
}

#[test]
fn questions_equal_brute_force() {
    for diagonal in [false, true] {
        let mut rng = Rng(11);
        let model = mixture(diagonal, &mut rng);
        let x = rows_with_missing(&model, 60, &mut rng);
        let rows = table(&x);
        let (density, p) = (model.log_density(&rows).unwrap(), model.probabilities(&rows).unwrap());
        let (labels, filled) = (model.assign(&rows).unwrap(), model.impute_with_std(&rows).unwrap());
        let listed = model.impute(&stored(&x)).unwrap();
        for i in 0..x.nrows() {
            let cells = row(&x, i);
            let (r, total) = responsibilities(&model, &cells);
            close(density[i], total, 1e-10, (diagonal, i));
            (0..3).for_each(|k| close(p[(i, k)], r[k], 1e-10, (i, k)));
            let largest = (0..3).fold(0, |best, k| if r[k] > r[best] { k } else { best });
            assert_eq!(labels[i], largest, "row {i}");
            let each: Vec<_> = model.components().iter().map(|c| c.conditional(&cells).unwrap()).collect();
            let found = model.conditional(&cells, &Control::new()).unwrap();
            for (at, j) in each[0].features.iter().enumerate() {
                let mean: f64 = (0..3).map(|k| r[k] * each[k].mean[at]).sum();
                let square = |k: usize| each[k].covariance[(at, at)] + (each[k].mean[at] - mean).powi(2);
                let variance: f64 = (0..3).map(|k| r[k] * square(k)).sum();
                close(filled.cells[(i, *j)], mean, 1e-10, (i, j));
                close(listed[(i, *j)], mean, 1e-10, (i, j));
                close(filled.std[(i, *j)], variance.sqrt(), 1e-10, (i, j));
                close(found.mean[at], mean, 1e-10, (i, j));
                close(found.covariance[(at, at)], variance, 1e-10, (i, j));
            }
            let kept = (0..5).filter(|j| !cells[*j].is_nan());
            kept.for_each(|j| assert_eq!(filled.cells[(i, j)].to_bits(), cells[j].to_bits()));
        }
        assert_eq!(density[4], 0.0, "a row without cells");
        assert_eq!(labels[4], 0, "it belongs to the largest component");
    }
}

#[test]
fn coordinates_are_those_of_the_most_probable_component() {
    let mut rng = Rng(12);
    let model = mixture(false, &mut rng);
    let x = rows_with_missing(&model, 40, &mut rng);
    let labels = model.assign(&table(&x)).unwrap();
    let z = model.encode(&table(&x)).unwrap();
    let rebuilt =
        covary::model::Reconstruct::reconstruct(&model, &table(&x), Reconstruction::Posterior).unwrap();
    let posterior = covary::model::LatentPosterior::posterior(&model, &table(&x)).unwrap();
    for i in 0..x.nrows() {
        let one = Mat::from_fn(1, 5, |_, j| x[(i, j)]);
        let component = &model.components()[labels[i]];
        let own = component.posterior(table(&one)).unwrap();
        for j in 0..2 {
            let expected = if j < own.mean.ncols() { own.mean[(0, j)] } else { 0.0 };
            close(z[(i, j)], expected, 1e-12, (i, j));
            close(posterior.mean[(i, j)], expected, 1e-12, (i, j));
            let variance = if j < own.mean.ncols() { own.covariance.of(0)[(j, j)] } else { 0.0 };
            close(posterior.covariance.of(i)[(j, j)], variance, 1e-12, (i, j));
        }
        let own = component.reconstruct(table(&one), Reconstruction::Posterior).unwrap();
        (0..5).for_each(|j| close(rebuilt[(i, j)], own[(0, j)], 1e-12, (i, j)));
    }
}

/// Mean and covariance of many drawn rows, and of draws of missing cells, are those of the model.
/// Weights are divided by their sum once: what has been read from a file is written with the same bits.
#[test]
fn weights_that_add_up_to_1_keep_their_bits() {
    let components: Vec<_> = mixture(false, &mut Rng(2)).components()[..2].to_vec();
    for seed in 0..200 {
        let mut rng = Rng(seed);
        let once = Mixture::new(vec![rng.uniform(), rng.uniform()], components.clone()).unwrap();
        let again = Mixture::new(once.weights().to_vec(), components.clone()).unwrap();
        assert_eq!(again.weights(), once.weights(), "{seed}");
    }
}

#[test]
fn draws_have_the_moments_of_the_mixture() {
    let model = mixture(false, &mut Rng(13));
    let n = 40_000;
    let x = model.sample_rows(0..n, 5);
    let (mean, covariance) = crate::common::mean_and_covariance(&x, None);
    let expected = Density::covariance(&model).unwrap();
    for j in 0..5 {
        let error = (expected[(j, j)] / n as f64).sqrt();
        close(mean[j], model.mean()[j], 5.0 * error, j);
        close(covariance[(j, j)] / expected[(j, j)], 1.0, 0.05, j);
    }
    assert_eq!(matrix_bits(&model.sample_rows(300..310, 5)), {
        let some = Mat::from_fn(10, 5, |i, j| x[(300 + i, j)]);
        matrix_bits(&some)
    });
    let one = Mat::from_fn(1, 5, |_, j| if j < 2 { model.mean()[j] } else { f64::NAN });
    let known = model.conditional(&row(&one, 0), &Control::new()).unwrap();
    let draws = model.draw_missing(&table(&one), 0..20_000, 1).unwrap();
    for (at, j) in known.features.iter().enumerate() {
        let mean: f64 = draws.iter().map(|d| d[(0, *j)]).sum::<f64>() / draws.len() as f64;
        let variance = known.covariance[(at, at)];
        close(mean, known.mean[at], 5.0 * (variance / draws.len() as f64).sqrt(), j);
        let square: f64 = draws.iter().map(|d| (d[(0, *j)] - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        close(square / variance, 1.0, 0.1, j);
    }
}

/// p-values of rows of the mixture are uniform, and those of one component are PPCA's.
#[test]
fn p_values_mean_what_they_say() {
    let mut rng = Rng(14);
    let near = mixture(false, &mut rng);
    let x = near.sample_rows(0..3000, 9);
    let holes = Mat::from_fn(3000, 5, |i, j| if (i + 2 * j) % 5 == 0 { f64::NAN } else { x[(i, j)] });
    for x in [&x, &holes] {
        let mut p = near.outliers(&table(x)).unwrap().p_value;
        p.sort_by(f64::total_cmp);
        // Kolmogorov and Smirnov: √n D is above 1.95 once in a thousand.
        let distance =
            p.iter().enumerate().map(|(i, p)| (p - (i as f64 + 0.5) / 3000.0).abs()).fold(0.0, f64::max);
        assert!(distance * 3000f64.sqrt() < 1.95 + 3000f64.sqrt() / 100.0, "{distance}");
    }
    let one = random_model(5, 2, false, &mut rng);
    let alone = Mixture::new(vec![1.0], vec![one.clone()]).unwrap();
    let (ours, theirs) = (alone.outliers(&table(&holes)).unwrap(), one.outliers(table(&holes)).unwrap());
    close_all(&ours.p_value, &theirs.p_value, 1e-10, "p");
    close_all(&ours.t2, &theirs.t2, 1e-10, "t2");
    close_all(&ours.spe, &theirs.spe, 1e-10, "spe");
}

/// Two groups of n rows each, six deviations apart, with a direction of their own.
fn two_groups(n: usize, rng: &mut Rng) -> Mat<f64> {
    let z = normal_matrix(2 * n, 4, rng);
    let along = |i: usize, j: usize| match i < n {
        true => [2.0, 1.0, 0.0, 0.0][j] * z[(i, 3)],
        false => [0.0, 1.0, -2.0, 0.0][j] * z[(i, 3)],
    };
    let noise = normal_matrix(2 * n, 4, rng);
    let shift = |i: usize| if i < n { 0.0 } else { 6.0 };
    Mat::from_fn(2 * n, 4, |i, j| shift(i) + along(i, j) + 0.5 * noise[(i, j)])
}

#[test]
fn one_component_is_ppca_or_factor_analysis() {
    let x = normal_matrix(80, 6, &mut Rng(15));
    let w = normal_matrix(2, 6, &mut Rng(16));
    let x = Mat::from_fn(80, 6, |i, j| x[(i, j)] + 2.0 * x[(i, 0)] * w[(0, j)] + x[(i, 1)] * w[(1, j)]);
    let holes = Mat::from_fn(80, 6, |i, j| if (3 * i + j) % 11 == 0 { f64::NAN } else { x[(i, j)] });
    for x in [&x, &holes] {
        let ours = MixturePpca::new(1, 2).fit(table(x)).unwrap();
        let theirs = Ppca::new(2).tolerance(1e-12).fit(table(x)).unwrap();
        let (a, b) = (&ours.model.components()[0], &theirs.model);
        let l = theirs.report.log_likelihood.unwrap();
        close(ours.report.log_likelihood.unwrap(), l, 1e-8 * l.abs(), "likelihood");
        close_matrix(&a.covariance(), &b.covariance(), 1e-4, "covariance");
        close_all(a.mean(), b.mean(), 1e-4, "mean");
    }
    let ours = MixturePpca::new(1, 2).diagonal(true).fit(table(&x)).unwrap();
    let theirs = FactorAnalysis::new(2).fit(table(&x)).unwrap();
    let l = theirs.report.log_likelihood.unwrap();
    close(ours.report.log_likelihood.unwrap(), l, 1e-8 * l.abs(), "likelihood of factors");
    close_matrix(&ours.model.components()[0].covariance(), &theirs.model.gaussian().covariance(), 1e-6, "C");
    assert_eq!(ours.report.mixture().unwrap().prior_rows, None, "a single component has no prior");
}

/// Without latent variables and with the same small noise, rows go to the nearest mean, as in k-means.
#[test]
fn little_equal_noise_is_nearest_means() {
    let mut rng = Rng(17);
    let (x, means) = (normal_matrix(50, 3, &mut rng), normal_matrix(4, 3, &mut rng));
    let spheres = (0..4)
        .map(|k| LinearGaussian::new(row(&means, k), Mat::zeros(3, 0), Noise::Isotropic(1e-6)).unwrap());
    let model = Mixture::new(vec![0.25; 4], spheres.collect()).unwrap();
    let labels = model.assign(&table(&x)).unwrap();
    for (i, label) in labels.iter().enumerate() {
        let distance = |k: usize| (0..3).map(|j| (x[(i, j)] - means[(k, j)]).powi(2)).sum::<f64>();
        let nearest = (0..4).min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap();
        assert_eq!(*label, nearest);
    }
}

/// Totals of maximum likelihood from where the default fit ends. Those with q = p − 1 are those of
/// unrestricted covariances in mclust (VVV); the others were found by a thousand random starts in NumPy.
#[test]
fn optima_of_iris_are_those_that_are_known() {
    let Some(iris) = data_set("iris") else { return };
    let known = [
        (1, 1, -470.6695),
        (1, 2, -404.9628),
        (2, 1, -250.8794),
        (2, 2, -234.6028),
        (2, 3, -214.3547),
        (3, 1, -218.8476),
        (3, 2, -201.8321),
        (3, 3, -180.1855),
    ];
    for (groups, latent, total) in known {
        let fit = MixturePpca::new(groups, latent).fit(table(&iris)).unwrap();
        assert!(fit.report.converged());
        assert!(fit.report.trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()));
        let likely = MixturePpca::new(groups, latent).prior(None).start(fit.model);
        let likely = likely.fit(table(&iris)).unwrap();
        close(likely.report.log_likelihood.unwrap(), total, 1e-3, (groups, latent));
    }
    // A rare one, which our start surpasses: no worse than what is known.
    let fit = MixturePpca::new(4, 2).fit(table(&iris)).unwrap();
    let likely = MixturePpca::new(4, 2).prior(None).start(fit.model).fit(table(&iris)).unwrap();
    assert!(likely.report.log_likelihood.unwrap() > -184.0767 - 1e-3);
}

/// BIC takes K = 3 with one latent variable on iris, and two groups of eruptions, as mclust does.
#[test]
fn the_number_of_groups_is_chosen_by_bic() {
    let Some(iris) = data_set("iris") else { return };
    let fit = MixturePpca::new(covary::estimator::Groups::Between(1, 5), 1).fit(table(&iris)).unwrap();
    assert_eq!(fit.model.n_components(), 3);
    let Some(faithful) = data_set("faithful") else { return };
    let fit = MixturePpca::new(covary::estimator::Groups::AUTO, 1).fit(table(&faithful)).unwrap();
    assert_eq!(fit.model.n_components(), 2);
    let report = fit.report.mixture().unwrap();
    // mclust 6, VVV with 2 components: log-likelihood −1130.264.
    close(fit.report.log_likelihood.unwrap(), -1130.264, 0.05, "faithful");
    close(report.bic, 2.0 * 1130.264 + 11.0 * 272f64.ln(), 0.1, "BIC");
    assert!(report.icl >= report.bic);
}

/// One direction in the first group and two in the second: each has its own number.
#[test]
fn latent_variables_are_chosen_for_each_component() {
    let mut rng = Rng(29);
    let (z, noise) = (normal_matrix(600, 2, &mut rng), normal_matrix(600, 6, &mut rng));
    let first = [[2.0, 2.0, 0.0, 0.0, 0.0, 0.0], [0.0; 6]];
    let second = [[0.0, 0.0, 3.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 2.0, 0.0, -2.0]];
    let x = Mat::from_fn(600, 6, |i, j| {
        let (w, shift) = if i < 300 { (first, 0.0) } else { (second, 8.0) };
        shift + w[0][j] * z[(i, 0)] + w[1][j] * z[(i, 1)] + 0.5 * noise[(i, j)]
    });
    let groups = covary::estimator::Groups::Between(1, 4);
    let fit = MixturePpca::new(groups, covary::Components::Auto).fit(table(&x)).unwrap();
    let mut latent: Vec<usize> = fit.model.components().iter().map(LinearGaussian::n_latent).collect();
    latent.sort_unstable();
    assert_eq!(latent, [1, 2]);
}

#[test]
fn standardised_wine_has_its_three_cultivars() {
    let Some(wine) = data_set("wine") else { return };
    let wine = standardised(&wine, 0);
    let fit = MixturePpca::new(3, 2).fit(table(&wine)).unwrap();
    let labels = fit.model.assign(&table(&wine)).unwrap();
    // 59, 71 and 48 rows one after the other; a group is what most of its rows are.
    let cultivar = |i: usize| usize::from(i >= 59) + usize::from(i >= 130);
    let mut counts = [[0usize; 3]; 3];
    labels.iter().enumerate().for_each(|(i, k)| counts[*k][cultivar(i)] += 1);
    let right: usize = counts.iter().map(|of| of.iter().max().unwrap()).sum();
    assert!(right >= 160, "{counts:?}"); // by chance 71
}

#[test]
fn missing_values_leave_groups_and_parameters() {
    let mut rng = Rng(18);
    let x = two_groups(200, &mut rng);
    let complete = MixturePpca::new(2, 1).fit(table(&x)).unwrap();
    for share in [0.1, 0.3] {
        let mut hidden = Rng(19);
        let y = Mat::from_fn(400, 4, |i, j| if hidden.uniform() < share { f64::NAN } else { x[(i, j)] });
        let fit = MixturePpca::new(2, 1).fit(table(&y)).unwrap();
        assert!(fit.report.converged() && fit.report.holes.is_some());
        let listed = MixturePpca::new(2, 1).fit(&stored(&y)).unwrap();
        close(
            listed.report.log_likelihood.unwrap(),
            fit.report.log_likelihood.unwrap(),
            1e-4,
            "listed cells",
        );
        // Groups are in the order of their weights, which are about equal: match them by their means.
        let first = |model: &Mixture| {
            let at = |k: usize| model.components()[k].mean()[3].abs();
            usize::from(at(1) < at(0))
        };
        for k in 0..2 {
            let (a, b) = ((first(&fit.model) + k) % 2, (first(&complete.model) + k) % 2);
            let (a, b) = (&fit.model.components()[a], &complete.model.components()[b]);
            close_all(a.mean(), b.mean(), 0.25, "means");
            close(a.noise().mean() / b.noise().mean(), 1.0, 0.25, "noise");
        }
        let labels = fit.model.assign(&table(&y)).unwrap();
        let same = (0..400).filter(|i| (labels[*i] == first(&fit.model)) == (*i < 200)).count();
        assert!(same.max(400 - same) >= 392, "{same}");
        let filled = fit.model.impute_with_std(&table(&y)).unwrap();
        let cells = (0..400).flat_map(|i| (0..4).map(move |j| (i, j))).filter(|c| y[*c].is_nan());
        let inside = |c: &(usize, usize)| (filled.cells[*c] - x[*c]).abs() < 1.96 * filled.std[*c];
        let (all, covered) = (cells.clone().count(), cells.filter(inside).count());
        let cover = covered as f64 / all as f64;
        assert!((0.92..0.98).contains(&cover), "{share}: {cover} of {all}");
    }
}

/// Shared noise of complete rows in closed form, and of all cells by EM, end at the same optimum.
#[test]
fn shared_noise_is_the_same_in_both_ways() {
    let x = two_groups(150, &mut Rng(20));
    let family = MixturePpca::new(2, 1).shared_noise(true).prior(None).tolerance(1e-11);
    let closed = family.clone().fit(table(&x)).unwrap();
    let noise = |fit: &covary::Fit<Mixture>, k: usize| fit.model.components()[k].noise().mean();
    assert_eq!(noise(&closed, 0), noise(&closed, 1));
    // A list of observed cells goes through the expectation step.
    let listed = family.start(closed.model.clone()).fit(&stored(&x)).unwrap();
    let (a, b) = (closed.report.log_likelihood.unwrap(), listed.report.log_likelihood.unwrap());
    close(a, b, 1e-6, "likelihood");
    close(noise(&closed, 0), noise(&listed, 0), 1e-5, "noise");
    let own = MixturePpca::new(2, 1).prior(None).fit(table(&x)).unwrap();
    assert!(own.report.log_likelihood.unwrap() >= a - 1e-6, "noise of their own fits better");
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let x = two_groups(300, &mut Rng(21));
    let holes = Mat::from_fn(600, 4, |i, j| if (i * 7 + j) % 13 == 0 { f64::NAN } else { x[(i, j)] });
    for x in [&x, &holes] {
        let fit = |threads: usize| {
            let fit = MixturePpca::new(2, 1).threads(threads).fit(table(x)).unwrap();
            let loadings: Vec<u64> =
                fit.model.components().iter().flat_map(|c| matrix_bits(c.loadings())).collect();
            (bits(fit.model.weights()), loadings, fit.report.log_likelihood.unwrap().to_bits())
        };
        let one = fit(1);
        [2, 3, 7].iter().for_each(|threads| assert_eq!(fit(*threads), one, "{threads}"));
    }
}

/// Weights count rows: one of weight 2 is two, one of weight 0 is none, whatever it holds.
#[test]
fn weights_count_rows() {
    let x = two_groups(60, &mut Rng(22));
    let twice = Mat::from_fn(150, 4, |i, j| x[(i % 120, j)]);
    let mut cells = x.clone();
    (0..4).for_each(|j| cells[(119, j)] = f64::INFINITY);
    let weights: Vec<f64> = (0..120).map(|i| if i < 30 { 2.0 } else { f64::from(i < 119) }).collect();
    let weighted =
        Table::new(Cells::F64(covary::data::Block::View(cells.as_ref()))).with_weights(weights).unwrap();
    let twice = Mat::from_fn(149, 4, |i, j| if i < 119 { x[(i, j)] } else { twice[(i + 1, j)] });
    let (a, b) =
        (MixturePpca::new(2, 1).fit(weighted).unwrap(), MixturePpca::new(2, 1).fit(table(&twice)).unwrap());
    close(a.report.log_likelihood.unwrap(), b.report.log_likelihood.unwrap(), 1e-6, "weights");
    close_all(a.model.weights(), b.model.weights(), 1e-6, "shares");
}

#[test]
fn a_scaled_fit_answers_in_the_units_of_the_data() {
    let x = two_groups(60, &mut Rng(23));
    let units = [1.0, 1e3, 1e-2, 7.0];
    let scaled = Mat::from_fn(120, 4, |i, j| x[(i, j)] * units[j]);
    let request = |scale| Request::new(MixturePpca::new(2, 1)).scale(scale);
    let fit = request(Scale::Unit).fit(&table(&scaled) as &dyn RowSource, &Control::new()).unwrap();
    let by_hand = standardised(&x, 0);
    let plain = request(Scale::None).fit(&table(&by_hand) as &dyn RowSource, &Control::new()).unwrap();
    let (a, b) = (fit.model.groups().unwrap(), plain.model.groups().unwrap());
    assert_eq!(a.assign(&table(&scaled)).unwrap(), b.assign(&table(&by_hand)).unwrap());
    let filled = fit.model.imputer().unwrap().impute(&table(&scaled)).unwrap();
    assert_eq!(matrix_bits(&filled), matrix_bits(&scaled));
    // The density of x is that of x/d divided by Πd.
    let (_, covariance) = crate::common::mean_and_covariance(&scaled, None);
    let shift: f64 = (0..4).map(|j| 0.5 * covariance[(j, j)].ln()).sum();
    let expected = plain.model.density().unwrap().log_density(&table(&by_hand)).unwrap();
    let expected: Vec<f64> = expected.iter().map(|l| l - shift).collect();
    close_all(
        &fit.model.density().unwrap().log_density(&table(&scaled)).unwrap(),
        &expected,
        1e-6,
        "density",
    );
    let total = plain.report.log_likelihood.unwrap() - 120.0 * shift;
    close(fit.report.log_likelihood.unwrap(), total, 1e-6, "likelihood");
    let bic = plain.report.mixture().unwrap().bic + 240.0 * shift;
    close(fit.report.mixture().unwrap().bic, bic, 1e-6, "BIC");
}

#[test]
fn what_cannot_be_fitted_is_said() {
    let x = two_groups(20, &mut Rng(24));
    let refused = |family: MixturePpca, what: &str| {
        let error = family.fit(table(&x)).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(MixturePpca::new(0, 1), "the number of groups is 0");
    refused(MixturePpca::new(2, 4), "below the number of features");
    refused(MixturePpca::new(2, 1).prior(Some(-1.0)), "the number of rows that the prior counts as");
    refused(MixturePpca::new(2, 1).tolerance(f64::NAN), "the tolerance");
    let mut infinite = x.clone();
    infinite[(3, 2)] = f64::INFINITY;
    assert!(matches!(MixturePpca::new(2, 1).fit(table(&infinite)), Err(Error::Infinite { .. })));
    let constant = Mat::from_fn(10, 3, |_, j| j as f64);
    assert!(matches!(MixturePpca::new(2, 1).fit(table(&constant)), Err(Error::Constant)));
    let one = Mat::from_fn(1, 3, |_, j| j as f64);
    assert!(MixturePpca::new(1, 1).fit(table(&one)).is_err());
    // Four rows cannot feed five components: fewer are left, and the report says so.
    let few = Mat::from_fn(8, 3, |i, j| ((i * 5 + j * 3) % 7) as f64);
    let fit = MixturePpca::new(5, 1).fit(table(&few)).unwrap();
    let report = fit.report.mixture().unwrap();
    assert_eq!(fit.model.n_components() + report.dropped, 5);
    // Rows of another width.
    let fit = MixturePpca::new(2, 1).fit(table(&x)).unwrap();
    assert!(matches!(fit.model.assign(&table(&few)), Err(Error::FeatureCount { expected: 4, found: 3 })));
}

/// Without the prior a component on duplicate rows has no limit; with it there is one.
#[test]
fn a_component_that_shrinks_is_named() {
    let x = two_groups(30, &mut Rng(25));
    let x = Mat::from_fn(60, 4, |i, j| if i < 30 { x[(i, j)] } else { 20.0 + j as f64 });
    let error = MixturePpca::new(2, 1).prior(None).start(spread_over(&x)).fit(table(&x)).unwrap_err();
    assert!(matches!(error, Error::ShrunkComponent { .. }), "{error}");
    let fit = MixturePpca::new(2, 1).fit(table(&x)).unwrap();
    assert!(fit.report.log_likelihood.unwrap().is_finite());
    close(fit.model.weights()[0], 0.5, 1e-6, "half of the rows in each");
}

/// A start with a component at the first rows and one at the last.
fn spread_over(x: &Mat<f64>) -> Mixture {
    let at = |i: usize| {
        let w = Mat::from_fn(4, 1, |j, _| 0.5 + 0.1 * j as f64);
        LinearGaussian::new(row(x, i), w, Noise::Isotropic(1.0)).unwrap()
    };
    Mixture::new(vec![0.5, 0.5], vec![at(0), at(x.nrows() - 1)]).unwrap()
}

#[test]
fn extreme_units_and_large_means_change_nothing() {
    let x = two_groups(80, &mut Rng(26));
    let fit = |x: &Mat<f64>| MixturePpca::new(2, 1).fit(table(x)).unwrap();
    let plain = fit(&x);
    let labels = plain.model.assign(&table(&x)).unwrap();
    for unit in [1e-140, 1e140] {
        let scaled = Mat::from_fn(160, 4, |i, j| x[(i, j)] * unit);
        let found = fit(&scaled);
        assert_eq!(found.model.assign(&table(&scaled)).unwrap(), labels, "{unit}");
        close_all(found.model.weights(), plain.model.weights(), 1e-6, unit);
    }
    let far = Mat::from_fn(160, 4, |i, j| x[(i, j)] + 1e8);
    let found = fit(&far);
    assert_eq!(found.model.assign(&table(&far)).unwrap(), labels);
    let noise = |m: &Mixture| m.components()[0].noise().mean();
    close(noise(&found.model) / noise(&plain.model), 1.0, 1e-5, "mean of 1e8");
}

/// A file holds everything: the model is the same to the last bit.
#[test]
fn a_file_holds_components_of_different_sizes() {
    for diagonal in [false, true] {
        let model = mixture(diagonal, &mut Rng(27));
        let saved = covary::persist::SavedModel::given(model.clone(), None).unwrap();
        let read = covary::persist::SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        let found: &Mixture = read.model.downcast_ref().unwrap();
        for (a, b) in found.components().iter().zip(model.components()) {
            assert_eq!((a.n_latent(), a.noise()), (b.n_latent(), b.noise()));
            assert_eq!(matrix_bits(a.loadings()), matrix_bits(b.loadings()));
        }
        let marginal = Density::marginal(&model, &[3, 0]).unwrap();
        assert_eq!((marginal.n_features(), marginal.kind().name), (2, "mixture"));
    }
    let shared: Arc<dyn Model> = Arc::new(mixture(true, &mut Rng(28)));
    assert!(shared.with_loadings().is_err() && shared.decoder().is_err());
}

/// Groups far from each other: the prior speaks of what is unexplained within them, not of what lies between. σ² of a group
/// of 80 rows with four directions of noise has a relative error of √(2/320).
#[test]
fn the_prior_does_not_take_the_distance_of_groups_for_noise() {
    for missing in [0.0, 0.1] {
        let mut rng = Rng(12);
        let (centres, lines) = (normal_matrix(3, 5, &mut rng), normal_matrix(3, 5, &mut rng));
        let mut x = Mat::zeros(240, 5);
        for i in 0..240 {
            let z = 2.0 * rng.normal();
            for j in 0..5 {
                let cell = 20.0 * centres[(i % 3, j)] + z * lines[(i % 3, j)] + 0.4 * rng.normal();
                x[(i, j)] = if rng.uniform() < missing { f64::NAN } else { cell };
            }
        }
        let fit = MixturePpca::new(3, 1).fit(table(&x)).unwrap();
        for component in fit.model.components() {
            relative(
                component.noise().mean(),
                0.16,
                4.0 * (2.0f64 / (320.0 * (1.0 - missing))).sqrt(),
                missing,
            );
        }
    }
}

/// k-means cuts the long group in two and takes the small ones, which lie close together, for one. The fit must be
/// as good as one that begins at the groups themselves, on few rows and on so many that a sample is looked at.
#[test]
fn clusters_that_are_not_the_groups_do_not_mislead() {
    let group = |mean: [f64; 3], along: [f64; 3]| {
        LinearGaussian::new(mean.to_vec(), Mat::from_fn(3, 1, |j, _| along[j]), Noise::Isotropic(0.01))
            .unwrap()
    };
    let components = vec![
        group([0.0, 0.0, 0.0], [20.0, 0.0, 0.0]),
        group([0.0, 6.0, 0.0], [0.1, 0.2, 0.3]),
        group([0.0, 8.0, 0.0], [0.3, 0.0, 0.1]),
    ];
    let truth = Mixture::new(vec![0.5, 0.25, 0.25], components).unwrap();
    for n in [400, 12_000] {
        let x = truth.sample_rows(0..n, 7);
        let best = MixturePpca::new(3, 1).start(truth.clone()).fit(&x).unwrap();
        for seed in 0..3 {
            let fit = MixturePpca::new(3, 1).seed(seed).fit(&x).unwrap();
            let reached = [&fit, &best].map(|fit| fit.report.log_likelihood.unwrap());
            assert!(reached[0] > reached[1] - 1e-3, "{n} rows, seed {seed}: {reached:?}");
        }
    }
}
