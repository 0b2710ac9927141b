//! Rotations: against their definitions, brute force, theory, and R's GPArotation, stats and psych.
//!
//! `tools/rotations.json` was made by `tools/rotations.R`; it holds the unrotated loadings too, so nothing else is needed.

use crate::common::*;
use covary::Error;
use covary::linalg::{Mat, MatRef};
use covary::rotate::{Method, Rotate, Rotated};
use serde_json::Value;

// ------------------------------------------------------------------------------------- criteria by their definitions

/// Σ over pairs of factors and pairs of features, four loops.
fn crawford_ferguson(l: &Mat<f64>, kappa: f64) -> f64 {
    let (p, q) = (l.nrows(), l.ncols());
    let square = |i: usize, j: usize| l[(i, j)].powi(2);
    let mut sum = 0.0;
    for i in 0..p {
        for j in 0..q {
            sum +=
                (0..q).filter(|&k| k != j).map(|k| (1.0 - kappa) * square(i, j) * square(i, k)).sum::<f64>();
            sum += (0..p).filter(|&k| k != i).map(|k| kappa * square(i, j) * square(k, j)).sum::<f64>();
        }
    }
    sum / 4.0
}

/// Σ over pairs of factors of the covariance of squared loadings, γ times the product of means taken off.
fn oblimin(l: &Mat<f64>, gamma: f64) -> f64 {
    let (p, q) = (l.nrows(), l.ncols());
    let mean = |f: &dyn Fn(usize) -> f64| (0..p).map(f).sum::<f64>() / p as f64;
    let pair = |j: usize, k: usize| {
        mean(&|i| l[(i, j)].powi(2) * l[(i, k)].powi(2))
            - gamma * mean(&|i| l[(i, j)].powi(2)) * mean(&|i| l[(i, k)].powi(2))
    };
    let pairs = (0..q).flat_map(|j| (0..q).filter(move |k| *k != j).map(move |k| (j, k)));
    pairs.map(|(j, k)| pair(j, k)).sum::<f64>() * p as f64 / 4.0
}

fn geomin(l: &Mat<f64>, delta: f64) -> f64 {
    let product = |i: usize| (0..l.ncols()).map(|j| l[(i, j)].powi(2) + delta).product::<f64>();
    (0..l.nrows()).map(|i| product(i).powf(1.0 / l.ncols() as f64)).sum()
}

fn distance(l: &Mat<f64>, target: &Mat<f64>) -> f64 {
    let cells = (0..l.nrows()).flat_map(|i| (0..l.ncols()).map(move |j| (i, j)));
    cells.filter(|ij| !target[*ij].is_nan()).map(|ij| (l[ij] - target[ij]).powi(2)).sum()
}

fn criterion(method: &Method, l: &Mat<f64>) -> f64 {
    let (p, q) = (l.nrows() as f64, l.ncols() as f64);
    match method {
        Method::Varimax => crawford_ferguson(l, 1.0 / p),
        Method::Quartimax => crawford_ferguson(l, 0.0),
        Method::Equamax => crawford_ferguson(l, q / (2.0 * p)),
        Method::Parsimax => crawford_ferguson(l, (q - 1.0) / (p + q - 2.0)),
        Method::Oblimin { gamma } => oblimin(l, *gamma),
        Method::Geomin { delta, .. } => geomin(l, *delta),
        Method::Target { target, .. } | Method::Procrustes { target, .. } => distance(l, target),
        _ => panic!("{method} has no criterion"),
    }
}

/// Variance of the squared loadings of each factor, summed: what varimax is said to make large.
fn variance_of_squares(l: &Mat<f64>) -> f64 {
    let p = l.nrows() as f64;
    let squares = |j: usize| (0..l.nrows()).map(move |i| l[(i, j)].powi(2));
    (0..l.ncols())
        .map(|j| squares(j).map(|s| s * s).sum::<f64>() / p - (squares(j).sum::<f64>() / p).powi(2))
        .sum()
}

// ---------------------------------------------------------------------------------------------------------- helpers

