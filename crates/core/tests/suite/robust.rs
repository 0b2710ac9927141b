//! Robust PPCA: outliers do not move it, it is at a maximum of the likelihood, and its limit is PPCA.

use std::sync::Arc;

use covary::data::Rows;
use covary::evidence::{Accumulator, StudentEvidence};
use covary::expectation::LatentParameters;
use covary::linalg::Mat;
use covary::model::{AnyModel, LinearGaussian, LinearStudent, Noise};
use covary::persist::SavedModel;
use covary::{Components, Control, DegreesOfFreedom, Error, Ppca, Request, RobustPpca, Scale, Solver};

use crate::common::*;

/// Three directions of deviations 6, 4 and 3 in ten features, with noise of deviation 0.7.
fn truth(rng: &mut Rng) -> LinearGaussian {
    let u = orthogonal(10, rng);
    let w = Mat::from_fn(10, 3, |i, k| u[(i, k)] * [6.0, 4.0, 3.0][k]);
    let mean = (0..10).map(|j| 5.0 * j as f64).collect();
    LinearGaussian::new(mean, w, Noise::Isotropic(0.49)).unwrap()
}

/// Where outliers lie.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outliers {
    Around,
    InOnePlace,
}

/// Rows of a model, a share of them replaced by gross outliers, a share of the cells missing.
fn spoilt(
    model: &LinearGaussian,
    n: usize,
    share: f64,
    missing: f64,
    lie: Outliers,
    rng: &mut Rng,
) -> Mat<f64> {
    let (p, mut x) = (model.n_features(), model.sample(n, rng.next()));
    let place: Vec<f64> = (0..p).map(|_| 40.0 * rng.normal()).collect();
    let spoilt = (share * n as f64) as usize;
    for i in 0..n {
        for j in 0..p {
            if i < spoilt {
                let far = if lie == Outliers::Around { 60.0 * rng.normal() } else { place[j] + rng.normal() };
                x[(i, j)] = model.mean()[j] + far;
            }
            if rng.uniform() < missing {
                x[(i, j)] = f64::NAN;
            }
        }
    }
    x
}

/// The largest angle between two planes of orthonormal directions (p × q), in degrees.
fn angle(a: &LinearGaussian, b: &LinearGaussian) -> f64 {
    let (a, b) = (a.principal_axes().unwrap().0, b.principal_axes().unwrap().0);
    let m = a.transpose() * &b;
    let (values, _) = eigen(&(m.transpose() * &m));
    values.iter().copied().fold(1.0, f64::min).max(0.0).sqrt().acos().to_degrees()
}

#[test]
fn outliers_do_not_move_the_plane() {
    for (seed, missing, lie) in [
        (1, 0.0, Outliers::Around),
        (2, 0.0, Outliers::InOnePlace),
        (3, 0.15, Outliers::Around),
        (4, 0.15, Outliers::InOnePlace),
    ] {
        let mut rng = Rng(seed);
        let model = truth(&mut rng);
        let x = spoilt(&model, 600, 0.05, missing, lie, &mut rng);
        let (robust, plain) = (RobustPpca::new(3).fit(&x).unwrap(), Ppca::new(3).fit(&x).unwrap());
        let scale = robust.model.scale();
        // How far the outliers, the first 30 rows, move what the others say.
        let others = Ppca::new(3).fit(&x.subrows(30, 570).to_owned()).unwrap().model;
        let what =
            format!("{missing} {lie:?}: {} and {}", angle(scale, &others), angle(&plain.model, &others));
        // The pull of a row is bounded, not 0: outliers that agree on a direction add up, to some degrees.
        let most = if lie == Outliers::Around { 2.0 } else { 5.0 };
        assert!(angle(scale, &others) < most && angle(&plain.model, &others) > 30.0, "{what}");
        let ratio = scale.noise().of(0) / others.noise().of(0);
        assert!((ratio - 1.0).abs() < 0.25, "{what}: noise {ratio}");
        // The outliers are the rows of least weight.
        let weights = robust.model.weights(&x).unwrap();
        let (bad, good) = weights.split_at(30);
        let most = bad.iter().copied().fold(0.0, f64::max);
        assert!(good.iter().filter(|w| **w < most).count() < 6 && most < 0.2, "{what}: {most}");
        assert!(robust.report.converged() && robust.report.robust().unwrap().low_rows >= 30, "{what}");
        for pair in robust.report.trace.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-9 * pair[0].abs(), "the likelihood never falls");
        }
    }
}

