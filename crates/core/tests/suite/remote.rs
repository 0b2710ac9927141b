//! Rows elsewhere: evidence that was filled in parts, as bytes, gives the model that all rows give here.

use std::sync::atomic::{AtomicUsize, Ordering};

use covary::algorithm::Components;
use covary::data::{RowSource, Table};
use covary::linalg::Mat;
use covary::model::{AnyModel, Array};
use covary::remote::{Elsewhere, Filling, merge};
use covary::{
    BayesianPca, Control, Error, FactorAnalysis, Fit, Gplvm, Ica, KMeans, KernelPca, Landmarks, MixturePpca,
    Pca, Ppca, Request, Result, RobustPpca, Scale, Solver,
};

use crate::common::*;

/// Rows that pretend to be on so many machines, which answer in a tree of merges.
struct Machines {
    x: Mat<f64>,
    weights: Option<Vec<f64>>,
    parts: usize,
    passes: AtomicUsize,
}

impl Machines {
    fn new(x: &Mat<f64>, weights: Option<&[f64]>, parts: usize) -> Self {
        Self { x: x.clone(), weights: weights.map(<[f64]>::to_vec), parts, passes: AtomicUsize::new(0) }
    }

    /// The answer of the rows from `first` to `end`, in two batches.
    fn part(&self, task: &[u8], first: usize, end: usize) -> Result<Vec<u8>> {
        let mut filling = Filling::new(task, first)?;
        let middle = first + (end - first) / 3;
        for (from, to) in [(first, middle), (middle, end)] {
            let some = Mat::from_fn(to - from, self.x.ncols(), |i, j| self.x[(from + i, j)]);
            filling.add(&weighted(&some, self.weights.as_ref().map(|w| &w[from..to])))?;
        }
        filling.reply()
    }

    fn answer(&self, task: &[u8]) -> Result<Vec<u8>> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let n = self.x.nrows();
        let ends = (0..self.parts).map(|k| (k * n / self.parts, (k + 1) * n / self.parts));
        let mut replies: Vec<Vec<u8>> = ends.map(|(a, b)| self.part(task, a, b)).collect::<Result<_>>()?;
        while replies.len() > 2 {
            replies = replies.chunks(2).map(merge).collect::<Result<_>>()?;
        }
        merge(&replies)
    }

    fn fit(&self, request: &Request) -> Result<Fit<AnyModel>> {
        let rows = Elsewhere::new(self.x.ncols(), |task: &[u8], _: bool| self.answer(task))
            .with_rows(Some(self.x.nrows()));
        let source: &dyn RowSource = &rows;
        request.fit(source, &Control::new())
    }
}

fn weighted<'a>(x: &'a Mat<f64>, weights: Option<&[f64]>) -> Table<'a> {
    match weights {
        Some(weights) => table(x).with_weights(weights.to_vec()).unwrap(),
        None => table(x),
    }
}

fn here(request: &Request, x: &Mat<f64>, weights: Option<&[f64]>) -> Fit<AnyModel> {
    let rows = weighted(x, weights);
    let source: &dyn RowSource = &rows;
    request.fit(source, &Control::new()).unwrap()
}

fn numbers(array: &Array) -> Vec<f64> {
    match array {
        Array::Vector(cells) => cells.clone(),
        Array::Matrix(m) => (0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()).collect(),
    }
}

/// All arrays of the two models agree, relative to the largest number of each.
fn assert_same(name: &str, a: &Fit<AnyModel>, b: &Fit<AnyModel>, within: f64) {
    assert_eq!(a.model.kind().name, b.model.kind().name);
    assert_eq!((a.report.rows, a.report.components), (b.report.rows, b.report.components), "{name}");
    let (left, right) = (a.model.arrays(), b.model.arrays());
    assert_eq!(left.keys().collect::<Vec<_>>(), right.keys().collect::<Vec<_>>(), "{name}");
    for (array, of_a) in &left {
        let (x, y) = (numbers(of_a), numbers(&right[array]));
        assert_eq!(x.len(), y.len(), "{name}: {array}");
        let size = x.iter().fold(0.0_f64, |m, v| m.max(v.abs())).max(f64::MIN_POSITIVE);
        let worst = x.iter().zip(&y).fold(0.0_f64, |m, (u, v)| m.max((u - v).abs()));
        assert!(worst <= within * size, "{name}: {array} differs by {worst} of {size}");
    }
    if let (Some(u), Some(v)) = (a.report.log_likelihood, b.report.log_likelihood) {
        assert!((u - v).abs() <= within * u.abs().max(1.0), "{name}: log-likelihood {u} and {v}");
    }
}

