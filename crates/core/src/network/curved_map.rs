//! A plane that is bent: a linear map with a layer of tanh units added to it, and its derivatives.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, add_product, clean_zeros, set_product, tanh};

/// y = c + L u + B tanh(A u + b), from k to m numbers by h hidden units.
///
/// The encoder and the decoder of a network are one each. Without hidden units it is a linear map.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvedMap {
    /// c (m).
    pub offset: Vec<f64>,
    /// L (m × k).
    pub linear: Mat<f64>,
    /// A (h × k).
    pub inner: Mat<f64>,
    /// b (h).
    pub bias: Vec<f64>,
    /// B (m × h).
    pub outer: Mat<f64>,
}

/// What a map makes of a block of n columns.
pub(crate) struct Mapped {
    /// tanh(A u + b) (h × n).
    pub(crate) hidden: Mat<f64>,
    /// y (m × n).
    pub(crate) out: Mat<f64>,
}

impl CurvedMap {
    /// A linear map: no hidden units.
    pub fn linear(offset: Vec<f64>, linear: Mat<f64>) -> Self {
        let (m, k) = (linear.nrows(), linear.ncols());
        Self { offset, linear, inner: Mat::zeros(0, k), bias: Vec::new(), outer: Mat::zeros(m, 0) }
    }

    /// k.
    pub fn n_inputs(&self) -> usize {
        self.linear.ncols()
    }

    /// m.
    pub fn n_outputs(&self) -> usize {
        self.linear.nrows()
    }

    /// h.
    pub fn n_hidden(&self) -> usize {
        self.bias.len()
    }

