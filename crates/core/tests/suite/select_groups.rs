//! The number of groups and of latent variables: what each criterion finds where the truth is known.

use crate::common::*;
use covary::MixturePpca;
use covary::linalg::Mat;
use covary::select::{GroupSelection, SelectGroups};

/// Three groups on a line each in five dimensions, far from each other, with some cells missing.
fn three_lines(n: usize, missing: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let centres = normal_matrix(3, 5, &mut rng);
    let lines = normal_matrix(3, 5, &mut rng);
    let mut x = Mat::zeros(n, 5);
    for i in 0..n {
        let z = 2.0 * rng.normal();
        for j in 0..5 {
            x[(i, j)] = 8.0 * centres[(i % 3, j)] + z * lines[(i % 3, j)] + 0.4 * rng.normal();
        }
    }
    Mat::from_fn(n, 5, |i, j| if rng.uniform() < missing { f64::NAN } else { x[(i, j)] })
}

fn of(found: &GroupSelection, method: &str) -> (usize, usize) {
    let choice = found.choices.iter().find(|choice| choice.method == method).unwrap();
    (choice.groups, choice.latent)
}

#[test]
fn groups_that_lie_apart_are_counted() {
    for missing in [0.0, 0.1] {
        let x = three_lines(150, missing, 2);
        let select =
            SelectGroups::new(MixturePpca::new(1, 0)).groups(2..=4).most_latent(2).folds(3).cells(true);
        let found = select.run(&x).unwrap();
        assert_eq!((found.rows, found.features, found.holes.is_some()), (150, 5, missing > 0.0));
        for method in ["cross-validation", "bic", "icl"] {
            assert_eq!(of(&found, method), (3, 1), "{missing} {method}");
        }
        // Cells of a row on a line tell the group and the place: fewer groups or latent variables predict less.
        assert_eq!(of(&found, "cells").0, 3);
        assert_eq!((found.recommended.groups, found.recommended.latent), (3, 1));
        assert!(found.table.windows(2).all(|pair| pair[0].parameters <= pair[1].parameters));
        for line in &found.table {
            let k = line.parameters as f64;
            relative(line.bic, -2.0 * line.log_likelihood + k * 150f64.ln(), 1e-12, "bic");
            assert!(line.icl >= line.bic - 1e-9);
        }
    }
}

#[test]
fn threads_change_nothing() {
    let x = three_lines(90, 0.1, 3);
    let run = |threads: usize| {
        let select = SelectGroups::new(MixturePpca::new(1, 0)).groups(1..=3).most_latent(1).folds(2);
        select.threads(threads).run(&x).unwrap()
    };
    assert_eq!(run(1), run(2));
}
