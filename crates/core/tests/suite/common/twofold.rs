//! Numbers of twice the usual precision (about 32 digits), with the eigenvalues and factors of small matrices in them.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The unevaluated sum of two doubles, the second below the rounding of the first (Dekker 1971).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Twofold(pub f64, pub f64);

fn exact_sum(a: f64, b: f64) -> Twofold {
    let s = a + b;
    let t = s - a;
    Twofold(s, (a - (s - t)) + (b - t))
}

impl From<f64> for Twofold {
    fn from(x: f64) -> Self {
        Self(x, 0.0)
    }
}

impl Add for Twofold {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (s, t) = (exact_sum(self.0, other.0), exact_sum(self.1, other.1));
        let first = exact_sum(s.0, s.1 + t.0);
        exact_sum(first.0, first.1 + t.1)
    }
}

impl Neg for Twofold {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Sub for Twofold {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Twofold {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let p = self.0 * other.0;
        let error = self.0.mul_add(other.0, -p);
        exact_sum(p, error + (self.0 * other.1 + self.1 * other.0))
    }
}

impl Div for Twofold {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = Self::from(self.0 / other.0);
        let rest = self - first * other;
        let second = Self::from(rest.0 / other.0);
        let rest = rest - second * other;
        first + second + Self::from(rest.0 / other.0)
    }
}

impl Twofold {
    pub fn sqrt(self) -> Self {
        if self.0 <= 0.0 {
            return Self(0.0, 0.0);
        }
        let guess = Self::from(self.0.sqrt());
        let half = Self::from(0.5);
        let better = half * (guess + self / guess);
        half * (better + self / better)
    }

    pub fn abs(self) -> Self {
        if self.0 < 0.0 { -self } else { self }
    }
}

/// Covariance (divisor n) of the columns of a table.
pub fn covariance(rows: &[Vec<f64>]) -> Vec<Vec<Twofold>> {
    let (n, p) = (Twofold::from(rows.len() as f64), rows[0].len());
    let sum = |f: &dyn Fn(&Vec<f64>) -> Twofold| rows.iter().fold(Twofold(0.0, 0.0), |s, row| s + f(row));
    let mean: Vec<Twofold> = (0..p).map(|j| sum(&|row| row[j].into()) / n).collect();
    let centred = |row: &Vec<f64>, j: usize| Twofold::from(row[j]) - mean[j];
    let entry = |i, j| sum(&|row| centred(row, i) * centred(row, j)) / n;
    (0..p).map(|i| (0..p).map(|j| entry(i, j)).collect()).collect()
}

/// Eigenvalues of a symmetric matrix, descending, by Jacobi's rotations from both sides.
pub fn eigenvalues(mut a: Vec<Vec<Twofold>>) -> Vec<Twofold> {
    let (p, one, two) = (a.len(), Twofold::from(1.0), Twofold::from(2.0));
    for _ in 0..60 {
        for i in 0..p {
            for j in i + 1..p {
                let small = a[i][j].abs() <= Twofold::from(1e-31) * (a[i][i] * a[j][j]).abs().sqrt();
                if small {
                    continue;
                }
                let zeta = (a[j][j] - a[i][i]) / (two * a[i][j]);
                let size = one / (zeta.abs() + (one + zeta * zeta).sqrt());
                let t = if zeta.0 < 0.0 { -size } else { size };
                let c = one / (one + t * t).sqrt();
                let s = t * c;
                for k in 0..p {
                    let (x, y) = (a[k][i], a[k][j]);
                    (a[k][i], a[k][j]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..p {
                    let (x, y) = (a[i][k], a[j][k]);
                    (a[i][k], a[j][k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut values: Vec<Twofold> = (0..p).map(|i| a[i][i]).collect();
    values.sort_by(|a, b| b.partial_cmp(a).unwrap());
    values
}

/// L with a = L Lᵀ.
pub fn cholesky(a: &[Vec<Twofold>]) -> Vec<Vec<Twofold>> {
    let p = a.len();
    let mut l = vec![vec![Twofold(0.0, 0.0); p]; p];
    for i in 0..p {
        for j in 0..=i {
            let rest = (0..j).fold(a[i][j], |rest, k| rest - l[i][k] * l[j][k]);
            l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
        }
    }
    l
}

/// L⁻¹ b.
pub fn forward(l: &[Vec<Twofold>], b: &[Twofold]) -> Vec<Twofold> {
    let mut x: Vec<Twofold> = Vec::new();
    for (i, b) in b.iter().enumerate() {
        let rest = (0..i).fold(*b, |rest, k| rest - l[i][k] * x[k]);
        x.push(rest / l[i][i]);
    }
    x
}
