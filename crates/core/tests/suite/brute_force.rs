//! Every question that a linear-Gaussian model answers, against the same answer from a dense covariance.

use crate::common::*;
use covary::data::{Observed, Rows};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise, Reconstruction};
use proptest::prelude::*;

const TOLERANCE: f64 = 1e-10;

/// A random model with rows of its own size: the first complete, the last empty, holes between.
fn case(seed: u64, p: usize, q: usize, diagonal: bool) -> (LinearGaussian, Mat<f64>) {
    let mut rng = Rng(seed);
    let model = random_model(p, q, diagonal, &mut rng);
    let n = 7;
    let mut x = normal_matrix(n, p, &mut rng);
    for i in 0..n {
        for j in 0..p {
            x[(i, j)] = model.mean()[j] + 2.0 * x[(i, j)];
            if i == n - 1 || (i > 0 && rng.uniform() < 0.35) {
                x[(i, j)] = f64::NAN;
            }
        }
    }
    (model, x)
}

/// The same rows as a table with NaN in the holes, and as a list of the cells that were seen.
fn sources<'a>(x: &'a Mat<f64>, lists: &'a Observed<'_>) -> [Rows<'a>; 2] {
    [x.into(), lists.into()]
}

fn observed(x: &Mat<f64>, i: usize) -> Vec<usize> {
    (0..x.ncols()).filter(|&j| !x[(i, j)].is_nan()).collect()
}

fn cells(x: &Mat<f64>, i: usize, features: &[usize]) -> Vec<f64> {
    features.iter().map(|&j| x[(i, j)]).collect()
}

/// Posterior of z by the joint normal of (z, x): Cov(z, x) = Wᵀ; mean Wᵀ C⁻¹ (x − μ), covariance I − Wᵀ C⁻¹ W.
fn dense_posterior(model: &LinearGaussian, features: &[usize], x: &[f64]) -> (Vec<f64>, Mat<f64>) {
    let q = model.n_latent();
    let dense = Dense::of(model).marginal(features);
    let d: Vec<f64> = x.iter().zip(&dense.mean).map(|(x, m)| x - m).collect();
    let w = |i: usize, k: usize| model.loadings()[(features[i], k)];
    let solved = dense.solve(&d);
    let mean = (0..q).map(|k| (0..features.len()).map(|i| w(i, k) * solved[i]).sum()).collect();
    let columns: Vec<Vec<f64>> =
        (0..q).map(|k| dense.solve(&(0..features.len()).map(|i| w(i, k)).collect::<Vec<_>>())).collect();
    let covariance = Mat::from_fn(q, q, |a, b| {
        f64::from(u8::from(a == b)) - (0..features.len()).map(|i| w(i, a) * columns[b][i]).sum::<f64>()
    });
    (mean, covariance)
}

