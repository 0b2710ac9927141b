//! Every solver agrees with every other, and with the dense definition, on every public field.

use crate::common::*;
use covary::data::{Block, Cells, Rows, Table};
use covary::linalg::{Mat, MatRef};
use covary::model::{LinearGaussian, Noise};
use covary::{Components, Error, Fit, Pca, Ppca, Solver};

const ALL: [Solver; 5] = [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Auto];

/// Rows with weights, and what is true of them.
struct Case {
    name: String,
    x: Mat<f64>,
    weights: Option<Vec<f64>>,
    /// Dimensions in which the rows vary.
    rank: usize,
}

impl Case {
    fn new(name: &str, x: Mat<f64>, rank: usize) -> Self {
        Self { name: name.into(), x, weights: None, rank }
    }

    fn weighted(mut self, seed: u64) -> Self {
        let mut rng = Rng(seed);
        self.weights = Some((0..self.x.nrows()).map(|_| 0.25 + 2.0 * rng.uniform()).collect());
        self.name += ", weighted";
        self
    }

    fn table(&self) -> Table<'_> {
        let table = table(&self.x);
        match &self.weights {
            None => table,
            Some(w) => table.with_weights(w.as_slice()).unwrap(),
        }
    }
}

fn cases() -> Vec<Case> {
    let mut rng = Rng(2024);
    // Eigenvalues well apart, and the last not below 1e-6 of the first.
    let mut rows = |n: usize, p: usize| {
        let factor = (6.9 / p as f64).min(0.3);
        rows_with_deviations(n, &falling(p, (-factor).exp()), 4.0, &mut rng)
    };
    let tall = rows(120, 6);
    let wide = rows(9, 25);
    let square = rows(12, 12);
    let single = rows(30, 1);
    let two = rows(2, 5);
    let larger = rows(260, 110);
    // Columns 0..3, then copies of them: rank 3 of 6.
    let copies = Mat::from_fn(40, 6, |i, j| tall[(i, j % 3)]);
    let constant =
        Mat::from_fn(50, 7, |i, j| if j % 3 == 1 { 0.1 * (j + 1) as f64 } else { tall[(i, j % 6)] });
    // Three directions in 20 features, fewer rows than features.
    let low = rows(15, 3);
    let map = normal_matrix(3, 20, &mut rng);
    let flat = Mat::from_fn(15, 20, |i, j| 1.0 + (0..3).map(|k| low[(i, k)] * map[(k, j)]).sum::<f64>());
    let flat_tall = Mat::from_fn(300, 8, |i, j| {
        let phase = i as f64;
        [phase.sin(), (2.0 * phase).cos()].iter().enumerate().map(|(k, s)| s * map[(k, j)]).sum::<f64>()
    });
    let repeated = Mat::from_fn(60, 5, |i, j| tall[(i % 4, j)]);
    vec![
        Case::new("tall", tall.clone(), 6),
        Case::new("tall", tall, 6).weighted(1),
        Case::new("wide", wide.clone(), 8),
        Case::new("wide", wide, 8).weighted(2),
        Case::new("square", square.clone(), 11),
        Case::new("square", square, 11).weighted(3),
        Case::new("one feature", single, 1),
        Case::new("two rows", two, 1),
        Case::new("large enough for the leading pairs alone", larger, 110),
        Case::new("duplicated columns", copies.clone(), 3),
        Case::new("duplicated columns", copies, 3).weighted(4),
        Case::new("constant columns, one of the others twice", constant, 4),
        Case::new("low rank, wide", flat.clone(), 3),
        Case::new("low rank, wide", flat, 3).weighted(5),
        Case::new("low rank, tall", flat_tall, 2),
        Case::new("repeated rows", repeated, 3),
    ]
}

/// q = 1, middle, around the rank, the most that is possible.
fn counts(case: &Case) -> Vec<usize> {
    let most = case.x.ncols().min(case.x.nrows() - 1);
    let mut all = vec![1, most.div_ceil(2), case.rank - 1, case.rank, case.rank + 1, most];
    all.retain(|q| (1..=most).contains(q));
    all.sort_unstable();
    all.dedup();
    all
}

fn noise(model: &LinearGaussian) -> f64 {
    let Noise::Isotropic(v) = model.noise() else { panic!("PPCA has one noise variance") };
    *v
}

