//! Independent components: sources that were mixed are found again, whatever the method, and every question of
//! PPCA has PPCA's answer.

use covary::data::{RowSource, Rows, Table};
use covary::evidence::Contrast;
use covary::linalg::{Mat, MatRef};
use covary::model::{IndependentComponents, Model, Noise};
use covary::{Control, Error, Fit, Ica, IcaMethod, Ppca};

use crate::common::{
    Cut, Rng, close_all, close_matrix, data_set, matrix_bits, max_abs, normal_matrix, table,
};

/// How a source of variance 1 is drawn.
fn draw(kind: usize, rng: &mut Rng) -> f64 {
    let u = rng.uniform();
    match kind % 3 {
        0 => (u - 0.5).signum() * -(1.0 - 2.0 * (u - 0.5).abs()).max(1e-300).ln() / 2f64.sqrt(), // Laplace
        1 => (u - 0.5) * 12f64.sqrt(),
        _ => (if u < 0.5 { 0.9 } else { -0.9 }) + 0.19f64.sqrt() * rng.normal(), // bimodal
    }
}

/// Sources (n × q), a mixing matrix (p × q), and rows As + ε with noise of this deviation (n × p).
fn mixture(n: usize, p: usize, q: usize, noise: f64, seed: u64) -> (Mat<f64>, Mat<f64>, Mat<f64>) {
    let mut rng = Rng(seed);
    let sources = Mat::from_fn(n, q, |_, k| draw(k, &mut rng));
    let mixing = normal_matrix(p, q, &mut rng);
    let mut x = &sources * mixing.transpose();
    (0..n).for_each(|i| (0..p).for_each(|j| x[(i, j)] += noise * rng.normal() + j as f64));
    (sources, mixing, x)
}

/// How far an estimate of sources from the true ones is, whatever their order, sign and scale \[ACY96\]: 0 when
/// BA is a permutation, for B the unmixing and A the mixing matrix.
fn amari(unmixing: MatRef<'_, f64>, mixing: &Mat<f64>) -> f64 {
    let p = unmixing * mixing;
    let q = p.nrows();
    let excess = |of: &dyn Fn(usize) -> f64| -> f64 {
        let most = (0..q).map(of).fold(0.0, f64::max);
        (0..q).map(of).sum::<f64>() / most - 1.0
    };
    let rows: f64 = (0..q).map(|i| excess(&|j| p[(i, j)].abs())).sum();
    let columns: f64 = (0..q).map(|j| excess(&|i| p[(i, j)].abs())).sum();
    (rows + columns) / (2 * q * (q - 1)) as f64
}

/// The pseudo-inverse of a mixing matrix undoes it, noise or not.
fn distance(model: &IndependentComponents, mixing: &Mat<f64>) -> f64 {
    let a = model.mixing();
    let gram = a.transpose() * a;
    let q = gram.nrows();
    let solved = covary_solve(&gram, &(a.transpose() * mixing));
    amari(Mat::<f64>::identity(q, q).as_ref(), &solved)
}

fn covary_solve(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    use faer::linalg::solvers::Solve;
    a.partial_piv_lu().solve(b)
}

fn fit(ica: &Ica, x: &Mat<f64>) -> Fit<IndependentComponents> {
    ica.fit(x).unwrap()
}

#[test]
fn ten_mixtures_are_unmixed() {
    for seed in 0..10 {
        let (_, mixing, x) = mixture(10_000, 6, 6, 0.0, seed);
        let found = fit(&Ica::new(6), &x);
        let far = distance(&found.model, &mixing);
        assert!(far < 0.05 && found.report.converged(), "{seed}: {far}");
        let report = found.report.ica().unwrap();
        assert!(report.looks_normal().iter().all(|normal| !normal), "{:?}", report.contrast);
        assert!(report.stability.as_ref().unwrap().iter().all(|s| *s > 0.99), "{:?}", report.stability);
    }
}

