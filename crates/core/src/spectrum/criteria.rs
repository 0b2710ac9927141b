//! What all eigenvalues of a covariance say about the number of components: likelihood and information
//! criteria.

use std::f64::consts::TAU;

/// All p eigenvalues of the covariance (divisor n) of n rows, descending, 0 where there is no variance.
#[derive(Debug, Clone)]
pub(crate) struct Eigenvalues {
    values: Vec<f64>,
    rest: Vec<f64>, // sum of the values from each place on
    logs: Vec<f64>, // sum of the logarithms before each place
    rows: f64,
}

impl Eigenvalues {
    pub(crate) fn new(values: Vec<f64>, rows: f64) -> Self {
        let mut rest = vec![0.0; values.len() + 1];
        for (k, v) in values.iter().enumerate().rev() {
            rest[k] = rest[k + 1] + v;
        }
        let mut logs = vec![0.0; values.len()];
        (1..values.len()).for_each(|k| logs[k] = logs[k - 1] + values[k - 1].ln());
        Self { values, rest, logs, rows }
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn rows(&self) -> f64 {
        self.rows
    }

    /// Eigenvalues that are not 0.
    pub(crate) fn rank(&self) -> usize {
        self.values.iter().filter(|v| **v > 0.0).count()
    }

    /// Share of the variance that q components explain.
    pub(crate) fn explained(&self, q: usize) -> f64 {
        1.0 - self.rest[q] / self.rest[0]
    }

    /// σ² of PPCA with q < p components.
    pub(crate) fn noise(&self, q: usize) -> f64 {
        self.rest[q] / (self.values.len() - q) as f64
    }

    /// ℓ of PPCA with q < p components, −n/2 (p ln 2π + Σ ln λ + (p − q) ln σ² + p) \[TB99\]; infinite where
    /// no noise is left.
    pub(crate) fn log_likelihood(&self, q: usize) -> f64 {
        let p = self.values.len() as f64;
        -0.5 * self.rows * (p * TAU.ln() + self.logs[q] + (p - q as f64) * self.noise(q).ln() + p)
    }

    /// −2ℓ + 2k.
    pub(crate) fn aic(&self, q: usize) -> f64 {
        aic(self.log_likelihood(q), parameters(self.values.len(), q))
    }

    /// −2ℓ + k ln n.
    pub(crate) fn bic(&self, q: usize) -> f64 {
        bic(self.log_likelihood(q), parameters(self.values.len(), q), self.rows)
    }
}

/// −2ℓ + 2k.
pub(crate) fn aic(log_likelihood: f64, parameters: f64) -> f64 {
    2.0 * (parameters - log_likelihood)
}

/// −2ℓ + k ln n.
pub(crate) fn bic(log_likelihood: f64, parameters: f64, rows: f64) -> f64 {
    parameters * rows.ln() - 2.0 * log_likelihood
}

/// Free parameters k = pq − q(q − 1)/2 + p + 1 of q components of p features: loadings up to a rotation,
/// means, noise.
pub(crate) fn parameters(p: usize, q: usize) -> f64 {
    (p * q + p + 1) as f64 - (q * q.saturating_sub(1)) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_by_hand() {
        let e = Eigenvalues::new(vec![4.0, 1.0, 1.0], 10.0);
        // Two equal values after the first: σ² = 1, so ℓ = −5 (3 ln 2π + ln 4 + 3).
        let expected = -5.0 * (3.0 * TAU.ln() + 4f64.ln() + 3.0);
        assert!((e.log_likelihood(1) - expected).abs() < 1e-12);
        assert_eq!((parameters(3, 0), parameters(3, 1), parameters(3, 2)), (4.0, 7.0, 9.0));
        assert!((e.aic(1) - (14.0 - 2.0 * expected)).abs() < 1e-12);
        assert!((e.bic(1) - (7.0 * 10f64.ln() - 2.0 * expected)).abs() < 1e-12);
        assert!((e.explained(1) - 4.0 / 6.0).abs() < 1e-15);
        assert_eq!(e.rank(), 3);
    }
}
