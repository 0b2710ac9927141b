//! k-means: against brute force, best known optima, and whatever may be wrong with rows.

use std::sync::Arc;

use covary::data::{Chunk, Order, RowSource};
use covary::estimator::{Fit, Groups};
use covary::evidence::{Accumulator, Clusters, Moments, gather};
use covary::linalg::Mat;
use covary::model::{Array, Clustering, Model};
use covary::persist::{Portable, SavedModel};
use covary::{Control, Error, KMeans, Request, Result, Scale, Seeding};

use crate::common::{
    Rng, close, close_all, close_matrix, data_set, normal_matrix, relative, row, soak, stored, table,
};

/// Rows of k groups around centres that are `apart` from each other in some direction.
fn blobs(n: usize, p: usize, k: usize, apart: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let centres = normal_matrix(k, p, &mut rng);
    let x = normal_matrix(n, p, &mut rng);
    Mat::from_fn(n, p, |i, j| apart * centres[(i % k, j)] + x[(i, j)])
}

fn with_holes(x: &Mat<f64>, share: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if rng.uniform() < share { f64::NAN } else { x[(i, j)] })
}

/// Squared distance over the observed cells, by definition.
fn distance(row: &[f64], centre: &[f64]) -> f64 {
    row.iter().zip(centre).filter(|(x, _)| !x.is_nan()).map(|(x, c)| (x - c).powi(2)).sum()
}

/// Means of the rows of each label over the observed cells, and the sum of squares about them.
fn means(x: &Mat<f64>, w: &[f64], labels: &[usize], k: usize) -> (Mat<f64>, f64) {
    let mean = |c: usize, j: usize| {
        let own = || (0..x.nrows()).filter(|i| labels[*i] == c && !x[(*i, j)].is_nan());
        let weight: f64 = own().map(|i| w[i]).sum();
        if weight > 0.0 { own().map(|i| w[i] * x[(i, j)]).sum::<f64>() / weight } else { 0.0 }
    };
    let centres = Mat::from_fn(k, x.ncols(), mean);
    let inertia = (0..x.nrows()).map(|i| w[i] * distance(&row(x, i), &row(&centres, labels[i]))).sum();
    (centres, inertia)
}

fn inertia(fit: &Fit<Clustering>) -> f64 {
    fit.report.clusters().unwrap().inertia
}

/// Labels, centres, sizes and inertia of a fit belong together: each row is at its nearest centre, each centre the
/// mean of its rows.
#[track_caller]
fn consistent(fit: &Fit<Clustering>, x: &Mat<f64>, w: &[f64]) {
    let model = &fit.model;
    let k = model.centres().nrows();
    let (labels, squares) = model.nearest(table(x)).unwrap();
    let size = model.inertia() + 1e-9;
    for i in 0..x.nrows() {
        let each: Vec<f64> = (0..k).map(|c| distance(&row(x, i), &row(model.centres(), c))).collect();
        let least = each.iter().copied().fold(f64::INFINITY, f64::min);
        close(squares[i], each[labels[i]], 1e-9 * size, "distance to its centre");
        close(squares[i], least, 1e-9 * size, "the nearest");
    }
    let (centres, total) = means(x, w, &labels, k);
    let seen =
        |c: usize, j: usize| (0..x.nrows()).any(|i| labels[i] == c && w[i] > 0.0 && !x[(i, j)].is_nan());
    for (c, j) in (0..k).flat_map(|c| (0..x.ncols()).map(move |j| (c, j))).filter(|(c, j)| seen(*c, *j)) {
        close(model.centres()[(c, j)], centres[(c, j)], 1e-10 * (1.0 + centres[(c, j)].abs()), "a mean");
    }
    close(model.inertia(), total, 1e-10 * size, "inertia");
    close(inertia(fit), total, 1e-10 * size, "inertia of the report");
    assert!(model.shares().windows(2).all(|s| s[0] >= s[1]), "descending weight");
    let counted = |i: &usize| w[*i] > 0.0 && row(x, *i).iter().any(|x| !x.is_nan());
    let all: f64 = (0..x.nrows()).filter(counted).map(|i| w[i]).sum();
    for c in 0..k {
        let own: f64 = (0..x.nrows()).filter(counted).filter(|i| labels[*i] == c).map(|i| w[i]).sum();
        close(model.shares()[c], own / all, 1e-12, "share");
    }
}

