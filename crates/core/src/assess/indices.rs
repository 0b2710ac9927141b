//! How well a factor model fits a covariance matrix: the test, and the indices that tables of factor analyses
//! carry.

use serde::{Deserialize, Serialize};

use super::adequacy::{check_rows, upper_tail};
use super::correlation::Correlation;
use super::noncentral::noncentrality;
use super::parameters::{FactorModel, check_length};
use crate::error::Result;
use crate::linalg::{Cholesky, Mat, MatRef, product};

/// How well a factor model fits.
///
/// F = tr SΣ⁻¹ − log |SΣ⁻¹| − p is the discrepancy of the sample's covariance S and the model's Σ (the same
/// for correlations), F₀ that of uncorrelated features, d and d₀ the degrees of freedom of both. What needs a
/// number that is not there is `None`:
///
/// - n unknown: everything but `discrepancy`, `dof`, `parameters`, `srmr` and `rmsr`;
/// - S singular (n ≤ p, copies among the features): `discrepancy` is infinite, so it and all that rests on
///   χ²;
/// - no degrees of freedom: `p_value`, `rmsea`, `rmsea_interval`, `cfi`, `tli`;
/// - n so small that Bartlett's correction is not positive: `chi2` and what rests on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitIndices {
    /// n, the rows (or total weight) behind S.
    pub rows: Option<f64>,
    /// F.
    pub discrepancy: Option<f64>,
    /// χ² = (n − 1 − (2p + 5)/6 − 2q/3) F: likelihood ratio against any covariance, with Bartlett's
    /// correction \[B50, LM71\], as in R's factanal and psych.
    pub chi2: Option<f64>,
    /// d = ((p − q)² − p − q)/2; negative when there are more parameters than covariances.
    pub dof: i64,
    /// Probability of a larger χ² when the model holds.
    pub p_value: Option<f64>,
    /// χ₀² = (n − 1 − (2p + 5)/6) F₀ of uncorrelated features: Bartlett's test of sphericity.
    pub null_chi2: Option<f64>,
    /// d₀ = p(p − 1)/2.
    pub null_dof: i64,
    /// Root mean square error of approximation, √max(χ²/(d n) − 1/(n − 1), 0), in psych's reading of \[S90\].
    pub rmsea: Option<f64>,
    /// Its 90 % interval: √(λ/(d (n − 1))) for the noncentralities λ under which a χ² as observed or smaller
    /// has probability 0.95 and 0.05 \[BC93\].
    pub rmsea_interval: Option<(f64, f64)>,
    /// Comparative fit index, 1 − max(χ² − d, 0)/max(χ₀² − d₀, χ² − d, 0) \[B90\], both χ² with their own
    /// correction.
    pub cfi: Option<f64>,
    /// Tucker and Lewis's index, (F₀/d₀ − F/d)/(F₀/d₀ − 1/m) with m the multiplier of F in χ² \[TL73\]; may
    /// exceed 1. `None` also where uncorrelated features fit so well that it has no meaning.
    pub tli: Option<f64>,
    /// Standardised root mean square residual: over the lower triangle of (S − Σ)/√(sᵢᵢsⱼⱼ), diagonal
    /// included \[B95\], as in lavaan.
    pub srmr: f64,
    /// The same without the diagonal: psych's `rms`.
    pub rmsr: f64,
    /// ℓ, of all rows.
    pub log_likelihood: Option<f64>,
    /// Free parameters k = 2p + pq − q(q − 1)/2, the means among them.
    pub parameters: i64,
    /// −2ℓ + 2k.
    pub aic: Option<f64>,
    /// −2ℓ + k log n.
    pub bic: Option<f64>,
    /// χ² − d log n: by how much BIC prefers any covariance to this model (below 0: it prefers the model);
    /// psych's `BIC`.
    pub bic_difference: Option<f64>,
}

/// Log-likelihoods of the observed cells of rows with missing values, each at its maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likelihoods {
    /// Of the factor model.
    pub model: f64,
    /// Of any mean and covariance.
    pub saturated: f64,
    /// Of any mean and uncorrelated features.
    pub independent: f64,
}