    /// Whether the parts fit together and are finite.
    ///
    /// # Errors
    /// When they are not.
    pub(crate) fn check(&self) -> Result<()> {
        let (m, k, h) = (self.n_outputs(), self.n_inputs(), self.n_hidden());
        let lengths = [
            ("offsets of a layer", m, self.offset.len()),
            ("hidden units of the inner weights", h, self.inner.nrows()),
            ("inputs of the inner weights", k, self.inner.ncols()),
            ("outputs of the outer weights", m, self.outer.nrows()),
            ("hidden units of the outer weights", h, self.outer.ncols()),
        ];
        if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
            return Err(Error::Length { what, expected, found });
        }
        match self.numbers().iter().all(|x| x.is_finite()) {
            true => Ok(()),
            false => {
                let (name, value) = ("a weight of the network", "not finite".into());
                Err(Error::Parameter { name, value, allowed: "finite" })
            }
        }
    }

    /// How many numbers it has.
    pub(crate) fn len(&self) -> usize {
        let (m, k, h) = (self.n_outputs(), self.n_inputs(), self.n_hidden());
        m + m * k + h * k + h + m * h
    }

    /// All numbers: c, L, A, b, B, matrices column after column.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.len());
        out.extend(&self.offset);
        extend(&mut out, &self.linear);
        extend(&mut out, &self.inner);
        out.extend(&self.bias);
        extend(&mut out, &self.outer);
        out
    }

    /// The same map with other numbers.
    pub(crate) fn with_numbers(&self, numbers: &[f64]) -> Self {
        let (m, k, h) = (self.n_outputs(), self.n_inputs(), self.n_hidden());
        let mut rest = numbers;
        let mut take = |len: usize| {
            let (these, others) = rest.split_at(len);
            rest = others;
            these
        };
        let matrix =
            |of: &[f64], rows: usize, columns: usize| Mat::from_fn(rows, columns, |i, j| of[j * rows + i]);
        Self {
            offset: take(m).to_vec(),
            linear: matrix(take(m * k), m, k),
            inner: matrix(take(h * k), h, k),
            bias: take(h).to_vec(),
            outer: matrix(take(m * h), m, h),
        }
    }

    /// 1 for each number that weight decay is about, 0 for offsets and biases.
    pub(crate) fn decaying(&self) -> Vec<f64> {
        let (m, k, h) = (self.n_outputs(), self.n_inputs(), self.n_hidden());
        [vec![0.0; m], vec![1.0; m * k + h * k], vec![0.0; h], vec![1.0; m * h]].concat()
    }

    /// Of a block of columns u (k × n).
    pub(crate) fn apply(&self, u: MatRef<'_, f64>) -> Mapped {
        let n = u.ncols();
        let mut out = clean_zeros(self.n_outputs(), n);
        set_product(out.as_mut(), self.linear.as_ref(), u);
        add_to_columns(&mut out, &self.offset);
        let mut hidden = clean_zeros(self.n_hidden(), n);
        if self.n_hidden() > 0 {
            let mut a = clean_zeros(self.n_hidden(), n);
            set_product(a.as_mut(), self.inner.as_ref(), u);
            add_to_columns(&mut a, &self.bias);
            (0..n).for_each(|i| tanh(a.col_as_slice(i), hidden.col_as_slice_mut(i)));
            add_product(out.as_mut(), self.outer.as_ref(), hidden.as_ref(), 1.0);
        }
        Mapped { hidden, out }
    }

    /// Adds to `gradient` (as [`numbers`](Self::numbers)) what slopes g (m × n) by the outputs are by the weights,
    /// for inputs u (k × n), and tells the slopes by the inputs (k × n): back-propagation \[RHW86\].
    pub(crate) fn add_gradient(
        &self,
        u: MatRef<'_, f64>,
        mapped: &Mapped,
        g: MatRef<'_, f64>,
        gradient: &mut MapGradient,
    ) -> Mat<f64> {
        let mut back = clean_zeros(self.n_inputs(), u.ncols());
        add_row_sums(&mut gradient.0.offset, g);
        add_product(gradient.0.linear.as_mut(), g, u.transpose(), 1.0);
        set_product(back.as_mut(), self.linear.transpose(), g);
        if self.n_hidden() > 0 {
            add_product(gradient.0.outer.as_mut(), g, mapped.hidden.transpose(), 1.0);
            let mut delta = clean_zeros(self.n_hidden(), u.ncols()); // Bᵀg ∘ (1 − t²)
            set_product(delta.as_mut(), self.outer.transpose(), g);
            for i in 0..u.ncols() {
                let t = mapped.hidden.col_as_slice(i);
                delta.col_as_slice_mut(i).iter_mut().zip(t).for_each(|(d, t)| *d *= 1.0 - t * t);
            }
            add_row_sums(&mut gradient.0.bias, delta.as_ref());
            add_product(gradient.0.inner.as_mut(), delta.as_ref(), u.transpose(), 1.0);
            add_product(back.as_mut(), self.inner.transpose(), delta.as_ref(), 1.0);
        }
        back
    }

    /// The same map of R⁻¹u: what a change of the coordinates u ← R u + r needs. `back` is R⁻¹ (k × k).
    pub(crate) fn of_turned_inputs(&self, back: MatRef<'_, f64>, shift: &[f64]) -> Self {
        let mut linear = Mat::zeros(self.n_outputs(), self.n_inputs());
        set_product(linear.as_mut(), self.linear.as_ref(), back);
        let mut inner = Mat::zeros(self.n_hidden(), self.n_inputs());
        set_product(inner.as_mut(), self.inner.as_ref(), back);
        let lowered = |of: &[f64], weights: &Mat<f64>| -> Vec<f64> {
            (0..of.len())
                .map(|i| of[i] - (0..shift.len()).map(|k| weights[(i, k)] * shift[k]).sum::<f64>())
                .collect()
        };
        Self {
            offset: lowered(&self.offset, &linear),
            bias: lowered(&self.bias, &inner),
            linear,
            inner,
            outer: self.outer.clone(),
        }
    }

    /// The same map, its outputs turned: R y + r.
    pub(crate) fn with_turned_outputs(&self, turn: MatRef<'_, f64>, shift: &[f64]) -> Self {
        let m = self.n_outputs();
        let times = |of: MatRef<'_, f64>| {
            let mut out = Mat::zeros(m, of.ncols());
            set_product(out.as_mut(), turn, of);
            out
        };
        let offset = |i: usize| (0..m).map(|k| turn[(i, k)] * self.offset[k]).sum::<f64>() + shift[i];
        Self {
            offset: (0..m).map(offset).collect(),
            linear: times(self.linear.as_ref()),
            outer: times(self.outer.as_ref()),
            inner: self.inner.clone(),
            bias: self.bias.clone(),
        }
    }
}