/// The least sum of squares over all ways to put labels on rows.
fn exhaustive(x: &Mat<f64>, w: &[f64], k: usize) -> f64 {
    let n = x.nrows();
    let ways = k.pow(n as u32);
    let labels = |way: usize| (0..n).map(|i| way / k.pow(i as u32) % k).collect::<Vec<_>>();
    (0..ways).map(|way| means(x, w, &labels(way), k).1).fold(f64::INFINITY, f64::min)
}

#[test]
fn soak_small_tables_end_at_the_best_of_all_partitions() {
    for seed in 0..soak(6, 60) as u64 {
        let mut rng = Rng(seed);
        let x = normal_matrix(7, 2, &mut rng);
        let x = if seed % 2 == 0 { x } else { with_holes(&x, 0.15, seed) };
        let w: Vec<f64> = (0..7).map(|_| if seed % 3 == 0 { 1.0 } else { 0.5 + rng.uniform() }).collect();
        let rows = table(&x).with_weights(&*w).unwrap();
        let Ok(fit) = KMeans::new(3).fit(&rows) else { continue };
        relative(inertia(&fit), exhaustive(&x, &w, 3), 1e-9, ("seed", seed));
        consistent(&fit, &x, &w);
    }
}

/// Best known sums of squares: of many restarts of other programs; of digits, printed by scikit-learn's developers
/// (pull request 2008). Lower is better.
#[test]
fn the_best_known_optima_of_public_data_are_reached() {
    let scaled = |x: &Mat<f64>, lost: f64| {
        let n = x.nrows() as f64;
        let mean: Vec<f64> = (0..x.ncols()).map(|j| x.col(j).iter().sum::<f64>() / n).collect();
        let deviation =
            |j: usize| (x.col(j).iter().map(|v| (v - mean[j]).powi(2)).sum::<f64>() / (n - lost)).sqrt();
        Mat::from_fn(x.nrows(), x.ncols(), |i, j| (x[(i, j)] - mean[j]) / deviation(j))
    };
    let mut cases: Vec<(&str, Mat<f64>, usize, f64)> = Vec::new();
    if let Some(iris) = data_set("iris") {
        let iris = Mat::from_fn(iris.nrows(), 4, |i, j| iris[(i, j)]);
        cases.extend([
            ("iris 2", iris.clone(), 2, 152.347_952),
            ("iris 3", iris.clone(), 3, 78.851_441),
            ("iris 10", iris, 10, 25.849_464),
        ]);
    }
    if let Some(wine) = data_set("wine") {
        cases.push(("standardised wine 3", scaled(&wine, 0.0), 3, 1_277.928_489));
        cases.push(("wine 3", wine, 3, 2_370_689.686_783));
    }
    if let Some(usa) = data_set("usarrests") {
        cases.push(("scaled USArrests 4", scaled(&usa, 1.0), 4, 56.403_173));
    }
    if let Some(digits) = data_set("digits") {
        cases.push(("digits 10", digits, 10, 1_165_142.004_7));
    }
    for (name, x, k, best) in cases {
        let fit = KMeans::new(k).fit(&x).unwrap();
        assert!(inertia(&fit) <= best * (1.0 + 1e-8), "{name}: {} above {best}", inertia(&fit));
    }
}