fn product(a: &Mat<f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), b.ncols(), |i, j| (0..a.ncols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

fn run(method: Method, a: &Mat<f64>) -> Rotated {
    Rotate::new(method).run(a.as_ref()).unwrap()
}

/// Rows of length 1.
fn normalised(l: &Mat<f64>) -> Mat<f64> {
    let length = |i: usize| (0..l.ncols()).map(|j| l[(i, j)].powi(2)).sum::<f64>().sqrt();
    Mat::from_fn(l.nrows(), l.ncols(), |i, j| l[(i, j)] / length(i))
}

/// Every method, with targets of the right shape.
fn every_method(a: &Mat<f64>, rng: &mut Rng) -> Vec<Method> {
    let target = Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] + 0.3 * rng.normal());
    let holes =
        Mat::from_fn(a.nrows(), a.ncols(), |i, j| if (i + j) % 3 == 0 { f64::NAN } else { target[(i, j)] });
    let mut methods = smooth_methods(holes);
    methods.extend([Method::promax(), Method::Promax { power: 2.5 }]);
    methods.extend([false, true].map(|oblique| Method::Procrustes { target: target.clone(), oblique }));
    methods
}

fn smooth_methods(target: Mat<f64>) -> Vec<Method> {
    vec![
        Method::Varimax,
        Method::Quartimax,
        Method::Equamax,
        Method::Parsimax,
        Method::quartimin(),
        Method::Oblimin { gamma: -1.0 },
        Method::geomin(),
        Method::geomin_orthogonal(),
        Method::Target { target: target.clone(), oblique: false },
        Method::Target { target, oblique: true },
    ]
}

/// Features in clusters of different sizes and lengths, each on one factor, the axes then turned at random.
fn turned_clusters(sizes: &[usize], rng: &mut Rng) -> (Mat<f64>, Mat<f64>) {
    let of: Vec<usize> = sizes.iter().enumerate().flat_map(|(k, n)| vec![k; *n]).collect();
    let length: Vec<f64> = of.iter().map(|_| 0.4 + 0.5 * rng.uniform()).collect();
    let simple = Mat::from_fn(of.len(), sizes.len(), |i, j| if of[i] == j { length[i] } else { 0.0 });
    let turned = product(&simple, orthogonal(sizes.len(), rng).as_ref());
    (simple, turned)
}

fn check_consistent(a: &Mat<f64>, r: &Rotated, what: &str) {
    let size = max_abs(&product(a, a.transpose()));
    let q = a.ncols();
    let phi = product(&r.turn.transpose().to_owned(), r.turn.as_ref());
    close_matrix(&r.correlation, &phi, 1e-13, (what, "Φ = TᵀT"));
    (0..q).for_each(|j| close(r.correlation[(j, j)], 1.0, 0.0, (what, "diagonal of Φ")));
    let structure = product(&r.pattern, r.correlation.as_ref());
    close_matrix(&structure, &r.structure, 1e-12 * size.sqrt(), (what, "structure"));
    close_matrix(&product(a, r.turn.as_ref()), &r.structure, 1e-12 * size.sqrt(), (what, "AT"));
    let covariance = product(&structure, r.pattern.transpose());
    close_matrix(&covariance, &product(a, a.transpose()), 1e-12 * size, (what, "ΛΦΛᵀ"));
    let total: f64 = (0..q).map(|j| a.col_as_slice(j).iter().map(|x| x * x).sum::<f64>()).sum();
    relative(r.explained().iter().sum(), total, 1e-12, (what, "explained"));
}

fn check_arranged(r: &Rotated, what: &str) {
    assert!(r.explained().windows(2).all(|v| v[0] >= v[1] * (1.0 - 1e-9)), "{what}: order");
    for column in (0..r.pattern.ncols()).map(|j| r.pattern.col_as_slice(j)) {
        let largest = column.iter().fold(0.0_f64, |m, x| if x.abs() > m.abs() { *x } else { m });
        assert!(largest >= 0.0, "{what}: sign");
    }
}

// ----------------------------------------------------------------------------------------------------------- theory

