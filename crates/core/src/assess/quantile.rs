//! Quantiles of the distributions that intervals come from, for any degrees of freedom.

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal, StudentsT};

/// From here on the series for t is exact to 1e-11, while the inverse of the beta function loses digits.
const MANY_OF_T: f64 = 1e3;
/// From here on the series for χ² is exact to 1e-11, while iterations on the gamma function slow down.
const MANY_OF_CHI2: f64 = 1e5;

/// Of the standard normal distribution.
pub(super) fn normal(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// Of Student's t with `dof` > 0 degrees of freedom; with many by Cornish and Fisher's series \[GL46\].
pub(super) fn student(dof: f64, probability: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, dof) {
        Ok(t) if dof < MANY_OF_T => t.inverse_cdf(probability),
        _ => {
            let z = normal(probability);
            let terms = [
                (z.powi(3) + z) / 4.0,
                (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
                (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
            ];
            z + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / dof)
        }
    }
}

/// Of χ² with `dof` > 0 degrees of freedom; with many by Cornish and Fisher's series \[GL46\].
pub(super) fn chi2(dof: f64, probability: f64) -> f64 {
    match ChiSquared::new(dof) {
        Ok(chi2) if dof < MANY_OF_CHI2 => {
            // The search ends at an absolute error of 1e-9, too coarse near 0: one more step of Newton's.
            let x = chi2.inverse_cdf(probability);
            x - (chi2.cdf(x) - probability) / chi2.pdf(x)
        }
        _ => {
            let (z, root) = (normal(probability), (2.0 * dof).sqrt());
            dof + root * z + 2.0 / 3.0 * (z * z - 1.0) + (z.powi(3) - 7.0 * z) / (9.0 * root)
                - (6.0 * z.powi(4) + 14.0 * z * z - 32.0) / (405.0 * dof)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_r() {
        // R 4.2.2: degrees of freedom, qt(c(.975, .6), dof), qchisq(c(.025, .975), dof).
        let table = [
            (0.5, [164.557_673_480_5, 0.397_975_426_784_8], [5.273_202_591_26e-7, 3.433_235_299_961]),
            (1.0, [12.706_204_736_17, 0.324_919_696_232_9], [0.000_982_069_117_175_3, 5.023_886_187_315]),
            (7.0, [2.364_624_251_593, 0.263_166_861_352], [1.689_869_180_677, 16.012_764_274_63]),
            (199.5, [1.971_926_307_902, 0.253_685_225_158_7], [162.277_051_636_4, 240.508_819_495_6]),
            (999.0, [1.962_341_461_133, 0.253_414_583_330_4], [913.300_998_302_1, 1_088.487_067_726]),
            (1001.0, [1.962_336_705_281, 0.253_414_448_483_5], [915.213_331_220_4, 1_090.574_735_899]),
            (99_999.0, [1.959_987_707_772, 0.253_347_777_163_9], [99_124.377_683_28, 100_877.410_923]),
            (100_001.0, [1.959_987_707_297, 0.253_347_777_150_4], [99_126.368_918_04, 100_879.419_688_3]),
            (1e7, [1.959_964_221_767, 0.253_347_109_876], [9_991_236.669_054, 10_008_767.119_56]),
            (1e10, [1.959_963_984_777, 0.253_347_103_142_5], [9_999_722_821.129, 10_000_277_182.66]),
        ];
        for (dof, t, chi) in table {
            let ours = [student(dof, 0.975), student(dof, 0.6), chi2(dof, 0.025), chi2(dof, 0.975)];
            for (ours, r) in ours.into_iter().zip(t.into_iter().chain(chi)) {
                assert!((ours / r - 1.0).abs() < 1e-9, "{dof}: {ours} and {r}");
            }
        }
    }

    #[test]
    fn lower_quantiles_of_symmetric_distributions_mirror_upper_ones() {
        for dof in [3.0, 1e6] {
            assert!((student(dof, 0.1) + student(dof, 0.9)).abs() < 1e-12);
        }
        assert!((normal(0.1) + normal(0.9)).abs() < 1e-12);
    }
}