#[test]
fn a_large_mean_changes_no_label() {
    let x = blobs(300, 4, 5, 2.0, 3);
    let far = Mat::from_fn(300, 4, |i, j| x[(i, j)] + 1e8);
    let back = Mat::from_fn(300, 4, |i, j| far[(i, j)] - 1e8); // what rounding has left
    let (a, b) = (KMeans::new(5).fit(&back).unwrap(), KMeans::new(5).fit(&far).unwrap());
    assert_eq!(a.model.nearest(table(&back)).unwrap().0, b.model.nearest(table(&far)).unwrap().0);
    relative(inertia(&a), inertia(&b), 1e-7, "centres are as coarse as cells near 1e8");
}

/// Bounds spare distances; they change no bit. Forty centres are enough for groups of them.
#[test]
fn bounds_change_no_bit() {
    for (k, holes) in [(5, 0.0), (40, 0.0), (5, 0.1), (40, 0.1)] {
        let x = with_holes(&blobs(1500, 3, 12, 1.5, 8), holes, 2);
        let start = Mat::from_fn(k, 3, |c, j| if x[(c, j)].is_nan() { 0.0 } else { x[(c, j)] });
        let family = KMeans::new(k).centres(start);
        let (bounded, plain) = (family.fit(&x).unwrap(), family.clone().memory(1).fit(&x).unwrap());
        assert_eq!(bounded.model.centres(), plain.model.centres(), "{k} {holes}");
        assert_eq!(bounded.report.trace, plain.report.trace, "{k} {holes}");
        assert!(bounded.report.trace.len() > 3 && bounded.report.converged());
    }
}

/// Lloyd's method by its definition.
fn lloyd(x: &Mat<f64>, mut centres: Mat<f64>, passes: usize) -> Mat<f64> {
    let k = centres.nrows();
    for _ in 0..passes {
        let nearest = |i: usize| {
            let each = (0..k).map(|c| distance(&row(x, i), &row(&centres, c)));
            each.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
        };
        let labels: Vec<usize> = (0..x.nrows()).map(nearest).collect();
        centres = means(x, &vec![1.0; x.nrows()], &labels, k).0;
    }
    centres
}

#[test]
fn given_centres_take_the_steps_of_the_definition() {
    let x = blobs(400, 3, 4, 1.0, 5);
    let start = Mat::from_fn(4, 3, |c, j| x[(c, j)]);
    for passes in [1, 2, 5] {
        let fit = KMeans::new(4).centres(start.clone()).max_iterations(passes).fit(&x).unwrap();
        let expected = lloyd(&x, start.clone(), passes);
        // Clusters are in descending weight: each of the definition's is one of the fit's.
        for c in 0..4 {
            let near = (0..4).map(|o| distance(&row(&expected, c), &row(fit.model.centres(), o)));
            assert!(near.fold(f64::INFINITY, f64::min) < 1e-24, "{passes} passes");
        }
        assert!(!fit.report.converged() && fit.report.trace.len() == passes);
        assert_eq!(fit.report.clusters().unwrap().starts, 0);
    }
}

#[test]
fn threads_change_no_bit() {
    let x = with_holes(&blobs(3000, 3, 6, 1.5, 4), 0.02, 1);
    let of =
        |threads: usize| SavedModel::new(KMeans::new(6).threads(threads).fit(&x).unwrap(), None).unwrap();
    let one = of(1).to_bytes().unwrap();
    for threads in [2, 3, 7] {
        assert_eq!(of(threads).to_bytes().unwrap(), one, "{threads}");
    }
}

/// Rows in chunks of another size, as a file gives them.
struct InParts<'a>(&'a Mat<f64>, usize);

impl RowSource for InParts<'_> {
    fn n_features(&self) -> usize {
        self.0.ncols()
    }
    fn n_chunks(&self) -> usize {
        self.0.nrows().div_ceil(self.1)
    }
    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let rows = index * self.1..((index + 1) * self.1).min(self.0.nrows());
        let cells = rows.clone().flat_map(|i| row(self.0, i)).collect();
        Chunk::from_rows(rows.start, cells, self.0.ncols(), Order::Rows)
    }
}

