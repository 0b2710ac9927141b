//! Choosing the number of components: against other software, theory, and data whose number is known.

use crate::common::*;
use covary::data::Rows;
use covary::evidence::{Moments, gather};
use covary::linalg::Mat;
use covary::select::{Select, Selection};
use covary::{Components, Control, Error, Ppca};

fn chosen(selection: &Selection, method: &str) -> Option<usize> {
    selection.choices.iter().find(|c| c.method == method).map(|c| c.components)
}

/// n rows of p features with the given standard deviations along turned axes.
fn rows(n: usize, deviations: &[f64], seed: u64) -> Mat<f64> {
    let p = deviations.len();
    let mut rng = Rng(seed);
    let z = normal_matrix(n, p, &mut rng);
    let axes = orthogonal(p, &mut rng);
    let scaled = Mat::from_fn(n, p, |i, j| z[(i, j)] * deviations[j]);
    &scaled * axes.transpose()
}

/// `minka.json` (a direct evaluation of Minka's formula with NumPy, and scikit-learn 1.9.1), eigenvalues of divisor n.
#[test]
fn evidence_and_bic_of_other_software() {
    let Some(reference) = reference("minka.json") else { return };
    let mut compared = 0;
    for r in reference["results"].as_array().unwrap() {
        let set = r["set"].as_str().unwrap();
        let Some(mut x) = data_set(r["file"].as_str().unwrap()) else { return };
        if x.ncols() != r["d"].as_u64().unwrap() as usize || has_holes(&x) {
            continue;
        }
        if r["scale"] == "standardise" {
            holes::standardise_observed(&mut x);
        }
        for scale in [1.0, 1e-8, 1e8] {
            let x = Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] * scale);
            let found = Select::new().folds(2).samples(1).run(&x).unwrap();
            compare_evidence(&found, r, scale, set);
        }
        compared += 1;
    }
    assert!(compared >= 4, "{compared} sets");
}

/// Evidence up to its constant, and the choices; BIC is −2 times the score there.
fn compare_evidence(found: &Selection, r: &serde_json::Value, scale: f64, set: &str) {
    if set == "digits" {
        return; // three constant pixels: nothing to compare, and nothing broke
    }
    let evidence = |q: usize| found.table[q].log_evidence.unwrap();
    let theirs = |q: usize| r["log_evidence_divisor_N"][q.to_string()].as_f64().unwrap();
    let rows = found.rows as f64 * found.features as f64;
    for q in 1..=found.table.len() - 1 {
        let (ours, expected) = (evidence(q) - evidence(1), theirs(q) - theirs(1));
        close(ours, expected, 1e-9 * theirs(q).abs().max(rows), (set, scale, q, "evidence"));
        if scale == 1.0 {
            let bic = -2.0 * r["bic_score"][q.to_string()].as_f64().unwrap();
            relative(found.table[q].bic.unwrap(), bic, 1e-9, (set, q, "bic"));
        }
    }
    let expected = |key: &str| r[key].as_u64().map(|q| q as usize);
    assert_eq!(chosen(found, "evidence"), expected("sklearn_mle_n_components"), "{set} {scale}");
    assert_eq!(chosen(found, "bic"), expected("bic_choice"), "{set} {scale}");
}

/// Minka's formula (2000, eq. 30), every pair of directions written out.
fn direct_evidence(values: &[f64], q: usize, n: f64) -> f64 {
    let p = values.len();
    let noise = values[q..].iter().sum::<f64>() / (p - q) as f64;
    let modelled = |j: usize| if j < q { values[j] } else { noise };
    let mut sum = -0.5 * n * (values[..q].iter().map(|v| v.ln()).sum::<f64>() + (p - q) as f64 * noise.ln());
    for i in 0..q {
        let half = (p - i) as f64 / 2.0;
        sum += statrs::function::gamma::ln_gamma(half) - half * std::f64::consts::PI.ln() - 2.0_f64.ln();
        let pairs = (i + 1..p).map(|j| (1.0 / modelled(j) - 1.0 / modelled(i)) * (values[i] - values[j]) * n);
        sum -= 0.5 * pairs.map(f64::ln).sum::<f64>();
    }
    let m = (p * q - q * (q + 1) / 2) as f64;
    sum + 0.5 * (m + q as f64) * LN_2PI - 0.5 * q as f64 * n.ln()
}