/// Rows with three directions that matter, and every fifth cell missing where that is wanted.
fn rows(n: usize, p: usize, missing: bool) -> Mat<f64> {
    let mut rng = Rng(17);
    let deviations: Vec<f64> = (0..p).map(|k| if k < 3 { 4.0 - k as f64 } else { 0.4 }).collect();
    let mut x = rows_with_deviations(n, &deviations, 5.0, &mut rng);
    if missing {
        (0..n).flat_map(|i| (0..p).map(move |j| (i, j))).for_each(|at| {
            if rng.below(5) == 0 {
                x[at] = f64::NAN;
            }
        });
    }
    x
}

/// Groups that lie apart.
fn groups(n: usize, p: usize) -> Mat<f64> {
    let mut rng = Rng(5);
    let x = rows_with_deviations(n, &vec![1.0; p], 0.0, &mut rng);
    Mat::from_fn(n, p, |i, j| x[(i, j)] + if j == i % 3 { 12.0 } else { 0.0 })
}

fn linear() -> Vec<(&'static str, Request)> {
    vec![
        ("ppca", Request::new(Ppca::new(3))),
        ("ppca scaled", Request::new(Ppca::new(3)).scale(Scale::Unit)),
        ("ppca by passes", Request::new(Ppca::new(3).solver(Solver::Krylov))),
        ("pca", Request::new(Pca::new(2))),
        ("pca by evidence", Request::new(Pca::new(Components::Evidence))),
        ("factors", Request::new(FactorAnalysis::new(3))),
        ("bayes", Request::new(BayesianPca::new(4))),
        ("robust", Request::new(RobustPpca::new(2))),
    ]
}

#[test]
fn linear_models_of_complete_rows_are_those_of_one_machine() {
    let (x, mut rng) = (rows(300, 8, false), Rng(3));
    let w: Vec<f64> = (0..300).map(|_| 0.5 + rng.uniform()).collect();
    for (name, request) in linear() {
        for weights in [None, Some(&w[..])] {
            let expected = here(&request, &x, weights);
            for parts in [1, 2, 7] {
                let found = Machines::new(&x, weights, parts).fit(&request).unwrap();
                assert_same(name, &expected, &found, 1e-9);
            }
        }
    }
}

#[test]
fn linear_models_of_rows_with_missing_values_are_those_of_one_machine() {
    let x = rows(300, 8, true);
    for (name, request) in
        linear().into_iter().filter(|(name, _)| !name.contains("passes") && !name.contains("evidence"))
    {
        let expected = here(&request, &x, None);
        for parts in [1, 7, 64] {
            assert_same(name, &expected, &Machines::new(&x, None, parts).fit(&request).unwrap(), 1e-9);
        }
    }
}

#[test]
fn models_of_groups_are_those_of_one_machine() {
    let x = groups(600, 4);
    for (name, request) in
        [("kmeans", Request::new(KMeans::new(3))), ("mixture", Request::new(MixturePpca::new(3, 1)))]
    {
        let expected = here(&request, &x, None);
        for parts in [1, 7] {
            assert_same(name, &expected, &Machines::new(&x, None, parts).fit(&request).unwrap(), 1e-9);
        }
    }
}

