//! Kernel parallel analysis on rows whose structure is known, and against parallel analysis of PCA.

use covary::kernel::KernelForm;
use covary::linalg::Mat;
use covary::select::{KernelSelection, Select, SelectKernel};
use covary::{Components, Control, Gamma, KernelPca, Request};

use crate::common::holes::punched;
use crate::common::{Rng, close, normal_matrix, relative, rows_with_deviations, standardised, table};

fn rbf() -> KernelPca {
    KernelPca::new(1)
}

fn found(x: &Mat<f64>) -> KernelSelection {
    SelectKernel::new(rbf()).rows(150).run(x).unwrap()
}

#[test]
fn a_plane_in_noise_has_as_many_components_as_pca_says() {
    for (q, seed) in [(1, 1), (2, 2), (3, 3)] {
        let mut rng = Rng(seed);
        let (z, w) = (normal_matrix(300, q, &mut rng), normal_matrix(q, 8, &mut rng));
        let noise = normal_matrix(300, 8, &mut rng);
        let x = standardised(&(&z * &w + Mat::from_fn(300, 8, |i, j| 0.4 * noise[(i, j)])), 0);
        let linear = SelectKernel::new(rbf().kernel(KernelForm::Linear)).run(&x).unwrap();
        let pca = Select::new().run(&x).unwrap();
        let by_pca = pca.choice("parallel").unwrap().components;
        assert_eq!((linear.recommended.components, by_pca), (q, q));
        assert_eq!((linear.table.len(), linear.recommended.gamma, linear.sampled), (1, None, 300));
        // Of standardised features the eigenvalues are those of the correlations.
        relative(
            linear.table[0].eigenvalue,
            pca.table[1].correlation_eigenvalue.unwrap(),
            1e-10,
            "eigenvalue",
        );
        relative(linear.table[0].noise_eigenvalue, pca.table[1].noise_eigenvalue.unwrap(), 0.1, "noise");
    }
}

#[test]
fn independent_features_have_nothing_to_keep() {
    let mut rng = Rng(5);
    let x = rows_with_deviations(150, &[1.0, 1.0, 1.0, 1.0], 0.0, &mut rng);
    let none = found(&x);
    // Of nine widths and as many looks at a 95 % quantile one may find something small.
    assert!(none.table.iter().filter(|line| line.components == 0).count() >= 6, "{none:?}");
    assert!(none.table.iter().all(|line| line.excess < 0.01), "{none:?}");
}

#[test]
fn clusters_are_told_apart_by_one_component_less_than_there_are() {
    let mut rng = Rng(7);
    let centres = normal_matrix(4, 5, &mut rng);
    let x = Mat::from_fn(120, 5, |i, j| 4.0 * centres[(i % 4, j)] + 0.3 * rng.normal());
    let clusters = SelectKernel::new(rbf()).run(&x).unwrap();
    assert!(clusters.recommended.components >= 3, "{clusters:?}");
    // At the recommended width the rows of a cluster are alike and those of two are not.
    let gamma = clusters.recommended.gamma.unwrap();
    let square = |i: usize, k: usize| (0..5).map(|j| (x[(i, j)] - x[(k, j)]).powi(2)).sum::<f64>();
    assert!((-gamma * square(0, 4)).exp() > 0.5 && (-gamma * square(0, 1)).exp() < 0.3, "{gamma}");
    let best = clusters.table.iter().find(|line| line.gamma == Some(gamma)).unwrap();
    assert!(clusters.table.iter().all(|line| line.excess <= best.excess));
    assert!(best.explained > 0.8 && best.excess > 0.3, "{best:?}");
    let widths: Vec<f64> = clusters.table.iter().map(|line| line.gamma.unwrap()).collect();
    assert!(widths.len() == 9 && widths.windows(2).all(|w| w[0] < w[1]));
}

#[test]
fn rings_are_seen_where_a_linear_kernel_sees_nothing() {
    let mut rng = Rng(9);
    let x = Mat::from_fn(140, 2, |i, j| {
        let (angle, radius) = (i as f64 * 2.4, if i % 2 == 0 { 1.0 } else { 4.0 });
        radius * if j == 0 { angle.cos() } else { angle.sin() } + 0.1 * rng.normal()
    });
    let linear = SelectKernel::new(rbf().kernel(KernelForm::Linear)).run(&x).unwrap();
    assert_eq!(linear.table[0].components, 0);
    assert!(linear.reason.contains("no eigenvalue") && linear.recommended.components == 1);
    let rings = SelectKernel::new(rbf()).run(&x).unwrap();
    assert!(rings.recommended.components >= 2 && !rings.reason.contains("no eigenvalue"), "{rings:?}");
}

