//! Kernel PCA of rows with missing values: expected kernels against quadrature and brute force, and how near the
//! coordinates come to those of complete rows.

use std::sync::Arc;

use covary::data::Rows;
use covary::evidence::{Accumulator, KernelFeatures, Moments};
use covary::kernel::{FeatureMap, Kernel, KernelForm};
use covary::linalg::Mat;
use covary::model::{
    Encode, KernelComponents, KernelParts, LinearGaussian, Model, Novelty, Preimage, Reconstruct,
    Reconstruction,
};
use covary::persist::{Portable, SavedModel};
use covary::{Control, Error, Fit, Gamma, KernelPca, Landmarks, Request, Scale, Solver};

use crate::common::holes::punched;
use crate::common::{
    Dense, Rng, cholesky, chunk_of, close, close_all, close_matrix, data_set, eigen, matrix_bits, max_abs,
    normal_matrix, random_model, relative, row, table,
};

const NAN: f64 = f64::NAN;

/// A model whose coordinate i is the kernel value with point i.
fn values_with(points: &Mat<f64>, kernel: Kernel, filling: Option<LinearGaussian>) -> KernelComponents {
    let (m, p) = (points.nrows(), points.ncols());
    KernelComponents::new(KernelParts {
        kernel,
        mean: vec![0.3; p],
        divisors: vec![1.0; p],
        points: points.clone(),
        coefficients: Mat::identity(m, m),
        centre: vec![0.0; m],
        offset: vec![0.0; m],
        square: 0.0,
        variances: vec![0.0; m],
        noise: 0.0,
        preimage: Preimage { kernel, alpha: 0.1, fixed_point: true },
        filling,
    })
    .unwrap()
}

fn encode(model: &KernelComponents, x: &Mat<f64>) -> Mat<f64> {
    model.encode(Rows::from(x).source()).unwrap()
}

fn novelty(model: &KernelComponents, x: &Mat<f64>) -> Vec<f64> {
    model.novelty(Rows::from(x).source()).unwrap()
}

/// Nodes and weights of E f(u) for u ~ N(0, 1): eigenvalues of Jacobi's matrix (Golub & Welsch 1969).
fn hermite(n: usize) -> Vec<(f64, f64)> {
    let jacobi = Mat::from_fn(n, n, |i, j| if i.abs_diff(j) == 1 { (i.max(j) as f64).sqrt() } else { 0.0 });
    let (nodes, vectors) = eigen(&jacobi);
    (0..n).map(|k| (nodes[k], vectors[(0, k)].powi(2))).collect()
}

/// Rows that stand for one with missing cells, and their weights: a grid of nodes for each missing cell.
fn grid(model: &LinearGaussian, x: &[f64], nodes: &[(f64, f64)]) -> Vec<(Vec<f64>, f64)> {
    let known = model.conditional(x).unwrap();
    let k = known.features.len();
    let root = cholesky(&known.covariance);
    let count = nodes.len().pow(u32::try_from(k).unwrap());
    let at = |index: usize| {
        let of = |a: usize| nodes[index / nodes.len().pow(u32::try_from(a).unwrap()) % nodes.len()];
        let mut x = x.to_vec();
        for (i, j) in known.features.iter().enumerate() {
            x[*j] = known.mean[i] + (0..=i).map(|a| root[(i, a)] * of(a).0).sum::<f64>();
        }
        (x, (0..k).map(|a| of(a).1).product())
    };
    (0..count).map(at).collect()
}