#[test]
fn a_large_mixture_is_looked_for_on_a_sample_and_fitted_on_all_rows() {
    let x = groups(20_000, 3);
    let request = Request::new(MixturePpca::new(3, 1));
    let machines = Machines::new(&x, None, 3);
    assert_same("mixture", &here(&request, &x, None), &machines.fit(&request).unwrap(), 1e-7);
    assert!(machines.passes.load(Ordering::Relaxed) < 60);
}

#[test]
fn independent_components_and_kernels_are_those_of_one_machine() {
    let mut rng = Rng(8);
    let x = Mat::from_fn(500, 5, |_, _| rng.uniform().powi(3));
    for (name, request) in [
        ("ica", Request::new(Ica::new(3))),
        ("kernel", Request::new(KernelPca::new(3).landmarks(Landmarks::Pivoted(40)))),
    ] {
        let expected = here(&request, &x, None);
        for parts in [1, 7] {
            assert_same(name, &expected, &Machines::new(&x, None, parts).fit(&request).unwrap(), 1e-7);
        }
    }
}

#[test]
fn a_cell_that_is_wrong_is_named_by_its_row_in_the_whole() {
    let mut x = rows(90, 4, false);
    x[(71, 2)] = f64::INFINITY;
    let error = Machines::new(&x, None, 4).fit(&Request::new(Ppca::new(1))).unwrap_err();
    assert!(matches!(error, Error::Infinite { cell, .. } if (cell.row, cell.column) == (71, 2)));
    let empty = Machines::new(&rows(0, 4, false), None, 2).fit(&Request::new(Ppca::new(1)));
    assert!(matches!(empty, Err(Error::NoRows | Error::TooFewRows { .. })));
}

#[test]
fn rows_that_change_between_passes_are_noticed() {
    let (x, calls) = (rows(200, 5, true), AtomicUsize::new(0));
    for change in ["count", "cell"] {
        calls.store(0, Ordering::Relaxed);
        let carry = |task: &[u8], _: bool| {
            let later = calls.fetch_add(1, Ordering::Relaxed) > 1;
            let n = if later && change == "count" { 199 } else { 200 };
            let moved = if later && change == "cell" { 1e-9 } else { 0.0 };
            let now = Mat::from_fn(n, 5, |i, j| x[(i, j)] + if i == 17 { moved } else { 0.0 });
            Machines::new(&now, None, 2).answer(task)
        };
        let rows = Elsewhere::new(5, carry);
        let source: &dyn RowSource = &rows;
        let error = Request::new(Ppca::new(2)).fit(source, &Control::new()).unwrap_err();
        assert!(error.to_string().contains("differ from one pass to the next"), "{error}");
    }
}

#[test]
fn what_needs_the_rows_themselves_says_so() {
    let x = rows(60, 4, false);
    for request in [Request::new(Gplvm::new(1)), Request::new(Ppca::new(2).solver(Solver::Svd))] {
        let error = Machines::new(&x, None, 2).fit(&request).unwrap_err();
        assert!(matches!(error, Error::Solver { .. }), "{error}");
    }
}

#[test]
fn damaged_and_foreign_bytes_are_refused() {
    let x = rows(40, 3, true);
    let seen = std::sync::Mutex::new(Vec::new());
    let carry = |task: &[u8], _: bool| {
        *seen.lock().unwrap() = task.to_vec();
        Machines::new(&x, None, 1).answer(task)
    };
    let rows = Elsewhere::new(3, carry);
    let source: &dyn RowSource = &rows;
    Request::new(Ppca::new(1)).fit(source, &Control::new()).unwrap();
    let task = seen.lock().unwrap().clone();
    assert!(Filling::new(&task, 0).is_ok());
    for at in [0, 5, task.len() / 2, task.len() - 1] {
        let mut damaged = task.clone();
        damaged[at] ^= 0x20;
        assert!(matches!(Filling::new(&damaged, 0), Err(Error::Format(_))));
    }
    assert!(matches!(merge(&[b"evidence".to_vec()]), Err(Error::Format(_))));
    assert!(matches!(merge::<Vec<u8>>(&[]), Err(Error::NoRows)));
}