#[test]
fn nothing_but_the_axes_changes() {
    let mut rng = Rng(1);
    for (p, q) in [(2, 2), (5, 2), (12, 3), (30, 6), (4, 4)] {
        let a = normal_matrix(p, q, &mut rng);
        for method in every_method(&a, &mut rng) {
            for kaiser in [false, true] {
                let what = format!("{method} of {p} × {q}, kaiser {kaiser}");
                let r = match Rotate::new(method.clone()).kaiser(kaiser).run(a.as_ref()) {
                    Ok(r) => r,
                    // As many factors as features: an oblique turn may reach perfect simplicity only in the limit.
                    Err(Error::Collapsed { .. }) if p == q => continue,
                    Err(e) => panic!("{what}: {e}"),
                };
                check_consistent(&a, &r, &what);
                if method.target().is_none() {
                    check_arranged(&r, &what);
                }
                if !method.is_oblique() {
                    close_matrix(&r.pattern, &r.structure, 0.0, &what);
                }
            }
        }
    }
}

#[test]
fn the_criterion_is_what_its_definition_says() {
    let mut rng = Rng(2);
    let a = normal_matrix(9, 3, &mut rng);
    for method in smooth_methods(normal_matrix(9, 3, &mut rng)) {
        let r = Rotate::new(method.clone()).kaiser(false).run(a.as_ref()).unwrap();
        relative(r.criterion, criterion(&method, &r.pattern), 1e-12, &method);
    }
    let r = run(Method::Varimax, &a);
    relative(r.criterion, criterion(&Method::Varimax, &normalised(&r.pattern)), 1e-12, "kaiser");
}

/// Moving T a little along its space changes the criterion by nothing to first order and raises it to second.
#[test]
fn results_are_minima() {
    let mut rng = Rng(3);
    for (p, q) in [(10, 2), (15, 4)] {
        let a = normal_matrix(p, q, &mut rng);
        let target = normal_matrix(p, q, &mut rng);
        for method in smooth_methods(target) {
            let r = Rotate::new(method.clone()).kaiser(false).run(a.as_ref()).unwrap();
            assert!(r.converged, "{method}");
            for _ in 0..20 {
                let direction = normal_matrix(q, q, &mut rng);
                let at = |h: f64| criterion(&method, &moved(&a, &r.turn, &direction, h, method.is_oblique()));
                let (h, here) = (1e-4, at(0.0));
                let size = 1.0 + here.abs();
                // Two differences, so that the third derivative cancels.
                let slope = |h: f64| (at(h) - at(-h)) / (2.0 * h);
                let steep = (4.0 * slope(h / 2.0) - slope(h)) / 3.0;
                close(steep, 0.0, 1e-8 * size, (method.name(), p, "slope"));
                assert!(at(h) + at(-h) - 2.0 * here >= -1e-10 * size, "{method}: curvature");
            }
        }
    }
}

/// Loadings after T has gone h along a direction: by a skew matrix, or column by column.
fn moved(a: &Mat<f64>, turn: &Mat<f64>, direction: &Mat<f64>, h: f64, oblique: bool) -> Mat<f64> {
    let q = turn.ncols();
    let step = if oblique {
        Mat::from_fn(q, q, |i, j| turn[(i, j)] + h * direction[(i, j)])
    } else {
        // Cayley: (I − hS/2)⁻¹(I + hS/2) is orthogonal for skew S.
        let skew = |i: usize, j: usize| 0.5 * h * (direction[(i, j)] - direction[(j, i)]);
        let eye = |i: usize, j: usize| f64::from(u8::from(i == j));
        let minus = Mat::from_fn(q, q, |i, j| eye(i, j) - skew(i, j));
        let plus = Mat::from_fn(q, q, |i, j| eye(i, j) + skew(i, j));
        return product(a, product(turn, product(&inverse(&minus), plus.as_ref()).as_ref()).as_ref());
    };
    let length = |j: usize| step.col_as_slice(j).iter().map(|x| x * x).sum::<f64>().sqrt();
    let unit = Mat::from_fn(q, q, |i, j| step[(i, j)] / length(j));
    product(a, inverse(&unit).transpose())
}