/// ln of the t density of the observed cells, summed, by dense algebra.
fn brute_force(x: &Mat<f64>, weights: &[f64], model: &LinearGaussian, nu: f64) -> f64 {
    let dense = Dense::of(model);
    let ln_gamma = statrs::function::gamma::ln_gamma;
    let of_row = |i: usize| {
        let cells: Vec<usize> = (0..x.ncols()).filter(|j| !x[(i, *j)].is_nan()).collect();
        if cells.is_empty() {
            return 0.0;
        }
        let part = dense.marginal(&cells);
        let d = part.mahalanobis(&cells.iter().map(|j| x[(i, *j)]).collect::<Vec<_>>());
        let k = cells.len() as f64;
        ln_gamma(0.5 * (nu + k))
            - ln_gamma(0.5 * nu)
            - 0.5 * (k * (nu * std::f64::consts::PI).ln() + part.log_det() + (nu + k) * (d / nu).ln_1p())
    };
    (0..x.nrows()).map(|i| weights[i] * of_row(i)).sum()
}

/// Every coordinate: W, μ, ln σ², ln ν. At a maximum none of them leads up.
#[test]
fn no_coordinate_leads_up_from_what_is_found() {
    for (missing, given) in [(0.0, None), (0.2, None), (0.2, Some(3.0)), (0.0, Some(0.7))] {
        let mut rng = Rng(11);
        let model = LinearStudent::new(random_model(4, 1, false, &mut rng), 3.0).unwrap();
        let any: AnyModel = Arc::new(model);
        let mut x = any.density().unwrap().sample_rows(0..90, 4);
        (0..90).for_each(|i| {
            (0..4).for_each(|j| {
                if rng.uniform() < missing {
                    x[(i, j)] = f64::NAN;
                }
            });
        });
        let weights: Vec<f64> = (0..90).map(|i| [1.0, 2.0, 0.5][i % 3]).collect();
        let nu = given.map_or(DegreesOfFreedom::Auto, DegreesOfFreedom::Given);
        let table = table(&x).with_weights(&weights).unwrap();
        let fit = RobustPpca::new(1).nu(nu).tolerance(1e-13).fit(&table).unwrap();
        let (scale, nu) = (fit.model.scale(), fit.model.degrees_of_freedom());
        let best = brute_force(&x, &weights, scale, nu);
        relative(fit.report.log_likelihood.unwrap(), best, 1e-11, "log-likelihood");
        assert!(given.is_some() || (nu > 1.0 && nu < 20.0), "{nu}");
        let at = |k: usize, h: f64| {
            let (mut mean, mut w) = (scale.mean().to_vec(), scale.loadings().clone());
            let (mut noise, mut nu) = (scale.noise().of(0), nu);
            match k {
                0..4 => w[(k, 0)] += h,
                4..8 => mean[k - 4] += h,
                8 => noise *= h.exp(),
                _ => nu *= h.exp(),
            }
            brute_force(&x, &weights, &LinearGaussian::new(mean, w, Noise::Isotropic(noise)).unwrap(), nu)
        };
        let coordinates = if given.is_some() { 9 } else { 10 };
        for k in 0..coordinates {
            let h = 1e-3;
            let (up, down) = (at(k, h), at(k, -h));
            assert!(up < best && down < best, "{missing} {given:?} {k}: {} {}", up - best, down - best);
            let curvature = (up + down - 2.0 * best) / (h * h);
            let off = -(up - down) / (2.0 * h) / curvature;
            assert!(off.abs() < 1e-5, "{missing} {given:?} {k}: the maximum lies {off} away");
        }
    }
}