/// Thin singular value decomposition of Ψ^-½ W over some features: (left vectors, values, right vectors).
fn plane(model: &LinearGaussian, features: &[usize]) -> (Mat<f64>, Vec<f64>, Mat<f64>) {
    let (k, q) = (features.len(), model.n_latent());
    let root = |i: usize| model.noise().of(features[i]).sqrt();
    let a = Mat::from_fn(k, q, |i, j| model.loadings()[(features[i], j)] / root(i));
    if k == 0 || q == 0 {
        return (Mat::zeros(k, 0), Vec::new(), Mat::zeros(q, 0));
    }
    let svd = a.thin_svd().unwrap();
    let values: Vec<f64> = (0..k.min(q)).map(|i| svd.S().column_vector()[i]).collect();
    (svd.U().to_owned(), values, svd.V().to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn log_density_and_mahalanobis(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, extra % (p + 1), diagonal);
        let dense = Dense::of(&model);
        let lists = stored(&x);
        for rows in sources(&x, &lists) {
            let density = model.log_density(&rows).unwrap();
            let distance = model.mahalanobis(&rows).unwrap();
            for i in 0..x.nrows() {
                let features = observed(&x, i);
                let (part, row) = (dense.marginal(&features), cells(&x, i, &features));
                close(density[i], part.log_density(&row), TOLERANCE * (1.0 + density[i].abs()), ("density", i));
                close(distance[i], part.mahalanobis(&row), TOLERANCE * (1.0 + distance[i]), ("distance", i));
            }
            assert_eq!(density[x.nrows() - 1].to_bits(), 0, "an empty row says nothing");
        }
    }

    #[test]
    fn posterior(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, extra % (p + 1), diagonal);
        let lists = stored(&x);
        for rows in sources(&x, &lists) {
            let posterior = model.posterior(&rows).unwrap();
            let means = model.latent_mean(&rows).unwrap();
            close_matrix(&means, &posterior.mean, 0.0, "two doors");
            for i in 0..x.nrows() {
                let features = observed(&x, i);
                let (mean, covariance) = dense_posterior(&model, &features, &cells(&x, i, &features));
                close_all(&row(&posterior.mean, i), &mean, TOLERANCE, ("mean", i));
                close_matrix(&posterior.covariance.of(i).to_owned(), &covariance, TOLERANCE, ("covariance", i));
            }
        }
    }

    #[test]
    fn conditional(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, extra % (p + 1), diagonal);
        let dense = Dense::of(&model);
        for i in 0..x.nrows() {
            let found = model.conditional(&row(&x, i)).unwrap();
            let have = observed(&x, i);
            let miss: Vec<usize> = (0..p).filter(|j| !have.contains(j)).collect();
            assert_eq!(found.features, miss);
            // μ_m + C_mo C_oo⁻¹ (x_o − μ_o) and C_mm − C_mo C_oo⁻¹ C_om.
            let part = dense.marginal(&have);
            let d: Vec<f64> = have.iter().map(|&j| x[(i, j)] - dense.mean[j]).collect();
            let solved = part.solve(&d);
            for (a, &m) in miss.iter().enumerate() {
                let cross: Vec<f64> = have.iter().map(|&o| dense.covariance[(m, o)]).collect();
                let shift: f64 = cross.iter().zip(&solved).map(|(c, s)| c * s).sum();
                close(found.mean[a], dense.mean[m] + shift, TOLERANCE, ("mean", i, m));
                let weights = part.solve(&cross);
                for (b, &l) in miss.iter().enumerate() {
                    let explained: f64 =
                        have.iter().zip(&weights).map(|(&o, w)| dense.covariance[(l, o)] * w).sum();
                    let expected = dense.covariance[(m, l)] - explained;
                    close(found.covariance[(a, b)], expected, TOLERANCE, ("covariance", i, m, l));
                }
            }
        }
    }

    #[test]
    fn marginal_covariance_and_precision(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let (model, _) = case(seed, p, extra % (p + 1), diagonal);
        let covariance = model.covariance();
        close_matrix(&covariance, &dense_covariance(&model), 1e-13 * p as f64, "covariance");
        let identity = covariance.as_ref() * model.precision().unwrap().as_ref();
        close_matrix(&identity, &Mat::identity(p, p), TOLERANCE, "C · C⁻¹");
        let mut rng = Rng(seed ^ 1);
        let picked: Vec<usize> = rng.shuffled(p)[..1 + rng.below(p)].to_vec();
        let part = model.marginal(&picked).unwrap();
        let expected = Dense::of(&model).marginal(&picked);
        close_all(part.mean(), &expected.mean, 0.0, "marginal mean");
        close_matrix(&part.covariance(), &expected.covariance, 1e-13 * p as f64, "marginal covariance");
        assert!(model.marginal(&[p]).is_err());
    }

    #[test]
    fn reconstruction(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let q = extra % (p + 1);
        let (model, x) = case(seed, p, q, diagonal);
        let lists = stored(&x);
        for rows in sources(&x, &lists) {
            let posterior = model.reconstruct(&rows, Reconstruction::Posterior).unwrap();
            let orthogonal = model.reconstruct(&rows, Reconstruction::Orthogonal).unwrap();
            for i in 0..x.nrows() {
                let features = observed(&x, i);
                let (z, _) = dense_posterior(&model, &features, &cells(&x, i, &features));
                let decode = |z: &[f64], j: usize| {
                    model.mean()[j] + (0..q).map(|k| model.loadings()[(j, k)] * z[k]).sum::<f64>()
                };
                for j in 0..p {
                    close(posterior[(i, j)], decode(&z, j), TOLERANCE, ("posterior", i, j));
                }
                // The shortest z that minimises |Ψ^-½ (x − μ − W z)| over the observed cells.
                let (u, s, v) = plane(&model, &features);
                let e: Vec<f64> = features
                    .iter()
                    .map(|&j| (x[(i, j)] - model.mean()[j]) / model.noise().of(j).sqrt())
                    .collect();
                let along = |r: usize| (0..e.len()).map(|a| u[(a, r)] * e[a]).sum::<f64>() / s[r];
                let z: Vec<f64> = (0..q).map(|k| (0..s.len()).map(|r| v[(k, r)] * along(r)).sum()).collect();
                let condition = s.first().map_or(1.0, |first| first / s[s.len() - 1]);
                let size = 1.0 + z.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
                let tolerance = TOLERANCE.max(1e-14 * condition * condition) * size;
                for j in 0..p {
                    close(orthogonal[(i, j)], decode(&z, j), tolerance, ("orthogonal", i, j, condition));
                }
            }
        }
    }

    #[test]
    fn outliers(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let (model, x) = case(seed, p, extra % (p + 1), diagonal);
        let lists = stored(&x);
        for rows in sources(&x, &lists) {
            let found = model.outliers(&rows).unwrap();
            let (t2, spe) = model.t2_spe(&rows).unwrap();
            assert_eq!((bits(&t2), bits(&spe)), (bits(&found.t2), bits(&found.spe)));
            let dense = Dense::of(&model);
            for i in 0..x.nrows() {
                let features = observed(&x, i);
                let root = |a: usize| model.noise().of(features[a]).sqrt();
                let e: Vec<f64> =
                    (0..features.len()).map(|a| (x[(i, features[a])] - model.mean()[features[a]]) / root(a)).collect();
                let (u, s, _) = plane(&model, &features);
                let condition = s.first().map_or(1.0, |first| first / s[s.len() - 1]);
                let tolerance = TOLERANCE.max(1e-14 * condition * condition);
                // Within the plane the scaled deviation uᵀe has variance s² + 1; beyond it nothing is left but noise.
                let scores: Vec<f64> =
                    (0..s.len()).map(|r| (0..e.len()).map(|a| u[(a, r)] * e[a]).sum()).collect();
                let expected_t2: f64 = scores.iter().zip(&s).map(|(t, s)| t * t / (s * s + 1.0)).sum();
                let rest = |a: usize| e[a] - (0..s.len()).map(|r| u[(a, r)] * scores[r]).sum::<f64>();
                let expected_spe: f64 = (0..e.len()).map(|a| (rest(a) * root(a)).powi(2)).sum();
                close(found.t2[i], expected_t2, tolerance * (1.0 + expected_t2), ("T²", i));
                close(found.spe[i], expected_spe, tolerance * (1.0 + expected_spe), ("SPE", i));
                let k = features.len();
                let part = dense.marginal(&features);
                let distance = part.mahalanobis(&cells(&x, i, &features));
                relative(found.p_value[i], chi_squared_tail(distance, k), 1e-8, ("p-value", i, k, distance));
            }
        }
    }

    #[test]
    fn rotation_leaves_the_distribution(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let q = extra % (p + 1);
        let (model, x) = case(seed, p, q, diagonal);
        let r = orthogonal(q, &mut Rng(seed ^ 2));
        let turned = model.rotate(&r).unwrap();
        close_matrix(&turned.covariance(), &model.covariance(), 1e-12, "covariance");
        close_all(
            &turned.log_density(&x).unwrap(),
            &model.log_density(&x).unwrap(),
            TOLERANCE * 100.0,
            "log density",
        );
        // z turns with the axes: W R Rᵀ z.
        let expected = model.latent_mean(&x).unwrap() * &r;
        close_matrix(&turned.latent_mean(&x).unwrap(), &expected, TOLERANCE, "posterior means");
    }

    #[test]
    fn decode(seed: u64, p in 1usize..8, q in 0usize..5) {
        let mut rng = Rng(seed);
        let model = random_model(p, q, false, &mut rng);
        let z = normal_matrix(5, q, &mut rng);
        let found = model.decode(z.as_ref()).unwrap();
        for i in 0..5 {
            for j in 0..p {
                let sum: f64 = (0..q).map(|k| model.loadings()[(j, k)] * z[(i, k)]).sum();
                close(found[(i, j)], model.mean()[j] + sum, 1e-13 * (1.0 + sum.abs()), (i, j));
            }
        }
        assert!(model.decode(normal_matrix(2, q + 1, &mut rng).as_ref()).is_err());
    }
}

