//! How many components the data speak for: Minka's approximation of the evidence for each number \[Min00\].

use std::f64::consts::TAU;

use statrs::function::gamma::ln_gamma;

/// Curvature at which the integral over a peak, √(2π/a), is the half circle π.
const WIDEST: f64 = 2.0 / std::f64::consts::PI;

/// The number of components of largest evidence, given the eigenvalues in descending order, as far as they
/// are not 0, of a covariance of n rows and p features.
///
/// Where enough rows have eigenvalues of 0 it is the number of the others: noise of no variance explains them
/// perfectly. With fewer rows than features there always are such eigenvalues, and they say nothing: the
/// evidence of each number decides, the last one left out.
pub(crate) fn dimension(eigenvalues: &[f64], p: usize, n: f64) -> usize {
    let rank = rank(eigenvalues);
    if rank < p && n > p as f64 {
        return rank.max(1);
    }
    let evidence = log_evidences(eigenvalues, p, n);
    (1..rank).max_by(|a, b| evidence[a - 1].total_cmp(&evidence[b - 1])).unwrap_or(1)
}

/// How many eigenvalues are not 0.
fn rank(eigenvalues: &[f64]) -> usize {
    eigenvalues.iter().filter(|v| **v > 0.0).count()
}

/// ln p(data | q) for q = 1, …, r − 1 by Laplace's method, up to a constant that does not depend on q
/// \[Min00\]: $p(U)\, \prod_{i \le q} \lambda_i^{-n/2}\, \sigma^{-n(p-q)}\, (2\pi)^{(m+q)/2}\, |A|^{-1/2}\,
/// n^{-q/2}$ with m = pq − q(q+1)/2. r eigenvalues are not 0; those that are not given are.
pub(crate) fn log_evidences(eigenvalues: &[f64], p: usize, n: f64) -> Vec<f64> {
    let values = &eigenvalues[..rank(eigenvalues)];
    let noise: Vec<f64> =
        (0..values.len()).map(|q| values[q..].iter().sum::<f64>() / (p - q) as f64).collect();
    let curvature = log_curvatures(values, p, &noise, n);
    let (mut prior, mut logs) = (0.0, 0.0);
    let evidence = |q: usize| {
        prior += log_direction(p, q - 1);
        logs += values[q - 1].ln();
        let free = (p * q) as f64 - (q * (q + 1)) as f64 / 2.0; // m
        let fit = -0.5 * n * (logs + (p - q) as f64 * noise[q].ln());
        let volume = 0.5 * (free + q as f64) * TAU.ln();
        prior + fit + volume - 0.5 * curvature[q] - 0.5 * q as f64 * n.ln()
    };
    (1..values.len()).map(evidence).collect()
}

/// ln of the density of a uniform choice of a direction that is orthogonal to i others; their sum is ln p(U).
fn log_direction(p: usize, i: usize) -> f64 {
    let half = (p - i) as f64 / 2.0;
    ln_gamma(half) - half * std::f64::consts::PI.ln() - std::f64::consts::LN_2
}

/// ln |A| for q = 0, …, r − 1: how sharply the likelihood falls when direction i ≤ q turns towards j > i,
/// Σ ln n (1/λ̂ⱼ − 1/λ̂ᵢ)(λᵢ − λⱼ), where λ̂ is σ² from q on.
///
/// Between equal eigenvalues any angle is as good: no peak is wider than the half circle that there is. Pairs
/// among the first q are the same for every q, and towards the others the logarithms of λᵢ − λⱼ are: r²
/// logarithms do for all q.
fn log_curvatures(values: &[f64], p: usize, noise: &[f64], n: f64) -> Vec<f64> {
    let rank = values.len();
    let (mut among, mut towards) = (vec![0.0; rank], vec![0.0; rank]); // pairs with j = q; pairs with j ≥ q
    let mut rest = vec![0.0; rank + 1];
    for (i, value) in values.iter().enumerate() {
        rest[rank] = (p - rank) as f64 * value.ln(); // directions of no variance
        (i + 1..rank).rev().for_each(|j| rest[j] = rest[j + 1] + (value - values[j]).ln());
        for q in i + 1..rank {
            let kept = n * (1.0 / values[q] - 1.0 / value) * (value - values[q]);
            among[q] += kept.max(WIDEST).ln();
            let steep = n * (1.0 / noise[q] - 1.0 / value);
            let flat = |other: f64| steep * (value - other) <= WIDEST;
            let first = if flat(0.0) { p } else { q + values[q..].partition_point(|other| flat(*other)) };
            let others = if first < p { (p - first) as f64 * steep.ln() + rest[first] } else { 0.0 };
            towards[q] += (first - q) as f64 * WIDEST.ln() + others;
        }
    }
    (1..rank).for_each(|q| among[q] += among[q - 1]);
    (0..rank).map(|q| towards[q] + if q > 0 { among[q - 1] } else { 0.0 }).collect()
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
        let ours: Vec<f64> = log_evidences(&values, 6, 50.0);
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

    /// The formula with every pair of directions written out: few rows, ties, noise without shape.
    #[test]
    fn evidence_is_a_direct_evaluation() {
        direct_evaluation(&[90.0, 20.0, 5.0, 1.5, 0.4], 40, 6.0);
        direct_evaluation(&[9.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0], 7, 100.0);
        direct_evaluation(&[3.0, 1.0 + 1e-9, 1.0, 1.0, 1.0 - 1e-9], 5, 20.0);
        direct_evaluation(&[2.0, 2.0, 2.0], 3, 50.0);
        direct_evaluation(&[3e-300, 2e-300, 2e-300, 1e-300], 9, 5.0);
    }

    fn direct_evaluation(given: &[f64], p: usize, n: f64) {
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
                    let turn = (1.0 / hat(j) - 1.0 / hat(i)) * (all[i] - all[j]) * n;
                    sum -= 0.5 * turn.max(2.0 / std::f64::consts::PI).ln();
                }
            }
            let m = (p * q - q * (q + 1) / 2) as f64;
            sum + 0.5 * (m + q as f64) * (2.0 * std::f64::consts::PI).ln() - 0.5 * q as f64 * n.ln()
        };
        let found = log_evidences(given, p, n);
        assert_eq!(found.len(), given.len() - 1);
        for (q, found) in (1..).zip(found) {
            assert!((found - direct(q)).abs() < 1e-12 * direct(q).abs(), "{q}: {found} {}", direct(q));
        }
    }
}