impl FitIndices {
    /// Of a covariance matrix S (p × p), the number of rows behind it, and the model fitted to it, all on one
    /// scale.
    ///
    /// For correlations give the correlation matrix and the standardised model: all but `log_likelihood`,
    /// `aic` and `bic` are the same. The log-likelihood, when it is not given, is that of rows with
    /// covariance S (divisor n) about the model's mean.
    ///
    /// ```
    /// use covary::assess::{FactorModel, FitIndices};
    /// use covary::linalg::Mat;
    ///
    /// // One factor behind four features, and a sample that shows exactly that.
    /// let loadings = Mat::from_fn(4, 1, |_, _| 0.8);
    /// let s = Mat::from_fn(4, 4, |i, j| if i == j { 1.0 } else { 0.64 });
    /// let model = FactorModel::new(loadings.as_ref(), None, &[0.36; 4])?;
    /// let fit = FitIndices::of(s.as_ref(), Some(100.0), &model, None)?;
    /// assert_eq!(fit.dof, 2);
    /// assert!(fit.chi2.unwrap() < 1e-10 && fit.cfi == Some(1.0) && fit.rmsea == Some(0.0));
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// When S is not a covariance matrix of the model's features (a constant feature is named).
    pub fn of(
        covariance: MatRef<'_, f64>,
        rows: Option<f64>,
        model: &FactorModel<'_>,
        log_likelihood: Option<f64>,
    ) -> Result<Self> {
        check_length("features of the covariance", model.n_features(), covariance.nrows())?;
        check_rows(rows)?;
        let sample = Correlation::new(covariance)?;
        let compared = Compared::new(&sample, rows, model)?;
        let log_likelihood = log_likelihood.or_else(|| rows.map(|n| compared.log_likelihood(n, &sample)));
        let test = rows.and_then(|n| Test::new(&compared, n, model, bartlett(n, model)));
        Ok(Self::from_parts(&compared, test.as_ref(), rows, model, log_likelihood))
    }

    /// Of rows with missing values: likelihood ratios take the place of discrepancies, without Bartlett's
    /// correction, which is for complete rows.
    ///
    /// S is the covariance (p × p) under which the observed cells are most likely, and n counts rows, however
    /// many of their cells are observed.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_incomplete(
        covariance: MatRef<'_, f64>,
        rows: f64,
        model: &FactorModel<'_>,
        likelihoods: Likelihoods,
    ) -> Result<Self> {
        check_length("features of the covariance", model.n_features(), covariance.nrows())?;
        check_rows(Some(rows))?;
        let ratio = |ell: f64| Some((2.0 * (likelihoods.saturated - ell) / rows).max(0.0));
        let compared = Compared {
            discrepancy: ratio(likelihoods.model),
            null_discrepancy: ratio(likelihoods.independent),
            ..Compared::new(&Correlation::new(covariance)?, Some(rows), model)?
        };
        let test = Test::new(&compared, rows, model, (rows, rows));
        Ok(Self::from_parts(&compared, test.as_ref(), Some(rows), model, Some(likelihoods.model)))
    }

    fn from_parts(
        c: &Compared,
        test: Option<&Test>,
        rows: Option<f64>,
        model: &FactorModel<'_>,
        ell: Option<f64>,
    ) -> Self {
        let index = |f: fn(&Test) -> f64| test.filter(|t| t.dof > 0.0).map(f);
        let k = model.parameters() as f64;
        let p = model.n_features();
        Self {
            rows,
            discrepancy: c.discrepancy,
            chi2: test.map(|t| t.chi2),
            dof: model.dof(),
            p_value: test.and_then(|t| upper_tail(t.chi2, t.dof)),
            null_chi2: test.map(|t| t.null_chi2),
            null_dof: (p * (p - 1) / 2) as i64,
            rmsea: index(Test::rmsea),
            rmsea_interval: test.filter(|t| t.dof > 0.0).map(Test::rmsea_interval),
            cfi: index(Test::cfi),
            tli: index(Test::tli).filter(|v| v.is_finite()),
            srmr: (c.squared_residuals(true) / (p * (p + 1) / 2) as f64).sqrt(),
            rmsr: (c.squared_residuals(false) / (p * (p - 1) / 2).max(1) as f64).sqrt(),
            log_likelihood: ell,
            parameters: model.parameters(),
            aic: ell.map(|l| 2.0 * (k - l)),
            bic: ell.zip(rows).map(|(l, n)| k * n.ln() - 2.0 * l),
            bic_difference: test.map(|t| t.chi2 - t.dof * t.rows.ln()),
        }
    }
}

/// Sample and model side by side, both divided by the sample's deviations.
struct Compared {
    residual: Mat<f64>, // (p × p) S − Σ, standardised
    log_det: f64,       // log |Σ|, standardised
    trace: f64,         // tr SΣ⁻¹
    discrepancy: Option<f64>,
    null_discrepancy: Option<f64>,
}

impl Compared {
    fn new(sample: &Correlation, rows: Option<f64>, model: &FactorModel<'_>) -> Result<Self> {
        let d = &sample.deviations;
        let p = d.len();
        let implied = model.covariance();
        let residual = Mat::from_fn(p, p, |i, j| sample.matrix[(i, j)] - implied[(i, j)] / d[i] / d[j]);
        let (log_det, excess) = likelihood_parts(&residual, d, model)?;
        // A covariance of no more rows than features is singular whatever they hold.
        let few = rows.is_some_and(|n| n <= p as f64);
        let sample_log_det = if few { None } else { sample.log_det() };
        Ok(Self {
            residual,
            log_det,
            trace: excess + p as f64,
            discrepancy: sample_log_det.map(|s| (excess + log_det - s).max(0.0)),
            null_discrepancy: sample_log_det.map(|s| (-s).max(0.0)),
        })
    }