#[test]
fn memory_parts_and_lists_agree() {
    let x = with_holes(&blobs(900, 4, 5, 2.0, 6), 0.05, 9);
    let whole = KMeans::new(5).fit(&x).unwrap();
    let others = [
        KMeans::new(5).fit(&InParts(&x, 101)).unwrap(),
        KMeans::new(5).fit(&InParts(&x, 7)).unwrap(),
        KMeans::new(5).fit(&stored(&x)).unwrap(),
    ];
    for other in others {
        close_matrix(other.model.centres(), whole.model.centres(), 1e-12, "centres");
        relative(inertia(&other), inertia(&whole), 1e-13, "inertia");
        assert_eq!(other.model.nearest(&stored(&x)).unwrap().0, whole.model.nearest(table(&x)).unwrap().0);
    }
    consistent(&whole, &x, &[1.0; 900]);
}

#[test]
fn merged_evidence_is_that_of_all_rows_and_has_bytes() {
    let x = with_holes(&blobs(200, 3, 3, 2.0, 2), 0.1, 3);
    let centres = Mat::from_fn(3, 3, |c, j| (c * 2 + j) as f64);
    let of = |rows: std::ops::Range<usize>| {
        let part = Mat::from_fn(rows.len(), 3, |i, j| x[(rows.start + i, j)]);
        gather(&table(&part), || Clusters::empty(centres.as_ref()), &Control::new()).unwrap()
    };
    let (mut a, b, all) = (of(0..120), of(120..200), of(0..200));
    let names = ["a", "b", "c"].map(String::from);
    let b = Clusters::from_bytes(&b.to_bytes(&names).unwrap()).unwrap().evidence;
    a.merge(&b).unwrap();
    assert_eq!((a.rows(), a.weight()), (all.rows(), all.weight()));
    close_matrix(&a.means(), &all.means(), 1e-13, "means");
    close_all(&a.within(), &all.within(), 1e-10, "within");
    let two = Clusters::empty(Mat::<f64>::zeros(2, 3).as_ref());
    assert!(a.merge(&two).unwrap_err().to_string().contains("centres of evidence"));
}

#[test]
fn a_weight_is_a_repetition() {
    let x = blobs(60, 2, 3, 2.0, 7);
    let counts: Vec<usize> = (0..60).map(|i| i % 3).collect();
    let w: Vec<f64> = counts.iter().map(|c| *c as f64).collect();
    let repeated: Vec<usize> = (0..60).flat_map(|i| vec![i; counts[i]]).collect();
    let y = Mat::from_fn(repeated.len(), 2, |i, j| x[(repeated[i], j)]);
    let (a, b) = (KMeans::new(3).fit(table(&x).with_weights(&*w).unwrap()), KMeans::new(3).fit(&y));
    let (a, b) = (a.unwrap(), b.unwrap());
    relative(inertia(&a), inertia(&b), 1e-12, "inertia");
    close_matrix(a.model.centres(), b.model.centres(), 1e-12, "centres");
    close_all(a.model.shares(), b.model.shares(), 1e-12, "shares");
    consistent(&a, &x, &w);
}

/// More rows than the start is searched on, most of them in two clusters, and five far away in one direction.
#[test]
fn a_few_rows_far_out_are_found_among_many() {
    let n = 12_000;
    let mut rng = Rng(3);
    let x = Mat::from_fn(n, 2, |i, j| match (i, j) {
        (0..5, 0) => 5000.0 + rng.uniform(),
        (_, 0) => 20.0 * (i % 2) as f64 + rng.uniform(),
        _ => rng.uniform(),
    });
    // Fewer cells than rows may be held, so that the search rests on a sample.
    let fit = KMeans::new(3).memory(1 << 16).fit(&x).unwrap();
    let report = fit.report.clusters().unwrap();
    assert!(report.sample.is_some_and(|rows| rows < 3000), "{report:?}");
    assert!((fit.model.shares()[2] - 5.0 / n as f64).abs() < 1e-12, "{:?}", fit.model.shares());
    consistent(&fit, &x, &vec![1.0; n]);
}