/// All public fields of two fits of the same rows.
fn compare(a: &Fit<LinearGaussian>, b: &Fit<LinearGaussian>, x: &Mat<f64>, rank: usize, what: &str) {
    let (s, t) = (&a.spectrum().unwrap(), &b.spectrum().unwrap());
    let (q, total) = (s.n_components(), s.total_variance());
    let first = s.eigenvalues()[0];
    let tolerance = 1e-11;
    assert_eq!((s.rows(), s.n_features(), q), (t.rows(), t.n_features(), t.n_components()), "{what}");
    relative(s.weight(), t.weight(), 1e-14, (what, "weight"));
    close_all(s.mean(), t.mean(), 1e-13 * s.mean().iter().fold(1.0, |a, b| b.abs().max(a)), (what, "mean"));
    relative(total, t.total_variance(), 1e-13, (what, "total variance"));
    let both = s.eigenvalues().len().min(t.eigenvalues().len());
    close_all(&s.eigenvalues()[..both], &t.eigenvalues()[..both], tolerance * first, (what, "eigenvalues"));
    let zeros = |e: &[f64]| e.iter().map(|v| *v == 0.0).collect::<Vec<_>>();
    assert_eq!(zeros(&s.eigenvalues()[..both]), zeros(&t.eigenvalues()[..both]), "{what}: which are 0");
    close_all(&s.explained_ratio(), &t.explained_ratio(), tolerance, (what, "explained ratio"));
    close(s.distortion(), t.distortion(), tolerance * total, (what, "distortion"));
    close(s.noise_variance(), t.noise_variance(), tolerance * total, (what, "noise variance"));
    assert_eq!(s.noise_variance() == 0.0, q >= rank, "{what}: {}", s.noise_variance());
    assert_eq!(t.noise_variance() == 0.0, q >= rank, "{what}: {}", t.noise_variance());
    relative(s.log_likelihood(), t.log_likelihood(), 1e-9, (what, "log-likelihood"));
    // Directions turn by (error of the matrix) / (gap): the gaps of these data are above 1e-4 of the first.
    close_matrix(s.vectors(), t.vectors(), 1e-8, (what, "vectors"));
    close_all(a.model.mean(), b.model.mean(), 1e-12 * 10.0, (what, "model mean"));
    close_matrix(a.model.loadings(), b.model.loadings(), 1e-8 * first.sqrt(), (what, "loadings"));
    assert_eq!(noise(&a.model), s.noise_variance(), "{what}");
    assert_eq!(noise(&b.model), t.noise_variance(), "{what}");
    let (r, u) = (&a.report, &b.report);
    assert_eq!((r.rows, r.features, r.components), (u.rows, u.features, u.components), "{what}");
    assert_eq!((r.weight, u.weight), (s.weight(), t.weight()), "{what}");
    assert_eq!((r.total_variance, u.total_variance), (total, t.total_variance()), "{what}");
    assert_eq!(r.log_likelihood, Some(s.log_likelihood()), "{what}");
    assert!(r.converged() && u.converged(), "{what}: {:?} {:?}", r.stop, u.stop);
    questions(&a.model, &b.model, x, what);
    let (c, d) = (s.pca().unwrap(), t.pca().unwrap());
    close_matrix(c.components(), d.components(), 1e-8, (what, "components"));
    close_all(c.variances(), d.variances(), tolerance * first, (what, "variances"));
    let size = first.sqrt();
    close_matrix(&c.project(x).unwrap(), &d.project(x).unwrap(), 1e-7 * size, (what, "scores"));
}

fn questions(a: &LinearGaussian, b: &LinearGaussian, x: &Mat<f64>, what: &str) {
    match (a.log_density(x), b.log_density(x)) {
        (Ok(a), Ok(b)) => {
            let size = a.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
            close_all(&a, &b, 1e-8 * size, (what, "log density"));
        }
        (Err(Error::NoDensity { rank: r, .. }), Err(Error::NoDensity { rank: s, .. })) => {
            assert_eq!(r, s, "{what}: rank of the model");
        }
        (a, b) => panic!("{what}: {a:?} and {b:?}"),
    }
    let (z, y) = (a.latent_mean(x).unwrap(), b.latent_mean(x).unwrap());
    close_matrix(&z, &y, 1e-6, (what, "posterior means"));
    let ((t, e), (u, f)) = (a.t2_spe(x).unwrap(), b.t2_spe(x).unwrap());
    close_all(&t, &u, 1e-6, (what, "T²"));
    let size = x.ncols() as f64 * 10.0;
    close_all(&e, &f, 1e-9 * size, (what, "SPE"));
}

