//! Mixtures of PPCA and of factor analysers.

use covary::MixturePpca;
use covary::data::RowSource;
use covary::linalg::Mat;

use crate::common::{data_set, standardised, table};

/// Total log-likelihood of maximum likelihood from where the default fit ends.
fn maximum(x: &Mat<f64>, groups: usize, latent: usize) -> (f64, f64, f64, usize) {
    let rows = table(x);
    let t = std::time::Instant::now();
    let fit = MixturePpca::new(groups, latent).fit(&rows).unwrap();
    let s = t.elapsed().as_secs_f64();
    let likely = MixturePpca::new(groups, latent).prior(None).start(fit.model.clone()).fit(&rows);
    (
        fit.report.log_likelihood.unwrap(),
        likely.map_or(f64::NAN, |f| f.report.log_likelihood.unwrap()),
        s,
        fit.report.passes,
    )
}

#[test]
fn totals_of_iris_and_wine() {
    let Some(iris) = data_set("iris") else { return };
    eprintln!("{} {}", iris.nrows(), iris.ncols());
    for (k, q, best) in [
        (1, 1, -470.6695),
        (1, 2, -404.9628),
        (2, 1, -250.8794),
        (2, 2, -234.6028),
        (2, 3, -214.3547),
        (3, 1, -218.8476),
        (3, 2, -201.8321),
        (3, 3, -180.1855),
        (4, 2, -184.0767),
    ] {
        let (with, without, s, passes) = maximum(&iris, k, q);
        eprintln!("iris K{k} q{q}: {with:.4} {without:.4} best {best} in {s:.3} s, {passes} passes");
    }
    let Some(wine) = data_set("wine") else { return };
    let wine = standardised(&wine, 0);
    for (k, q, best) in [(3, 2, -2472.6774), (3, 3, -2367.8668)] {
        let (with, without, s, passes) = maximum(&wine, k, q);
        eprintln!("wine K{k} q{q}: {with:.4} {without:.4} best {best} in {s:.3} s, {passes} passes");
    }
    let Some(crabs) = data_set("crabs") else { return };
    eprintln!("{} {} {}", crabs.nrows(), crabs.ncols(), table(&crabs).n_features());
    let (with, without, s, passes) = maximum(&crabs, 4, 1);
    eprintln!("crabs: {with:.4} {without:.4} in {s:.3} s, {passes} passes");
}