#[test]
fn fewer_different_rows_than_clusters_make_fewer_clusters() {
    let x = Mat::from_fn(9, 2, |i, j| (i % 3 * (j + 1)) as f64);
    for k in [3, 4, 9, 20] {
        let fit = KMeans::new(k).fit(&x).unwrap();
        let report = fit.report.clusters().unwrap();
        assert_eq!((report.asked, report.found, report.inertia), (k, 3, 0.0));
        assert_eq!(fit.report.components, 3);
    }
    // The same from centres that are given, most of which stay empty.
    let start = Mat::from_fn(5, 2, |k, j| (100 * k + j) as f64);
    let fit = KMeans::new(5).centres(start).fit(&x).unwrap();
    assert_eq!((fit.model.centres().nrows(), inertia(&fit)), (3, 0.0));
    assert!(fit.report.converged());
}

#[test]
fn an_empty_cluster_goes_where_rows_are_far_from_their_centre() {
    let x = Mat::from_fn(8, 1, |i, _| [0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 9.0, 9.1][i]);
    let start = Mat::from_fn(3, 1, |k, _| [0.0, 6.0, 1e6][k]);
    let fit = KMeans::new(3).centres(start).fit(&x).unwrap();
    assert_eq!(fit.model.centres().nrows(), 3);
    // Three rows around 0.1 and 5.1, two around 9.05: 0.02 + 0.02 + 0.005.
    close(inertia(&fit), 0.045, 1e-12, "the best of three");
    consistent(&fit, &x, &[1.0; 8]);
}

#[test]
fn one_cluster_is_the_mean_and_as_many_as_rows_are_the_rows() {
    let x = blobs(20, 3, 2, 1.0, 1);
    let one = KMeans::new(1).fit(&x).unwrap();
    let moments = gather(&table(&x), || Moments::empty(3), &Control::new()).unwrap();
    close_all(&row(one.model.centres(), 0), moments.mean(), 1e-13, "mean");
    relative(inertia(&one), 20.0 * moments.total_variance(), 1e-12, "scatter");
    close(one.report.clusters().unwrap().explained().unwrap(), 0.0, 1e-12, "nothing lies between");
    let all = KMeans::new(20).fit(&x).unwrap();
    close(inertia(&all), 0.0, 1e-25, "every row is a centre");
    let single = KMeans::new(1).fit(&Mat::full(1, 1, 3.0)).unwrap();
    assert_eq!((single.model.centres()[(0, 0)], inertia(&single)), (3.0, 0.0));
}

#[test]
fn rows_without_cells_have_a_label_and_no_weight() {
    let mut x = blobs(40, 2, 2, 3.0, 2);
    let without = KMeans::new(2).fit(&Mat::from_fn(38, 2, |i, j| x[(i + 2, j)])).unwrap();
    (0..2).for_each(|i| (0..2).for_each(|j| x[(i, j)] = f64::NAN));
    let with = KMeans::new(2).fit(&x).unwrap();
    close_matrix(with.model.centres(), without.model.centres(), 1e-13, "centres");
    close_all(with.model.shares(), without.model.shares(), 1e-13, "shares");
    assert_eq!(with.model.nearest(table(&x)).unwrap().0[0], 0, "the largest");
    assert_eq!(with.report.holes.as_ref().unwrap().empty_rows, 2);
    consistent(&with, &x, &[1.0; 40]);
}