#[test]
fn expected_kernels_are_those_of_quadrature() {
    let mut rng = Rng(1);
    let model = random_model(4, 2, true, &mut rng);
    let points = normal_matrix(4, 4, &mut rng);
    let (mut z, mut x) = (points.clone(), normal_matrix(4, 4, &mut rng));
    (z[(1, 2)], z[(2, 0)], z[(2, 1)]) = (NAN, NAN, NAN);
    (x[(1, 0)], x[(2, 1)], x[(2, 3)]) = (NAN, NAN, NAN);
    let nodes = hermite(32);
    for (form, gamma) in [(KernelForm::Rbf, 0.15), (KernelForm::Linear, 1.0)] {
        let kernel = Kernel::new(form, gamma).unwrap();
        let fitted = values_with(&z, kernel, Some(model.clone()));
        let found = encode(&fitted, &x);
        let shift = |x: &[f64]| match form {
            // A linear kernel is taken around the mean.
            KernelForm::Linear => x.iter().map(|x| x - 0.3).collect(),
            _ => x.to_vec(),
        };
        for i in 0..4 {
            let own = grid(&model, &row(&x, i), &nodes);
            for k in 0..4 {
                // With a node for each of four cells there are a million pairs; a few do where both miss two.
                let few = if (i, k) == (2, 2) { hermite(14) } else { nodes.clone() };
                let (a, b) = (grid(&model, &row(&x, i), &few), grid(&model, &row(&z, k), &few));
                let pair = |(x, v): &(Vec<f64>, f64)| {
                    b.iter().map(|(z, w)| v * w * kernel.of(&shift(x), &shift(z))).sum::<f64>()
                };
                let expected: f64 = a.iter().map(pair).sum();
                let tolerance = if (i, k) == (2, 2) { 1e-7 } else { 1e-11 };
                close(found[(i, k)], expected, tolerance, (form.name(), i, k));
            }
            // ‖E φ(x)‖²: two independent draws of the same row.
            let few = if i == 2 { grid(&model, &row(&x, i), &hermite(14)) } else { own };
            let pairs = few
                .iter()
                .map(|(x, v)| few.iter().map(|(y, w)| v * w * kernel.of(&shift(x), &shift(y))).sum::<f64>());
            let held: f64 = (0..4).map(|k| found[(i, k)].powi(2)).sum();
            let expected = (pairs.sum::<f64>() - held).max(0.0);
            close(novelty(&fitted, &x)[i], expected, 1e-7, ("own", form.name(), i));
        }
    }
}

/// E k(x, x′) by dense matrices, and E k(x, x) on the diagonal when asked for.
fn expected_gram(model: &LinearGaussian, gamma: f64, x: &Mat<f64>) -> Mat<f64> {
    let p = x.ncols();
    let known: Vec<(Vec<f64>, Mat<f64>)> = (0..x.nrows())
        .map(|i| {
            let (mut mean, known) = (row(x, i), model.conditional(&row(x, i)).unwrap());
            let mut s = Mat::zeros(p, p);
            for (a, j) in known.features.iter().enumerate() {
                mean[*j] = known.mean[a];
                known.features.iter().enumerate().for_each(|(b, k)| s[(*j, *k)] = known.covariance[(a, b)]);
            }
            (mean, s)
        })
        .collect();
    Mat::from_fn(x.nrows(), x.nrows(), |i, j| {
        let ((m, s), (n, t)) = (&known[i], &known[j]);
        let wide =
            Mat::from_fn(p, p, |a, b| f64::from(u8::from(a == b)) + 2.0 * gamma * (s[(a, b)] + t[(a, b)]));
        let brute = Dense::new(n.clone(), wide);
        (-0.5 * brute.log_det() - gamma * brute.mahalanobis(m)).exp()
    })
}

fn centred(k: &Mat<f64>) -> Mat<f64> {
    let n = k.nrows();
    let means: Vec<f64> = (0..n).map(|i| (0..n).map(|j| k[(i, j)]).sum::<f64>() / n as f64).collect();
    let all = means.iter().sum::<f64>() / n as f64;
    Mat::from_fn(n, n, |i, j| k[(i, j)] - means[i] - means[j] + all)
}

/// A spiral in six features: three of them tell nearly what the others are.
fn spiral(n: usize, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let turn = normal_matrix(6, 3, &mut rng);
    let mut x = Mat::zeros(n, 6);
    for i in 0..n {
        let t = 4.0 * rng.uniform();
        let s = [t.cos(), t.sin(), 0.5 * t - 1.0];
        (0..6)
            .for_each(|j| x[(i, j)] = (0..3).map(|k| turn[(j, k)] * s[k]).sum::<f64>() + 0.05 * rng.normal());
    }
    x
}