#[test]
fn infinitely_many_degrees_of_freedom_are_ppca() {
    let mut rng = Rng(21);
    let model = truth(&mut rng);
    for missing in [0.0, 0.1] {
        let x = spoilt(&model, 300, 0.0, missing, Outliers::Around, &mut rng);
        let fit = |nu: f64| RobustPpca::new(3).nu(nu).tolerance(1e-14).fit(&x).unwrap();
        let plain = Ppca::new(3).tolerance(1e-14).fit(&x).unwrap();
        // As a limit, and by the iteration of robust fits.
        for (nu, tolerance) in [(f64::INFINITY, 1e-14), (1e13, if missing > 0.0 { 1e-6 } else { 1e-9 })] {
            let found = fit(nu);
            let (a, b) = (found.model.scale().covariance(), plain.model.covariance());
            close_matrix(&a, &b, tolerance * max_abs(&b), ("covariance", nu, missing));
            close_all(found.model.scale().mean(), plain.model.mean(), tolerance * 50.0, ("mean", nu));
            let likelihoods = (found.report.log_likelihood.unwrap(), plain.report.log_likelihood.unwrap());
            relative(likelihoods.0, likelihoods.1, 1e-9, ("log-likelihood", nu, missing));
        }
    }
}

/// Rows of lighter tails than the normal: 1/ν ends at 0 exactly, and the fit is PPCA's.
#[test]
fn light_tails_end_at_the_normal_distribution() {
    let mut rng = Rng(31);
    let x = Mat::from_fn(400, 5, |i, j| {
        rng.uniform() + if j < 2 { 3.0 * ((i * 7 % 400) as f64 / 400.0) } else { 0.0 }
    });
    let fit = RobustPpca::new(1).fit(&x).unwrap();
    assert!(fit.model.degrees_of_freedom().is_infinite());
    let plain = Ppca::new(1).fit(&x).unwrap();
    close_matrix(&fit.model.scale().covariance(), &plain.model.covariance(), 1e-9, "covariance");
    relative(fit.report.log_likelihood.unwrap(), plain.report.log_likelihood.unwrap(), 1e-12, "likelihood");
    assert_eq!(fit.report.robust().unwrap().low_rows, 0);
}

#[test]
fn nu_is_found() {
    let mut rng = Rng(41);
    for (nu, missing) in [(2.0, 0.0), (5.0, 0.0), (5.0, 0.2), (20.0, 0.0)] {
        let model: AnyModel = Arc::new(LinearStudent::new(truth(&mut rng), nu).unwrap());
        let mut x = model.density().unwrap().sample_rows(0..4000, 7);
        (0..4000).for_each(|i| {
            (0..10).for_each(|j| {
                if rng.uniform() < missing {
                    x[(i, j)] = f64::NAN;
                }
            });
        });
        let fit = RobustPpca::new(3).fit(&x).unwrap();
        // Standard errors of 1/ν by the second derivative are about 0.006 at n = 4000.
        let off = 1.0 / fit.model.degrees_of_freedom() - 1.0 / nu;
        assert!(off.abs() < 0.025, "{nu}: {}", fit.model.degrees_of_freedom());
        assert!(fit.report.passes < 60, "{} passes", fit.report.passes);
    }
}

fn numbers(fit: &covary::Fit<LinearStudent>) -> Vec<u64> {
    let scale = fit.model.scale();
    let mut all = matrix_bits(scale.loadings());
    all.extend(bits(scale.mean()));
    all.extend(bits(&[
        scale.noise().of(0),
        fit.model.degrees_of_freedom(),
        fit.report.log_likelihood.unwrap(),
    ]));
    all
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut rng = Rng(51);
    let model = truth(&mut rng);
    for missing in [0.0, 0.1] {
        let x = spoilt(&model, 5000, 0.05, missing, Outliers::Around, &mut rng);
        let cut = Cut { x: &x, rows: 137 };
        let fit = |threads: usize| numbers(&RobustPpca::new(2).threads(threads).fit(&cut).unwrap());
        let one = fit(1);
        for threads in [2, 3, 7] {
            assert_eq!(fit(threads), one, "{threads} threads, {missing} missing");
        }
    }
}