/// Sources as the model sees them have variance 1, stand in the order of ‖a‖², and have a positive largest loading.
#[test]
fn order_sign_and_scale_follow_the_rules() {
    let (_, _, x) = mixture(3000, 5, 5, 0.0, 3);
    let found = fit(&Ica::new(5).noise(false), &x);
    let (a, s) = (found.model.mixing(), Model::as_encode(&found.model).unwrap().encode(&table(&x)).unwrap());
    let lengths: Vec<f64> = a.col_iter().map(|c| c.squared_norm_l2()).collect();
    assert!(lengths.windows(2).all(|pair| pair[0] >= pair[1]));
    for k in 0..5 {
        let column: Vec<f64> = a.col(k).iter().copied().collect();
        let largest = column.iter().copied().fold(0.0, |m: f64, x| if x.abs() > m.abs() { x } else { m });
        assert!(largest > 0.0);
        let mean = s.col(k).sum() / 3000.0;
        let variance = s.col(k).iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 3000.0;
        assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-10, "{mean} {variance}");
    }
    // Rows of the plane are mixed from their sources exactly, and B undoes A.
    let back = Model::as_decode(&found.model).unwrap().decode(s.as_ref()).unwrap();
    close_matrix(&back, &x, 1e-11, "rows");
    close_matrix(&(found.model.unmixing().unwrap() * a), &Mat::identity(5, 5), 1e-12, "BA");
}

/// E ψ(y)yᵀ of the final sources, from its definition: with the signs of their tails it is symmetric.
fn asymmetry(s: &Mat<f64>) -> f64 {
    let (n, q) = (s.nrows() as f64, s.ncols());
    let tanh = Mat::from_fn(s.nrows(), q, |i, k| s[(i, k)].tanh());
    let g = tanh.transpose() * s * faer::Scale(1.0 / n);
    let sign = |k: usize| {
        let bend = tanh.col(k).iter().map(|t| 1.0 - t * t).sum::<f64>() / n;
        if bend < g[(k, k)] { -1.0 } else { 1.0 }
    };
    let pair = |i: usize, j: usize| 0.5 * (sign(i) * g[(i, j)] - sign(j) * g[(j, i)]).abs();
    (0..q).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| pair(i, j)).fold(0.0, f64::max)
}

#[test]
fn picard_and_fastica_have_the_same_fixed_point() {
    for seed in [0, 1, 2] {
        let (_, mixing, x) = mixture(4000, 5, 5, 0.0, 20 + seed);
        let start = normal_matrix(5, 5, &mut Rng(seed));
        let with =
            |method| fit(&Ica::new(5).noise(false).method(method).start(start.clone()).tolerance(1e-11), &x);
        let picard = with(IcaMethod::default());
        let fastica = with(IcaMethod::FastIca { contrast: Contrast::default(), deflation: false });
        assert!(distance(&picard.model, &mixing) < 0.05);
        close_matrix(picard.model.mixing(), fastica.model.mixing(), 1e-8, seed);
        let s = Model::as_encode(&picard.model).unwrap().encode(&table(&x)).unwrap();
        assert!(asymmetry(&s) < 1e-10, "{}", asymmetry(&s));
    }
}

#[test]
fn every_method_and_contrast_unmixes() {
    let contrasts = [Contrast::LogCosh { alpha: 1.5 }, Contrast::Exp, Contrast::Cube];
    let fast = |contrast, deflation| IcaMethod::FastIca { contrast, deflation };
    let mut methods = vec![IcaMethod::Infomax { extended: true }];
    contrasts.into_iter().for_each(|c| methods.extend([fast(c, false), fast(c, true)]));
    let (_, mixing, x) = mixture(10_000, 6, 6, 0.0, 5);
    for method in methods {
        let found = fit(&Ica::new(6).method(method).starts(2), &x);
        let far = distance(&found.model, &mixing);
        assert!(far < 0.06 && found.report.converged(), "{method:?}: {far} {:?}", found.report.stop);
    }
}

