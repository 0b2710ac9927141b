//! Landmarks that stand for all rows: randomly pivoted Cholesky.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::control::Control;
use crate::error::Result;
use crate::kernel::Points;
use crate::linalg::{Cholesky, Mat, MatRef, product};
use crate::memory;

/// A pivot below this share of the mean of k(x, x) is rounding: the row adds nothing to the landmarks before.
const LEAST_PIVOT: f64 = 1e-10;
/// Most rows that are proposed at once.
const PROPOSED: usize = 64;

/// At most `wanted` of the points, in the order in which they were drawn.
///
/// Randomly pivoted Cholesky \[CETW24\]: each landmark is drawn with a probability in proportion to
/// wᵢ(k(xᵢ, xᵢ) − ‖φ(xᵢ)‖²), what those before leave of the row. Rows are proposed many at once and accepted one
/// by one \[ETW24\], which draws from the same distribution and needs whole products only. It ends early
/// where no row leaves more than rounding: copies are never drawn twice.
pub(crate) fn pivoted(
    points: &Points,
    weights: &[f64],
    wanted: usize,
    rng: &mut ChaCha8Rng,
    control: &Control<'_>,
) -> Result<Vec<usize>> {
    let n = points.len();
    let wanted = wanted.min(n);
    memory::check("the factor of the landmarks", &[n, wanted])?;
    let mut left = points.diagonal(points.columns());
    let least = LEAST_PIVOT * left.iter().sum::<f64>() / n as f64;
    let mut factor = Mat::zeros(n, wanted); // F (n × m): K ≈ F Fᵀ
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < wanted {
        control.check()?;
        let proposals = (wanted / 8).clamp(1, PROPOSED);
        let Some(proposed) = draw(&left, weights, least, proposals, rng) else { break };
        let found = factor.as_ref().subcols(0, chosen.len());
        let accepted = accept(points, found, &left, &proposed, least, rng);
        let accepted = &accepted[..accepted.len().min(wanted - chosen.len())];
        if accepted.is_empty() {
            left[proposed[0]] = 0.0; // only rounding was left of it
            continue;
        }
        let columns = new_columns(points, found, accepted)?;
        for (i, left) in left.iter_mut().enumerate() {
            let held: f64 = columns.row(i).iter().map(|f| f * f).sum();
            *left = (*left - held).max(0.0);
        }
        accepted.iter().for_each(|i| left[*i] = 0.0);
        factor.as_mut().subcols_mut(chosen.len(), columns.ncols()).copy_from(columns);
        chosen.extend(accepted);
    }
    Ok(chosen)
}

/// All points that are no copies or combinations of those before them, in order of how much they add.
pub(crate) fn independent(points: &Points) -> Vec<usize> {
    let n = points.len();
    let mut left = points.gram(); // (n × n), becomes what the chosen leave
    let least = LEAST_PIVOT * (0..n).map(|i| left[(i, i)]).sum::<f64>() / n as f64;
    let mut chosen = Vec::new();
    for _ in 0..n {
        let best = (0..n).fold(0, |best, i| if left[(i, i)] > left[(best, best)] { i } else { best });
        let pivot = left[(best, best)];
        if pivot.is_nan() || pivot <= least {
            break;
        }
        chosen.push(best);
        let column: Vec<f64> = left.col_as_slice(best).to_vec();
        for (j, along) in column.iter().enumerate() {
            let factor = along / pivot;
            left.col_as_slice_mut(j).iter_mut().zip(&column).for_each(|(l, c)| *l -= c * factor);
        }
        left[(best, best)] = 0.0;
    }
    chosen
}

/// Points drawn with probabilities in proportion to what is left of them; `None` where nothing is.
fn draw(left: &[f64], weights: &[f64], least: f64, count: usize, rng: &mut ChaCha8Rng) -> Option<Vec<usize>> {
    let mut total = 0.0;
    let share = |(left, weight): (&f64, &f64)| if *left > least { left * weight } else { 0.0 };
    let sums: Vec<f64> = left
        .iter()
        .zip(weights)
        .map(share)
        .map(|s| {
            total += s;
            total
        })
        .collect();
    if total.is_nan() || total <= 0.0 {
        return None;
    }
    let mut one = || {
        let at = rng.random::<f64>() * total;
        sums.partition_point(|s| *s <= at).min(sums.len() - 1)
    };
    Some((0..count).map(|_| one()).collect())
}

/// Those of the proposed points that one after the other would have been drawn: each is kept with the
/// probability of what those before leave of it, relative to what was left when it was proposed.
fn accept(
    points: &Points,
    factor: MatRef<'_, f64>,
    left: &[f64],
    proposed: &[usize],
    least: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<usize> {
    let mut rest = residual(&points.some(proposed).gram(), factor, proposed); // (b × b)
    let mut accepted: Vec<usize> = Vec::new();
    for (s, &i) in proposed.iter().enumerate() {
        let pivot = rest[(s, s)];
        let kept = rng.random::<f64>() * left[i] < pivot || s == 0;
        if !kept || pivot <= least || accepted.contains(&i) {
            continue;
        }
        accepted.push(i);
        let column: Vec<f64> = rest.col_as_slice(s).to_vec();
        for (t, along) in column.iter().enumerate() {
            let factor = along / pivot;
            rest.col_as_slice_mut(t).iter_mut().zip(&column).for_each(|(r, c)| *r -= c * factor);
        }
    }
    accepted
}

/// What the factor leaves of the kernel values of some points with each other.
fn residual(gram: &Mat<f64>, factor: MatRef<'_, f64>, which: &[usize]) -> Mat<f64> {
    let rows = Mat::from_fn(which.len(), factor.ncols(), |s, j| factor[(which[s], j)]);
    gram - product(rows.as_ref(), rows.transpose())
}

/// Columns that the accepted points add to the factor: (K_T − F F_Tᵀ) L⁻ᵀ (n × t).
fn new_columns(points: &Points, factor: MatRef<'_, f64>, accepted: &[usize]) -> Result<Mat<f64>> {
    let (n, t) = (points.len(), accepted.len());
    let some = points.some(accepted);
    let mut columns = Mat::zeros(n, t);
    points.values(some.columns(), columns.as_mut());
    let rows = Mat::from_fn(t, factor.ncols(), |s, j| factor[(accepted[s], j)]);
    columns -= product(factor, rows.transpose());
    let rest = residual(&some.gram(), factor, accepted);
    Cholesky::new(rest, "what landmarks add")?.solve_lower(columns.transpose_mut());
    Ok(columns)
}