/// However rows are cut, weighted or stored, and by either solver, the optimum is the same.
#[test]
fn ways_to_the_same_optimum() {
    let mut rng = Rng(61);
    let model = truth(&mut rng);
    for missing in [0.0, 0.1] {
        let x = spoilt(&model, 200, 0.05, missing, Outliers::Around, &mut rng);
        let robust = || RobustPpca::new(3).tolerance(1e-13);
        let whole = robust().fit(&x).unwrap();
        let same = |other: covary::Fit<LinearStudent>, tolerance: f64, what: &str| {
            let (a, b) = (whole.model.scale().covariance(), other.model.scale().covariance());
            close_matrix(&b, &a, tolerance * max_abs(&a), (what, missing));
            relative(
                other.model.degrees_of_freedom(),
                whole.model.degrees_of_freedom(),
                10.0 * tolerance,
                what,
            );
            let l = (other.report.log_likelihood.unwrap(), whole.report.log_likelihood.unwrap());
            relative(l.0, l.1, 1e-11, what);
        };
        same(robust().fit(&Cut { x: &x, rows: 7 }).unwrap(), 1e-6, "in chunks");
        same(robust().solver(Solver::Em).fit(&x).unwrap(), 1e-5, "by EM");
        same(robust().start(whole.model.clone()).fit(&x).unwrap(), 1e-6, "from a warm start");
        same(robust().fit(&stored(&x)).unwrap(), 1e-5, "cells that were seen");
        // A row of weight 2 is one written twice; one of weight 0 is none, whatever it holds.
        let twice =
            Mat::from_fn(
                202,
                10,
                |i, j| if i < 200 { x[(i, j)] } else { [x[(0, j)], f64::INFINITY][i - 200] },
            );
        let mut weights = vec![1.0; 202];
        weights[201] = 0.0;
        let heavy: Vec<f64> = (0..200).map(|i| if i == 0 { 2.0 } else { 1.0 }).collect();
        let a = robust().fit(table(&twice).with_weights(&weights).unwrap()).unwrap();
        let b = robust().fit(table(&x).with_weights(&heavy).unwrap()).unwrap();
        relative(a.report.log_likelihood.unwrap(), b.report.log_likelihood.unwrap(), 1e-11, "weights");
        close_all(a.model.scale().mean(), b.model.scale().mean(), 1e-5, "weights");
    }
}

#[test]
fn evidence_of_parts_is_evidence_of_the_whole() {
    let mut rng = Rng(71);
    let model = truth(&mut rng);
    for missing in [0.0, 0.2] {
        let x = spoilt(&model, 60, 0.1, missing, Outliers::Around, &mut rng);
        let given = LatentParameters::new(model.mean().to_vec(), model.loadings().as_ref(), 0.49).unwrap();
        let given = Arc::new(given);
        let empty = || match missing {
            0.0 => StudentEvidence::complete(Arc::clone(&given), 3.0).unwrap(),
            _ => StudentEvidence::incomplete(Arc::clone(&given), 3.0).unwrap(),
        };
        let of = |from: usize, to: usize| {
            let mut part = empty();
            part.update(&chunk_of(x.subrows(from, to - from), from)).unwrap();
            part
        };
        let told = |e: &StudentEvidence| [e.log_likelihood(), e.weight(), e.counted_weight()];
        let whole = told(&of(0, 60));
        relative(whole[0], brute_force(&x, &[1.0; 60], &model, 3.0), 1e-11, "by brute force");
        let student = LinearStudent::new(model.clone(), 3.0).unwrap();
        relative(whole[2], student.weights(&x).unwrap().iter().sum::<f64>(), 1e-11, "Σ u");
        let (mut left, mut right) = (of(0, 20), of(20, 45));
        right.merge(&of(45, 60)).unwrap();
        left.merge(&right).unwrap();
        right.merge(&of(0, 20)).unwrap();
        left.merge(&empty()).unwrap();
        let mut first = empty();
        first.merge(&left).unwrap();
        for each in [&left, &right, &first] {
            close_all(&told(each), &whole, 1e-10 * whole[0].abs(), missing);
        }
        assert_eq!(told(&empty()), [0.0, 0.0, 0.0]);
        // Not about the same parameters, ν or kind of rows.
        let other = Arc::new(LatentParameters::new(vec![0.0; 10], model.loadings().as_ref(), 0.49).unwrap());
        assert!(left.merge(&StudentEvidence::complete(other, 3.0).unwrap()).is_err());
        assert!(left.merge(&StudentEvidence::complete(Arc::clone(&given), 4.0).unwrap()).is_err());
        assert!(StudentEvidence::incomplete(Arc::clone(&given), 0.0).is_err());
    }
}