#[test]
fn scales_of_any_size_give_the_same_labels() {
    let x = blobs(60, 3, 3, 2.0, 5);
    let labels = |x: &Mat<f64>| KMeans::new(3).fit(x).unwrap().model.nearest(table(x)).unwrap().0;
    let expected = labels(&x);
    for size in [1e-150, 1e-30, 1e30, 1e150] {
        let scaled = Mat::from_fn(60, 3, |i, j| x[(i, j)] * size);
        assert_eq!(labels(&scaled), expected, "{size:e}");
    }
    let single = Mat::<f32>::from_fn(60, 3, |i, j| x[(i, j)] as f32);
    let fit = KMeans::new(3).fit(&single).unwrap();
    assert_eq!(fit.model.nearest(&single).unwrap().0, expected, "single precision");
}

#[test]
fn bad_input_is_a_clear_error() {
    let x = blobs(10, 2, 2, 1.0, 1);
    let told = |fit: Result<Fit<Clustering>>| fit.map(|_| ()).unwrap_err().to_string();
    assert!(told(KMeans::new(0).fit(&x)).contains("the number of groups is 0"));
    assert!(told(KMeans::new(Groups::Between(4, 2)).fit(&x)).contains("4 to 2"));
    assert!(told(KMeans::new(2).starts(0).fit(&x)).contains("the number of starts is 0"));
    let wide = KMeans::new(2).centres(Mat::zeros(2, 3));
    assert!(matches!(wide.fit(&x), Err(Error::FeatureCount { expected: 2, found: 3 })));
    let undefined = KMeans::new(2).centres(Mat::full(2, 2, f64::NAN));
    assert!(told(undefined.fit(&x)).contains("first centres"));
    let mut infinite = x.clone();
    infinite[(3, 1)] = f64::INFINITY;
    let error = KMeans::new(2).fit(&infinite).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::Infinite { cell, .. } if (cell.row, cell.column) == (3, 1)), "{error}");
    let empty = Mat::from_fn(4, 2, |i, j| if j == 1 { f64::NAN } else { i as f64 });
    assert!(matches!(KMeans::new(2).fit(&empty), Err(Error::NeverObserved { .. })));
    assert!(matches!(KMeans::new(2).fit(&Mat::<f64>::zeros(0, 2)), Err(Error::NoRows)));
    let weightless = table(&x).with_weights(vec![0.0; 10]).unwrap();
    assert!(matches!(KMeans::new(2).fit(&weightless), Err(Error::NoRows)));
    let moments = gather(&table(&x), || Moments::empty(2), &Control::new()).unwrap();
    let fit = Request::new(KMeans::new(2)).fit(&moments, &Control::new());
    assert!(fit.unwrap_err().to_string().contains("moments do not tell which rows lie together"));
    let model = KMeans::new(2).fit(&x).unwrap().model;
    let wide = model.nearest(&Mat::<f64>::zeros(1, 3)).unwrap_err();
    assert!(matches!(wide, Error::FeatureCount { expected: 2, found: 3 }));
    assert!(Clustering::new(Mat::zeros(2, 2), vec![0.9, 0.2], vec![0.0; 2]).is_err());
    assert!(Clustering::new(Mat::zeros(2, 2), vec![0.5, 0.5], vec![-1.0; 2]).is_err());
    let warm =
        Request::new(KMeans::new(2)).start(Arc::new(crate::common::random_model(2, 1, false, &mut Rng(1))));
    let error = warm.fit(&table(&x) as &dyn RowSource, &Control::new()).unwrap_err();
    assert!(error.to_string().contains("no centres"), "{error}");
}

#[test]
fn the_number_of_clusters_is_found_where_they_are_apart() {
    for k in [1, 2, 4] {
        let x = blobs(120, 2, k, 25.0, 40 + k as u64);
        let fit = KMeans::new(Groups::Between(1, 6)).fit(&x).unwrap();
        let report = fit.report.clusters().unwrap();
        assert_eq!((report.found, report.asked), (k, k), "{:?}", report.chosen);
        let chosen = report.chosen.as_ref().unwrap();
        assert!(chosen.reason.contains("gap statistic"));
        assert_eq!(chosen.rows[0].clusters, 1);
        assert!(chosen.rows.windows(2).all(|pair| pair[1].inertia <= pair[0].inertia));
        assert_eq!(fit.report.choice.as_deref(), Some(chosen.reason.as_str()));
    }
}

