//! The gradient of a network as evidence, and what a network without hidden units must equal.

use std::sync::Arc;

use covary::data::Rows;
use covary::evidence::{Accumulator, HiddenPart, NetworkMeans, NetworkSums, gather};
use covary::linalg::Mat;
use covary::model::{
    AutoassociativeNetwork, Decode, Density, Encode, Fill, LatentPosterior, Model, NetworkParts, Novelty,
    Reconstruct, Reconstruction,
};
use covary::network::{CurvedMap, Network};
use covary::persist::{Portable, SavedModel};
use covary::{Activation, Autoencoder, Control, Error, Pca, Ppca};

use crate::common::*;

/// A map with weights of about 1.
fn map(k: usize, m: usize, h: usize, rng: &mut Rng) -> CurvedMap {
    let mut small = |r: usize, c: usize| {
        let x = normal_matrix(r, c, rng);
        Mat::from_fn(r, c, |i, j| 0.5 * x[(i, j)])
    };
    let (offset, bias) = (small(m, 1), small(h, 1));
    CurvedMap {
        offset: (0..m).map(|i| offset[(i, 0)]).collect(),
        linear: small(m, k),
        inner: small(h, k),
        bias: (0..h).map(|i| bias[(i, 0)]).collect(),
        outer: small(m, h),
    }
}

/// From p features to q latent variables and back, with or without an encoder.
fn network(p: usize, q: usize, encoder: bool, rng: &mut Rng) -> Network {
    let decoder = map(q, p, 3, rng);
    let encoder = encoder.then(|| map(p, q, 4, rng));
    Network { decoder, encoder, noise: 0.4, anchors: normal_matrix(q, 5, rng) }
}

/// A model of hand-made weights, around a mean and in units of its own.
pub(crate) fn hand_made(encoder: bool, rng: &mut Rng) -> AutoassociativeNetwork {
    AutoassociativeNetwork::new(NetworkParts {
        mean: vec![1.0, -2.0, 0.5],
        scale: vec![1.0, 2.0, 0.5],
        unit: 1.5,
        network: network(3, 1, encoder, rng),
        variances: vec![2.0],
    })
    .unwrap()
}

fn empty(network: &Arc<Network>, hidden: Option<HiddenPart>) -> NetworkSums {
    let p = network.n_features();
    NetworkSums::around(Arc::clone(network), vec![0.1; p], &vec![1.0; p], 1.3, hidden)
}

fn close_means(a: &NetworkMeans, b: &NetworkMeans) {
    assert_eq!(a.rows, b.rows);
    close(a.loss, b.loss, 1e-12 * b.loss.abs(), "loss");
    let size = b.gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    close_all(&a.gradient, &b.gradient, 1e-11 * size, "gradient");
    assert_eq!(a.hidden.is_some(), b.hidden.is_some());
    if let (Some(a), Some(b)) = (a.hidden, b.hidden) {
        close(a, b, 1e-12 * b, "hidden");
    }
}

/// Rows of which some cells are missing, where a network without an encoder is to see them.
fn rows(n: usize, p: usize, missing: bool, rng: &mut Rng) -> Mat<f64> {
    let x = normal_matrix(n, p, rng);
    Mat::from_fn(n, p, |i, j| if missing && (i + 2 * j) % 5 == 0 { f64::NAN } else { x[(i, j)] })
}