/// P(χ²ₖ ≥ d) by the finite sums that exist for whole k: e^(−d/2) Σ (d/2)^i / i! for even k, and from the
/// complementary error function by the recurrence Q(a + 1) = Q(a) + x^a e^(−x) / Γ(a + 1) for odd k.
fn chi_squared_tail(d: f64, k: usize) -> f64 {
    let x = d / 2.0;
    if k == 0 {
        return 1.0;
    }
    let (mut a, mut tail, mut term) = if k.is_multiple_of(2) {
        (1.0, (-x).exp(), (-x).exp() * x) // term = x^a e^-x / Γ(a + 1)
    } else {
        let gamma_three_halves = std::f64::consts::PI.sqrt() / 2.0;
        (0.5, erfc(x.sqrt()), x.sqrt() * (-x).exp() / gamma_three_halves)
    };
    while a < k as f64 / 2.0 - 0.25 {
        tail += term;
        a += 1.0;
        term *= x / a;
    }
    tail
}

/// erfc by its Taylor series or its continued fraction.
fn erfc(x: f64) -> f64 {
    let pi = std::f64::consts::PI;
    if x < 2.0 {
        let (mut sum, mut term) = (x, x);
        for n in 1..200 {
            term *= -x * x / n as f64;
            sum += term / (2 * n + 1) as f64;
        }
        return 1.0 - 2.0 / pi.sqrt() * sum;
    }
    let fraction = (1..200).rev().fold(0.0, |f, n| n as f64 / 2.0 / (x + f));
    (-x * x).exp() / pi.sqrt() / (x + fraction)
}

