//! Fits of tables that nobody expects: every answer is a number that makes sense, or an error that says why not.

use crate::common::*;
use covary::data::{Block, Cells, Table};
use covary::linalg::Mat;
use covary::model::LinearGaussian;
use covary::select::Select;
use covary::{BayesMethod, BayesianPca, Components, ErrorClass, FactorAnalysis, Pca, Ppca, Result, Solver};

const SOLVERS: [Solver; 6] =
    [Solver::Auto, Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Em, Solver::Krylov];

/// A table of few rows with features of any scale and mean, some constant or repeated, cells missing, and rows of any
/// weight.
struct Odd {
    cells: Mat<f64>,
    weights: Option<Vec<f64>>,
    single: bool,
}

impl Odd {
    fn new(rng: &mut Rng) -> Self {
        let (n, p) = (1 + rng.below(40), 1 + rng.below(9));
        let single = rng.below(6) == 0;
        let widest = if single { 10.0 } else { [0.0, 3.0, 12.0, 150.0][rng.below(4)] };
        let common = if single { 0.0 } else { (rng.uniform() - 0.5) * [0.0, 20.0, 250.0][rng.below(3)] };
        let rank = 1 + rng.below(p);
        let (w, noise) = (normal_matrix(p, rank, rng), [0.0, 1e-9, 1e-3, 1.0][rng.below(4)]);
        let scales: Vec<f64> = (0..p).map(|_| 10f64.powf(common + (rng.uniform() - 0.5) * widest)).collect();
        let means: Vec<f64> = (0..p).map(|_| [0.0, 1.0, 1e8, 1e13][rng.below(4)] * rng.normal()).collect();
        let mut x = Mat::zeros(n, p);
        for i in 0..n {
            let z: Vec<f64> = (0..rank).map(|_| rng.normal()).collect();
            for j in 0..p {
                let signal: f64 = (0..rank).map(|k| w[(j, k)] * z[k]).sum();
                x[(i, j)] = (signal + noise * rng.normal() + means[j]) * scales[j];
            }
        }
        let (odd, from, missing) = (rng.below(p), rng.below(p), [0.0, 0.0, 0.1, 0.6][rng.below(4)]);
        let kind = rng.below(4);
        (0..n).for_each(|i| match kind {
            0 => x[(i, odd)] = 7.25 * scales[odd],
            1 => x[(i, odd)] = x[(i, from)],
            2 => (0..p).for_each(|j| x[(i, j)] = x[(i / 3 * 3, j)]),
            _ => {}
        });
        let holes = Mat::from_fn(n, p, |_, _| rng.uniform() < missing);
        let cells = Mat::from_fn(n, p, |i, j| if holes[(i, j)] { f64::NAN } else { x[(i, j)] });
        let weight = [1.0, 1e-12, 1e12][rng.below(3)];
        let weights = (rng.below(4) == 0)
            .then(|| (0..n).map(|_| if rng.below(5) == 0 { 0.0 } else { weight * rng.uniform() }).collect());
        Self { cells, weights, single }
    }

    fn table<'a>(&'a self, narrow: &'a Mat<f32>) -> Table<'a> {
        let cells = match self.single {
            true => Cells::F32(Block::View(narrow.as_ref())),
            false => Cells::F64(Block::View(self.cells.as_ref())),
        };
        let table = Table::new(cells);
        match &self.weights {
            Some(weights) => table.with_weights(weights.clone()).unwrap(),
            None => table,
        }
    }
}

/// Numbers that a model can have, and answers that are no NaN.
fn check_model(model: &LinearGaussian, x: &Mat<f64>, what: &str) {
    let finite = |m: &Mat<f64>| m.col_iter().all(|c| c.iter().all(|v| v.is_finite()));
    assert!(model.mean().iter().all(|m| m.is_finite()) && finite(model.loadings()), "{what}");
    (0..model.n_features()).for_each(|j| assert!(model.noise().of(j) >= 0.0, "{what}"));
    if let Ok(density) = model.log_density(x) {
        assert!(density.iter().all(|d| !d.is_nan()), "{what}: density");
    }
    if let Ok(filled) = model.impute_with_std(x) {
        assert!(
            finite(&filled.cells) && filled.std.col_iter().all(|c| c.iter().all(|s| *s >= 0.0)),
            "{what}"
        );
    }
}

/// Fits, and those that ended because arithmetic broke down: an error too, but one that is ours.
#[derive(Default)]
struct Tally {
    fits: usize,
    breakdowns: Vec<String>,
}

impl Tally {
    fn answered<T>(&mut self, found: Result<T>, what: &str) -> Option<T> {
        self.fits += 1;
        if let Err(error) = &found
            && error.class() == ErrorClass::Numerical
        {
            self.breakdowns.push(format!("{what}: {error}"));
        }
        found.ok()
    }
}

#[test]
fn soak_extreme_fits() {
    let mut tally = Tally::default();
    for seed in 0..soak(60, 3000) as u64 {
        let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9));
        let odd = Odd::new(&mut rng);
        let narrow = Mat::from_fn(odd.cells.nrows(), odd.cells.ncols(), |i, j| odd.cells[(i, j)] as f32);
        let (table, x) = (odd.table(&narrow), &odd.cells);
        let q =
            [Components::Count(1 + rng.below(3)), Components::All, Components::Fraction(0.9)][rng.below(3)];
        let solver = SOLVERS[rng.below(SOLVERS.len())];
        let what = format!("seed {seed}, {:?}, {q:?}, {solver:?}", table.shape());
        if let Some(fit) = tally.answered(Ppca::new(q).solver(solver).fit(&table), &what) {
            check_model(&fit.model, x, &format!("ppca, {what}"));
        }
        tally.answered(Pca::new(q).solver(solver).fit(&table), &format!("pca, {what}"));
        for method in [BayesMethod::Variational, BayesMethod::Relevance] {
            let what = format!("bpca {method:?}, {what}");
            let fit = BayesianPca::of(Ppca::new(q).max_iterations(200)).method(method).fit(&table);
            if let Some(fit) = tally.answered(fit, &what) {
                check_model(fit.model.gaussian(), x, &what);
            }
        }
        let fit = FactorAnalysis::new(1 + rng.below(2)).fit(&table);
        if let Some(fit) = tally.answered(fit, &format!("fa, {what}")) {
            check_model(fit.model.gaussian(), x, &format!("fa, {what}"));
        }
        tally.answered(Select::new().max(3).folds(3).run(&table), &format!("select, {what}"));
    }
    // Rows without any noise, cells missing and features that differ by twelve orders of magnitude, all at once, still
    // defeat one in seventy.
    let Tally { fits, breakdowns } = tally;
    assert!(breakdowns.len() * 50 <= fits, "{} of {fits}: {breakdowns:#?}", breakdowns.len());
}