#[test]
fn a_fit_decomposes_the_kernel_of_expected_images() {
    let x = punched(&spiral(60, 3), 0.15, &mut Rng(4));
    let fit = KernelPca::new(4).gamma(Gamma::Given(0.2)).fit(&x).unwrap();
    let filling = fit.model.parts().filling.clone().unwrap();
    let k = expected_gram(&filling, 0.2, &x);
    let (values, _) = eigen(&centred(&k));
    let found: Vec<f64> = fit.model.variances().iter().map(|v| v * 60.0).collect();
    close_all(&found, &values[..4], 1e-11 * values[0], "eigenvalues");
    // The variance of images around their expectation is in the trace and in the noise: k(x, x) is 1.
    let within: f64 = (0..60).map(|i| 1.0 - k[(i, i)]).sum();
    let trace = values.iter().sum::<f64>() + within;
    relative(fit.report.total_variance * 60.0, trace, 1e-11, "trace");
    let noise = (trace - values[..4].iter().sum::<f64>()) / 55.0;
    relative(fit.model.noise_variance(), noise, 1e-9, "noise");
    // Coordinates of the rows of the fit are √λ v: their scatter is that of the components.
    let z = encode(&fit.model, &x);
    for j in 0..4 {
        close((0..60).map(|i| z[(i, j)].powi(2)).sum(), values[j], 1e-10 * values[0], j);
    }
    let details = fit.report.kernel().unwrap();
    assert_eq!(details.filling_components, Some(filling.n_latent()));
    assert!(fit.report.holes.as_ref().is_some_and(|holes| holes.missing > 20));
    for solver in [Solver::Dual, Solver::Krylov] {
        let other = KernelPca::new(4).gamma(Gamma::Given(0.2)).solver(solver).fit(&x).unwrap();
        close_all(other.model.variances(), fit.model.variances(), 1e-12, solver);
        close(other.model.noise_variance(), fit.model.noise_variance(), 1e-12, solver);
    }
}

#[test]
fn a_linear_kernel_sees_the_means_of_missing_cells() {
    let x = punched(&spiral(80, 5), 0.1, &mut Rng(6));
    let fit = KernelPca::new(3).kernel(KernelForm::Linear).fit(&x).unwrap();
    let filling = fit.model.parts().filling.clone().unwrap();
    let filled = filling.impute_with_std(&x).unwrap();
    let pca = covary::Pca::new(3).fit(&filled.cells).unwrap();
    close_all(fit.model.variances(), pca.model.variances(), 1e-10, "variances");
    let within: f64 = (0..6).map(|j| filled.std.col(j).squared_norm_l2()).sum::<f64>() / 80.0;
    relative(fit.report.total_variance, pca.report.total_variance + within, 1e-10, "trace");
    let source = Rows::from(&x);
    let rebuilt = fit.model.reconstruct(source.source(), Reconstruction::Orthogonal).unwrap();
    close_matrix(&rebuilt, &pca.model.reconstruct(&filled.cells).unwrap(), 1e-10, "rebuilt");
}

/// How far coordinates are from others up to a turn: ‖ZZᵀ − Z₀Z₀ᵀ‖².
fn apart(z: &Mat<f64>, truth: &Mat<f64>) -> f64 {
    (z * z.transpose() - truth * truth.transpose()).squared_norm_l2()
}

fn mean_filled(x: &Mat<f64>) -> Mat<f64> {
    let mean = |j: usize| {
        let seen: Vec<f64> = x.col(j).iter().copied().filter(|x| !x.is_nan()).collect();
        seen.iter().sum::<f64>() / seen.len().max(1) as f64
    };
    let means: Vec<f64> = (0..x.ncols()).map(mean).collect();
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if x[(i, j)].is_nan() { means[j] } else { x[(i, j)] })
}

#[test]
fn coordinates_come_nearer_to_those_of_complete_rows_than_with_means() {
    let mut sets = vec![("spiral", spiral(200, 7), Gamma::Given(0.2))];
    sets.extend(data_set("digits").map(|x| ("digits", x.subrows(0, 100).to_owned(), Gamma::Given(1e-3))));
    for (name, x, gamma) in sets {
        let family = KernelPca::new(4).gamma(gamma);
        let whole = family.clone().fit(&x).unwrap();
        let truth = encode(&whole.model, &x);
        for share in if name == "digits" { vec![0.15] } else { vec![0.1, 0.2] } {
            let holes = punched(&x, share, &mut Rng(8));
            let by_kernel = encode(&family.clone().fit(&holes).unwrap().model, &holes);
            let means = mean_filled(&holes);
            let by_means = encode(&family.clone().fit(&means).unwrap().model, &means);
            let (near, far) = (apart(&by_kernel, &truth), apart(&by_means, &truth));
            let size = (&truth * truth.transpose()).squared_norm_l2();
            assert!(near < 0.5 * far && near < 0.1 * size, "{name} {share}: {near} {far} {size}");
        }
    }
}

