//! Units: a fit of scaled features gives what scaling by hand and back gives, in the units of the data.

use std::sync::Arc;

use covary::data::{Block, Cells, Order, RowSource, Table};
use covary::estimator::Family;
use covary::evidence::{Moments, gather};
use covary::linalg::Mat;
use covary::model::{AnyModel, Reconstruction};
use covary::persist::SavedModel;
use covary::{BayesianPca, Components, Control, FactorAnalysis, Fit, Pca, Ppca, Request, RobustPpca, Scale};

use crate::common::{
    Rng, close, close_all, close_matrix, falling, max_abs, rows_with_deviations, stored, table,
};

/// Rows of features in very different units, some cells missing if wanted.
fn rows(n: usize, missing: bool, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let x = rows_with_deviations(n, &falling(6, 0.6), 2.0, &mut rng);
    let units = [1.0, 1e3, 1e-3, 10.0, 5.0, 0.2];
    Mat::from_fn(n, 6, |i, j| if missing && rng.uniform() < 0.1 { f64::NAN } else { x[(i, j)] * units[j] })
}

/// What each feature is divided by, from the definition.
fn factors(x: &Mat<f64>, scale: Scale) -> Vec<f64> {
    let of = |j: usize| {
        let cells: Vec<f64> = (0..x.nrows()).map(|i| x[(i, j)]).filter(|v| !v.is_nan()).collect();
        let n = cells.len() as f64;
        let mean = cells.iter().sum::<f64>() / n;
        let deviation = (cells.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let (low, high) = cells.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        match scale {
            Scale::None => 1.0,
            Scale::Unit => deviation,
            Scale::Pareto => deviation.sqrt(),
            Scale::Range => high - low,
        }
    };
    (0..x.ncols()).map(of).collect()
}

fn times(x: &Mat<f64>, d: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] * d[j])
}

/// In the order in which scaled rows lie, so that sums have the same digits.
fn row_by_row(x: &Mat<f64>) -> Table<'static> {
    let (nrows, ncols) = (x.nrows(), x.ncols());
    let cells = (0..nrows).flat_map(|i| (0..ncols).map(move |j| x[(i, j)])).collect();
    Table::new(Cells::F64(Block::Owned { cells, nrows, ncols, order: Order::Rows }))
}

fn families() -> Vec<Arc<dyn Family>> {
    vec![
        Arc::new(Ppca::new(2)),
        Arc::new(Pca::new(2)),
        Arc::new(FactorAnalysis::new(2)),
        Arc::new(BayesianPca::new(3)),
        Arc::new(RobustPpca::new(2)),
    ]
}

fn fit(family: &Arc<dyn Family>, scale: Scale, x: &dyn RowSource) -> Fit<AnyModel> {
    Request::of(Arc::clone(family)).scale(scale).fit(x, &Control::new()).unwrap()
}

/// Relative to the unit of each feature.
fn same_rows(a: &Mat<f64>, b: &Mat<f64>, d: &[f64], tolerance: f64, what: &str) {
    let inverse: Vec<f64> = d.iter().map(|d| 1.0 / d).collect();
    let expected = times(b, &inverse);
    close_matrix(&times(a, &inverse), &expected, tolerance * (1.0 + max_abs(&expected)), what);
}

#[test]
fn answers_are_those_of_scaling_by_hand_and_back() {
    for (missing, scale) in
        [false, true].into_iter().flat_map(|m| Scale::ALL[1..].iter().map(move |s| (m, *s)))
    {
        let x = rows(80, missing, 5);
        for family in families() {
            let what = format!("{} {scale:?} {missing}", family.kind());
            let ours = fit(&family, scale, &table(&x));
            // Some rows have few cells of features whose deviations differ, which costs digits.
            let tolerance = if scale == Scale::Unit { 1e-12 } else { 1e-11 };
            // By the same digits, so that iterations take the same steps.
            let d = ours.report.scaled.as_ref().map_or(vec![1.0; 6], |scaled| scaled.factors.clone());
            let ratios: Vec<f64> = d.iter().zip(factors(&x, scale)).map(|(a, b)| a / b).collect();
            close_all(&ratios, &[1.0; 6], 1e-12, &what);
            let by_hand = Mat::from_fn(80, 6, |i, j| x[(i, j)] / d[j]);
            let shift =
                |row: usize| (0..6).filter(|j| !x[(row, *j)].is_nan()).map(|j| d[j].ln()).sum::<f64>();
            let theirs = fit(&family, Scale::None, &row_by_row(&by_hand));
            let (a, b) = (&*ours.model, &*theirs.model);
            let (rows, scaled) = (table(&x), row_by_row(&by_hand));
            let (z, t) = (a.encoder().unwrap(), b.encoder().unwrap());
            let expected = t.encode(&scaled).unwrap();
            close_matrix(&z.encode(&rows).unwrap(), &expected, tolerance * (1.0 + max_abs(&expected)), &what);
            for kind in [Reconstruction::Orthogonal, Reconstruction::Posterior] {
                let rebuilt = b.reconstructor().unwrap().reconstruct(&scaled, kind).unwrap();
                let ours = a.reconstructor().unwrap().reconstruct(&rows, kind).unwrap();
                same_rows(&ours, &times(&rebuilt, &d), &d, tolerance, &what);
            }
            let (imputed, expected) =
                (a.imputer().unwrap().impute_with_std(&rows), b.imputer().unwrap().impute_with_std(&scaled));
            let (imputed, expected) = (imputed.unwrap(), expected.unwrap());
            same_rows(&imputed.cells, &times(&expected.cells, &d), &d, tolerance, &what);
            same_rows(&imputed.std, &times(&expected.std, &d), &d, tolerance, &what);
            let sample = b.density().unwrap().sample_rows(0..9, 3);
            same_rows(&a.density().unwrap().sample_rows(0..9, 3), &times(&sample, &d), &d, tolerance, &what);
            let log_density = b.density().unwrap().log_density(&scaled).unwrap();
            let expected: Vec<f64> = log_density.iter().enumerate().map(|(i, l)| l - shift(i)).collect();
            close_all(&a.density().unwrap().log_density(&rows).unwrap(), &expected, 1e-9, &what);
            let (t2, p) =
                (a.density().unwrap().outliers(&rows).unwrap(), b.density().unwrap().outliers(&scaled));
            close_all(&t2.t2, &p.as_ref().unwrap().t2, 1e-9, &what);
            close_all(&t2.p_value, &p.unwrap().p_value, 1e-9, &what);
            let total: f64 = (0..80).map(shift).sum();
            let expected = theirs.report.log_likelihood.unwrap() - total;
            close(ours.report.log_likelihood.unwrap(), expected, 1e-9 * expected.abs(), &what);
        }
    }
}