/// Laplace sources only: tails that plain infomax and Picard expect.
#[test]
fn heavy_tails_need_no_extension() {
    let mut rng = Rng(8);
    let sources = Mat::from_fn(1000, 3, |_, _| draw(0, &mut rng));
    let mixing = normal_matrix(3, 3, &mut rng);
    let x = &sources * mixing.transpose();
    for method in [IcaMethod::Picard { extended: false }, IcaMethod::Infomax { extended: false }] {
        let found = fit(&Ica::new(3).method(method), &x);
        assert!(found.report.converged());
        // |BA − I| < 0.1 up to order and sign \[python-picard's own test\].
        let b = found.model.unmixing().unwrap() * &mixing;
        for i in 0..3 {
            let row: Vec<f64> = b.row(i).iter().map(|x| x.abs()).collect();
            let most = row.iter().copied().fold(0.0, f64::max);
            assert!(row.iter().filter(|x| **x < 0.1 * most).count() == 2, "{method:?}: {row:?}");
        }
    }
}

/// Without the constraint sources have a correlation, and the density is still that of PPCA.
#[test]
fn infomax_is_an_oblique_turn() {
    let (_, _, x) = mixture(2000, 6, 3, 0.3, 9);
    let ppca = Ppca::new(3).fit(&x).unwrap();
    let found = fit(&Ica::new(3).method(IcaMethod::Infomax { extended: true }), &x);
    let phi = found.model.correlation();
    assert!(max_abs(&(&phi - Mat::<f64>::identity(3, 3))) > 1e-4);
    let common = found.model.mixing() * &phi * found.model.mixing().transpose();
    let w = ppca.model.loadings();
    close_matrix(&common, &(w * w.transpose()), 1e-10, "AΦAᵀ = WWᵀ");
    close_all(
        &found.model.gaussian().log_density(&x).unwrap(),
        &ppca.model.log_density(&x).unwrap(),
        1e-12,
        "density",
    );
}

/// Posterior, imputation, intervals, densities and outliers are those of PPCA.
#[test]
fn questions_have_the_answers_of_ppca() {
    let (_, _, mut x) = mixture(800, 7, 3, 0.4, 10);
    let ppca = Ppca::new(3).fit(&x).unwrap().model;
    let found = fit(&Ica::new(3), &x).model;
    (0..800).step_by(3).for_each(|i| x[(i, i % 7)] = f64::NAN);
    let (ica, rows) = (&found as &dyn Model, table(&x));
    let filled = ica.imputer().unwrap().impute_with_std(&rows).unwrap();
    let expected = ppca.impute_with_std(&x).unwrap();
    close_matrix(&filled.cells, &expected.cells, 1e-10, "imputed");
    close_matrix(&filled.std, &expected.std, 1e-10, "deviations");
    close_all(
        &ica.density().unwrap().log_density(&rows).unwrap(),
        &ppca.log_density(&x).unwrap(),
        1e-10,
        "density",
    );
    let outliers = ica.density().unwrap().outliers(&rows).unwrap();
    close_all(&outliers.p_value, &ppca.outliers(&x).unwrap().p_value, 1e-10, "p-values");
    // Sources are the posterior of PPCA, turned.
    let z = ppca.posterior(&x).unwrap();
    let s = ica.latent_posterior().unwrap().posterior(&rows).unwrap();
    let turn = found.turn();
    close_matrix(&s.mean, &(&z.mean * &turn), 1e-10, "sources");
    let c = s.covariance.of(0).to_owned();
    close_matrix(&c, &(turn.transpose() * z.covariance.of(0) * &turn), 1e-10, "covariance");
    // Of a complete row they are B(x − μ).
    let b = found.unmixing().unwrap();
    let centred = Mat::from_fn(7, 1, |j, _| x[(1, j)] - found.gaussian().mean()[j]);
    let one = b * centred;
    (0..3).for_each(|k| assert!((one[(k, 0)] - s.mean[(1, k)]).abs() < 1e-10));
}

#[test]
fn a_fifth_missing_costs_less_than_twice_the_distance() {
    for seed in 0..3 {
        let (_, mixing, mut x) = mixture(10_000, 12, 4, 0.1, 30 + seed);
        let complete = distance(&fit(&Ica::new(4), &x).model, &mixing);
        let mut rng = Rng(seed);
        for (i, j) in (0..10_000).flat_map(|i| (0..12).map(move |j| (i, j))) {
            if rng.uniform() < 0.2 {
                x[(i, j)] = f64::NAN;
            }
        }
        let found = fit(&Ica::new(4), &x);
        let missing = distance(&found.model, &mixing);
        assert!(found.report.converged() && missing < 2.0 * complete, "{seed}: {missing} {complete}");
    }
}