#[test]
fn gradients_are_a_commutative_monoid_whatever_the_chunks_and_come_back_from_bytes() {
    for (encoder, hidden) in [(true, None), (false, None), (true, Some(4)), (false, Some(4))] {
        let mut rng = Rng(5);
        let network = Arc::new(network(4, 2, encoder, &mut rng));
        let x = rows(700, 4, !encoder, &mut rng);
        let hidden = hidden.map(|one_in| HiddenPart { one_in, seed: 3 });
        let none = empty(&network, hidden);
        let part = |from: usize, to: usize| {
            let mut out = none.clone();
            out.update(&chunk_of(x.subrows(from, to - from), from)).unwrap();
            out
        };
        let merged = |a: &NetworkSums, b: &NetworkSums| {
            let mut out = a.clone();
            out.merge(b).unwrap();
            out
        };
        let (a, b, c) = (part(0, 100), part(100, 350), part(350, 700));
        let all = part(0, 700).means().unwrap();
        close_means(&merged(&merged(&a, &b), &c).means().unwrap(), &all);
        close_means(&merged(&c, &merged(&b, &a)).means().unwrap(), &all);
        close_means(&merged(&none, &a).means().unwrap(), &a.clone().means().unwrap());
        let cut = gather(&Cut { x: &x, rows: 37 }, || none.clone(), &Control::new()).unwrap();
        close_means(&cut.means().unwrap(), &all);
        assert!(matches!(merged(&none, &none).means(), Err(Error::NoRows)));
        let names: Vec<String> = (1..=4).map(|k| format!("x{k}")).collect();
        let bytes = a.to_bytes(&names).unwrap();
        let back = NetworkSums::from_bytes(&bytes).unwrap();
        assert_eq!((back.evidence.to_bytes(&names).unwrap(), back.features), (bytes.clone(), names));
        close_means(&merged(&back.evidence, &b).means().unwrap(), &merged(&a, &b).means().unwrap());
        assert!(NetworkSums::from_bytes(&bytes[..bytes.len() - 9]).is_err() && a.to_bytes(&[]).is_err());
        let other = empty(&Arc::new(self::network(4, 2, encoder, &mut rng)), hidden);
        assert!(none.clone().merge(&other).is_err());
    }
}

/// A row of weight 2 is one that was written twice, and one of weight 0 is none, whatever it holds.
#[test]
fn weights_are_repetitions() {
    for encoder in [true, false] {
        let mut rng = Rng(8);
        let network = Arc::new(network(3, 1, encoder, &mut rng));
        let mut x = rows(90, 3, !encoder, &mut rng);
        let weights: Vec<f64> = (0..90).map(|i| (i % 3) as f64).collect();
        let repeated: Vec<usize> = (0..90).flat_map(|i| vec![i; i % 3]).collect();
        let y = Mat::from_fn(repeated.len(), 3, |i, j| x[(repeated[i], j)]);
        (0..90).step_by(3).for_each(|i| x[(i, 1)] = f64::INFINITY);
        let mut weighted = empty(&network, None);
        weighted.update(&chunk_of(x.as_ref(), 0).with_weights(&weights[..]).unwrap()).unwrap();
        let mut written = empty(&network, None);
        written.update(&chunk_of(y.as_ref(), 0)).unwrap();
        let (a, b) = (weighted.means().unwrap(), written.means().unwrap());
        assert_eq!((a.rows, b.rows), (60, 90));
        close_means(&NetworkMeans { rows: 90, ..a }, &b);
    }
}

/// Central differences of the mean loss by every weight.
#[test]
fn gradients_are_those_of_finite_differences() {
    for encoder in [true, false] {
        let mut rng = Rng(12);
        let network = Arc::new(network(4, 2, encoder, &mut rng));
        let x = rows(30, 4, !encoder, &mut rng);
        let means = |network: &Arc<Network>| {
            let mut sums = empty(network, None);
            sums.update(&chunk_of(x.as_ref(), 0)).unwrap();
            sums.means().unwrap()
        };
        let (found, numbers, h) = (means(&network), network.weights(), 1e-5);
        assert_eq!(found.gradient.len(), numbers.len());
        for (k, slope) in found.gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut other = numbers.clone();
                other[k] += by;
                means(&Arc::new(network.with_weights(&other).unwrap())).loss
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h);
            close(*slope, expected, 1e-6 * (1.0 + expected.abs()), k);
        }
    }
}

/// Baldi & Hornik (1989): a linear network finds the plane of PCA, and its loss is the sum of the eigenvalues that it
/// leaves out.
#[test]
fn a_linear_network_is_pca() {
    let x = rows_with_deviations(400, &[5.0, 3.0, 2.0, 1.0, 0.5, 0.3], 4.0, &mut Rng(2));
    let exact = eigen(&mean_and_covariance(&x, None).1);
    for q in 1..6 {
        let fit = Autoencoder::new(q).activation(Activation::Linear).fit(&x).unwrap();
        let pca = Pca::new(q).fit(&x).unwrap().model;
        let rebuilt = fit.model.reconstruct(&table(&x), Reconstruction::Orthogonal).unwrap();
        let expected = Model::as_reconstruct(&pca).unwrap();
        close_matrix(
            &rebuilt,
            &expected.reconstruct(&table(&x), Reconstruction::Orthogonal).unwrap(),
            1e-8,
            q,
        );
        let spe = fit.model.novelty(&table(&x)).unwrap();
        let discarded: f64 = exact.0[q..].iter().sum();
        relative(spe.iter().sum::<f64>() / 400.0, discarded, 1e-8, "loss");
        relative(fit.model.noise_variance(), discarded / (6 - q) as f64, 1e-8, "noise");
        close_all(fit.model.variances(), &exact.0[..q], 1e-8 * exact.0[0], "variances");
        assert!(fit.report.converged() && fit.report.network().unwrap().iterations == 0);
        let z = fit.model.encode(&table(&x)).unwrap();
        let (mean, covariance) = mean_and_covariance(&z, None);
        close_all(&mean, &vec![0.0; q], 1e-10, "mean of z");
        close_matrix(&covariance, &Mat::identity(q, q), 1e-9, "covariance of z");
        let back = fit.model.decode(z.as_ref()).unwrap();
        close_matrix(&back, &rebuilt, 1e-10, "decoded");
    }
}