    /// −n/2 (p log 2π + log |Σ| + tr SΣ⁻¹), with Σ in the units of the data.
    fn log_likelihood(&self, rows: f64, sample: &Correlation) -> f64 {
        let units: f64 = sample.deviations.iter().map(|d| 2.0 * d.ln()).sum();
        let p = sample.deviations.len() as f64;
        -0.5 * rows * (p * std::f64::consts::TAU.ln() + self.log_det + units + self.trace)
    }

    /// Sum of squares over the lower triangle, with or without the diagonal.
    fn squared_residuals(&self, diagonal: bool) -> f64 {
        let p = self.residual.nrows();
        let first = |j: usize| if diagonal { j } else { j + 1 };
        (0..p).flat_map(|j| (first(j)..p).map(move |i| (i, j))).map(|ij| self.residual[ij].powi(2)).sum()
    }
}

/// log |Σ| and tr SΣ⁻¹ − p = tr (S − Σ)Σ⁻¹, which does not cancel when the fit is close; all standardised by
/// deviations d.
///
/// With Φ = KKᵀ, A = Ψ^-½ΛK and M = I + AᵀA (q × q): |Σ| = |Ψ||M| and Σ⁻¹ = Ψ^-½(I − A M⁻¹Aᵀ)Ψ^-½.
fn likelihood_parts(residual: &Mat<f64>, d: &[f64], model: &FactorModel<'_>) -> Result<(f64, f64)> {
    let noise: Vec<f64> = model.uniquenesses().iter().zip(d).map(|(psi, d)| psi.sqrt() / d).collect();
    let w = model.unrotated()?;
    let a = Mat::from_fn(w.nrows(), w.ncols(), |j, k| w[(j, k)] / d[j] / noise[j]);
    let mut m = product(a.transpose(), a.as_ref());
    (0..m.ncols()).for_each(|k| m[(k, k)] += 1.0);
    let factor = Cholesky::new(m, "the covariance of the model")?;
    let log_det = factor.log_det() + noise.iter().map(|v| 2.0 * v.ln()).sum::<f64>();
    let scaled = Mat::from_fn(w.nrows(), w.ncols(), |j, k| a[(j, k)] / noise[j]);
    let mut inner = product(scaled.transpose(), product(residual.as_ref(), scaled.as_ref()).as_ref());
    factor.solve(inner.as_mut());
    let own: f64 = noise.iter().enumerate().map(|(j, v)| residual[(j, j)] / v / v).sum();
    Ok((log_det, own - (0..inner.ncols()).map(|k| inner[(k, k)]).sum::<f64>()))
}

/// Bartlett's multipliers of the discrepancies of a model and of uncorrelated features \[B50, LM71\].
fn bartlett(rows: f64, model: &FactorModel<'_>) -> (f64, f64) {
    let (p, q) = (model.n_features() as f64, model.n_factors() as f64);
    let null = rows - 1.0 - (2.0 * p + 5.0) / 6.0;
    (null - 2.0 * q / 3.0, null)
}

/// The likelihood-ratio test and what follows from it.
struct Test {
    rows: f64,
    multiplier: f64,
    discrepancy: f64,
    null_discrepancy: f64,
    chi2: f64,
    dof: f64,
    null_chi2: f64,
    null_dof: f64,
}

impl Test {
    /// The multipliers make a χ² of the discrepancies of the model and of uncorrelated features.
    fn new(
        c: &Compared,
        rows: f64,
        model: &FactorModel<'_>,
        (multiplier, null_multiplier): (f64, f64),
    ) -> Option<Self> {
        let p = model.n_features() as f64;
        let (discrepancy, null_discrepancy) = c.discrepancy.zip(c.null_discrepancy)?;
        (multiplier > 0.0).then(|| Self {
            rows,
            multiplier,
            discrepancy,
            null_discrepancy,
            chi2: multiplier * discrepancy,
            dof: model.dof() as f64,
            null_chi2: null_multiplier * null_discrepancy,
            null_dof: p * (p - 1.0) / 2.0,
        })
    }

    fn rmsea(&self) -> f64 {
        (self.chi2 / (self.dof * self.rows) - 1.0 / (self.rows - 1.0)).max(0.0).sqrt()
    }

    fn rmsea_interval(&self) -> (f64, f64) {
        let end = |p: f64| (noncentrality(self.chi2, self.dof, p) / (self.dof * (self.rows - 1.0))).sqrt();
        (end(0.95), end(0.05))
    }

    fn cfi(&self) -> f64 {
        let excess = (self.chi2 - self.dof).max(0.0);
        let worst = (self.null_chi2 - self.null_dof).max(excess);
        if worst == 0.0 { 1.0 } else { 1.0 - excess / worst }
    }

    /// NaN where the null model's discrepancy is no larger than chance makes it.
    fn tli(&self) -> f64 {
        let null = self.null_discrepancy / self.null_dof;
        let chance = 1.0 / self.multiplier;
        if null > chance { (null - self.discrepancy / self.dof) / (null - chance) } else { f64::NAN }
    }
}
