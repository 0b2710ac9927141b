//! A model file: the model, the names of its features and how it was found.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::check::{check_eigenvalues, check_names, check_report};
use super::container::{Container, Tensor, to_bytes};
use crate::error::{Error, Result};
use crate::estimator::{Fit, Report};
use crate::linalg::Mat;
use crate::model::{AnyModel, Kind, Model, PrincipalComponents, StoredArrays};

/// Names of features that have none.
fn default_names(p: usize) -> Vec<String> {
    (1..=p).map(|j| format!("x{j}")).collect()
}

/// A model with its provenance, as it stands in a file.
#[derive(Debug, Clone)]
pub struct SavedModel {
    /// The model.
    pub model: AnyModel,
    /// Names of the features, p.
    pub features: Vec<String>,
    /// Eigenvalues of the data's covariance that the fit computed (divisor n): at least q, or none of a model
    /// without loadings.
    pub eigenvalues: Vec<f64>,
    /// How it was found.
    pub report: Report,
}

#[derive(Serialize, Deserialize)]
struct Details {
    features: Vec<String>,
    report: Report,
    /// Of classical PCA: whether coordinates are scaled to unit variance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whiten: bool,
}

impl SavedModel {
    /// A fit with the names of its features; `x1`, `x2`, … when there are none.
    ///
    /// # Errors
    /// When there is not one name per feature.
    pub fn new(fit: impl Into<Fit<AnyModel>>, features: Option<Vec<String>>) -> Result<Self> {
        let Fit { model, report } = fit.into();
        let features = named(features, model.n_features())?;
        let mut eigenvalues = match &report.spectrum {
            Some(spectrum) => spectrum.eigenvalues().to_vec(),
            None if model.as_loadings().is_some() => {
                as_it_was_fitted(&model, &report)?.with_loadings()?.variances()?
            }
            None => model.component_variances().unwrap_or_default().to_vec(),
        };
        if model.as_loadings().is_some() {
            // Directions of no variance may have been added.
            eigenvalues.resize(eigenvalues.len().max(model.n_latent()), 0.0);
        }
        Ok(Self { model, features, eigenvalues, report })
    }

    /// A model whose numbers were given instead of fitted: of no rows, with the variances along its axes.
    ///
    /// # Errors
    /// When there is not one name per feature, or the model's numbers make no density.
    pub fn given(model: impl Model, features: Option<Vec<String>>) -> Result<Self> {
        Self::of_numbers(Arc::new(model), features)
    }

    /// The same of a model of any kind.
    ///
    /// # Errors
    /// As [`given`](Self::given).
    pub fn of_numbers(model: AnyModel, features: Option<Vec<String>>) -> Result<Self> {
        let report = Report::of_numbers(&*model)?;
        Self::new(Fit { model, report }, features)
    }

    /// Whether the features have names of their own, not those that nameless ones get.
    pub fn named(&self) -> bool {
        self.features != default_names(self.features.len())
    }

    /// Share of the total variance along each of the q directions; 0 when there is no variance.
    pub fn explained_ratio(&self) -> Vec<f64> {
        let leading = self.eigenvalues.iter().take(self.model.n_latent());
        let share =
            |v: &f64| if self.report.total_variance > 0.0 { v / self.report.total_variance } else { 0.0 };
        leading.map(share).collect()
    }

    /// Singular values √(nλ) of the centred rows that belong to the q directions; 0 when no rows were fitted.
    pub fn singular_values(&self) -> Vec<f64> {
        let leading = self.eigenvalues.iter().take(self.model.n_latent());
        leading.map(|v| (v.max(0.0) * self.report.weight).sqrt()).collect()
    }