/// The t distribution is closed under scaling: so is the fit.
#[test]
fn scaled_features_are_fitted_in_their_units() {
    let mut rng = Rng(81);
    let x = spoilt(&truth(&mut rng), 150, 0.05, 0.05, Outliers::Around, &mut rng);
    let request = Request::new(RobustPpca::new(2).tolerance(1e-12)).scale(Scale::Unit);
    let fit = request.fit(Rows::from(&x).source(), &Control::new()).unwrap();
    let d = fit.report.scaled.clone().unwrap().factors;
    let scaled = Mat::from_fn(150, 10, |i, j| x[(i, j)] / d[j]);
    let own = RobustPpca::new(2).tolerance(1e-12).fit(&scaled).unwrap();
    let model: &LinearStudent = fit.model.downcast_ref().unwrap();
    relative(model.degrees_of_freedom(), own.model.degrees_of_freedom(), 1e-9, "ν");
    let c = own.model.scale().covariance();
    let expected = Mat::from_fn(10, 10, |i, j| c[(i, j)] * d[i] * d[j]);
    close_matrix(&model.scale().covariance(), &expected, 1e-8 * max_abs(&expected), "scale");
    let total: f64 = fit.model.density().unwrap().log_density(&table(&x)).unwrap().iter().sum();
    relative(fit.report.log_likelihood.unwrap(), total, 1e-10, "log-likelihood");
}

/// The number of components is that of the rows that are not far out.
#[test]
fn the_number_of_components_is_chosen_robustly() {
    let mut rng = Rng(91);
    let model = truth(&mut rng);
    for missing in [0.0, 0.1] {
        let x = spoilt(&model, 400, 0.05, missing, Outliers::Around, &mut rng);
        let rows = Rows::from(&x);
        let fit = |components| Request::new(RobustPpca::new(components)).fit(rows.source(), &Control::new());
        assert_eq!(fit(Components::Auto).unwrap().report.components, 3, "auto, {missing}");
        // Shares of the three: 61 of 65.9; the first two have 52.
        assert_eq!(fit(Components::Fraction(0.9)).unwrap().report.components, 3, "90 %, {missing}");
        assert_eq!(fit(Components::Fraction(0.7)).unwrap().report.components, 2, "70 %, {missing}");
        assert_eq!(fit(Components::All).unwrap().report.components, 9, "all, {missing}");
    }
}

