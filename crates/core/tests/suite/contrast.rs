//! Sums of contrast functions: against their definition, their laws, and the expectations of rows that are known in
//! part.

use std::sync::Arc;

use covary::evidence::{Accumulator, Contrast, ContrastMeans, ContrastSums, gather};
use covary::linalg::Mat;
use covary::persist::Portable;
use covary::{Control, Error};

use crate::common::{Rng, chunk_of, close, close_all, close_matrix, normal_matrix, table};

const ALL: [Contrast; 4] =
    [Contrast::LogCosh { alpha: 1.0 }, Contrast::LogCosh { alpha: 1.7 }, Contrast::Exp, Contrast::Cube];

/// G, g and g′ from the textbook \[HKO01, ch. 8\].
fn textbook(contrast: Contrast, y: f64) -> [f64; 3] {
    match contrast {
        Contrast::LogCosh { alpha: a } => {
            let t = (a * y).tanh();
            [(a * y).cosh().ln() / a, t, a * (1.0 - t * t)]
        }
        Contrast::Exp => {
            let e = (-0.5 * y * y).exp();
            [-e, y * e, (1.0 - y * y) * e]
        }
        Contrast::Cube => [y.powi(4) / 4.0, y.powi(3), 3.0 * y * y],
    }
}

fn sums(
    contrast: Contrast,
    directions: &Arc<Mat<f64>>,
    x: &Mat<f64>,
    weights: Option<&[f64]>,
) -> ContrastSums {
    let mut out = ContrastSums::empty(contrast, Arc::clone(directions));
    let chunk = chunk_of(x.as_ref(), 0);
    out.update(&match weights {
        Some(w) => chunk.with_weights(w).unwrap(),
        None => chunk,
    })
    .unwrap();
    out
}

#[track_caller]
fn same(a: &ContrastMeans, b: &ContrastMeans) {
    assert_eq!((a.rows, a.weight), (b.rows, b.weight));
    close_all(&a.value, &b.value, 1e-13, "G");
    close_all(&a.bend, &b.bend, 1e-13, "g′");
    close_matrix(&a.slope, &b.slope, 1e-13, "g u");
}

#[test]
fn sums_are_what_the_textbook_says() {
    let mut rng = Rng(1);
    let (n, q) = (700, 4); // more than one block of rows
    let x = normal_matrix(n, q, &mut rng);
    let weights: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
    let total: f64 = weights.iter().sum();
    let r = Arc::new(normal_matrix(3, q, &mut rng));
    for contrast in ALL {
        let found = sums(contrast, &r, &x, Some(&weights)).means().unwrap();
        assert_eq!(found.rows, (0..n).filter(|i| i % 3 > 0).count());
        for k in 0..3 {
            let y = |i: usize| (0..q).map(|j| r[(k, j)] * x[(i, j)]).sum::<f64>();
            let mean = |f: &dyn Fn(usize, [f64; 3]) -> f64| {
                (0..n).map(|i| weights[i] * f(i, textbook(contrast, y(i)))).sum::<f64>() / total
            };
            close(found.value[k], mean(&|_, t| t[0]), 1e-12, contrast);
            close(found.bend[k], mean(&|_, t| t[2]), 1e-12, contrast);
            (0..q).for_each(|j| close(found.slope[(k, j)], mean(&|i, t| t[1] * x[(i, j)]), 1e-12, contrast));
        }
    }
}