    /// The bytes of the file: the same model gives the same bytes.
    ///
    /// # Errors
    /// When a number cannot be written (none of a valid model).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (features, report) = (self.features.clone(), self.report.clone());
        let whiten = self.principal_components().is_some_and(PrincipalComponents::is_whitened);
        let details = Details { features, report, whiten };
        let arrays = self.model.arrays();
        let mut tensors: BTreeMap<&str, Tensor> =
            arrays.iter().map(|(name, array)| (*name, array.into())).collect();
        if !self.eigenvalues.is_empty() || self.model.as_loadings().is_some() {
            tensors.insert("eigenvalues", Tensor::vector(&self.eigenvalues));
        }
        if let Some(scaled) = &self.report.scaled {
            tensors.insert("scale", Tensor::vector(&scaled.factors));
        }
        to_bytes(self.model.kind().name, &details, &tensors)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// When they are not a model, are damaged or of a newer version, or hold impossible numbers.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = Container::from_bytes(bytes)?;
        let kind = Kind::named(&file.kind)
            .ok_or_else(|| Error::Format(format!("it holds '{}', not a model", file.kind)))?;
        let model = (kind.read)(&file).map_err(impossible)?;
        let Details { features, mut report, whiten } = file.details()?;
        if let Some(scaled) = &mut report.scaled {
            scaled.factors = file.vector("scale", Some(model.n_features()))?;
        }
        let eigenvalues = match file.has("eigenvalues") || model.as_loadings().is_some() {
            true => file.vector("eigenvalues", None)?,
            false => Vec::new(),
        };
        let saved = Self { eigenvalues, model, features, report }.whitened(whiten);
        check_names(&saved.features, saved.model.n_features())?;
        check_eigenvalues(&saved)?;
        check_report(&saved.report, &*saved.model)?;
        Ok(saved)
    }

    /// The same with coordinates of classical PCA scaled to unit variance, or not; other models stay as they
    /// are.
    pub fn whitened(self, whiten: bool) -> Self {
        match self.principal_components() {
            Some(m) if m.is_whitened() != whiten => {
                Self { model: Arc::new(m.clone().whitened(whiten)), ..self }
            }
            _ => self,
        }
    }

    /// Directions of the components (p × q), of the features as they were divided before the fit if they
    /// were.
    ///
    /// # Errors
    /// When the model has none, or a decomposition does not converge.
    pub fn axes(&self) -> Result<Mat<f64>> {
        as_it_was_fitted(&self.model, &self.report)?.with_loadings()?.axes()
    }

    fn principal_components(&self) -> Option<&PrincipalComponents> {
        self.model.downcast_ref()
    }

    /// Checks the features of data against the model's, by name when the data have names.
    ///
    /// # Errors
    /// The first difference.
    pub fn check_features(&self, found: usize, names: Option<&[String]>) -> Result<()> {
        if found != self.features.len() {
            return Err(Error::FeatureCount { expected: self.features.len(), found });
        }
        let pairs = self.features.iter().zip(names.unwrap_or_default());
        match pairs.enumerate().find(|(_, (a, b))| a != b) {
            None => Ok(()),
            Some((position, (expected, found))) => {
                Err(Error::FeatureName { position, expected: expected.clone(), found: found.clone() })
            }
        }
    }
}

/// The names, when there is one for each of p features; names for nameless ones.
fn named(features: Option<Vec<String>>, p: usize) -> Result<Vec<String>> {
    let features = features.unwrap_or_else(|| default_names(p));
    if features.len() != p {
        return Err(Error::Length { what: "feature names", expected: p, found: features.len() });
    }
    Ok(features)
}

/// The model of the features as they were divided before the fit, if they were.
fn as_it_was_fitted(model: &AnyModel, report: &Report) -> Result<AnyModel> {
    let Some(scaled) = &report.scaled else { return Ok(Arc::clone(model)) };
    let inverse: Vec<f64> = scaled.factors.iter().map(|d| 1.0 / d).collect();
    model.rescaled(&inverse)
}

/// What a constructor says of numbers that no model can have.
fn impossible(error: Error) -> Error {
    match error {
        Error::Format(_) => error,
        other => Error::Format(format!("impossible numbers: {other}")),
    }
}