#[test]
fn bad_input_is_one_sentence() {
    let mut rng = Rng(101);
    let x = truth(&mut rng).sample(40, 1);
    for nu in [0.0, -2.0, f64::NAN] {
        let error = RobustPpca::new(2).nu(nu).fit(&x).unwrap_err();
        assert!(error.to_string().contains("degrees of freedom"), "{error}");
        assert!(format!("{nu}").parse::<DegreesOfFreedom>().is_err());
    }
    assert_eq!("inf".parse::<DegreesOfFreedom>().unwrap(), DegreesOfFreedom::Given(f64::INFINITY));
    assert!(matches!(RobustPpca::new(10).fit(&x), Err(Error::Components { requested: 10, possible: 9, .. })));
    assert!(matches!(RobustPpca::new(0).fit(&x), Err(Error::Parameter { .. })));
    assert!(matches!(RobustPpca::new(2).solver(Solver::Svd).fit(&x), Err(Error::Solver { .. })));
    assert!(matches!(RobustPpca::new(1).fit(&x.subrows(0, 1).to_owned()), Err(Error::TooFewRows { .. })));
    let constant = Mat::from_fn(20, 3, |_, j| j as f64);
    assert!(matches!(RobustPpca::new(1).fit(&constant), Err(Error::Constant)));
    let mut infinite = x.clone();
    infinite[(3, 4)] = f64::INFINITY;
    assert!(matches!(RobustPpca::new(1).fit(&infinite), Err(Error::Infinite { .. })));
    let single = Mat::from_fn(20, 1, |i, _| i as f64);
    assert!(matches!(RobustPpca::new(1).fit(&single), Err(Error::Components { possible: 0, .. })));
    let wrong = LinearStudent::new(random_model(4, 1, false, &mut rng), 3.0).unwrap();
    assert!(matches!(RobustPpca::new(2).start(wrong).fit(&x), Err(Error::Parameter { .. })));
    // Moments do not tell which rows lie far out.
    let moments =
        covary::evidence::gather(&table(&x), || covary::evidence::Moments::empty(10), &Control::new());
    let error = Request::new(RobustPpca::new(1)).fit(&moments.unwrap(), &Control::new()).unwrap_err();
    assert!(error.to_string().contains("rows"), "{error}");
    // A constant feature beside others is a direction without variance.
    let beside = Mat::from_fn(40, 11, |i, j| if j < 10 { x[(i, j)] } else { 2.0 });
    assert!(RobustPpca::new(2).fit(&beside).unwrap().report.converged());
}

#[test]
fn rows_without_cells_and_sizes_of_numbers_change_nothing() {
    let mut rng = Rng(111);
    let x = spoilt(&truth(&mut rng), 120, 0.05, 0.1, Outliers::Around, &mut rng);
    let robust = || RobustPpca::new(2).tolerance(1e-12);
    let fit = robust().fit(&x).unwrap();
    let more = Mat::from_fn(123, 10, |i, j| if i < 120 { x[(i, j)] } else { f64::NAN });
    let other = robust().fit(&more).unwrap();
    close_all(other.model.scale().mean(), fit.model.scale().mean(), 1e-9, "empty rows");
    assert_eq!(other.report.holes.as_ref().unwrap().empty_rows, 3);
    assert_eq!(other.model.weights(&more).unwrap()[121], 1.0);
    let nu = fit.model.degrees_of_freedom();
    for (factor, shift, tolerance) in
        [(2f64.powi(400), 0.0, 1e-9), (2f64.powi(-400), 0.0, 1e-9), (1.0, 1e8, 1e-5)]
    {
        let y = Mat::from_fn(120, 10, |i, j| x[(i, j)] * factor + shift);
        let found = robust().fit(&y).unwrap();
        relative(found.model.degrees_of_freedom(), nu, tolerance, (factor, shift));
        let w = found.model.scale().loadings();
        let back = Mat::from_fn(10, 2, |i, k| w[(i, k)] / factor);
        close_matrix(&back, fit.model.scale().loadings(), 100.0 * tolerance, (factor, shift));
    }
}

#[test]
fn a_fit_comes_back_from_its_file() {
    let mut rng = Rng(121);
    for nu in [DegreesOfFreedom::Auto, DegreesOfFreedom::Given(f64::INFINITY)] {
        let x = spoilt(&truth(&mut rng), 80, 0.05, 0.0, Outliers::Around, &mut rng);
        let fit = RobustPpca::new(2).nu(nu).fit(&x).unwrap();
        let nu = fit.model.degrees_of_freedom();
        let saved = SavedModel::new(fit, None).unwrap();
        let bytes = saved.to_bytes().unwrap();
        let read = SavedModel::from_bytes(&bytes).unwrap();
        let model: &LinearStudent = read.model.downcast_ref().unwrap();
        assert_eq!(model.degrees_of_freedom().to_bits(), nu.to_bits());
        assert_eq!(read.report.robust(), saved.report.robust());
        assert_eq!(read.to_bytes().unwrap(), bytes);
    }
}
