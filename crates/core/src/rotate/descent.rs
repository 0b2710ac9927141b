//! Gradient projection: from one turn down to the nearest stationary one.

use super::criterion::Criterion;
use super::turn::{Point, Space};
use crate::linalg::{Mat, MatRef};

/// Weight of the past in the level that a step must stay below \[ZH04\].
const MEMORY: f64 = 0.85;
/// Share of the promised descent that a step must bring.
const SHARE: f64 = 1e-4;
/// A value is not known better than this.
const ROUNDING: f64 = 1e-14;
/// Halvings of a step before there is nowhere to go.
const HALVINGS: i32 = 60;
/// Steps are kept within these bounds: the criterion and the loadings are of order 1.
const STEPS: (f64, f64) = (1e-10, 1e10);

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    pub(super) tolerance: f64,
    pub(super) iterations: usize,
}

/// Where a descent ended.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) point: Point,
    pub(super) iterations: usize,
    pub(super) converged: bool,
}

/// Descends from a turn until the projected gradient, per feature, is as short as asked; `None` when factors fall together.
///
/// The gradient projection of Jennrich \[J01\] \[J02\] \[BJ05\] for orthogonal and oblique turns alike, with the step lengths of Barzilai &
/// Borwein \[BB88\] in a search that allows the value to rise for a while: it ends at 1e-12 after tens of steps where fixed doubling and
/// halving takes thousands.
pub(super) fn descend(
    space: Space,
    loadings: MatRef<'_, f64>,
    criterion: &Criterion,
    start: Mat<f64>,
    stop: Stop,
) -> Option<End> {
    let mut point = space.at(loadings, criterion, start)?;
    let (mut level, mut weight, mut step) = (point.value, 1.0, 1.0);
    for iteration in 0..stop.iterations {
        if point.gradient.norm_l2() <= stop.tolerance {
            return Some(End { point, iterations: iteration, converged: true });
        }
        let Some(next) = search(space, loadings, criterion, &point, level, step) else {
            return Some(End { point, iterations: iteration, converged: false });
        };
        if next.collapsed {
            return None;
        }
        step = barzilai_borwein(&point, &next, iteration);
        let heavier = MEMORY * weight + 1.0;
        level = (MEMORY * weight * level + next.value) / heavier;
        (weight, point) = (heavier, next);
    }
    let converged = point.gradient.norm_l2() <= stop.tolerance;
    Some(End { point, iterations: stop.iterations, converged })
}

/// The first of the halved steps that stays far enough below the level.
fn search(
    space: Space,
    loadings: MatRef<'_, f64>,
    criterion: &Criterion,
    from: &Point,
    level: f64,
    step: f64,
) -> Option<Point> {
    let steepness = from.gradient.squared_norm_l2();
    let slack = ROUNDING * (1.0 + level.abs());
    (0..HALVINGS).map(|k| step * 0.5_f64.powi(k)).find_map(|step| {
        let next = space.at(loadings, criterion, space.moved(from, step))?;
        (next.value <= level - SHARE * step * steepness + slack).then_some(next)
    })
}

/// The length of step that the last one says fits the curvature: the long and the short formula in turn.
fn barzilai_borwein(from: &Point, to: &Point, iteration: usize) -> f64 {
    let (moved, changed) = (&to.turn - &from.turn, &to.gradient - &from.gradient);
    let curvature = dot(&moved, &changed).abs();
    let step = match iteration % 2 {
        0 => curvature / changed.squared_norm_l2(),
        _ => moved.squared_norm_l2() / curvature,
    };
    if step.is_finite() { step.clamp(STEPS.0, STEPS.1) } else { 1.0 }
}

fn dot(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    a.col_iter().zip(b.col_iter()).map(|(a, b)| a.transpose() * b).sum()
}