/// Faces: ten times as many pixels as pictures, where scikit-learn has no answer.
#[test]
fn evidence_of_fewer_rows_than_features() {
    let Some(x) = data_set("olivetti_faces") else { return };
    let (n, p) = (x.nrows(), x.ncols());
    let fit = |scale: f64| {
        let x = Mat::from_fn(n, p, |i, j| scale * x[(i, j)]);
        Ppca::new(Components::Evidence).fit(&x).unwrap()
    };
    let found = fit(1.0);
    let best = found.model.n_latent();
    [1e-8, 1e8].iter().for_each(|scale| assert_eq!(fit(*scale).model.n_latent(), best));
    let mut values = found.spectrum().unwrap().eigenvalues().to_vec();
    assert_eq!(values.len(), n - 1);
    values.resize(p, 0.0);
    let evidence = |q: usize| direct_evidence(&values, q, n as f64);
    for other in [1, best / 2, best - 1, best + 1, best + 40, n - 2] {
        assert!(evidence(best) > evidence(other), "{best} {other}");
    }
}

/// Where the smallest eigenvalue is no floor, all but one component are kept: that is the method.
#[test]
fn evidence_of_wine_is_that_of_scikit_learn() {
    let Some(x) = data_set("wine") else { return };
    for scale in [1e-8, 1.0, 1e8] {
        let x = Mat::from_fn(x.nrows(), x.ncols(), |i, j| scale * x[(i, j)]);
        assert_eq!(chosen(&Select::new().run(&x).unwrap(), "evidence"), Some(12)); // scikit-learn 1.9.1
    }
}

fn has_holes(x: &Mat<f64>) -> bool {
    (0..x.nrows()).any(|i| row(x, i).iter().any(|v| v.is_nan()))
}

/// Three directions of large variance among ten: every method that looks for a noise floor finds them.
#[test]
fn three_of_ten() {
    let mut hits = 0;
    for seed in 0..20 {
        let x = rows(300, &[5.0, 4.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], seed);
        let found = Select::new().run(&x).unwrap();
        let methods = ["cross-validation", "bic", "evidence", "parallel", "threshold"];
        hits += methods.iter().filter(|m| chosen(&found, m) == Some(3)).count();
        assert_eq!(chosen(&found, "bic"), Some(3), "seed {seed}");
    }
    assert!(hits >= 95, "{hits} of 100 choices are three");
}

#[test]
fn noise_has_no_components() {
    let x = rows(500, &[1.0; 8], 3);
    let found = Select::new().run(&x).unwrap();
    assert_eq!(chosen(&found, "bic"), Some(0));
    assert_eq!(chosen(&found, "parallel"), Some(0));
    assert_eq!(chosen(&found, "threshold"), Some(0));
    assert_eq!(chosen(&found, "cross-validation"), Some(0));
    assert_eq!(found.recommended, 1, "a fit needs one");
}

#[test]
fn lines_are_those_of_fits() {
    let x = rows(120, &[3.0, 2.0, 1.0, 0.5, 0.4], 4);
    let found = Select::new().run(&x).unwrap();
    for q in 1..5 {
        let truth = DensePpca::of(&x, None, q);
        let dense = Dense::new(truth.mean.clone(), truth.covariance(q));
        relative(found.table[q].noise_variance, truth.noise, 1e-11, (q, "noise"));
        relative(
            found.table[q].log_likelihood.unwrap(),
            (0..120).map(|i| dense.log_density(&row(&x, i))).sum::<f64>(),
            1e-10,
            (q, "likelihood"),
        );
    }
    let moments = gather(&table(&x), || Moments::empty(5), &Control::new()).unwrap();
    let without = Select::new().run_moments(&moments).unwrap();
    assert_eq!(chosen(&without, "cross-validation"), None);
    assert_eq!(without.reason.split(':').next(), Some("bic"));
    relative(without.table[2].bic.unwrap(), found.table[2].bic.unwrap(), 1e-12, "from moments");
}

