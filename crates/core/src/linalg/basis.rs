//! Conventions that make orthonormal bases unique: signs, and the completion of a partial basis.

use faer::{unzip, zip};

use super::{Mat, MatRef};

/// A direction shorter than this, relative to what it was, is rounding and not kept.
const NEGLIGIBLE: f64 = 1e-8;

/// Flips columns so that the entry of largest magnitude in each is positive (the first such entry on ties).
pub(crate) fn standard_signs(vectors: &mut Mat<f64>) {
    for j in 0..vectors.ncols() {
        let column = vectors.col_as_slice_mut(j);
        if !column.is_empty() && column[leading_entry(column)] < 0.0 {
            column.iter_mut().for_each(|x| *x = -*x);
        }
    }
}

/// Where the entry of largest magnitude stands, the first on ties; 0 when there is none.
pub(crate) fn leading_entry(column: &[f64]) -> usize {
    // A tie is a tie up to rounding: solvers must agree on the sign.
    let larger = |i: usize, best: usize| column[i].abs() > column[best].abs() * (1.0 + 1e-10);
    (0..column.len()).fold(0, |best, i| if larger(i, best) { i } else { best })
}

/// The places of numbers from the largest down; equal ones stay in their order.
pub(crate) fn descending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    order
}

/// Replaces the columns from `rank` on by unit vectors orthogonal to all before them.
///
/// Which ones depends only on the subspace that the first columns span: each is the coordinate axis with the
/// largest part outside the span (the first such axis on ties), projected. So every solver completes in the
/// same way.
pub(crate) fn complete_basis(vectors: &mut Mat<f64>, rank: usize) {
    let p = vectors.nrows();
    if rank >= vectors.ncols() {
        return;
    }
    // Squared length of each axis outside the span so far: 1 − Σⱼ uᵢⱼ².
    let mut outside: Vec<f64> =
        (0..p).map(|i| 1.0 - (0..rank).map(|j| vectors[(i, j)].powi(2)).sum::<f64>()).collect();
    for j in rank..vectors.ncols() {
        let axis = (1..p).fold(0, |best, i| if outside[i] > outside[best] + 1e-10 { i } else { best });
        for i in 0..p {
            vectors[(i, j)] = f64::from(u8::from(i == axis));
        }
        orthonormalise(vectors, j);
        for (i, left) in outside.iter_mut().enumerate() {
            *left -= vectors[(i, j)].powi(2);
        }
    }
}

/// The transpose of an orthogonal matrix (q × q), its rows ordered and signed so that it is as near to I as
/// choosing the nearest axis for one place after the other makes it.
pub(crate) fn nearest_places(vectors: MatRef<'_, f64>) -> Mat<f64> {
    let q = vectors.nrows();
    let mut left: Vec<usize> = (0..q).collect();
    let mut ordered = Mat::zeros(q, q);
    for i in 0..q {
        let nearest = |k: &usize| vectors[(i, left[*k])].abs();
        let place = (0..left.len()).max_by(|a, b| nearest(a).total_cmp(&nearest(b)));
        let Some(place) = place else { break };
        let k = left.remove(place);
        let sign = if vectors[(i, k)] < 0.0 { -1.0 } else { 1.0 };
        (0..q).for_each(|j| ordered[(i, j)] = sign * vectors[(j, k)]);
    }
    ordered
}

/// Makes column `j` orthogonal to the columns before it and of unit length (Gram–Schmidt, twice).
///
/// A column of which only rounding is left becomes zero, and the answer is `false`.
pub(super) fn orthonormalise(vectors: &mut Mat<f64>, j: usize) -> bool {
    for _ in 0..2 {
        let (before, rest) = vectors.as_mut().split_at_col_mut(j);
        let mut v = rest.col_mut(0);
        let norm_before = v.norm_l2();
        for u in before.as_ref().col_iter() {
            let along: f64 = u.transpose() * v.as_ref();
            zip!(&mut v, &u).for_each(|unzip!(v, u)| *v -= along * *u);
        }
        let norm = v.norm_l2();
        if norm <= NEGLIGIBLE * norm_before || norm == 0.0 {
            v.fill(0.0);
            return false;
        }
        zip!(&mut v).for_each(|unzip!(x)| *x /= norm);
    }
    true
}

/// Gives all columns length 1, save those that are zero.
pub(crate) fn unit_columns(mut vectors: Mat<f64>) -> Mat<f64> {
    for mut v in vectors.col_iter_mut() {
        let norm = v.norm_l2();
        if norm > 0.0 {
            zip!(&mut v).for_each(|unzip!(x)| *x /= norm);
        }
    }
    vectors
}

/// Makes all columns orthonormal, in order; columns that are so already, up to rounding, only get unit
/// length.
pub(crate) fn orthonormal_columns(vectors: Mat<f64>) -> Mat<f64> {
    let mut vectors = unit_columns(vectors);
    if orthonormality_error(vectors.as_ref()) > 1e-14 {
        (0..vectors.ncols()).for_each(|j| {
            orthonormalise(&mut vectors, j);
        });
    }
    vectors
}

/// Largest entry of |VᵀV − I|.
pub(crate) fn orthonormality_error(v: MatRef<'_, f64>) -> f64 {
    let gram = super::product(v.transpose(), v);
    (0..gram.ncols())
        .flat_map(|j| (0..gram.nrows()).map(move |i| (i, j)))
        .map(|(i, j)| (gram[(i, j)] - f64::from(u8::from(i == j))).abs())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_entry_becomes_positive() {
        let mut v = Mat::from_fn(3, 2, |i, j| [[0.1, -0.9], [-0.8, 0.2], [0.5, 0.3]][i][j]);
        standard_signs(&mut v);
        assert_eq!(v[(1, 0)], 0.8);
        assert_eq!(v[(0, 1)], 0.9);
    }

    #[test]
    fn ties_go_to_the_first_entry() {
        let mut v = Mat::from_fn(2, 1, |i, _| [-0.7, 0.7][i]);
        standard_signs(&mut v);
        assert_eq!((v[(0, 0)], v[(1, 0)]), (0.7, -0.7));
    }

    #[test]
    fn a_completed_basis_is_orthonormal() {
        let mut v = Mat::<f64>::zeros(5, 5);
        (0..5).for_each(|i| v[(i, 0)] = 1.0 / 5f64.sqrt());
        complete_basis(&mut v, 1);
        assert!(orthonormality_error(v.as_ref()) < 1e-15);
    }
}