#[test]
fn landmarks_stand_for_rows_with_missing_values_too() {
    let x = punched(&spiral(150, 9), 0.1, &mut Rng(10));
    let family = KernelPca::new(3).gamma(Gamma::Given(0.2));
    let exact = family.clone().fit(&x).unwrap();
    for landmarks in [Landmarks::Pivoted(100), Landmarks::KMeans(60)] {
        let fit = family.clone().landmarks(landmarks).fit(&x).unwrap();
        assert!(fit.model.points().as_ref().is_all_finite());
        relative(fit.report.total_variance, exact.report.total_variance, 1e-3, "trace");
        for (a, b) in fit.model.variances().iter().zip(exact.model.variances()) {
            relative(*a, *b, 1e-2, "variances");
        }
        let (z, w) = (encode(&fit.model, &x), encode(&exact.model, &x));
        assert!(apart(&z, &w) < 1e-3 * (&w * w.transpose()).squared_norm_l2());
    }
}

#[test]
fn complete_rows_have_the_bits_that_they_have_without_a_model_of_cells() {
    let mut rng = Rng(11);
    let (points, x) = (normal_matrix(300, 4, &mut rng), normal_matrix(40, 4, &mut rng));
    let kernel = Kernel::new(KernelForm::Rbf, 0.3).unwrap();
    let model = random_model(4, 2, false, &mut rng);
    let plain = values_with(&points, kernel, None);
    let able = values_with(&points, kernel, Some(model));
    assert_eq!(matrix_bits(&encode(&plain, &x)), matrix_bits(&encode(&able, &x)));
    let rebuilt = |m: &KernelComponents| m.reconstruct(Rows::from(&x).source(), Reconstruction::Orthogonal);
    assert_eq!(matrix_bits(&rebuilt(&plain).unwrap()), matrix_bits(&rebuilt(&able).unwrap()));
    let complete = KernelPca::new(2).fit(&points).unwrap();
    assert!(complete.model.parts().filling.is_none() && complete.report.holes.is_none());
}

#[test]
fn files_and_threads_change_no_bit() {
    let x = punched(&spiral(300, 12), 0.15, &mut Rng(13));
    for landmarks in [Landmarks::Auto, Landmarks::Pivoted(40)] {
        let family = KernelPca::new(3).landmarks(landmarks);
        let one = family.clone().threads(1).fit(&x).unwrap();
        let many = family.threads(3).fit(&x).unwrap();
        let z = encode(&one.model, &x);
        assert_eq!(matrix_bits(&z), matrix_bits(&encode(&many.model, &x)));
        let bytes = SavedModel::new(one, None).unwrap().to_bytes().unwrap();
        let read = SavedModel::from_bytes(&bytes).unwrap();
        let again = read.model.encoder().unwrap().encode(Rows::from(&x).source()).unwrap();
        assert_eq!((matrix_bits(&z), bytes), (matrix_bits(&again), read.to_bytes().unwrap()));
    }
}

#[test]
fn a_row_without_a_cell_is_no_row_of_the_fit_and_has_the_image_of_any_row() {
    let x = punched(&spiral(100, 14), 0.1, &mut Rng(15));
    let with_empty = Mat::from_fn(103, 6, |i, j| if i < 100 { x[(i, j)] } else { NAN });
    for landmarks in [Landmarks::Auto, Landmarks::Pivoted(30)] {
        let family = KernelPca::new(3).gamma(Gamma::Given(0.2)).landmarks(landmarks);
        let (a, b) = (family.clone().fit(&x).unwrap(), family.fit(&with_empty).unwrap());
        assert_eq!(b.report.rows, 100);
        // The model of the cells sees more rows, none of which says anything.
        close_all(a.model.variances(), b.model.variances(), 1e-6, "variances");
        let z = encode(&a.model, &with_empty);
        let far = (0..100).map(|i| z.row(i).norm_l2()).fold(0.0, f64::max);
        assert!(z.row(102).norm_l2() < 0.5 * far, "{}", z.row(102).norm_l2());
        let spe = novelty(&a.model, &with_empty);
        assert!(spe[102] >= 0.0 && spe[102] < 0.1, "{}", spe[102]);
        let rebuilt = a.model.reconstruct(Rows::from(&with_empty).source(), Reconstruction::Orthogonal);
        assert!(rebuilt.unwrap().as_ref().is_all_finite());
    }
}

