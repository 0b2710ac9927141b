//! How many components the data speak for: Minka's approximation of the evidence for each number \[Min00\].

use statrs::function::gamma::ln_gamma;

/// Curvature at which the integral over a peak, √(2π/a), is the half circle π.
const WIDEST: f64 = 2.0 / std::f64::consts::PI;

/// The number of components of largest evidence, given the eigenvalues in descending order, as far as they are not 0, of a covariance of n
/// rows and p features.
///
/// Where enough rows have eigenvalues of 0 it is the number of the others: noise of no variance explains them perfectly. With fewer rows than
/// features there always are such eigenvalues, and they say nothing: the evidence of each number decides, the last one left out.
pub(crate) fn dimension(eigenvalues: &[f64], p: usize, n: f64) -> usize {
    let rank = rank(eigenvalues);
    if rank < p && n > p as f64 {
        return rank.max(1);
    }
    let evidence = |q: &usize| log_evidence(eigenvalues, p, *q, n);
    (1..rank).max_by(|a, b| evidence(a).total_cmp(&evidence(b))).unwrap_or(1)
}

/// How many eigenvalues are not 0.
fn rank(eigenvalues: &[f64]) -> usize {
    eigenvalues.iter().filter(|v| **v > 0.0).count()
}

/// ln p(data | q) by Laplace's method, up to a constant that does not depend on q \[Min00\]:
/// $p(U)\, \prod_{i \le q} \lambda_i^{-n/2}\, \sigma^{-n(p-q)}\, (2\pi)^{(m+q)/2}\, |A|^{-1/2}\, n^{-q/2}$ with
/// m = pq − q(q+1)/2. Eigenvalues that are not given are 0; q is less than the number of those that are not.
pub(super) fn log_evidence(eigenvalues: &[f64], p: usize, q: usize, n: f64) -> f64 {
    let (kept, rest) = eigenvalues.split_at(q);
    let left = (p - q) as f64;
    let noise = rest.iter().sum::<f64>() / left;
    let free = (p * q) as f64 - (q * (q + 1)) as f64 / 2.0; // m
    let fit = -0.5 * n * (kept.iter().map(|v| v.ln()).sum::<f64>() + left * noise.ln());
    let volume = 0.5 * (free + q as f64) * (2.0 * std::f64::consts::PI).ln();
    let curvature = log_curvature(eigenvalues, p, q, noise, n);
    log_prior(p, q) + fit + volume - 0.5 * curvature - 0.5 * q as f64 * n.ln()
}

/// ln p(U): the density of a uniform choice of q orthonormal directions.
fn log_prior(p: usize, q: usize) -> f64 {
    let half = |i: usize| (p - i) as f64 / 2.0;
    let sphere = |i: usize| ln_gamma(half(i)) - half(i) * std::f64::consts::PI.ln();
    (0..q).map(sphere).sum::<f64>() - q as f64 * std::f64::consts::LN_2
}

/// ln |A|: how sharply the likelihood falls when the directions turn.
fn log_curvature(eigenvalues: &[f64], p: usize, q: usize, noise: f64, n: f64) -> f64 {
    let rank = rank(eigenvalues);
    let value = |j: usize| if j < rank { eigenvalues[j] } else { 0.0 };
    let modelled = |j: usize| if j < q { eigenvalues[j] } else { noise };
    let turn = |i: usize, j: usize| {
        let product = (1.0 / modelled(j) - 1.0 / modelled(i)) * (value(i) - value(j));
        // Between equal eigenvalues any angle is as good: no peak is wider than the half circle that there is.
        (n * product).max(WIDEST).ln()
    };
    let towards = |i: usize| {
        let others = (i + 1..rank).map(|j| turn(i, j)).sum::<f64>();
        // Directions of no variance are all alike.
        if rank < p { others + (p - rank) as f64 * turn(i, rank) } else { others }
    };
    (0..q).map(towards).sum()
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
        let ours: Vec<f64> = (1..6).map(|q| log_evidence(&values, 6, q, 50.0)).collect();
        for (a, b) in ours.iter().zip(&theirs) {
            assert!(((a - ours[0]) - (b - theirs[0])).abs() < 1e-9, "{ours:?}");
        }
        assert_eq!(dimension(&values, 6, 50.0), 2);
    }

    #[test]
    fn eigenvalues_of_zero_leave_no_doubt() {
        assert_eq!(dimension(&[3.0, 2.0, 1.0, 0.0], 4, 10.0), 3);
        assert_eq!(dimension(&[3.0, 0.0, 0.0], 3, 10.0), 1);
        assert_eq!(dimension(&[3.0], 1, 10.0), 1);
    }

    /// The formula with every pair of directions written out.
    #[test]
    fn few_rows_are_a_direct_evaluation_with_eigenvalues_of_zero() {
        let (given, p, n) = ([90.0, 20.0, 5.0, 1.5, 0.4], 40, 6.0);
        let all: Vec<f64> = given.iter().copied().chain(std::iter::repeat_n(0.0, p - given.len())).collect();
        let direct = |q: usize| {
            let noise = all[q..].iter().sum::<f64>() / (p - q) as f64;
            let hat = |j: usize| if j < q { all[j] } else { noise };
            let mut sum =
                -0.5 * n * (all[..q].iter().map(|v| v.ln()).sum::<f64>() + (p - q) as f64 * noise.ln());
            for i in 0..q {
                let half = (p - i) as f64 / 2.0;
                sum += ln_gamma(half) - half * std::f64::consts::PI.ln() - 2.0_f64.ln();
                for j in i + 1..p {
                    sum -= 0.5 * ((1.0 / hat(j) - 1.0 / hat(i)) * (all[i] - all[j]) * n).ln();
                }
            }
            let m = (p * q - q * (q + 1) / 2) as f64;
            sum + 0.5 * (m + q as f64) * (2.0 * std::f64::consts::PI).ln() - 0.5 * q as f64 * n.ln()
        };
        let best = (1..5).max_by(|a, b| direct(*a).total_cmp(&direct(*b)));
        assert_eq!(Some(dimension(&given, p, n)), best);
        for q in 1..5 {
            let (a, b) = (log_evidence(&given, p, q, n), direct(q));
            assert!((a - b).abs() < 1e-9 * b.abs(), "{q}: {a} {b}");
        }
    }
}
