//! A model file: the model, the names of its features and how it was found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::check::{check_eigenvalues, check_names, check_report};
use super::container::{Container, Tensor, to_bytes};
use crate::algorithm::Stop;
use crate::error::{Error, Result};
use crate::estimator::{FactorFit, Fit, Plan, Report, Solver};
use crate::linalg::Mat;
use crate::model::{Factors, LinearGaussian, Model, Noise, Predictive, PrincipalComponents, Uncertainty};

/// Names of features that have none.
fn default_names(p: usize) -> Vec<String> {
    (1..=p).map(|j| format!("x{j}")).collect()
}

/// A model with its provenance, as it stands in a file.
#[derive(Debug, Clone)]
pub struct SavedModel {
    /// The model.
    pub model: Model,
    /// Names of the features, p.
    pub features: Vec<String>,
    /// Eigenvalues of the data's covariance that the fit computed (divisor n): at least q.
    pub eigenvalues: Vec<f64>,
    /// How it was found.
    pub report: Report,
    /// Whether coordinates of classical PCA are to be scaled to unit variance; the wish of whoever saved it.
    pub whiten: bool,
}

#[derive(Serialize, Deserialize)]
struct Details {
    features: Vec<String>,
    report: Report,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whiten: bool,
}

impl SavedModel {
    /// A fit with the names of its features; `x1`, `x2`, … when there are none.
    ///
    /// # Errors
    /// When there is not one name per feature.
    pub fn new<M: Into<Model>>(fit: Fit<M>, features: Option<Vec<String>>) -> Result<Self> {
        let features = named(features, fit.spectrum.n_features())?;
        let eigenvalues = fit.spectrum.eigenvalues().to_vec();
        Ok(Self { model: fit.model.into(), features, eigenvalues, report: fit.report, whiten: false })
    }

    /// A fit of factors with the names of its features; `x1`, `x2`, … when there are none.
    ///
    /// # Errors
    /// When there is not one name per feature.
    pub fn of_factors(fit: FactorFit, features: Option<Vec<String>>) -> Result<Self> {
        let features = named(features, fit.model.n_features())?;
        let eigenvalues = along_factors(&fit.model);
        Ok(Self { model: fit.model.into(), features, eigenvalues, report: fit.report, whiten: false })
    }

