//! Sources of one start and another: which belong together, in which order they stand, which way they point.

use crate::linalg::{Mat, MatRef, leading_entry, product, unit_columns};

/// How well each row of W (q × q) is found again among the rows of others: the mean absolute correlation of pairs,
/// best pairs first.
pub(super) fn stability<'a>(
    matrix: &Mat<f64>,
    others: impl ExactSizeIterator<Item = &'a Mat<f64>>,
) -> Option<Vec<f64>> {
    let count = others.len();
    if count == 0 {
        return None;
    }
    let mut sums = vec![0.0; matrix.nrows()];
    for other in others {
        let agreement = matched(matrix.as_ref(), other.as_ref());
        sums.iter_mut().zip(agreement).for_each(|(s, a)| *s += a / count as f64);
    }
    Some(sums)
}

/// |cos| of the angle between each row of `a` and the row of `b` that it is paired with.
fn matched(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Vec<f64> {
    let q = a.nrows();
    let unit = |m: MatRef<'_, f64>| unit_columns(m.transpose().to_owned());
    let cosines = product(unit(a).transpose(), unit(b).as_ref());
    let mut pairs: Vec<(usize, usize)> = (0..q).flat_map(|i| (0..q).map(move |j| (i, j))).collect();
    pairs.sort_by(|x, y| cosines[*y].abs().total_cmp(&cosines[*x].abs()));
    let (mut found, mut taken) = (vec![None; q], vec![false; q]);
    for (i, j) in pairs {
        if found[i].is_none() && !taken[j] {
            found[i] = Some(cosines[(i, j)].abs().min(1.0));
            taken[j] = true;
        }
    }
    found.into_iter().map(|c| c.unwrap_or(0.0)).collect()
}

/// The order of sources by descending length of the columns of the mixing matrix (p × q), those of one length by
/// where their largest entry stands; and the sign that makes this entry positive.
pub(super) fn order_and_signs(mixing: &Mat<f64>) -> Vec<(usize, f64)> {
    let squares: Vec<f64> = mixing.col_iter().map(|a| a.squared_norm_l2()).collect();
    let leading = |k: usize| leading_entry(mixing.col_as_slice(k));
    let mut order: Vec<usize> = (0..mixing.ncols()).collect();
    let tie = |a: f64, b: f64| (a - b).abs() <= 1e-10 * a.max(b);
    order.sort_by(|&a, &b| match tie(squares[a], squares[b]) {
        true => leading(a).cmp(&leading(b)),
        false => squares[b].total_cmp(&squares[a]),
    });
    order.into_iter().map(|k| (k, if mixing[(leading(k), k)] < 0.0 { -1.0 } else { 1.0 })).collect()
}