/// Gauss and Jordan.
fn inverse(a: &Mat<f64>) -> Mat<f64> {
    let n = a.nrows();
    let mut m =
        Mat::from_fn(n, 2 * n, |i, j| if j < n { a[(i, j)] } else { f64::from(u8::from(j - n == i)) });
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| m[(i, k)].abs().total_cmp(&m[(j, k)].abs())).unwrap();
        (0..2 * n).for_each(|j| (m[(k, j)], m[(pivot, j)]) = (m[(pivot, j)], m[(k, j)]));
        let d = m[(k, k)];
        (0..2 * n).for_each(|j| m[(k, j)] /= d);
        for i in (0..n).filter(|i| *i != k) {
            let f = m[(i, k)];
            (0..2 * n).for_each(|j| m[(i, j)] -= f * m[(k, j)]);
        }
    }
    Mat::from_fn(n, n, |i, j| m[(i, j + n)])
}

#[test]
fn two_factors_by_all_angles() {
    let mut rng = Rng(4);
    for p in [2, 3, 7, 20] {
        let a = normal_matrix(p, 2, &mut rng);
        let at = |angle: f64| {
            let (s, c) = angle.sin_cos();
            product(&a, Mat::from_fn(2, 2, |i, j| [[c, -s], [s, c]][i][j]).as_ref())
        };
        let methods = [
            Method::Varimax,
            Method::Quartimax,
            Method::Equamax,
            Method::Parsimax,
            Method::geomin_orthogonal(),
        ];
        for method in methods {
            let r = Rotate::new(method.clone()).kaiser(false).run(a.as_ref()).unwrap();
            // The period is a right angle; the grid's best is above the minimum by at most curvature × half step².
            let grid = (0..20_000).map(|k| criterion(&method, &at(k as f64 * 1e-4)));
            let least = grid.fold(f64::INFINITY, f64::min);
            assert!(r.criterion <= least * (1.0 + 1e-12), "{method}: {} {least}", r.criterion);
            relative(r.criterion, least, 1e-6, (method.name(), p));
        }
        let varimax = Rotate::new(Method::Varimax).kaiser(false).run(a.as_ref()).unwrap();
        let most = (0..20_000).map(|k| variance_of_squares(&at(k as f64 * 1e-4))).fold(0.0, f64::max);
        relative(variance_of_squares(&varimax.pattern), most, 1e-6, "variance of squared loadings");
    }
}

#[test]
fn perfect_simple_structure_is_found() {
    let mut rng = Rng(5);
    for sizes in [vec![3, 2], vec![5, 4, 3], vec![8, 6, 5, 4, 3]] {
        let (simple, turned) = turned_clusters(&sizes, &mut rng);
        // Parsimax and equamax want factors of equal variance and give up some simplicity for it; geomin's δ likewise.
        let methods = [
            Method::Varimax,
            Method::Quartimax,
            Method::quartimin(),
            Method::geomin(),
            Method::geomin_orthogonal(),
        ];
        for method in methods {
            let r = run(method.clone(), &turned);
            let straight = run(method.clone(), &simple);
            close_matrix(&r.pattern, &straight.pattern, 1e-9, (method.name(), "from either end"));
            // For each of our columns, the cluster it is.
            for j in 0..sizes.len() {
                let column = r.pattern.col_as_slice(j);
                let fits =
                    |k: &usize| (0..simple.nrows()).all(|i| (column[i] - simple[(i, *k)]).abs() < 1e-9);
                assert!((0..sizes.len()).any(|k| fits(&k)), "{method}: {column:?}");
            }
        }
    }
}

/// Equal clusters tie in variance: the order is that of the features, whatever the turn was.
#[test]
fn ties_are_ordered_by_position() {
    let mut rng = Rng(6);
    let simple = Mat::from_fn(9, 3, |i, j| if i % 3 == j { 0.7 } else { 0.0 });
    for _ in 0..5 {
        let turned = product(&simple, orthogonal(3, &mut rng).as_ref());
        for method in [Method::Varimax, Method::Quartimax, Method::quartimin(), Method::promax()] {
            close_matrix(&run(method.clone(), &turned).pattern, &simple, 1e-9, method.name());
        }
    }
}