#[test]
fn missing_cells_are_rebuilt() {
    let truth = spiral(150, 16);
    let x = punched(&truth, 0.15, &mut Rng(17));
    let fit = KernelPca::new(5).gamma(Gamma::Given(0.2)).fit(&x).unwrap();
    let rebuilt = fit.model.reconstruct(Rows::from(&x).source(), Reconstruction::Orthogonal).unwrap();
    let missing = || (0..150 * 6).map(|c| (c / 6, c % 6)).filter(|c| x[*c].is_nan());
    let means = mean_filled(&x);
    let error = |of: &Mat<f64>| missing().map(|c| (of[c] - truth[c]).powi(2)).sum::<f64>();
    assert!(error(&rebuilt) < 0.3 * error(&means), "{} {}", error(&rebuilt), error(&means));
}

#[test]
fn weights_count_rows_and_rows_of_no_weight_are_no_rows() {
    let x = punched(&spiral(70, 18), 0.1, &mut Rng(19));
    let mut bad = Mat::from_fn(71, 6, |i, j| if i < 70 { x[(i, j)] } else { f64::INFINITY });
    bad[(70, 0)] = NAN;
    let weights: Vec<f64> = (0..71).map(|i| if i == 70 { 0.0 } else { 1.0 }).collect();
    for landmarks in [Landmarks::Auto, Landmarks::Pivoted(25)] {
        let family = KernelPca::new(3).gamma(Gamma::Given(0.2)).landmarks(landmarks);
        let plain = family.clone().fit(&x).unwrap();
        let weighted = family.fit(table(&bad).with_weights(weights.clone()).unwrap()).unwrap();
        close_all(weighted.model.variances(), plain.model.variances(), 1e-7, "variances");
    }
}

#[test]
fn scaled_features_with_missing_values() {
    let x = punched(&spiral(80, 20), 0.1, &mut Rng(21));
    let wide = Mat::from_fn(80, 6, |i, j| x[(i, j)] * 10f64.powi(j as i32));
    let source = Rows::from(&wide);
    let request = Request::new(KernelPca::new(2).gamma(Gamma::Given(0.5))).scale(Scale::Unit);
    let fit = request.fit(source.source(), &Control::new()).unwrap();
    let factors = fit.report.scaled.clone().unwrap().factors;
    let divided = Mat::from_fn(80, 6, |i, j| wide[(i, j)] / factors[j]);
    let by_hand: Fit<KernelComponents> = KernelPca::new(2).gamma(Gamma::Given(0.5)).fit(&divided).unwrap();
    let z = fit.model.encoder().unwrap().encode(source.source()).unwrap();
    close_matrix(&z, &encode(&by_hand.model, &divided), 1e-8, "coordinates");
}

#[test]
fn the_width_is_not_narrowed_by_what_is_missing() {
    let complete = spiral(400, 22);
    let x = punched(&complete, 0.2, &mut Rng(23));
    let width = |x: &Mat<f64>| KernelPca::new(2).fit(x).unwrap().report.kernel().unwrap().gamma.unwrap();
    relative(width(&x), width(&complete), 0.05, "gamma");
}