/// One missing cell does not change what is found: complete rows are looked at alike.
#[test]
fn a_single_missing_cell_changes_little() {
    let (_, _, mut x) = mixture(2000, 8, 3, 0.5, 12);
    let complete = fit(&Ica::new(3), &x).model;
    x[(7, 2)] = f64::NAN;
    let missing = fit(&Ica::new(3), &x).model;
    close_matrix(missing.mixing(), complete.mixing(), 5e-3, "mixing");
}

/// Rows without a cell say nothing, and rows without a weight are not looked at.
#[test]
fn empty_rows_change_nothing() {
    let (_, _, mut x) = mixture(900, 6, 3, 0.2, 25);
    (0..900).step_by(4).for_each(|i| x[(i, i % 6)] = f64::NAN);
    let with = |n: usize, cell: f64| Mat::from_fn(n, 6, |i, j| if i < 900 { x[(i, j)] } else { cell });
    let found = fit(&Ica::new(3), &x);
    let more = fit(&Ica::new(3), &with(1500, f64::NAN));
    close_matrix(more.model.mixing(), found.model.mixing(), 1e-6, "mixing");
    let (contrast, expected) = (&more.report.ica().unwrap().contrast, &found.report.ica().unwrap().contrast);
    close_all(contrast, expected, 1e-4, "contrast");
    let weights: Vec<f64> = (0..1500).map(|i| f64::from(u8::from(i < 900))).collect();
    let x = with(1500, f64::INFINITY);
    let weightless = Ica::new(3).fit(table(&x).with_weights(weights).unwrap()).unwrap();
    close_matrix(weightless.model.mixing(), found.model.mixing(), 1e-6, "mixing");
}

/// Weights are how often a row was seen.
#[test]
fn weights_are_repetitions() {
    let (_, _, x) = mixture(900, 4, 4, 0.0, 13);
    let weights: Vec<f64> = (0..900).map(|i| [0.0, 1.0, 2.0][i % 3]).collect();
    let rows: Vec<usize> = (0..900).flat_map(|i| std::iter::repeat_n(i, i % 3)).collect();
    let repeated = Mat::from_fn(rows.len(), 4, |i, j| x[(rows[i], j)]);
    let weighted = Ica::new(4).fit(table(&x).with_weights(weights).unwrap()).unwrap();
    close_matrix(weighted.model.mixing(), fit(&Ica::new(4), &repeated).model.mixing(), 1e-7, "mixing");
}

/// The same bits on any number of threads, and whether whitened rows are kept or made anew in each pass.
#[test]
fn threads_and_memory_change_no_bit() {
    for missing in [false, true] {
        let (_, _, mut x) = mixture(3000, 6, 3, 0.2, 14);
        if missing {
            (0..3000).for_each(|i| x[(i, i % 6)] = f64::NAN);
        }
        let ica = Ica::new(3).starts(2);
        let kept = fit(&ica, &x);
        assert_eq!(kept.report.ica().unwrap().kept, Some(true));
        // Enough for PPCA, not for all whitened rows.
        let passes = fit(&ica.clone().memory(60_000), &x);
        assert_eq!(passes.report.ica().unwrap().kept, Some(false));
        let one = fit(&ica.clone().threads(1), &x);
        for other in [&passes, &one] {
            assert_eq!(matrix_bits(kept.model.mixing()), matrix_bits(other.model.mixing()), "{missing}");
        }
    }
}

/// Rows of a file are read in chunks. Cut like those of a table they have the bits of a table, kept or in passes; cut
/// otherwise, sums are made in another order, and sources agree to what the search makes of rounding.
#[test]
fn rows_that_are_cut_alike_have_the_same_bits() {
    for missing in [false, true] {
        let (_, _, mut x) = mixture(3000, 6, 3, 0.2, 77);
        if missing {
            (0..3000).for_each(|i| x[(i, i % 6)] = f64::NAN);
        }
        let (ica, in_memory) = (Ica::new(3).starts(2), fit(&Ica::new(3).starts(2), &x));
        let rows = table(&x).chunk(0).unwrap().nrows();
        for ica in [ica.clone(), ica.clone().memory(60_000)] {
            let source: &dyn RowSource = &Cut { x: &x, rows };
            let from_file = ica.fit(source).unwrap();
            assert_eq!(
                matrix_bits(from_file.model.mixing()),
                matrix_bits(in_memory.model.mixing()),
                "{missing}"
            );
        }
        let source: &dyn RowSource = &Cut { x: &x, rows: 177 };
        close_matrix(ica.fit(source).unwrap().model.mixing(), in_memory.model.mixing(), 1e-5, missing);
    }
}