/// The given axes do not matter, and the answer is the same to the last place that the criterion tells apart.
#[test]
fn any_starting_axes_give_the_same_answer() {
    let mut rng = Rng(7);
    let (_, turned) = turned_clusters(&[6, 5, 4], &mut rng);
    let a = Mat::from_fn(15, 3, |i, j| turned[(i, j)] + 0.1 * rng.normal());
    for method in [Method::Varimax, Method::Equamax, Method::promax(), Method::quartimin(), Method::geomin()]
    {
        let r = run(method.clone(), &a);
        let other = run(method.clone(), &product(&a, orthogonal(3, &mut rng).as_ref()));
        close_matrix(&r.pattern, &other.pattern, 1e-9, method.name());
        close_matrix(&r.correlation, &other.correlation, 1e-9, method.name());
        relative(r.criterion, other.criterion, 1e-12, method.name());
    }
}

#[test]
fn procrustes_undoes_a_known_turn() {
    let mut rng = Rng(8);
    let a = normal_matrix(10, 3, &mut rng);
    let turn = orthogonal(3, &mut rng);
    let target = product(&a, turn.as_ref());
    for oblique in [false, true] {
        for method in [
            Method::Procrustes { target: target.clone(), oblique },
            Method::Target { target: target.clone(), oblique },
        ] {
            let r = run(method.clone(), &a);
            close_matrix(&r.turn, &turn, 1e-9, (method.name(), oblique));
            close(r.criterion, 0.0, 1e-16, (method.name(), oblique));
        }
    }
    // Correlated factors: Λ = A T⁻ᵀ with columns of T of length 1.
    let raw = normal_matrix(3, 3, &mut rng);
    let length = |j: usize| (0..3).map(|i| raw[(i, j)].powi(2)).sum::<f64>().sqrt();
    let turn = Mat::from_fn(3, 3, |i, j| raw[(i, j)] / length(j));
    let target = product(&a, inverse(&turn).transpose());
    for method in [
        Method::Procrustes { target: target.clone(), oblique: true },
        Method::Target { target: target.clone(), oblique: true },
    ] {
        let r = run(method.clone(), &a);
        close_matrix(&r.turn, &turn, 1e-8, method.name());
        close_matrix(&r.pattern, &target, 1e-8, method.name());
    }
}

/// The closed form is the minimum that the descent finds.
#[test]
fn orthogonal_procrustes_is_a_full_target() {
    let mut rng = Rng(9);
    let (a, target) = (normal_matrix(8, 3, &mut rng), normal_matrix(8, 3, &mut rng));
    for kaiser in [false, true] {
        let closed = Rotate::new(Method::Procrustes { target: target.clone(), oblique: false });
        let sought = Rotate::new(Method::Target { target: target.clone(), oblique: false });
        let (closed, sought) =
            (closed.kaiser(kaiser).run(a.as_ref()).unwrap(), sought.kaiser(kaiser).run(a.as_ref()).unwrap());
        close_matrix(&closed.turn, &sought.turn, 1e-9, kaiser);
        relative(closed.criterion, sought.criterion, 1e-12, kaiser);
    }
}

#[test]
fn scale_does_not_matter() {
    let mut rng = Rng(10);
    let a = normal_matrix(8, 3, &mut rng);
    for method in every_method(&a, &mut rng) {
        // The δ of geomin and a target have the loadings' unit, and go with it.
        let r = run(method.clone(), &a);
        for scale in [1e-150, 1e150] {
            let method = match method.clone() {
                Method::Geomin { delta, oblique } => Method::Geomin { delta: delta * scale * scale, oblique },
                Method::Target { target, oblique } => Method::Target { target: target * scale, oblique },
                Method::Procrustes { target, oblique } => {
                    Method::Procrustes { target: target * scale, oblique }
                }
                other => other,
            };
            let far = run(method.clone(), &Mat::from_fn(8, 3, |i, j| a[(i, j)] * scale));
            assert!(far.converged, "{method}");
            close_matrix(&far.turn, &r.turn, 1e-8, (method.name(), scale));
            close_matrix(&far.pattern, &(&r.pattern * scale), 1e-8 * scale, (method.name(), scale));
        }
    }
}

/// Axes at a maximum of the criterion have no slope; other starts leave them.
#[test]
fn a_start_on_the_ridge_is_left() {
    let a = Mat::from_fn(2, 2, |i, j| if (i, j) == (1, 1) { -1.0 } else { 1.0 });
    let stuck = Rotate::new(Method::Varimax).starts(1).run(a.as_ref()).unwrap();
    let found = run(Method::Varimax, &a);
    close(stuck.pattern[(0, 1)].abs(), 1.0, 1e-12, "stuck");
    close(found.pattern[(0, 0)], 2f64.sqrt(), 1e-12, "found");
    close(found.criterion, criterion(&Method::Varimax, &normalised(&found.pattern)), 1e-12, "criterion");
    assert!(found.criterion < stuck.criterion - 0.1);
}

