//! Scores of each fold for q = 0, 1, …: their mean, its standard error, and the rule of one standard error.

/// Larger is better; one list per fold, all of the same length.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FoldScores(pub(super) Vec<Vec<f64>>);

impl FoldScores {
    /// Mean over the folds and its standard error.
    pub(super) fn mean_and_error(&self, q: usize) -> Option<(f64, f64)> {
        mean_and_error(self.0.iter().filter_map(|fold| fold.get(q).copied()))
    }

    /// The largest mean.
    pub(super) fn best(&self) -> Option<usize> {
        let numbers = 0..self.0.first()?.len();
        let means: Option<Vec<f64>> = numbers.map(|q| self.mean_and_error(q).map(|(mean, _)| mean)).collect();
        let means = means?;
        (0..means.len()).max_by(|a, b| means[*a].total_cmp(&means[*b]).then(b.cmp(a)))
    }

    /// The fewest components that do no worse than the best, by less than the standard error of the
    /// difference; and the best.
    pub(super) fn fewest(&self) -> Option<(usize, usize)> {
        let best = self.best()?;
        let close = |q: &usize| {
            let loss = self.0.iter().map(|fold| fold[best] - fold[*q]);
            mean_and_error(loss).is_some_and(|(loss, error)| loss <= error)
        };
        (0..=best).find(close).map(|q| (q, best))
    }
}

/// Why q: the best, or as good as it, in predicting something.
pub(super) fn because(what: &str, (q, best): (usize, usize)) -> String {
    match q == best {
        true => format!("predicts {what} best"),
        false => format!("predicts {what} as well as {best}, the best, within a standard error"),
    }
}

/// Mean and standard error; `None` for fewer than two numbers or one that is not finite.
fn mean_and_error(numbers: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let n = numbers.clone().count() as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    let variance = numbers.map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (n > 1.0 && variance.is_finite()).then(|| (mean, (variance / n).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_standard_error_of_paired_differences() {
        // Losses against the best, q = 2: at q = 0 8, 10, 12, at q = 1 −1, 0, 4 with mean 1 and error √(7/3).
        let scores = FoldScores(vec![vec![2.0, 11.0, 10.0], vec![10.0, 20.0, 20.0], vec![18.0, 26.0, 30.0]]);
        let (mean, error) = scores.mean_and_error(1).unwrap();
        assert!((mean - 19.0).abs() < 1e-15 && (error - (57.0f64 / 3.0).sqrt()).abs() < 1e-14);
        assert_eq!(scores.best(), Some(2));
        assert_eq!(scores.fewest(), Some((1, 2)));
    }

    #[test]
    fn without_numbers_nothing_is_chosen() {
        assert_eq!(FoldScores::default().fewest(), None);
        assert_eq!(FoldScores(vec![vec![1.0, 2.0]]).fewest(), None, "one fold has no error");
        assert_eq!(FoldScores(vec![vec![1.0, f64::NAN], vec![1.0, 2.0]]).fewest(), None);
        // Ties go to fewer.
        assert_eq!(FoldScores(vec![vec![0.0, 0.0], vec![0.0, 0.0]]).fewest(), Some((0, 0)));
    }
}