#[test]
fn other_kernels_say_what_to_do() {
    let x = punched(&spiral(40, 24), 0.1, &mut Rng(25));
    for form in [
        KernelForm::Laplacian,
        KernelForm::Polynomial { degree: 2, coef0: 1.0 },
        KernelForm::Sigmoid { coef0: 0.0 },
        KernelForm::Cosine,
    ] {
        let told = KernelPca::new(1).kernel(form).fit(&x).unwrap_err().to_string();
        for word in [form.name(), "rbf", "linear", "covary impute"] {
            assert!(told.contains(word), "{told}");
        }
    }
    // A model of complete rows knows nothing of cells.
    let complete = KernelPca::new(1).fit(&spiral(40, 24)).unwrap();
    assert!(matches!(complete.model.encode(Rows::from(&x).source()), Err(Error::Missing { .. })));
    let mut infinite = x.clone();
    infinite[(3, 2)] = f64::INFINITY;
    assert!(matches!(KernelPca::new(1).fit(&infinite), Err(Error::Infinite { .. })));
    let fit = KernelPca::new(1).fit(&x).unwrap();
    let told = fit.model.encode(Rows::from(&infinite).source()).unwrap_err();
    assert!(matches!(&told, Error::Infinite { cell, .. } if (cell.row, cell.column) == (3, 2)), "{told}");
    assert_eq!(max_abs(&encode(&fit.model, &Mat::zeros(0, 6))), 0.0);
    // Numbers of a model that do not belong together.
    let parts = fit.model.parts().clone();
    let other = random_model(5, 1, false, &mut Rng(1));
    assert!(KernelComponents::new(KernelParts { filling: Some(other), ..parts.clone() }).is_err());
    assert!(KernelComponents::new(KernelParts { filling: None, ..parts }).is_err());
    assert_eq!(fit.model.n_features(), 6);
    let none = KernelFeatures::empty(Arc::new(
        FeatureMap::new(fit.model.kernel(), Mat::zeros(1, 6), &[0.0; 6]).unwrap(),
    ));
    assert!(none.clone().update(&chunk_of(x.as_ref(), 0)).is_err());
    assert_eq!(none.moments().rows(), Moments::empty(1).rows());
}

/// Evidence in the feature space of landmarks goes to bytes and back, with what it knows of missing cells.
#[test]
fn features_of_landmarks_come_back_from_bytes() {
    let mut rng = Rng(31);
    let x = punched(&normal_matrix(60, 3, &mut rng), 0.1, &mut Rng(32));
    let kernel = Kernel::new(KernelForm::Rbf, 0.4).unwrap();
    let names: Vec<String> = (0..3).map(|j| format!("x{j}")).collect();
    let map = |seed: u64, filling: bool| {
        let map = FeatureMap::new(kernel, normal_matrix(6, 3, &mut Rng(seed)), &[0.1; 3]).unwrap();
        let model = random_model(3, 1, false, &mut Rng(33));
        Arc::new(if filling { map.with_filling(Arc::new(model)) } else { map })
    };
    let of = |map: &Arc<FeatureMap>, x: &Mat<f64>| {
        let mut out = KernelFeatures::empty(Arc::clone(map));
        out.update(&chunk_of(x.as_ref(), 0)).unwrap();
        out
    };
    let complete = normal_matrix(50, 3, &mut rng);
    for (filling, x) in [(true, &x), (false, &complete)] {
        let part = of(&map(34, filling), x);
        let bytes = part.to_bytes(&names).unwrap();
        let back = KernelFeatures::from_bytes(&bytes).unwrap();
        assert_eq!((back.features, back.evidence.to_bytes(&names).unwrap()), (names.clone(), bytes.clone()));
        // A part from elsewhere is merged with one from here, and goes on.
        let (mut merged, mut here) = (back.evidence, part.clone());
        merged.update(&chunk_of(complete.as_ref(), 0)).unwrap();
        merged.merge(&part).unwrap();
        here.update(&chunk_of(complete.as_ref(), 0)).unwrap();
        here.merge(&part).unwrap();
        assert_eq!(merged.diagonal().to_bits(), here.diagonal().to_bits());
        assert_eq!(matrix_bits(&merged.moments().covariance()), matrix_bits(&here.moments().covariance()));
        assert!(part.to_bytes(&names[..2]).is_err());
        assert!(KernelFeatures::from_bytes(&bytes[..bytes.len() - 9]).is_err());
        assert!(Moments::from_bytes(&bytes).is_err());
        // Of other landmarks, or of another knowledge of missing cells.
        let mut other = of(&map(35, filling), &complete);
        assert!(other.merge(&part).unwrap_err().to_string().contains("landmarks"));
        let mut other = of(&map(34, !filling), &complete);
        assert!(other.merge(&part).is_err());
    }
}