/// Thurstone's boxes: features are functions of three edges, and simple axes exist that one start misses.
#[test]
fn restarts_find_the_edges_of_boxes() {
    let a = boxes();
    let one = Rotate::new(Method::geomin()).starts(1);
    let firsts: Vec<f64> = (0..20)
        .map(|k| {
            let turned = product(&a, orthogonal(3, &mut Rng(100 + k)).as_ref());
            one.run(turned.as_ref()).unwrap().criterion
        })
        .collect();
    let many = run(Method::geomin(), &a);
    let missed = firsts.iter().filter(|f| **f > many.criterion * (1.0 + 1e-6)).count();
    assert!(missed > 0, "one start is always enough: {firsts:?}");
    assert!(firsts.iter().all(|f| *f >= many.criterion * (1.0 - 1e-9)), "{firsts:?} {}", many.criterion);
    assert!(many.agreeing < many.starts.len(), "{:?}", many.starts);
}

/// Loadings of three principal components of 26 functions of the edges x, y, z of boxes.
fn boxes() -> Mat<f64> {
    let edges: Vec<[f64; 3]> =
        (0..60).map(|k| [1 + k % 3, 2 + k / 3 % 4, 3 + k / 12 % 5].map(f64::from)).collect();
    let features = |[x, y, z]: [f64; 3]| {
        let (a, b, c) = ((x * x + y * y).sqrt(), (x * x + z * z).sqrt(), (y * y + z * z).sqrt());
        let pairs = [x * y, x * z, y * z, x * x * y, x * y * y, x * x * z, x * z * z, y * y * z, y * z * z];
        let ratios = [x / y, y / x, x / z, z / x, y / z, z / y];
        let sums = [2.0 * x + 2.0 * y, 2.0 * x + 2.0 * z, 2.0 * y + 2.0 * z, a, b, c];
        let all = [x * y * z, (x * x + y * y + z * z).sqrt()];
        [[x, y, z].as_slice(), &pairs, &ratios, &sums, &all].concat()
    };
    let rows: Vec<Vec<f64>> = edges.into_iter().map(features).collect();
    let x = standardised(&Mat::from_fn(rows.len(), 26, |i, j| rows[i][j]), 0);
    let (values, vectors) = eigen(&mean_and_covariance(&x, None).1);
    Mat::from_fn(26, 3, |i, j| vectors[(i, j)] * values[j].sqrt())
}

// ------------------------------------------------------------------------------------------------------- edges

#[test]
fn one_factor_has_nowhere_to_turn() {
    let a = Mat::from_fn(3, 1, |i, _| [0.5, 0.0, 0.8][i]);
    for method in [Method::Varimax, Method::promax(), Method::quartimin(), Method::geomin()] {
        let r = run(method, &a);
        assert_eq!((r.turn[(0, 0)], r.correlation[(0, 0)], r.converged), (1.0, 1.0, true));
        close_matrix(&r.pattern, &a, 0.0, "one factor");
    }
    let r = run(Method::Varimax, &Mat::zeros(3, 0));
    assert_eq!((r.pattern.ncols(), r.turn.nrows()), (0, 0));
}