#[test]
fn scaled_features_are_scaled_in_every_answer() {
    let x = blobs(90, 2, 3, 3.0, 4);
    let wide = Mat::from_fn(90, 2, |i, j| x[(i, j)] * [1.0, 1e4][j]);
    let fit = Request::new(KMeans::new(3)).scale(Scale::Unit);
    let fit = fit.fit(&table(&wide) as &dyn RowSource, &Control::new()).unwrap();
    let factors = fit.report.scaled.as_ref().unwrap().factors.clone();
    let by_hand = Mat::from_fn(90, 2, |i, j| wide[(i, j)] / factors[j]);
    let plain = KMeans::new(3).fit(&by_hand).unwrap();
    let saved = SavedModel::new(fit, None).unwrap();
    let read = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
    let model: &Clustering = read.model.downcast_ref().unwrap();
    assert_eq!(model.nearest(table(&wide)).unwrap().0, plain.model.nearest(table(&by_hand)).unwrap().0);
    for (k, j) in (0..3).flat_map(|k| (0..2).map(move |j| (k, j))) {
        relative(model.centres()[(k, j)] / factors[j], plain.model.centres()[(k, j)], 1e-11, "centre");
    }
    close_all(model.divisors(), &factors, 1e-12, "divisors");
    let Some(Array::Vector(kept)) = model.arrays().remove("divisors") else { panic!("no divisors") };
    assert_eq!(kept, factors);
}

#[test]
fn batches_come_near_to_a_fit_of_all_rows() {
    // Clusters of 300, 200 and 100 rows, far from each other, in each batch.
    let mut rng = Rng(12);
    let x = Mat::from_fn(600, 2, |i, j| 50.0 * ([0, 0, 0, 1, 1, 2][i % 6] * (j + 1)) as f64 + rng.normal());
    let part = |b: usize| Mat::from_fn(200, 2, |i, j| x[(200 * b + i, j)]);
    let family = KMeans::new(3);
    let mut seen: Option<Fit<Clustering>> = None;
    for b in 0..3 {
        let batch = part(b);
        seen = Some(family.step(seen.as_ref(), &table(&batch), &Control::new()).unwrap());
    }
    let (seen, all) = (seen.unwrap(), family.fit(&x).unwrap());
    assert_eq!(seen.report.clusters().unwrap().online_steps, Some(3));
    assert_eq!((seen.report.rows, seen.report.weight), (600, 600.0));
    // Clusters that do not overlap: every row went where it belongs, so the running means are the means.
    close_matrix(seen.model.centres(), all.model.centres(), 1e-10, "centres");
    close_all(seen.model.shares(), all.model.shares(), 1e-12, "shares");
    let wide = family.step(Some(&seen), &table(&Mat::zeros(3, 5)), &Control::new());
    assert!(matches!(wide, Err(Error::FeatureCount { .. })));
}

#[test]
fn starts_and_seedings_are_options() {
    let x = blobs(200, 2, 6, 1.5, 21);
    let plain = |seeding: Seeding, starts: usize| {
        let fit = KMeans::new(6).polish(false).seeding(seeding).starts(starts).fit(&x).unwrap();
        consistent(&fit, &x, &[1.0; 200]);
        (inertia(&fit), fit.report.clusters().unwrap().swaps)
    };
    let (once, swaps) = plain(Seeding::Random, 1);
    let (best, _) = plain(Seeding::Random, 12);
    let polished = KMeans::new(6).fit(&x).unwrap();
    assert!(swaps == 0 && best <= once && inertia(&polished) <= best * (1.0 + 1e-12));
    assert!(polished.report.converged());
    let again = KMeans::new(6).seed(0).fit(&x).unwrap();
    assert_eq!(again.model.centres(), polished.model.centres(), "the same seed, the same bits");
}