#[test]
fn the_tail_of_this_test_is_right() {
    // Tables: P(χ²₁ ≥ 3.841459) = P(χ²₂ ≥ 5.991465) = P(χ²₅ ≥ 11.070498) = 0.05.
    for (k, d) in [(1, 3.841_458_820_694_124), (2, 5.991_464_547_107_979), (5, 11.070_497_693_516_351)] {
        close(chi_squared_tail(d, k), 0.05, 1e-14, k);
    }
}

/// Far-out rows are what p-values are for: the tail must keep its relative accuracy.
#[test]
fn p_values_far_out() {
    for p in [1usize, 2, 3, 4, 10] {
        let model = LinearGaussian::new(vec![0.0; p], Mat::zeros(p, 0), Noise::Isotropic(1.0)).unwrap();
        for distance in [1.0f64, 50.0, 200.0, 600.0, 1200.0] {
            let mut x = vec![0.0; p];
            x[0] = distance.sqrt();
            let found = model.outliers(Rows::from_slice(&x, p).unwrap()).unwrap().p_value[0];
            relative(found, chi_squared_tail(distance, p), 1e-9, (p, distance));
        }
    }
}

#[test]
fn no_noise_is_least_squares() {
    let mut rng = Rng(5);
    for (p, q) in [(6, 2), (4, 4), (5, 1)] {
        let w = normal_matrix(p, q, &mut rng);
        let model = LinearGaussian::new(vec![1.0; p], w.clone(), Noise::Isotropic(0.0)).unwrap();
        let x = normal_matrix(9, p, &mut rng);
        // Normal equations, densely.
        let gram = w.transpose() * &w;
        let dense = Dense::new(vec![0.0; q], gram);
        let z = model.latent_mean(&x).unwrap();
        let both = [Reconstruction::Orthogonal, Reconstruction::Posterior];
        let rebuilt = both.map(|kind| model.reconstruct(&x, kind).unwrap());
        for i in 0..9 {
            let d: Vec<f64> = (0..p).map(|j| x[(i, j)] - 1.0).collect();
            let right: Vec<f64> = (0..q).map(|k| (0..p).map(|j| w[(j, k)] * d[j]).sum()).collect();
            let expected = dense.solve(&right);
            close_all(&row(&z, i), &expected, 1e-9, "scores");
            for j in 0..p {
                let x: f64 = 1.0 + (0..q).map(|k| w[(j, k)] * expected[k]).sum::<f64>();
                rebuilt.iter().for_each(|r| close(r[(i, j)], x, 1e-9, "rebuilt"));
            }
        }
        let density = model.log_density(&x);
        if q == p {
            let dense = Dense::of(&model);
            let expected: Vec<f64> = (0..9).map(|i| dense.log_density(&row(&x, i))).collect();
            close_all(&density.unwrap(), &expected, 1e-8, "density of a square model");
            let identity = model.covariance() * model.precision().unwrap();
            close_matrix(&identity, &Mat::identity(p, p), 1e-8, "precision");
        } else {
            let error = density.unwrap_err();
            assert!(
                matches!(error, covary::Error::NoDensity { rank, features } if rank == q && features == p)
            );
        }
    }
}