/// Without an encoder and without hidden units it is PPCA, in every question, missing values or not.
#[test]
fn a_linear_network_without_an_encoder_is_ppca() {
    let whole = rows_with_deviations(200, &[4.0, 2.0, 1.0, 0.6, 0.5], 2.0, &mut Rng(4));
    let mut x = whole.clone();
    (0..200).for_each(|i| x[(i, i % 5)] = if i % 3 == 0 { f64::NAN } else { x[(i, i % 5)] });
    for x in [&whole, &x] {
        let ppca = Ppca::new(2).tolerance(1e-12).fit(x).unwrap().model;
        let network = Autoencoder::new(2).encoder(false).activation(Activation::Linear).alpha(0.0);
        let network = network.tolerance(1e-13).fit(x).unwrap().model;
        let rows = table(x);
        close_matrix(&network.impute(&rows).unwrap(), &Fill::impute(&ppca, &rows).unwrap(), 1e-6, "filled");
        let (a, b) = (network.impute_with_std(&rows).unwrap(), Fill::impute_with_std(&ppca, &rows).unwrap());
        close_matrix(&a.std, &b.std, 1e-6, "deviations");
        let (a, b) = (network.posterior(&rows).unwrap(), LatentPosterior::posterior(&ppca, &rows).unwrap());
        for i in 0..200 {
            let (a, b) = (a.covariance.of(i).to_owned(), b.covariance.of(i).to_owned());
            let trace = |c: &Mat<f64>| c[(0, 0)] + c[(1, 1)];
            close(trace(&a), trace(&b), 1e-6, "posterior covariance");
        }
        let mut one = row(&whole, 7);
        (one[1], one[4]) = (f64::NAN, f64::NAN);
        let a = network.conditional(&one, &Control::new()).unwrap();
        let b = ppca.conditional(&one).unwrap();
        assert_eq!(a.features, b.features);
        close_all(&a.mean, &b.mean, 1e-6, "conditional mean");
        close_matrix(&a.covariance, &b.covariance, 1e-6, "conditional covariance");
        relative(network.noise_variance(), ppca.noise().mean(), 1e-6, "noise");
        assert!(Density::is_proper(&ppca).unwrap());
    }
}

/// Draws of missing cells: their mean and covariance are those of the conditional distribution of a plane.
#[test]
fn draws_have_the_conditional_distribution() {
    let x = rows_with_deviations(200, &[4.0, 2.0, 1.0, 0.6], 2.0, &mut Rng(4));
    let model = Autoencoder::new(1).encoder(false).activation(Activation::Linear).fit(&x).unwrap().model;
    let mut one = row(&x, 3);
    (one[0], one[2]) = (f64::NAN, f64::NAN);
    let expected = model.conditional(&one, &Control::new()).unwrap();
    let rows = Rows::from_slice(&one, 4).unwrap();
    let n = 4000;
    let draws = model.draw_missing(rows.source(), 0..n, 1).unwrap();
    let drawn = Mat::from_fn(n, 2, |d, a| draws[d][(0, [0, 2][a])]);
    let (mean, covariance) = mean_and_covariance(&drawn, None);
    for a in 0..2 {
        // Standard errors of a mean and a variance of n normal draws, five of them.
        let deviation = expected.covariance[(a, a)].sqrt();
        close(mean[a], expected.mean[a], 5.0 * deviation / (n as f64).sqrt(), "mean");
        let error = deviation * deviation * (2.0 / n as f64).sqrt();
        close(covariance[(a, a)], expected.covariance[(a, a)], 5.0 * error, "variance");
    }
    assert!(draws.iter().all(|draw| draw[(0, 1)] == one[1] && draw[(0, 3)] == one[3]));
    let some = model.draw_missing(rows.source(), 5..7, 1).unwrap();
    assert_eq!(matrix_bits(&some[1]), matrix_bits(&draws[6]), "a draw does not depend on the others");
}