fn weighted(x: &Mat<f64>, weight: impl Fn(usize) -> f64) -> Selection {
    let weights: Vec<f64> = (0..x.nrows()).map(weight).collect();
    Select::new().run(table(x).with_weights(weights).unwrap()).unwrap()
}

/// Weights of any scale below one row each are shares: the answer is that of rows without weights.
#[test]
fn weights_that_sum_to_one_choose_as_rows_do() {
    let x = rows(200, &[5.0, 4.0, 1.0, 1.0, 1.0, 1.0], 11);
    let plain = Select::new().run(&x).unwrap();
    assert_eq!(plain.recommended, 2);
    for total in [200.0, 1.0, 0.5, 1e-6] {
        let shares = weighted(&x, |_| total / 200.0);
        let choices =
            |s: &Selection| s.choices.iter().map(|c| (c.method.clone(), c.components)).collect::<Vec<_>>();
        assert_eq!(choices(&shares), choices(&plain), "{total}");
        for (a, b) in shares.table.iter().zip(&plain.table) {
            relative(a.bic.unwrap(), b.bic.unwrap(), 1e-11, total);
            relative(a.log_likelihood.unwrap(), b.log_likelihood.unwrap(), 1e-11, total);
        }
        let weights = vec![total / 200.0; 200];
        let rows = table(&x).with_weights(weights).unwrap();
        let moments = gather(&rows, || Moments::empty(6), &Control::new()).unwrap();
        assert_eq!(Select::new().run_moments(&moments).unwrap().recommended, 2, "{total}");
    }
}

/// A row of weight 3 is a row that was seen three times, for every criterion.
#[test]
fn whole_weights_are_copies() {
    let x = rows(60, &[3.0, 2.0, 1.0, 1.0], 12);
    let weight = |i: usize| 1 + i % 3;
    let copies: Vec<usize> = (0..60).flat_map(|i| std::iter::repeat_n(i, weight(i))).collect();
    let written = Mat::from_fn(copies.len(), 4, |i, j| x[(copies[i], j)]);
    let (a, b) = (weighted(&x, |i| weight(i) as f64), Select::new().run(&written).unwrap());
    for (a, b) in a.table.iter().zip(&b.table) {
        relative(a.bic.unwrap(), b.bic.unwrap(), 1e-11, "bic");
        assert_eq!(a.log_evidence.is_some(), b.log_evidence.is_some());
        a.log_evidence.zip(b.log_evidence).iter().for_each(|(a, b)| relative(*a, *b, 1e-10, "evidence"));
        assert_eq!(a.noise_eigenvalue, b.noise_eigenvalue);
    }
}

#[test]
fn odd_but_fair_data() {
    // Exact ties: ±1 designs whose columns are orthogonal.
    let tied = Mat::from_fn(8, 3, |i, j| if (i >> j) & 1 == 1 { 1.0 } else { -1.0 });
    let found = Select::new().run(&tied).unwrap();
    assert!(found.table.iter().all(|l| l.log_evidence.is_none_or(f64::is_finite)));
    // A feature that does not vary, and fewer rows than features.
    let constant = Mat::from_fn(50, 4, |i, j| if j == 3 { 7.0 } else { ((i * (j + 2)) as f64).sin() });
    assert_eq!(Select::new().run(&constant).unwrap().table.len(), 3);
    let wide = rows(12, &[3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 5);
    let found = Select::new().run(&wide).unwrap();
    assert_eq!(found.table.len(), 11);
    assert!(found.table[1..].iter().all(|line| line.log_evidence.is_some_and(f64::is_finite)));
    assert!(found.recommended >= 1 && found.recommended <= 10);
    // No more than asked for, and the same however many threads.
    let found = Select::new().max(2).run(&wide).unwrap();
    assert_eq!(found.table.len(), 3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| Select::new().max(2).run(&wide).unwrap()), found);
}