    /// A model whose numbers were given instead of fitted: of no rows, with the variances along its axes.
    ///
    /// # Errors
    /// When there is not one name per feature, or the model's numbers make no density.
    pub fn given(model: impl Into<Model>, features: Option<Vec<String>>) -> Result<Self> {
        let model = model.into();
        let (p, q) = (model.n_features(), model.n_latent());
        let features = named(features, p)?;
        let (eigenvalues, total_variance) = {
            let gaussian = model.gaussian()?;
            let w = gaussian.loadings();
            let variance = |j: usize| gaussian.noise().of(j) + w.row(j).squared_norm_l2();
            let eigenvalues = match &model {
                Model::Pca(m) => m.variances().to_vec(),
                Model::Ppca(m) => m.principal_axes()?.1,
                Model::Fa(m) => along_factors(m),
                Model::Bpca(m) => m.gaussian().principal_axes()?.1,
            };
            (eigenvalues, (0..p).map(variance).sum())
        };
        let plan = Plan { solver: Solver::Given, reason: "the parameters were given".into(), memory: 0 };
        let report = Report {
            redundant: None,
            plan,
            rows: 0,
            weight: 0.0,
            features: p,
            components: q,
            log_likelihood: None,
            total_variance,
            holes: None,
            factor: None,
            bayes: None,
            rotation: None,
            stop: Stop::Converged,
            passes: 0,
            trace: Vec::new(),
            seconds: 0.0,
        };
        Ok(Self { model, features, eigenvalues, report, whiten: false })
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
        let details = Details { features, report, whiten: self.whiten };
        let mut tensors = BTreeMap::from([
            ("mean", Tensor::vector(self.model.mean())),
            ("eigenvalues", Tensor::vector(&self.eigenvalues)),
        ]);
        match &self.model {
            Model::Ppca(m) => insert_gaussian(&mut tensors, m),
            Model::Fa(m) => {
                insert_gaussian(&mut tensors, m.gaussian());
                if let Some(turn) = m.turn() {
                    tensors.insert("turn", Tensor::matrix(turn));
                }
            }
            Model::Bpca(m) => {
                tensors.insert("loadings", Tensor::matrix(m.gaussian().loadings()));
                tensors.insert("noise_variance", Tensor::vector(&[m.noise_variance()]));
                tensors.insert("precisions", Tensor::vector(m.precisions()));
                if let Some(known) = m.uncertainty() {
                    tensors.insert("loadings_std", Tensor::matrix(&known.loadings));
                    tensors.insert("mean_std", Tensor::vector(&known.mean));
                }
            }
            Model::Pca(m) => {
                tensors.insert("components", Tensor::matrix(&m.components().transpose().to_owned()));
                tensors.insert("noise_variance", Tensor::vector(&[m.noise_variance()]));
            }
        }
        to_bytes(self.model.kind(), &details, &tensors)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// When they are not a model, are damaged or of a newer version, or hold impossible numbers.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = Container::from_bytes(bytes)?;
        let model = read_model(&file).map_err(impossible)?;
        let Details { features, report, whiten } = file.details()?;
        let saved = Self { eigenvalues: file.vector("eigenvalues", None)?, model, features, report, whiten };
        check_names(&saved.features, saved.model.n_features())?;
        check_eigenvalues(&saved)?;
        check_report(&saved.report, &saved.model)?;
        Ok(saved)
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

/// Variance of the data that each factor explains, descending.
fn along_factors(model: &Factors) -> Vec<f64> {
    let (pattern, structure) = (model.pattern(), model.structure());
    let columns = pattern.col_iter().zip(structure.col_iter());
    let mut along: Vec<f64> =
        columns.map(|(a, b)| a.iter().zip(b.iter()).map(|(a, b)| a * b).sum()).collect();
    along.sort_by(|a, b| b.total_cmp(a));
    along
}

fn insert_gaussian(tensors: &mut BTreeMap<&'static str, Tensor>, model: &LinearGaussian) {
    tensors.insert("loadings", Tensor::matrix(model.loadings()));
    let noise = match model.noise() {
        Noise::Isotropic(v) => Tensor::vector(&[*v]),
        Noise::Diagonal(psi) => Tensor::vector(psi),
    };
    tensors.insert("noise_variance", noise);
}

/// What a constructor says of numbers that no model can have.
fn impossible(error: Error) -> Error {
    match error {
        Error::Format(_) => error,
        other => Error::Format(format!("impossible numbers: {other}")),
    }
}

/// The arrays of each kind; shapes follow from the length of the mean, p ≥ 1, and the number of components.
fn read_model(file: &Container) -> Result<Model> {
    match file.kind.as_str() {
        "ppca" => gaussian(file).map(Model::Ppca),
        "fa" => factors(file).map(Model::Fa),
        "bpca" => predictive(file).map(Model::Bpca),
        "pca" => principal_components(file).map(Model::Pca),
        other => Err(Error::Format(format!("it holds '{other}', not a model"))),
    }
}

/// W (p × q).
fn loadings(file: &Container, p: usize) -> Result<Mat<f64>> {
    file.matrix("loadings", [Some(p), None])
}

/// The one noise variance of all features.
fn one_noise(file: &Container) -> Result<f64> {
    file.vector("noise_variance", Some(1)).map(|noise| noise[0])
}

fn gaussian(file: &Container) -> Result<LinearGaussian> {
    let (mean, noise) = (file.mean()?, file.vector("noise_variance", None)?);
    let loadings = loadings(file, mean.len())?;
    let noise = match noise.as_slice() {
        [v] => Noise::Isotropic(*v),
        _ => Noise::Diagonal(noise),
    };
    LinearGaussian::new(mean, loadings, noise)
}

fn factors(file: &Container) -> Result<Factors> {
    let factors = Factors::new(gaussian(file)?);
    let q = factors.n_factors();
    match file.has("turn") {
        true => factors.with_turn(file.matrix("turn", [Some(q), Some(q)])?),
        false => Ok(factors),
    }
}

fn predictive(file: &Container) -> Result<Predictive> {
    let mean = file.mean()?;
    let loadings = loadings(file, mean.len())?;
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
    Predictive::new(mean, loadings, one_noise(file)?, precisions, known)
}

fn principal_components(file: &Container) -> Result<PrincipalComponents> {
    let mean = file.mean()?;
    let components = file.matrix("components", [None, Some(mean.len())])?.transpose().to_owned();
    let mut variances = file.vector("eigenvalues", None)?;
    variances.truncate(components.ncols());
    PrincipalComponents::new(mean, components, variances, one_noise(file)?)
}
