//! Bayesian PCA: what a new row looks like when the parameters are known up to a distribution.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{
    Decode, Density, Encode, Explain, Fill, LatentPosterior, Loadings, Reconstruct, numbered,
};
use super::gaussian::Gaussian;
use super::{
    AnyModel, Capability, Factors, Kind, LinearGaussian, Model, Noise, Posterior, Reconstruction, ppca,
};
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "bpca",
    title: "Bayesian PCA",
    about: "keeps the components that the data support, and knows how well it knows them",
    components: "components",
    capabilities: &Capability::LINEAR_GAUSSIAN,
    read: |file| Ok(Arc::new(read(file)?)),
};

fn read(file: &dyn StoredArrays) -> Result<Predictive> {
    let mean = file.mean()?;
    let loadings = file.matrix("loadings", [Some(mean.len()), None])?;
    let (p, q) = (mean.len(), loadings.ncols());
    let known = match file.has("loadings_std") {
        true => Some(Uncertainty {
            loadings: file.matrix("loadings_std", [Some(p), Some(q)])?,
            mean: file.vector("mean_std", Some(p))?,
        }),
        false => None,
    };
    // The precision of a column of no length is infinite.
    let precisions = file.vector_with_limits("precisions", Some(q))?;
    let noise = match file.vector("noise_variance", None)?.as_slice() {
        [v] => Noise::Isotropic(*v),
        each => Noise::Diagonal(each.to_vec()),
    };
    Predictive::new(mean, loadings, noise, precisions, known)
}

/// Standard deviations of the parameters.
#[derive(Debug, Clone)]
pub struct Uncertainty {
    /// Of W (p × q).
    pub loadings: Mat<f64>,
    /// Of μ (p).
    pub mean: Vec<f64>,
}

/// A linear-Gaussian model whose columns of W have a precision α each, with the uncertainty of W and μ in its
/// density.
///
/// With $w_j \sim N(\bar w_j, S_j)$ and $\mu_j \sim N(\bar\mu_j, s_j)$ a new row has mean $\bar\mu$ and
/// covariance $\bar W \bar W^\top + \operatorname{diag}(\sigma^2 + \operatorname{tr} S_j + s_j)$; the normal
/// density of that mean and covariance answers every question, so deviations of imputed cells, log densities,
/// T² and p-values include what is not known.
#[derive(Debug, Clone)]
pub struct Predictive {
    gaussian: LinearGaussian,
    noise: Noise,
    precisions: Vec<f64>,
    uncertainty: Option<Uncertainty>,
}

impl Predictive {
    /// Of the means of μ (p) and W (p × q), the noise variance σ² and the precision α of each column (q);
    /// without uncertainty, W and μ are points.
    ///
    /// # Errors
    /// When shapes disagree, or a number is not finite or negative.
    pub fn new(
        mean: Vec<f64>,
        loadings: Mat<f64>,
        noise: impl Into<Noise>,
        precisions: Vec<f64>,
        uncertainty: Option<Uncertainty>,
    ) -> Result<Self> {
        let noise = noise.into();
        let (p, q) = (loadings.nrows(), loadings.ncols());
        check_length("precisions", q, precisions.len())?;
        if let Some(known) = &uncertainty {
            check_length("deviations of the mean", p, known.mean.len())?;
            check_length("rows of the deviations of the loadings", p, known.loadings.nrows())?;
            check_length("columns of the deviations of the loadings", q, known.loadings.ncols())?;
        }
        let negative = |x: &&f64| x.is_nan() || **x < 0.0;
        let known = uncertainty.iter();
        let columns = known.clone().flat_map(|known| (0..q).map(|k| known.loadings.col_as_slice(k)));
        let deviations = known.map(|known| known.mean.as_slice()).chain(columns).flatten();
        if let Some(bad) = precisions.iter().chain(deviations).find(negative) {
            let (name, value) = ("a precision or deviation", bad.to_string());
            return Err(Error::Parameter { name, value, allowed: "0 or positive" });
        }
        // Checks the noise by itself too.
        let gaussian = LinearGaussian::new(mean, loadings, noise.clone())?;
        let gaussian = match &uncertainty {
            None => gaussian,
            Some(known) => gaussian.with_noise(predictive_noise(&noise, known))?,
        };
        Ok(Self { gaussian, noise, precisions, uncertainty })
    }

    /// Of means of μ (p) and W (p × q) that were given, each column with its best precision, α = p / E‖w‖².
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn given(
        mean: Vec<f64>,
        loadings: Mat<f64>,
        noise: impl Into<Noise>,
        uncertainty: Option<Uncertainty>,
    ) -> Result<Self> {
        let length = |k: usize| {
            let spread = uncertainty
                .as_ref()
                .filter(|u| k < u.loadings.ncols())
                .map(|u| u.loadings.col(k).squared_norm_l2());
            loadings.col(k).squared_norm_l2() + spread.unwrap_or(0.0)
        };
        let precisions = (0..loadings.ncols()).map(|k| loadings.nrows() as f64 / length(k)).collect();
        Self::new(mean, loadings, noise, precisions, uncertainty)
    }