#[test]
fn samples_have_the_moments_of_the_model() {
    for diagonal in [false, true] {
        let model = random_model(4, 2, diagonal, &mut Rng(77));
        let n = 200_000;
        let x = model.sample(n, 3);
        let (mean, covariance) = mean_and_covariance(&x, None);
        let c = dense_covariance(&model);
        for i in 0..4 {
            close(mean[i], model.mean()[i], 5.0 * (c[(i, i)] / n as f64).sqrt(), ("mean", i));
            for j in 0..4 {
                let error = ((c[(i, i)] * c[(j, j)] + c[(i, j)].powi(2)) / n as f64).sqrt();
                close(covariance[(i, j)], c[(i, j)], 5.0 * error, ("covariance", i, j));
            }
        }
    }
}

#[test]
fn samples_depend_on_the_seed_alone() {
    let model = random_model(3, 2, true, &mut Rng(78));
    let long = model.sample(1000, 9);
    assert_eq!(matrix_bits(&long), matrix_bits(&model.sample(1000, 9)));
    for n in [0, 1, 255, 256, 257, 700] {
        let prefix = long.subrows(0, n).to_owned();
        assert_eq!(matrix_bits(&model.sample(n, 9)), matrix_bits(&prefix), "the first {n} rows");
    }
    for range in [0..0, 5..5, 0..3, 200..300, 256..512, 255..257, 999..1000, 700..1000] {
        let part = long.subrows(range.start, range.len()).to_owned();
        assert_eq!(matrix_bits(&model.sample_rows(range.clone(), 9)), matrix_bits(&part), "{range:?}");
    }
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = model.sample_rows(10..5, 9);
    assert_eq!((backwards.nrows(), backwards.ncols()), (0, 3));
    assert_ne!(matrix_bits(&model.sample(10, 9)), matrix_bits(&model.sample(10, 10)));
    // Blocks of the generator must not repeat each other.
    assert_ne!(long[(0, 0)].to_bits(), long[(256, 0)].to_bits());
}

/// More rows than a block, a chunk and several patterns: answers come back in the order of the rows.
#[test]
fn many_rows_with_holes_keep_their_order() {
    let mut rng = Rng(11);
    let model = random_model(4, 2, true, &mut rng);
    let mut x = normal_matrix(5000, 4, &mut rng);
    for i in 0..5000 {
        for j in 0..4 {
            if rng.uniform() < 0.1 {
                x[(i, j)] = f64::NAN;
            }
        }
    }
    let density = model.log_density(&x).unwrap();
    let posterior = model.posterior(&x).unwrap();
    let dense = Dense::of(&model);
    for i in (0..5000).step_by(37) {
        let features = observed(&x, i);
        let values = cells(&x, i, &features);
        close(density[i], dense.marginal(&features).log_density(&values), 1e-10, i);
        let (mean, covariance) = dense_posterior(&model, &features, &values);
        close_all(&row(&posterior.mean, i), &mean, 1e-10, i);
        close_matrix(&posterior.covariance.of(i).to_owned(), &covariance, 1e-10, i);
    }
}