/// The log-likelihood is the sum of the log densities in the units of the data.
#[test]
fn the_likelihood_is_of_the_data_as_they_are() {
    for missing in [false, true] {
        let x = rows(60, missing, 8);
        for family in families() {
            let fit = fit(&family, Scale::Unit, &table(&x));
            let each: f64 = fit.model.density().unwrap().log_density(&table(&x)).unwrap().iter().sum();
            let found = fit.report.log_likelihood.unwrap();
            // Of PCA, the density that goes with it; of Bayesian PCA, up to what a new row does not know.
            close(found, each, 1e-7 * each.abs(), (family.kind().name, missing));
        }
    }
}

#[test]
fn moments_and_observed_cells_are_scaled_too() {
    let x = rows(70, false, 2);
    let moments = gather(&table(&x), || Moments::empty(6), &Control::new()).unwrap();
    for family in families().into_iter().filter(|f| f.kind().name != "robust") {
        let from_rows = fit(&family, Scale::Pareto, &table(&x));
        let request = Request::of(Arc::clone(&family)).scale(Scale::Pareto);
        let from_moments = request.fit(&moments, &Control::new()).unwrap();
        let covariance = |fit: &Fit<AnyModel>| fit.model.density().unwrap().covariance().unwrap();
        let d = factors(&x, Scale::Unit);
        let inverse: Vec<f64> = d.iter().map(|d| 1.0 / d).collect();
        let correlation = |c: Mat<f64>| Mat::from_fn(6, 6, |i, j| c[(i, j)] * inverse[i] * inverse[j]);
        let (a, b) = (correlation(covariance(&from_rows)), correlation(covariance(&from_moments)));
        close_matrix(&a, &b, 1e-9, family.kind().name);
        let range = Request::of(Arc::clone(&family)).scale(Scale::Range).fit(&moments, &Control::new());
        assert!(range.unwrap_err().to_string().contains("moments do not tell the range"));
    }
    let y = rows(70, true, 2);
    for family in families().into_iter().filter(|f| f.kind().name != "fa") {
        let (dense, listed) = (fit(&family, Scale::Unit, &table(&y)), fit(&family, Scale::Unit, &stored(&y)));
        let d = factors(&y, Scale::Unit);
        let filled = |fit: &Fit<AnyModel>| fit.model.imputer().unwrap().impute(&table(&y)).unwrap();
        same_rows(&filled(&dense), &filled(&listed), &d, 1e-5, family.kind().name);
    }
}

#[test]
fn the_file_keeps_the_scale_and_the_directions() {
    let x = rows(50, false, 4);
    let d = factors(&x, Scale::Unit);
    let by_hand = Mat::from_fn(50, 6, |i, j| x[(i, j)] / d[j]);
    for family in families() {
        let saved = SavedModel::new(fit(&family, Scale::Unit, &table(&x)), None).unwrap();
        let read = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        assert_eq!(read.to_bytes().unwrap(), saved.to_bytes().unwrap());
        let scaled = read.report.scaled.as_ref().unwrap();
        assert_eq!(scaled.scale, Scale::Unit);
        close_all(&scaled.factors, &d, 1e-9, "factors, relative to 1e3");
        let plain = SavedModel::new(fit(&family, Scale::None, &table(&by_hand)), None).unwrap();
        close_matrix(&read.axes().unwrap(), &plain.axes().unwrap(), 1e-9, family.kind().name);
        close_all(&read.eigenvalues, &plain.eigenvalues, 1e-9, family.kind().name);
    }
}

#[test]
fn a_constant_feature_stays_as_it_is_and_auto_chooses_in_scaled_units() {
    let mut x = rows(60, false, 6);
    (0..60).for_each(|i| x[(i, 3)] = 7.0);
    let fitted = fit(&families()[0], Scale::Unit, &table(&x));
    assert_eq!(fitted.report.scaled.unwrap().factors[3], 1.0);
    let y = rows(200, false, 9);
    let request = Request::new(Ppca::new(Components::Auto)).scale(Scale::Unit);
    let chosen = request.fit(&table(&y) as &dyn RowSource, &Control::new()).unwrap();
    let d = factors(&y, Scale::Unit);
    let by_hand = Mat::from_fn(200, 6, |i, j| y[(i, j)] / d[j]);
    let expected = covary::select::Select::new().run(&by_hand).unwrap();
    assert_eq!(chosen.report.components, expected.recommended);
    assert!(chosen.report.choice.unwrap().starts_with("chosen by"));
}