#[test]
fn a_zero_row_is_named_only_where_it_matters() {
    let mut rng = Rng(11);
    let full = normal_matrix(5, 2, &mut rng);
    let a = Mat::from_fn(5, 2, |i, j| if i == 3 { 0.0 } else { full[(i, j)] });
    let error = Rotate::new(Method::Varimax).run(a.as_ref()).unwrap_err();
    assert!(matches!(error, Error::ZeroLoadings { feature: (3, None) }), "{error}");
    assert!(error.to_string().starts_with("feature 3 has no loadings"), "{error}");
    let r = Rotate::new(Method::Varimax).kaiser(false).run(a.as_ref()).unwrap();
    assert_eq!((r.pattern[(3, 0)], r.pattern[(3, 1)]), (0.0, 0.0));
    // Nothing at all is simple already.
    assert!(run(Method::Quartimax, &Mat::zeros(4, 2)).converged);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut rng = Rng(12);
    let a = normal_matrix(4, 2, &mut rng);
    let refused = |rotate: Rotate, a: &Mat<f64>| rotate.run(a.as_ref()).unwrap_err().to_string();
    let varimax = || Rotate::new(Method::Varimax);
    assert!(refused(varimax(), &normal_matrix(2, 3, &mut rng)).contains("the number of factors is 3"));
    let mut broken = a.clone();
    broken[(2, 1)] = f64::NAN;
    assert!(refused(varimax(), &broken).contains("NaN (feature 2, factor 1)"));
    assert!(refused(varimax().starts(0), &a).contains("starts"));
    assert!(refused(varimax().tolerance(0.0), &a).contains("tolerance"));
    assert!(refused(Rotate::new(Method::Promax { power: 1.0 }), &a).contains("power"));
    assert!(refused(Rotate::new(Method::Oblimin { gamma: f64::NAN }), &a).contains("gamma"));
    assert!(refused(Rotate::new(Method::Geomin { delta: 0.0, oblique: true }), &a).contains("delta"));
    let target = |p, q, x| Method::Procrustes { target: Mat::from_fn(p, q, |_, _| x), oblique: false };
    assert!(refused(Rotate::new(target(3, 2, 0.0)), &a).contains("rows of the target: 3 where 4"));
    assert!(refused(Rotate::new(target(4, 2, f64::NAN)), &a).contains("NaN"));
    assert!(refused(Rotate::new(target(4, 2, f64::INFINITY)), &a).contains("inf"));
}

/// Two equal columns: promax would divide by nothing, and says so; orthogonal rotations do not mind.
#[test]
fn loadings_of_lower_rank() {
    let mut rng = Rng(13);
    let one = normal_matrix(6, 1, &mut rng);
    let a = Mat::from_fn(6, 2, |i, _| one[(i, 0)]);
    check_consistent(&a, &run(Method::Varimax, &a), "varimax");
    let error = Rotate::new(Method::promax()).run(a.as_ref()).unwrap_err();
    assert!(matches!(error, Error::Collapsed { rotation: "promax", .. }), "{error}");
}

/// A γ above 0 leaves oblimin without a lower bound (Jennrich 1979): factors fall together, or a local optimum holds them apart.
#[test]
fn oblimin_beyond_its_bounds() {
    let mut rng = Rng(16);
    let mut fallen = 0;
    for _ in 0..5 {
        let a = normal_matrix(10, 3, &mut rng);
        match Rotate::new(Method::Oblimin { gamma: 1.0 }).run(a.as_ref()) {
            Ok(r) => check_consistent(&a, &r, "local optimum"),
            Err(e) => {
                assert!(matches!(e, Error::Collapsed { rotation: "oblimin", .. }), "{e}");
                assert!(e.to_string().ends_with("a gamma of at most 0"), "{e}");
                fallen += 1;
            }
        }
    }
    assert!(fallen > 0);
}

#[test]
fn not_converging_is_a_value() {
    let a = normal_matrix(12, 4, &mut Rng(14));
    let r = Rotate::new(Method::geomin()).starts(1).max_iterations(2).run(a.as_ref()).unwrap();
    assert!(!r.converged && r.iterations == 2);
    check_consistent(&a, &r, "early");
}

#[test]
fn the_seed_decides() {
    let a = normal_matrix(12, 4, &mut Rng(15));
    let run = |seed| Rotate::new(Method::geomin()).seed(seed).run(a.as_ref()).unwrap();
    assert_eq!(matrix_bits(&run(3).turn), matrix_bits(&run(3).turn));
    assert_eq!(bits(&run(3).starts), bits(&run(3).starts));
    assert_ne!(bits(&run(3).starts), bits(&run(4).starts));
}