/// The dense definition, for what does not depend on conventions.
fn against_definition(fit: &Fit<LinearGaussian>, case: &Case, what: &str) {
    let q = fit.spectrum().unwrap().n_components();
    let w = case.weights.as_deref();
    let dense = DensePpca::of(&case.x, w, q);
    let first = dense.eigenvalues[0];
    let found = fit.spectrum().unwrap().eigenvalues();
    close_all(found, &dense.eigenvalues[..found.len()], 1e-11 * first, (what, "eigenvalues"));
    close_all(fit.spectrum().unwrap().mean(), &dense.mean, 1e-12, (what, "mean"));
    relative(fit.spectrum().unwrap().total_variance(), dense.total, 1e-12, (what, "total variance"));
    close(fit.spectrum().unwrap().noise_variance(), dense.noise, 1e-11 * first, (what, "noise variance"));
    close_matrix(&fit.model.covariance(), &dense.covariance(q), 1e-10 * first, (what, "covariance"));
    if q < case.rank || (q == case.rank && q == case.x.ncols()) {
        let normal = Dense::new(dense.mean.clone(), dense.covariance(q));
        let n = case.x.nrows();
        let weight = |i: usize| w.map_or(1.0, |w| w[i]);
        let density: Vec<f64> = (0..n).map(|i| normal.log_density(&row(&case.x, i))).collect();
        let total: f64 = (0..n).map(|i| weight(i) * density[i]).sum();
        relative(fit.spectrum().unwrap().log_likelihood(), total, 1e-9, (what, "log-likelihood"));
        let found = fit.model.log_density(&case.x).unwrap();
        let size = density.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
        close_all(&found, &density, 1e-8 * size, (what, "density of rows"));
    } else {
        assert_eq!(fit.spectrum().unwrap().log_likelihood(), f64::INFINITY, "{what}");
        assert!(matches!(fit.model.log_density(&case.x), Err(Error::NoDensity { .. })), "{what}");
    }
}

#[test]
fn solvers_agree_on_every_field() {
    for case in cases() {
        for q in counts(&case) {
            let fits = ALL.map(|s| {
                Ppca::new(q)
                    .solver(s)
                    .fit(case.table())
                    .unwrap_or_else(|e| panic!("{}, q {q}, {}: {e}", case.name, s.name()))
            });
            for (fit, solver) in fits.iter().zip(ALL) {
                let what = format!("{}, q {q}, {}", case.name, solver.name());
                against_definition(fit, &case, &what);
                if solver != Solver::Auto {
                    assert_eq!(fit.report.plan.solver, solver);
                }
                let what = format!("{} and eigen", what);
                compare(&fits[0], fit, &case.x, case.rank, &what);
            }
        }
    }
}

#[test]
fn fractions_and_all_mean_the_same_for_every_solver() {
    let solvers = [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Auto];
    for case in cases() {
        let (_, c) = mean_and_covariance(&case.x, case.weights.as_deref());
        let (values, _) = eigen(&c);
        let total: f64 = values.iter().sum();
        for fraction in [0.05, 0.5, 0.9, 0.99] {
            // By definition: the fewest leading eigenvalues that hold the share.
            let held = |q: usize| values[..q].iter().sum::<f64>() / total;
            let expected = (1..=values.len()).find(|q| held(*q) >= fraction).unwrap();
            for solver in solvers {
                let fit = Ppca::new(fraction).solver(solver).fit(case.table()).unwrap();
                assert_eq!(
                    fit.spectrum().unwrap().n_components(),
                    expected,
                    "{} {fraction} {}",
                    case.name,
                    solver.name()
                );
            }
        }
        for solver in solvers {
            let fit = Pca::new(Components::All).solver(solver).fit(case.table()).unwrap();
            assert_eq!(fit.model.n_components(), case.rank, "{} {}", case.name, solver.name());
        }
    }
}