/// The mode of a row of a hand-made network, by trying a fine grid of latent places.
#[test]
fn modes_are_the_lowest_places_of_a_grid() {
    let mut rng = Rng(21);
    let model = hand_made(false, &mut rng);
    let x = Mat::from_fn(20, 3, |i, j| {
        let cell = [1.0, -2.0, 0.5][j] + rng.normal();
        if (i + j) % 4 == 0 { f64::NAN } else { cell }
    });
    let z = model.encode(&table(&x)).unwrap();
    let grid = Mat::from_fn(8001, 1, |i, _| (i as f64 - 4000.0) / 1000.0);
    let images = model.decode(grid.as_ref()).unwrap();
    let parts = model.parts();
    for i in 0..20 {
        let energy = |k: usize| {
            let square = |j: usize| ((x[(i, j)] - images[(k, j)]) / (parts.unit * parts.scale[j])).powi(2);
            let seen: f64 = (0..3).filter(|j| !x[(i, *j)].is_nan()).map(square).sum();
            0.5 * seen / parts.network.noise + 0.5 * grid[(k, 0)].powi(2)
        };
        let best = (0..8001).min_by(|a, b| energy(*a).total_cmp(&energy(*b))).unwrap();
        close(z[(i, 0)], grid[(best, 0)], 1e-3, i);
    }
}

#[test]
fn a_network_comes_back_from_its_file_and_answers_in_other_units() {
    for encoder in [true, false] {
        let model = hand_made(encoder, &mut Rng(3));
        let bytes = SavedModel::given(model.clone(), None).unwrap().to_bytes().unwrap();
        let read = SavedModel::from_bytes(&bytes).unwrap();
        assert_eq!(read.to_bytes().unwrap(), bytes);
        let x = normal_matrix(6, 3, &mut Rng(3));
        let here = model.impute(&table(&x)).unwrap();
        assert_eq!(matrix_bits(&here), matrix_bits(&x), "observed cells stay as they are");
        let scale = [3.0, 0.25, 100.0];
        let y = Mat::from_fn(6, 3, |i, j| if (i + j) % 3 == 0 { f64::NAN } else { x[(i, j)] });
        let scaled = Mat::from_fn(6, 3, |i, j| y[(i, j)] * scale[j]);
        let other = model.rescaled(&scale).unwrap();
        let (a, b) = (model.impute_with_std(&table(&y)).unwrap(), other.imputer().unwrap());
        let b = b.impute_with_std(&table(&scaled)).unwrap();
        let times = |m: &Mat<f64>| Mat::from_fn(6, 3, |i, j| m[(i, j)] * scale[j]);
        close_matrix(&b.cells, &times(&a.cells), 1e-10, "cells");
        close_matrix(&b.std, &times(&a.std), 1e-10, "deviations");
        let novelty = (model.novelty(&table(&y)).unwrap(), other.novelty().unwrap());
        close_all(&novelty.1.novelty(&table(&scaled)).unwrap(), &novelty.0, 1e-10, "novelty");
    }
}

#[test]
fn impossible_numbers_are_refused() {
    let good = hand_made(true, &mut Rng(1)).parts().clone();
    let refused = |change: &dyn Fn(&mut NetworkParts)| {
        let mut parts = good.clone();
        change(&mut parts);
        assert!(AutoassociativeNetwork::new(parts).is_err());
    };
    refused(&|parts| parts.unit = 0.0);
    refused(&|parts| parts.scale[1] = f64::NAN);
    refused(&|parts| parts.mean.push(0.0));
    refused(&|parts| parts.variances.clear());
    refused(&|parts| parts.network.noise = -1.0);
    refused(&|parts| parts.network.decoder.bias.push(0.0));
    refused(&|parts| parts.network.decoder.outer[(0, 0)] = f64::INFINITY);
    refused(&|parts| parts.network.anchors = Mat::zeros(2, 1));
    refused(&|parts| parts.network.encoder = Some(map(2, 1, 1, &mut Rng(1))));
}