#[test]
fn names_as_people_type_them() {
    for name in
        ["varimax", "quartimax", "equamax", "parsimax", "promax", "oblimin", "geomin", "geomin-orthogonal"]
    {
        assert_eq!(name.parse::<Method>().unwrap().name(), name);
        assert_eq!(name.to_uppercase().parse::<Method>().unwrap().name(), name);
    }
    for (alias, name) in [
        ("quartimin", "oblimin"),
        ("geominT", "geomin-orthogonal"),
        ("geominQ", "geomin"),
        ("Promax", "promax"),
    ] {
        assert_eq!(alias.parse::<Method>().unwrap().name(), name);
    }
    let error = "verimax".parse::<Method>().unwrap_err().to_string();
    assert!(error.contains("verimax") && error.contains("parsimax, promax"), "{error}");
    assert_eq!(Method::quartimin().to_string(), "oblimin (gamma 0)");
}

// ---------------------------------------------------------------------------------------------------------------- R

fn matrix(value: &Value) -> Mat<f64> {
    let rows: Vec<&Vec<Value>> = value.as_array().unwrap().iter().map(|r| r.as_array().unwrap()).collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j].as_f64().unwrap_or(f64::NAN))
}

/// The rotation that a name in the file stands for.
fn rotation(name: &str, set: &Value) -> Rotate {
    let target = |which: &str| matrix(&set["targets"][which]);
    let oblique = name.contains("oblique");
    let method = match name {
        "promax power 3, psych" => Method::Promax { power: 3.0 },
        "oblimin gamma -0.5" => Method::Oblimin { gamma: -0.5 },
        "procrustes oblique, psych" => Method::Procrustes { target: target("full"), oblique },
        _ if name.starts_with("target full") => Method::Target { target: target("full"), oblique },
        _ if name.starts_with("target partial") => Method::Target { target: target("partial"), oblique },
        _ => name.split([' ', ',']).next().unwrap().parse().unwrap(),
    };
    let rotate = Rotate::new(method);
    match name {
        _ if name.contains("with kaiser") => rotate.kaiser(true),
        _ if name.contains("without kaiser") => rotate.kaiser(false),
        _ => rotate,
    }
}

/// Largest difference of patterns and correlations when our columns are ordered and signed as theirs are.
fn difference(r: &Rotated, pattern: &Mat<f64>, correlation: &Mat<f64>) -> f64 {
    let q = pattern.ncols();
    let dot = |j: usize, k: usize| -> f64 {
        r.pattern.col_as_slice(j).iter().zip(pattern.col_as_slice(k)).map(|(a, b)| a * b).sum()
    };
    let like = |k: usize| (0..q).max_by(|&a, &b| dot(a, k).abs().total_cmp(&dot(b, k).abs())).unwrap();
    let order: Vec<(usize, f64)> = (0..q).map(|k| (like(k), dot(like(k), k).signum())).collect();
    let ours = Mat::from_fn(pattern.nrows(), q, |i, k| order[k].1 * r.pattern[(i, order[k].0)]);
    let phi = Mat::from_fn(q, q, |i, k| order[i].1 * order[k].1 * r.correlation[(order[i].0, order[k].0)]);
    max_abs(&(&ours - pattern)).max(max_abs(&(&phi - correlation)))
}

#[test]
fn r_finds_the_same() {
    let file: Value = serde_json::from_str(include_str!("tools/rotations.json")).unwrap();
    let mut worst = std::collections::BTreeMap::<String, f64>::new();
    for (name, set) in file.as_object().unwrap().iter().filter(|(_, set)| set.is_object()) {
        let a = matrix(&set["loadings"]);
        for (what, theirs) in set["results"].as_object().unwrap() {
            let r = rotation(what, set).run(a.as_ref()).unwrap();
            assert!(r.converged, "{name}, {what}");
            check_consistent(&a, &r, what);
            // Its varimax and quartimax are measured in another way.
            if let Some(value) =
                theirs["criterion"].as_f64().filter(|_| !what.contains("rtimax") && !what.contains("varimax"))
            {
                relative(r.criterion, value, 1e-11, (name, what, "criterion"));
            }
            let off = difference(&r, &matrix(&theirs["pattern"]), &matrix(&theirs["correlation"]));
            let entry = worst.entry(what.clone()).or_default();
            *entry = entry.max(off);
        }
    }
    eprintln!("largest differences: {worst:#?}");
    worst.iter().for_each(|(what, off)| assert!(*off < 1e-6, "{what}: {off:e}"));
}