#[test]
fn sums_are_a_commutative_monoid() {
    let mut rng = Rng(2);
    let x = normal_matrix(900, 3, &mut rng);
    let r = Arc::new(normal_matrix(3, 3, &mut rng));
    let part = |from: usize, to: usize| {
        let rows = x.subrows(from, to - from).to_owned();
        sums(Contrast::default(), &r, &rows, None)
    };
    let merged = |a: &ContrastSums, b: &ContrastSums| {
        let mut out = a.clone();
        out.merge(b).unwrap();
        out
    };
    let (a, b, c) = (part(0, 100), part(100, 520), part(520, 900));
    let all = part(0, 900).means().unwrap();
    same(&merged(&merged(&a, &b), &c).means().unwrap(), &all);
    same(&merged(&a, &merged(&b, &c)).means().unwrap(), &all);
    same(&merged(&c, &merged(&b, &a)).means().unwrap(), &all);
    let none = ContrastSums::empty(Contrast::default(), Arc::clone(&r));
    same(&merged(&none, &a).means().unwrap(), &a.clone().means().unwrap());
    let gathered = gather(&table(&x), || none.clone(), &Control::new()).unwrap();
    same(&gathered.means().unwrap(), &all);
    assert!(matches!(merged(&none, &none).means(), Err(Error::NoRows)));
    // Bytes bring it back, and damaged ones are refused.
    let names: Vec<String> = (1..=3).map(|k| format!("u{k}")).collect();
    let bytes = a.to_bytes(&names).unwrap();
    let back = ContrastSums::from_bytes(&bytes).unwrap();
    assert_eq!((back.evidence.to_bytes(&names).unwrap(), back.features), (bytes.clone(), names));
    same(&merged(&back.evidence, &b).means().unwrap(), &merged(&a, &b).means().unwrap());
    assert!(a.to_bytes(&[]).is_err() && ContrastSums::from_bytes(&bytes[..bytes.len() - 9]).is_err());
    // Other directions, another contrast, another width, cells that are no numbers.
    let other = ContrastSums::empty(Contrast::default(), Arc::new(Mat::identity(3, 3)));
    assert!(none.clone().merge(&other).is_err());
    assert!(none.clone().merge(&ContrastSums::empty(Contrast::Cube, Arc::clone(&r))).is_err());
    let wide = normal_matrix(4, 5, &mut rng);
    assert!(matches!(none.clone().update(&chunk_of(wide.as_ref(), 0)), Err(Error::FeatureCount { .. })));
    let mut missing = normal_matrix(4, 3, &mut rng);
    missing[(2, 1)] = f64::NAN;
    let error = none.clone().update(&chunk_of(missing.as_ref(), 0)).unwrap_err();
    assert!(matches!(error, Error::Missing { ref cell, .. } if (cell.row, cell.column) == (2, 1)), "{error}");
}

/// Rows of which mean and covariance are known (n × (q + q(q+1)/2)).
fn uncertain(n: usize, q: usize, size: f64, rng: &mut Rng) -> (Mat<f64>, Vec<Mat<f64>>) {
    let mut rows = Mat::zeros(n, q + q * (q + 1) / 2);
    let mut covariances = Vec::new();
    for i in 0..n {
        let root = normal_matrix(q, q, rng);
        let c = &root * root.transpose() * faer::Scale(size * size / q as f64);
        (0..q).for_each(|a| rows[(i, a)] = rng.normal());
        (0..q).for_each(|a| (0..=a).for_each(|b| rows[(i, q + a * (a + 1) / 2 + b)] = c[(a, b)]));
        covariances.push(c);
    }
    (rows, covariances)
}

/// Five nodes are enough where rows are known to half a deviation: the mean of G over the normal distribution, by
/// a fine grid.
#[test]
fn expectations_are_those_of_the_normal_distribution() {
    let (n, q, mut rng) = (20, 3, Rng(3));
    let (rows, covariances) = uncertain(n, q, 0.5, &mut rng);
    let r = Arc::new(normal_matrix(2, q, &mut rng));
    for contrast in [Contrast::default(), Contrast::Cube] {
        let found = sums(contrast, &r, &rows, None).means().unwrap();
        for k in 0..2 {
            let mut expected = [0.0; 3];
            for (i, c) in covariances.iter().enumerate() {
                let mean: f64 = (0..q).map(|a| r[(k, a)] * rows[(i, a)]).sum();
                let along = |a: usize| (0..q).map(|b| c[(a, b)] * r[(k, b)]).sum::<f64>();
                let deviation = (0..q).map(|a| r[(k, a)] * along(a)).sum::<f64>().sqrt();
                for step in -800..=800 {
                    let t = f64::from(step) * 0.01;
                    let share = 0.01 * (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt() / n as f64;
                    let at = textbook(contrast, mean + deviation * t);
                    (0..3).for_each(|f| expected[f] += share * at[f]);
                }
            }
            close(found.value[k], expected[0], 5e-3, contrast);
            close(found.bend[k], expected[2], 2e-2, contrast);
        }
    }
}

/// The slopes are the derivatives of the values in the directions, exactly: by differences, for rows that are known
/// well, badly and not at all.
#[test]
fn slopes_are_derivatives() {
    let (q, mut rng) = (3, Rng(4));
    let r = normal_matrix(q, q, &mut rng);
    for size in [0.0, 1e-7, 0.3, 1.0] {
        let (rows, _) = uncertain(40, q, size, &mut rng);
        for contrast in ALL {
            let value = |r: &Mat<f64>| sums(contrast, &Arc::new(r.clone()), &rows, None).means().unwrap();
            let slope = value(&r).slope;
            for (k, j) in (0..q).flat_map(|k| (0..q).map(move |j| (k, j))) {
                let step = 1e-5;
                let moved = |by: f64| {
                    let mut other = r.clone();
                    other[(k, j)] += by;
                    value(&other).value[k]
                };
                let difference = (moved(step) - moved(-step)) / (2.0 * step);
                close(slope[(k, j)], difference, 1e-7 * (1.0 + difference.abs()), (contrast, size));
            }
        }
    }
}