#[test]
fn layouts_agree() {
    let mut rng = Rng(7);
    for (n, p, q) in [(90, 7, 3), (8, 30, 4), (200, 120, 5)] {
        let x = rows_with_deviations(n, &falling(p, 0.8), 2.0, &mut rng);
        let by_rows: Vec<f64> = (0..n).flat_map(|i| row(&x, i)).collect();
        // Every second row and column of something larger, and rows in reverse.
        let padded =
            Mat::from_fn(2 * n, 2 * p, |i, j| if i % 2 + j % 2 == 0 { x[(i / 2, j / 2)] } else { 1e9 });
        let upside = Mat::from_fn(n, p, |i, j| x[(n - 1 - i, j)]);
        let strided = every_second(padded.as_ref());
        let views: [(&str, MatRef<'_, f64>); 4] = [
            ("row-major", MatRef::from_row_major_slice(&by_rows, n, p)),
            ("column-major", x.as_ref()),
            ("strided", strided),
            ("reversed", upside.reverse_rows()),
        ];
        for solver in ALL {
            let fits: Vec<_> = views
                .iter()
                .map(|(name, view)| (name, Ppca::new(q).solver(solver).fit(*view).unwrap()))
                .collect();
            for (name, fit) in &fits {
                let what = format!("{n} × {p}, {}, {name}", solver.name());
                compare(&fits[0].1, fit, &x, p.min(n - 1), &what);
            }
        }
        let model = Ppca::new(q).fit(&x).unwrap().model;
        let expected = model.log_density(&x).unwrap();
        for (name, view) in views {
            close_all(&model.log_density(view).unwrap(), &expected, 1e-10, (n, p, name));
        }
    }
}

/// Every second row and column: a view with both strides above 1.
fn every_second(padded: MatRef<'_, f64>) -> MatRef<'_, f64> {
    let (n, p) = (padded.nrows() / 2, padded.ncols() / 2);
    let (row, column) = (padded.row_stride(), padded.col_stride());
    // SAFETY: the last cell (2n − 2, 2p − 2) lies inside the borrowed matrix, and the borrow is kept.
    unsafe { MatRef::from_raw_parts(padded.as_ptr(), n, p, 2 * row, 2 * column) }
}

#[test]
fn single_precision_agrees_with_double_on_the_same_cells() {
    let mut rng = Rng(17);
    for (n, p, q, mean) in [(500, 8, 3, 0.0), (500, 8, 7, 10.0), (12, 40, 4, 1.0), (3000, 5, 2, 100.0)] {
        let narrow = narrowed(&rows_with_deviations(n, &falling(p, 0.8), mean, &mut rng));
        let wide = widened(&narrow);
        let w: Vec<f64> = (0..n).map(|_| 0.5 + rng.uniform()).collect();
        for weights in [None, Some(&w)] {
            let tables = || {
                let f32s = Table::new(Cells::F32(Block::View(narrow.as_ref())));
                let f64s = table(&wide);
                match weights {
                    None => (f32s, f64s),
                    Some(w) => {
                        (f32s.with_weights(w.as_slice()).unwrap(), f64s.with_weights(w.as_slice()).unwrap())
                    }
                }
            };
            for solver in ALL {
                let (a, b) = tables();
                let a = Ppca::new(q).solver(solver).fit(a).unwrap();
                let b = Ppca::new(q).solver(solver).fit(b).unwrap();
                let what = (n, p, q, solver.name(), weights.is_some());
                // Products of single-precision numbers are rounded to 6e-8 of their size before they are summed.
                let first = b.spectrum().unwrap().eigenvalues()[0];
                let tolerance = 2e-6 * first;
                close_all(
                    &a.spectrum().unwrap().eigenvalues()[..q],
                    &b.spectrum().unwrap().eigenvalues()[..q],
                    tolerance,
                    what,
                );
                close(
                    a.spectrum().unwrap().noise_variance(),
                    b.spectrum().unwrap().noise_variance(),
                    tolerance,
                    what,
                );
                close_all(a.spectrum().unwrap().mean(), b.spectrum().unwrap().mean(), 1e-6, what);
                let sums = |s: &covary::spectrum::Spectrum| s.total_variance();
                relative(sums(a.spectrum().unwrap()), sums(b.spectrum().unwrap()), 1e-6, what);
                // One model asked about the same cells in both precisions.
                let (x, y) = (b.model.log_density(&narrow).unwrap(), b.model.log_density(&wide).unwrap());
                assert_eq!(bits(&x), bits(&y), "{what:?}");
            }
        }
    }
}

#[test]
fn moments_and_rows_give_the_same_fit() {
    let x = rows_with_deviations(700, &falling(6, 0.7), 3.0, &mut Rng(23));
    let rows = Rows::from(&x);
    let moments = covary::evidence::gather(
        rows.source(),
        || covary::evidence::Moments::empty(6),
        &covary::Control::new(),
    )
    .unwrap();
    let (a, b) = (Ppca::new(3).fit_moments(&moments).unwrap(), Ppca::new(3).fit(&x).unwrap());
    compare(&a, &b, &x, 6, "moments and rows");
    for solver in [Solver::Svd, Solver::Dual, Solver::Krylov] {
        assert!(matches!(Ppca::new(3).solver(solver).fit_moments(&moments), Err(Error::Solver { .. })));
    }
}

#[test]
fn pca_and_ppca_are_two_readings_of_one_spectrum() {
    for case in cases().iter().filter(|c| c.weights.is_none()) {
        let q = counts(case)[0];
        let pca = Pca::new(q).fit(case.table()).unwrap();
        let ppca = Ppca::new(q).fit(case.table()).unwrap();
        assert_eq!(matrix_bits(pca.model.components()), matrix_bits(ppca.spectrum().unwrap().vectors()));
        close_matrix(&pca.model.gaussian().covariance(), &ppca.model.covariance(), 1e-12, &case.name);
        let dense = DensePpca::of(&case.x, None, q);
        let (scores, rebuilt) =
            (pca.model.project(&case.x).unwrap(), pca.model.reconstruct(&case.x).unwrap());
        let whitened = pca.model.whiten(&case.x).unwrap();
        let (_, spread) = mean_and_covariance(&whitened, None);
        close_matrix(&spread, &Mat::identity(q, q), 1e-9, (&case.name, "whitened covariance"));
        close_matrix(
            &pca.model.unwhiten(whitened.as_ref()).unwrap(),
            &rebuilt,
            1e-9,
            (&case.name, "unwhitened"),
        );
        let n = case.x.nrows();
        let mut squares = 0.0;
        for i in 0..n {
            let d: Vec<f64> = (0..dense.mean.len()).map(|j| case.x[(i, j)] - dense.mean[j]).collect();
            for k in 0..q {
                let u = pca.model.components();
                let t: f64 = d.iter().enumerate().map(|(j, d)| u[(j, k)] * d).sum();
                close(scores[(i, k)], t, 1e-10, (&case.name, "scores"));
            }
            squares += (0..d.len()).map(|j| (rebuilt[(i, j)] - case.x[(i, j)]).powi(2)).sum::<f64>();
        }
        // The distortion J is the mean squared distance from the plane.
        close(squares / n as f64, pca.spectrum().unwrap().distortion(), 1e-10, (&case.name, "distortion"));
    }
}

/// However many rows there are, rows in a plane leave no noise, and every solver sees that.
#[test]
fn rows_in_a_plane_leave_no_noise() {
    let mut rng = Rng(31);
    for (n, p, rank) in
        [(4, 3, 2), (7, 5, 1), (30, 4, 3), (500, 10, 4), (20_000, 6, 2), (300, 150, 20), (60, 200, 7)]
    {
        let z = normal_matrix(n, rank, &mut rng);
        let a = normal_matrix(rank, p, &mut rng);
        let x = Mat::from_fn(n, p, |i, j| 3.0 + (0..rank).map(|k| z[(i, k)] * a[(k, j)]).sum::<f64>());
        for solver in ALL.into_iter().filter(|s| n < 1000 || *s != Solver::Dual) {
            for q in [rank, rank + 1].into_iter().filter(|q| *q <= p.min(n - 1)) {
                let fit = Ppca::new(q).solver(solver).fit(&x).unwrap();
                let what = format!("{n} × {p}, rank {rank}, q {q}, {}", solver.name());
                assert_eq!(fit.spectrum().unwrap().noise_variance(), 0.0, "{what}");
                let positive = fit.spectrum().unwrap().eigenvalues().iter().filter(|v| **v > 0.0).count();
                assert_eq!(positive, rank, "{what}");
                assert!(p == rank || fit.report.log_likelihood == Some(f64::INFINITY), "{what}");
            }
        }
    }
}

/// Arrays of the ndarray crate: C order and Fortran order borrowed, anything else copied.
#[cfg(feature = "ndarray")]
#[test]
fn ndarray_views_agree() {
    let x = rows_with_deviations(50, &falling(5, 0.7), 1.0, &mut Rng(41));
    let expected = Ppca::new(2).fit(&x).unwrap();
    let array = ndarray::Array2::from_shape_fn((50, 5), |ij| x[ij]);
    let padded = ndarray::Array2::from_shape_fn((100, 10), |(i, j)| x[(i / 2, j / 2)]);
    let fortran = ndarray::Array2::from_shape_fn((5, 50), |(j, i)| x[(i, j)]);
    let mut backwards = ndarray::Array2::from_shape_fn((50, 5), |(i, j)| x[(49 - i, j)]);
    backwards.invert_axis(ndarray::Axis(0));
    let views = [array.view(), fortran.t(), padded.slice(ndarray::s![..;2, ..;2]), backwards.view()];
    for (k, view) in views.into_iter().enumerate() {
        assert_eq!(view.dim(), (50, 5));
        compare(&expected, &Ppca::new(2).fit(view).unwrap(), &x, 5, &format!("view {k}"));
    }
    let narrow = array.mapv(|v| v as f32);
    let single = Ppca::new(2).fit(narrow.view()).unwrap();
    close(
        single.spectrum().unwrap().noise_variance(),
        expected.spectrum().unwrap().noise_variance(),
        1e-5,
        "single precision",
    );
}