    /// The model of some of the features, in the given order.
    ///
    /// # Errors
    /// When a feature does not exist.
    pub fn marginal(&self, features: &[usize]) -> Result<Self> {
        let gaussian = self.gaussian.marginal(features)?;
        let uncertainty = self.uncertainty.as_ref().map(|known| Uncertainty {
            loadings: Mat::from_fn(features.len(), self.n_latent(), |j, k| known.loadings[(features[j], k)]),
            mean: features.iter().map(|&j| known.mean[j]).collect(),
        });
        let noise = self.noise.select(features);
        Ok(Self { gaussian, uncertainty, noise, precisions: self.precisions.clone() })
    }

    /// The density of a new row.
    pub fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    /// Mean of μ (p).
    pub fn mean(&self) -> &[f64] {
        self.gaussian.mean()
    }

    /// Number of components that are left, q.
    pub fn n_latent(&self) -> usize {
        self.gaussian.n_latent()
    }

    /// Variance of the noise of a cell when W and μ are known: 1/E\[τ\]; one for all features, unless they
    /// were scaled.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// The same as one number: its mean over the features.
    pub fn noise_variance(&self) -> f64 {
        self.noise.mean()
    }

    /// α of each column of W (q): the reciprocal of its mean square.
    pub fn precisions(&self) -> &[f64] {
        &self.precisions
    }

    /// How well W and μ are known; `None` when they are points (ARD).
    pub fn uncertainty(&self) -> Option<&Uncertainty> {
        self.uncertainty.as_ref()
    }
}

/// The noise and what is not known of each feature; one number where it is the same for all.
fn predictive_noise(noise: &Noise, known: &Uncertainty) -> Noise {
    let of = |(j, (w, mean)): (usize, (f64, &f64))| noise.of(j) + w + mean * mean;
    let rows = known.loadings.row_iter().map(|w| w.squared_norm_l2());
    let each: Vec<f64> = rows.zip(&known.mean).enumerate().map(of).collect();
    match each.iter().all(|v| *v == each[0]) {
        true => each.first().map_or_else(|| noise.clone(), |v| Noise::Isotropic(*v)),
        false => Noise::Diagonal(each),
    }
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

impl Model for Predictive {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.mean().len()
    }

    fn n_latent(&self) -> usize {
        self.gaussian.n_latent()
    }

    fn arrays(&self) -> Arrays {
        let mut arrays = ppca::arrays(&self.gaussian);
        let noise = match &self.noise {
            Noise::Isotropic(v) => vec![*v],
            Noise::Diagonal(each) => each.clone(),
        };
        arrays.insert("noise_variance", Array::Vector(noise));
        arrays.insert("precisions", Array::Vector(self.precisions.clone()));
        if let Some(known) = &self.uncertainty {
            arrays.insert("loadings_std", Array::Matrix(known.loadings.clone()));
            arrays.insert("mean_std", Array::Vector(known.mean.clone()));
        }
        arrays
    }

    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let point =
            LinearGaussian::new(self.mean().to_vec(), self.gaussian.loadings().clone(), self.noise.clone())?;
        let point = ppca::rescaled(&point, scale)?;
        let uncertainty = self.uncertainty.as_ref().map(|known| Uncertainty {
            loadings: Mat::from_fn(scale.len(), self.n_latent(), |j, k| known.loadings[(j, k)] * scale[j]),
            mean: known.mean.iter().zip(scale).map(|(s, d)| s * d).collect(),
        });
        let (mean, loadings, noise) =
            (point.mean().to_vec(), point.loadings().clone(), point.noise().clone());
        Ok(Arc::new(Self::new(mean, loadings, noise, self.precisions.clone(), uncertainty)?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
        Some(self)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
    }

    fn as_density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn as_explain(&self) -> Option<&dyn Explain> {
        Some(self)
    }

    fn as_fill(&self) -> Option<&dyn Fill> {
        Some(self)
    }

    fn as_loadings(&self) -> Option<&dyn Loadings> {
        Some(self)
    }
}

impl Gaussian for Predictive {
    fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    fn marginal_model(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(self.marginal(features)?))
    }
}

impl Encode for Predictive {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', self.n_latent())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.gaussian.latent_mean(rows)
    }
}

impl LatentPosterior for Predictive {
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        self.gaussian.posterior(rows)
    }
}

impl Decode for Predictive {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        self.gaussian.decode(latent)
    }
}

impl Reconstruct for Predictive {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        self.gaussian.reconstruct(rows, kind)
    }
}

impl Loadings for Predictive {
    fn mean(&self) -> &[f64] {
        self.gaussian.mean()
    }

    fn loadings(&self) -> &Mat<f64> {
        self.gaussian.loadings()
    }

    fn deviations(&self) -> Option<&Mat<f64>> {
        self.uncertainty.as_ref().map(|known| &known.loadings)
    }

    fn noise(&self) -> Noise {
        self.noise.clone()
    }

    fn axes(&self) -> Result<Mat<f64>> {
        Ok(self.gaussian.principal_axes()?.0)
    }

    fn variances(&self) -> Result<Vec<f64>> {
        Ok(self.gaussian.principal_axes()?.1)
    }

    fn factors(&self) -> Factors {
        Factors::new(self.gaussian.clone())
    }
}