#[test]
fn bad_input_is_said() {
    let x = rows(20, &[1.0, 2.0, 3.0], 6);
    let error = |s: Select, x: &Mat<f64>| s.run(x).unwrap_err().to_string();
    assert!(error(Select::new().folds(1), &x).contains("folds"));
    assert!(error(Select::new().samples(0), &x).contains("samples of noise"));
    assert!(error(Select::new().max(0), &x).contains("largest number of components"));
    assert!(error(Select::new().fraction(1.5), &x).contains("share of the variance"));
    assert!(error(Select::new(), &Mat::from_fn(9, 1, |i, _| i as f64)).contains("at least 2"));
    assert!(matches!(Select::new().run(&Mat::from_fn(9, 2, |_, _| 1.0)), Err(Error::Constant)));
}

/// 5000 × 20 in single precision, rank 3, noise of deviation 1e-4: products in single precision would bury the noise.
#[test]
fn single_precision_chooses_what_double_does() {
    let (n, p) = (5000, 20);
    let mut rng = Rng(1);
    let w = normal_matrix(p, 3, &mut rng);
    let mut x = Mat::<f32>::zeros(n, p);
    for i in 0..n {
        let z = [rng.normal(), rng.normal(), rng.normal()];
        for j in 0..p {
            let signal: f64 = (0..3).map(|k| w[(j, k)] * z[k]).sum();
            x[(i, j)] = (signal + 1e-4 * rng.normal()) as f32;
        }
    }
    let wide = Mat::from_fn(n, p, |i, j| f64::from(x[(i, j)]));
    let (single, double) = (Select::new().run(&x).unwrap(), Select::new().run(&wide).unwrap());
    assert_eq!((single.recommended, double.recommended), (3, 3));
    for (a, b) in single.table.iter().zip(&double.table) {
        assert!((a.noise_variance / b.noise_variance - 1.0).abs() < 1e-9, "{a:?} {b:?}");
    }
    // The same from rows that pass once.
    let moments = gather(Rows::from(&x).source(), || Moments::empty(p), &Control::new()).unwrap();
    assert_eq!(Select::new().run_moments(&moments).unwrap().recommended, 3);
}

/// A fit whose number of components is chosen says which features had no say in it, as the choice does.
#[test]
fn a_chosen_number_comes_with_what_was_left_out() {
    use covary::Request;
    use covary::algorithm::RedundantFeatures;
    let x = rows(200, &[4.0, 3.0, 0.5, 0.5, 0.5], 8);
    let mut with = Mat::from_fn(200, 7, |i, j| if j < 5 { x[(i, j)] } else { 2.0 });
    (0..200).for_each(|i| with[(i, 6)] = 1.0 - 3.0 * x[(i, 1)]);
    let expected = RedundantFeatures { constant: vec![5], repeated: vec![(6, 1)], ..Default::default() };
    let mut rng = Rng(5);
    let punched = Mat::from_fn(200, 7, |i, j| if rng.uniform() < 0.1 { f64::NAN } else { with[(i, j)] });
    for x in [&with, &punched] {
        let rows = Rows::from(x);
        let fit = Request::new(Ppca::new(Components::Auto)).fit(rows.source(), &Control::new()).unwrap();
        assert_eq!((fit.report.components, fit.report.redundant.as_ref()), (2, Some(&expected)));
    }
}

/// The likelihood of n rows overflows where n does: no number of components is better than another then.
#[test]
fn weights_beyond_all_numbers_are_an_error() {
    let x = rows(60, &[4.0, 3.0, 0.5, 0.5, 0.5], 8);
    let of = |weight: f64| Select::new().run(Rows::from(table(&x).with_weights(vec![weight; 60]).unwrap()));
    assert_eq!(of(1e300).unwrap().recommended, 2);
    assert!(matches!(of(2.5e306), Err(Error::Scale)));
}