#[test]
fn an_automatic_fit_takes_what_is_recommended() {
    let mut rng = Rng(11);
    let centres = normal_matrix(3, 4, &mut rng);
    let x = Mat::from_fn(90, 4, |i, j| 4.0 * centres[(i % 3, j)] + 0.3 * rng.normal());
    let wanted = SelectKernel::new(rbf()).run(&x).unwrap();
    let source = covary::data::Rows::from(&x);
    let request = Request::new(KernelPca::new(Components::Auto));
    assert!(request.chooses());
    let fit = request.fit(source.source(), &Control::new()).unwrap();
    assert_eq!(fit.report.components, wanted.recommended.components);
    assert_eq!(fit.report.kernel().unwrap().gamma, wanted.recommended.gamma);
    assert!(fit.report.choice.unwrap().contains("kernel parallel analysis"));
    // A width that is given stays.
    let given = SelectKernel::new(rbf().gamma(Gamma::Given(0.3))).run(&x).unwrap();
    assert_eq!((given.table.len(), given.recommended.gamma), (1, Some(0.3)));
    let request = Request::new(KernelPca::new(Components::Auto).gamma(Gamma::Given(0.3)));
    let fit = request.fit(source.source(), &Control::new()).unwrap();
    assert_eq!(fit.report.kernel().unwrap().gamma, Some(0.3));
}

#[test]
fn seeds_decide_threads_and_copies_do_not() {
    let mut rng = Rng(13);
    let x = rows_with_deviations(400, &[3.0, 1.0, 1.0], 1.0, &mut rng);
    let select = SelectKernel::new(rbf()).rows(60).samples(5);
    let one = select.clone().threads(1).run(&x).unwrap();
    assert_eq!(one, select.clone().threads(3).run(&x).unwrap());
    assert_eq!((one.rows, one.sampled, one.features), (400, 60, 3));
    assert_ne!(one, select.clone().seed(1).run(&x).unwrap());
    assert!(select.clone().max(1).run(&x).unwrap().table.iter().all(|line| line.components <= 1));
    // A row of weight 2 is as two rows.
    let twice = Mat::from_fn(80, 3, |i, j| x[(i / 2, j)]);
    let weighted =
        table(&x).with_weights((0..400).map(|i| if i < 40 { 2.0 } else { 0.0 }).collect::<Vec<_>>());
    let select = SelectKernel::new(rbf().gamma(Gamma::Given(0.2))).rows(40).samples(5);
    let (a, b) = (select.run(weighted.unwrap()).unwrap(), select.run(&twice).unwrap());
    assert_eq!(a.sampled, b.sampled);
    close(a.table[0].eigenvalue, b.table[0].eigenvalue, 0.1, "of a sample of as many rows");
}

#[test]
fn rows_with_missing_values_are_looked_at_too() {
    let mut rng = Rng(15);
    let centres = normal_matrix(3, 5, &mut rng);
    let x = Mat::from_fn(120, 5, |i, j| 4.0 * centres[(i % 3, j)] + 0.3 * rng.normal());
    let holes = SelectKernel::new(rbf()).run(&punched(&x, 0.1, &mut rng)).unwrap();
    assert!(holes.holes.is_some() && holes.recommended.components >= 2, "{holes:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let x = normal_matrix(20, 3, &mut Rng(17));
    let refused = |select: SelectKernel| select.run(&x).unwrap_err().to_string();
    assert!(refused(SelectKernel::new(rbf().kernel(KernelForm::Precomputed))).contains("permuted"));
    assert!(refused(SelectKernel::new(rbf().gamma(Gamma::Given(-1.0)))).contains("gamma"));
    assert!(refused(SelectKernel::new(rbf()).max(0)).contains("largest number"));
    assert!(refused(SelectKernel::new(rbf()).samples(0)).contains("permuted tables"));
    assert!(refused(SelectKernel::new(rbf()).rows(1)).contains("rows to look at"));
    let line = normal_matrix(20, 1, &mut Rng(18));
    assert!(SelectKernel::new(rbf()).run(&line).unwrap_err().to_string().contains("at least 2"));
    let same = Mat::from_fn(20, 3, |_, j| j as f64);
    assert!(SelectKernel::new(rbf()).run(&same).is_err());
    let one = normal_matrix(1, 3, &mut Rng(19));
    assert!(SelectKernel::new(rbf()).run(&one).is_err());
}
