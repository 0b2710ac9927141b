//! Gradient projection: from one turn down to the nearest stationary one.

use super::criterion::Criterion;
use super::turn::{Point, Space};
use crate::algorithm::optimise::halved;
use crate::algorithm::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Mat, MatRef};

/// Weight of the past in the level that a step must stay below \[ZH04\].
const MEMORY: f64 = 0.85;
/// Share of the promised descent that a step must bring.
const SHARE: f64 = 1e-4;
/// A value is not known better than this.
const ROUNDING: f64 = 1e-14;
/// Lengths of a step, each half of the one before, that are tried.
const HALVINGS: usize = 60;
/// Steps are kept within these bounds: the criterion and the loadings are of order 1.
const STEPS: (f64, f64) = (1e-10, 1e10);

/// The descent from one start, until the projected gradient, per feature, is as short as the tolerance.
///
/// The gradient projection of Jennrich \[J01\] \[J02\] \[BJ05\] for orthogonal and oblique turns alike, with
/// the step lengths of Barzilai & Borwein \[BB88\] in a search that allows the value to rise for a while: it
/// ends at 1e-12 after tens of steps where fixed doubling and halving takes thousands.
pub(super) struct Descent<'a> {
    space: Space,
    loadings: MatRef<'a, f64>, // A (p × q)
    criterion: &'a Criterion,
    point: Point,
    level: f64,  // C of Zhang & Hager: a mean of past values
    weight: f64, // Q of Zhang & Hager: the sum of the weights in that mean
    length: f64, // of the next step
    steps: usize,
    collapsed: bool, // whether factors have fallen together
}

impl<'a> Descent<'a> {
    /// From a turn; `None` when it is singular.
    pub(super) fn new(
        space: Space,
        loadings: MatRef<'a, f64>,
        criterion: &'a Criterion,
        start: Mat<f64>,
    ) -> Option<Self> {
        let point = space.at(loadings, criterion, start)?;
        let level = point.value;
        Some(Self {
            space,
            loadings,
            criterion,
            point,
            level,
            weight: 1.0,
            length: 1.0,
            steps: 0,
            collapsed: false,
        })
    }

    /// The first of the halved steps that stays far enough below the level.
    fn search(&self, control: &Control<'_>) -> Result<Option<Point>> {
        let steepness = self.point.gradient.squared_norm_l2();
        let slack = ROUNDING * (1.0 + self.level.abs());
        halved(self.length, HALVINGS, |length| {
            control.check()?;
            let turn = self.space.moved(&self.point, length);
            let next = self.space.at(self.loadings, self.criterion, turn);
            Ok(next.filter(|next| next.value <= self.level - SHARE * length * steepness + slack))
        })
    }
}

impl Iteration for Descent<'_> {
    /// `None` when factors have fallen together.
    type Output = Option<Point>;

    fn objective(&self) -> Objective {
        Objective { name: "criterion per feature", guard: Guard::Free }
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.point.gradient.norm_l2() <= tolerance
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let Some(next) = self.search(control)? else { return Ok(None) };
        self.collapsed = next.collapsed;
        if self.collapsed {
            return Ok(None);
        }
        self.length = barzilai_borwein(&self.point, &next, self.steps);
        let heavier = MEMORY * self.weight + 1.0;
        self.level = (MEMORY * self.weight * self.level + next.value) / heavier;
        (self.weight, self.point) = (heavier, next);
        self.steps += 1;
        Ok(Some(Step { objective: self.point.value, change: self.point.gradient.norm_l2() }))
    }

    fn finish(self) -> Result<Option<Point>> {
        Ok((!self.collapsed).then_some(self.point))
    }
}

/// The length of step that the last one says fits the curvature, with s = ΔT and y = ΔG: the short formula
/// sᵀy/yᵀy and the long one sᵀs/sᵀy in turn \[BB88\].
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