/// On the electrocardiogram of a mother and her child every start ends at a point without slope.
#[test]
fn the_gradient_vanishes_on_foetal_ecg() {
    let Some(x) = data_set("foetal_ecg") else { return };
    let x = x.subcols(1, 8).to_owned(); // without the time
    let found = fit(&Ica::new(8).noise(false), &x);
    assert!(found.report.converged());
    assert!(found.report.ica().unwrap().stability.as_ref().unwrap().iter().all(|s| *s > 0.9));
    let s = Model::as_encode(&found.model).unwrap().encode(&table(&x)).unwrap();
    assert!(asymmetry(&s) <= 1.01e-7, "{}", asymmetry(&s));
}

#[test]
fn two_normal_sources_are_flagged() {
    let mut rng = Rng(15);
    let sources = Mat::from_fn(5000, 4, |_, k| if k < 2 { rng.normal() } else { draw(k, &mut rng) });
    let x = &sources * normal_matrix(4, 4, &mut rng).transpose();
    let found = fit(&Ica::new(4), &x);
    let flags = found.report.ica().unwrap().looks_normal();
    assert_eq!(flags.iter().filter(|normal| **normal).count(), 2, "{:?}", found.report.ica());
    // Which of the two is which nobody can say: other starts find other ones.
    let s = Model::as_encode(&found.model).unwrap().encode(&table(&x)).unwrap();
    for (k, normal) in flags.iter().enumerate() {
        let kurtosis = s.col(k).iter().map(|y| y.powi(4)).sum::<f64>() / 5000.0 - 3.0;
        assert_eq!(kurtosis.abs() < 0.3, *normal, "{kurtosis}");
    }
}

#[test]
fn a_warm_start_is_one_start() {
    let (_, _, x) = mixture(2000, 4, 4, 0.0, 16);
    let first = fit(&Ica::new(4), &x);
    let family: &dyn covary::estimator::Family = &Ica::new(4);
    let start: covary::model::AnyModel = std::sync::Arc::new(first.model.clone());
    let again = family.with_start(&start).unwrap().fit_rows(&table(&x), &Control::new()).unwrap();
    let details = again.report.ica().unwrap();
    assert!(details.iterations <= 1 && details.starts == 1 && details.stability.is_none());
    close_matrix(again.model.with_loadings().unwrap().loadings(), first.model.mixing(), 1e-6, "mixing");
}

#[test]
fn what_cannot_be_done_is_said() {
    let (_, _, x) = mixture(200, 5, 2, 0.0, 17); // rank 2
    let error = Ica::new(4).fit(&x).unwrap_err();
    assert!(matches!(error, Error::Components { requested: 4, possible: 2, .. }), "{error}");
    // A constant channel is one direction less.
    let mut constant = mixture(200, 3, 3, 0.0, 18).2;
    (0..200).for_each(|i| constant[(i, 1)] = 7.0);
    let error = Ica::new(3).fit(&constant).unwrap_err();
    assert!(matches!(error, Error::Components { requested: 3, possible: 2, .. }), "{error}");
    let two = fit(&Ica::new(2), &constant);
    assert!(two.model.mixing().row(1).iter().all(|a| a.abs() < 1e-12));
    // Fewer rows than sources.
    let few = mixture(3, 6, 6, 0.0, 19).2;
    assert!(matches!(Ica::new(5).fit(&few), Err(Error::Components { possible: 2, .. })));
    assert!(matches!(Ica::new(0).fit(&x), Err(Error::Components { requested: 0, .. })));
    assert!(Ica::new(2).starts(0).fit(&x).is_err());
    assert!(Ica::new(2).tolerance(0.0).fit(&x).is_err());
    let sharp = IcaMethod::FastIca { contrast: Contrast::LogCosh { alpha: 3.0 }, deflation: false };
    assert!(Ica::new(2).method(sharp).fit(&x).is_err());
    assert!(Ica::new(2).start(Mat::zeros(3, 3)).fit(&x).is_err());
    let model = fit(&Ica::new(2), &x).model;
    let wide = Mat::<f64>::zeros(4, 7);
    assert!(matches!(
        Model::as_encode(&model).unwrap().encode(&table(&wide)),
        Err(Error::FeatureCount { .. })
    ));
    let mut infinite = x.clone();
    infinite[(3, 1)] = f64::INFINITY;
    assert!(matches!(Ica::new(2).fit(&infinite), Err(Error::Infinite { .. })));
}

