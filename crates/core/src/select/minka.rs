//! How many components the data speak for: Minka's approximation of the evidence for each number \[Min00\].

use statrs::function::gamma::ln_gamma;

/// Curvature at which the integral over a peak, √(2π/a), is the half circle π.
const WIDEST: f64 = 2.0 / std::f64::consts::PI;

/// The number of components of largest evidence, given all eigenvalues in descending order (some may be 0) of a covariance
/// of n rows. Where eigenvalues are 0 it is the number of the others: noise of no variance explains them perfectly.
pub(crate) fn dimension(eigenvalues: &[f64], n: f64) -> usize {
    let rank = eigenvalues.iter().filter(|v| **v > 0.0).count();
    if rank < eigenvalues.len() {
        return rank.max(1);
    }
    let evidence = |q: &usize| log_evidence(eigenvalues, *q, n);
    (1..eigenvalues.len()).max_by(|a, b| evidence(a).total_cmp(&evidence(b))).unwrap_or(1)
}

/// ln p(data | q) by Laplace's method, up to a constant that does not depend on q \[Min00\]:
/// $p(U)\, \prod_{i \le q} \lambda_i^{-n/2}\, \sigma^{-n(p-q)}\, (2\pi)^{(m+q)/2}\, |A|^{-1/2}\, n^{-q/2}$ with
/// m = pq − q(q+1)/2.
pub(super) fn log_evidence(eigenvalues: &[f64], q: usize, n: f64) -> f64 {
    let p = eigenvalues.len();
    let (kept, left) = eigenvalues.split_at(q);
    let noise = left.iter().sum::<f64>() / left.len() as f64;
    let free = (p * q) as f64 - (q * (q + 1)) as f64 / 2.0; // m
    let fit = -0.5 * n * (kept.iter().map(|v| v.ln()).sum::<f64>() + left.len() as f64 * noise.ln());
    let volume = 0.5 * (free + q as f64) * (2.0 * std::f64::consts::PI).ln();
    log_prior(p, q) + fit + volume - 0.5 * log_curvature(eigenvalues, q, noise, n) - 0.5 * q as f64 * n.ln()
}

/// ln p(U): the density of a uniform choice of q orthonormal directions.
fn log_prior(p: usize, q: usize) -> f64 {
    let half = |i: usize| (p - i) as f64 / 2.0;
    let sphere = |i: usize| ln_gamma(half(i)) - half(i) * std::f64::consts::PI.ln();
    (0..q).map(sphere).sum::<f64>() - q as f64 * std::f64::consts::LN_2
}

/// ln |A|: how sharply the likelihood falls when the directions turn.
fn log_curvature(eigenvalues: &[f64], q: usize, noise: f64, n: f64) -> f64 {
    let modelled = |j: usize| if j < q { eigenvalues[j] } else { noise };
    let turn = |i: usize, j: usize| {
        let product = (1.0 / modelled(j) - 1.0 / modelled(i)) * (eigenvalues[i] - eigenvalues[j]);
        // Between equal eigenvalues any angle is as good: no peak is wider than the half circle that there is.
        (n * product).max(WIDEST).ln()
    };
    (0..q).flat_map(|i| (i + 1..eigenvalues.len()).map(move |j| (i, j))).map(|(i, j)| turn(i, j)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_the_evidence_are_those_of_scikit_learn() {
        // sklearn.decomposition._pca._assess_dimension of scikit-learn 1.9.1, n = 50.
        let values = [9.0, 4.0, 1.3, 1.1, 0.9, 0.8];
        let theirs = [
            -128.14507745198404,
            -115.38279592636174,
            -118.06463336836117,
            -120.34691886225028,
            -122.01411895598417,
        ];
        let ours: Vec<f64> = (1..6).map(|q| log_evidence(&values, q, 50.0)).collect();
        for (a, b) in ours.iter().zip(&theirs) {
            assert!(((a - ours[0]) - (b - theirs[0])).abs() < 1e-9, "{ours:?}");
        }
        assert_eq!(dimension(&values, 50.0), 2);
    }

    #[test]
    fn eigenvalues_of_zero_leave_no_doubt() {
        assert_eq!(dimension(&[3.0, 2.0, 1.0, 0.0], 10.0), 3);
        assert_eq!(dimension(&[3.0, 0.0, 0.0], 10.0), 1);
        assert_eq!(dimension(&[3.0], 10.0), 1);
    }
}