/// Sums of derivatives by the weights of a map, in its shape.
#[derive(Debug, Clone)]
pub(crate) struct MapGradient(pub(crate) CurvedMap);

impl MapGradient {
    /// Zeros.
    pub(crate) fn zeros(of: &CurvedMap) -> Self {
        Self(of.with_numbers(&vec![0.0; of.len()]))
    }
}

fn extend(out: &mut Vec<f64>, matrix: &Mat<f64>) {
    matrix.col_iter().for_each(|column| out.extend(column.iter()));
}

fn add_to_columns(matrix: &mut Mat<f64>, terms: &[f64]) {
    for i in 0..matrix.ncols() {
        matrix.col_as_slice_mut(i).iter_mut().zip(terms).for_each(|(x, t)| *x += t);
    }
}

fn add_row_sums(to: &mut [f64], matrix: MatRef<'_, f64>) {
    for column in matrix.col_iter() {
        to.iter_mut().zip(column.iter()).for_each(|(t, x)| *t += x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> CurvedMap {
        let wave = |i: usize, j: usize, f: f64| (1.3 * i as f64 + 0.7 * j as f64 + f).sin();
        CurvedMap {
            offset: vec![0.1, -0.2, 0.3],
            linear: Mat::from_fn(3, 2, |i, j| wave(i, j, 0.0)),
            inner: Mat::from_fn(4, 2, |i, j| wave(i, j, 1.0)),
            bias: vec![0.2, -0.1, 0.4, 0.0],
            outer: Mat::from_fn(3, 4, |i, j| wave(i, j, 2.0)),
        }
    }

    #[test]
    fn numbers_come_back_in_the_same_order() {
        let map = map();
        assert_eq!(map.with_numbers(&map.numbers()), map);
        assert_eq!((map.len(), map.decaying().len()), (map.numbers().len(), map.numbers().len()));
        assert!(map.check().is_ok());
    }

    /// Central differences of Σ gᵀy by each weight and each input.
    #[test]
    fn derivatives_are_those_of_finite_differences() {
        let map = map();
        let u = Mat::from_fn(2, 3, |i, j| 0.5 * i as f64 - 0.3 * j as f64 + 0.1);
        let g = Mat::from_fn(3, 3, |i, j| 1.0 + 0.2 * i as f64 - 0.4 * j as f64);
        let value = |map: &CurvedMap, u: &Mat<f64>| -> f64 {
            let y = map.apply(u.as_ref()).out;
            (0..3).map(|j| (0..3).map(|i| g[(i, j)] * y[(i, j)]).sum::<f64>()).sum()
        };
        let mut gradient = MapGradient::zeros(&map);
        let back = map.add_gradient(u.as_ref(), &map.apply(u.as_ref()), g.as_ref(), &mut gradient);
        let (numbers, h) = (map.numbers(), 1e-5);
        for (k, slope) in gradient.0.numbers().iter().enumerate() {
            let moved = |by: f64| {
                let mut other = numbers.clone();
                other[k] += by;
                value(&map.with_numbers(&other), &u)
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((slope - expected).abs() < 1e-9, "{k}: {slope} {expected}");
        }
        for (i, j) in (0..2).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let moved = |by: f64| {
                let mut other = u.clone();
                other[(i, j)] += by;
                value(&map, &other)
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((back[(i, j)] - expected).abs() < 1e-9);
        }
    }

    /// A change of coordinates that goes there and back changes nothing.
    #[test]
    fn turned_coordinates_are_the_same_map() {
        let map = map();
        let turn = Mat::from_fn(2, 2, |i, j| [[2.0, 1.0], [0.5, 1.5]][i][j]);
        let back = crate::linalg::inverse(turn.as_ref()).unwrap();
        let shift = [0.7, -0.4];
        let other = map.of_turned_inputs(back.as_ref(), &shift);
        let u = Mat::from_fn(2, 1, |i, _| 0.3 + i as f64);
        let mut turned = Mat::from_fn(2, 1, |i, _| shift[i]);
        add_product(turned.as_mut(), turn.as_ref(), u.as_ref(), 1.0);
        let (a, b) = (map.apply(u.as_ref()).out, other.apply(turned.as_ref()).out);
        (0..3).for_each(|i| assert!((a[(i, 0)] - b[(i, 0)]).abs() < 1e-14));
    }
}