/// Means of 1e8 and scales of 1e±150 change sources by no more than their digits allow.
#[test]
fn location_and_scale_of_the_data_do_not_matter() {
    let (_, mixing, x) = mixture(2000, 4, 4, 0.0, 21);
    let far = distance(&fit(&Ica::new(4), &x).model, &mixing);
    for (factor, shift) in [(1.0, 1e8), (1e150, 0.0), (1e-150, 0.0)] {
        let moved = Mat::from_fn(2000, 4, |i, j| factor * x[(i, j)] + shift);
        let found = fit(&Ica::new(4), &moved);
        assert!((distance(&found.model, &mixing) - far).abs() < 1e-6, "{factor} {shift}");
    }
    // One feature only, and one source.
    let one = Mat::from_fn(100, 1, |i, _| x[(i, 0)]);
    assert_eq!(fit(&Ica::new(1), &one).model.n_sources(), 1);
}

/// Rows of other grids: f32 cells, a source that is no table.
#[test]
fn any_source_will_do() {
    let (_, mixing, x) = mixture(3000, 4, 4, 0.0, 22);
    let narrow = crate::common::narrowed(&x);
    let found = Ica::new(4).fit(&narrow).unwrap();
    assert!(distance(&found.model, &mixing) < 0.05);
    let cut = Cut { x: &x, rows: 700 };
    let rows: &dyn RowSource = &cut;
    let other = Ica::new(4).fit(rows).unwrap();
    close_matrix(other.model.mixing(), fit(&Ica::new(4), &x).model.mixing(), 1e-6, "mixing");
}

/// Noise that PPCA finds is that of the model, and sources are shrunk by it.
#[test]
fn noise_belongs_to_the_model() {
    let (_, mixing, x) = mixture(10_000, 10, 3, 0.5, 23);
    let found = fit(&Ica::new(3), &x).model;
    let Noise::Isotropic(noise) = *found.gaussian().noise() else { panic!("one variance") };
    assert!((noise - 0.25).abs() < 0.01, "{noise}");
    assert!(distance(&found, &mixing) < 0.05);
    let free = fit(&Ica::new(3).noise(false), &x).model;
    assert_eq!(*free.gaussian().noise(), Noise::Isotropic(0.0));
    assert!(matches!(free.gaussian().log_density(&x), Err(Error::NoDensity { .. })));
}

/// Rows that are whitened already are taken as they are.
#[test]
fn whitened_rows_are_not_whitened_again() {
    let (_, _, x) = mixture(2000, 4, 4, 0.0, 24);
    let whole = fit(&Ica::new(4).noise(false), &x);
    let z = Ppca::new(4).fit(&x).unwrap().model.latent_mean(&x).unwrap();
    let given = fit(&Ica::new(4).whitened(true), &z);
    let s = Model::as_encode(&given.model).unwrap().encode(&table(&z)).unwrap();
    let expected = Model::as_encode(&whole.model).unwrap().encode(&table(&x)).unwrap();
    let agreement = s.transpose() * &expected * faer::Scale(1.0 / 2000.0);
    let near = |i: usize| (0..4).any(|j| agreement[(i, j)].abs() > 1.0 - 1e-6);
    assert!((0..4).all(near));
    let _: Table<'_> = table(&z);
    assert!(matches!(Rows::from(&z), Rows::Table(_)));
}
