//! The front doors of the core behind one handle: whichever model is wanted, rows or moments in, a model to be saved out.

use covary::data::RowSource;
use covary::estimator::{FromSpectrum, Spectral};
use covary::evidence::Moments;
use covary::model::Model;
use covary::persist::SavedModel;
use covary::{BayesMethod, BayesianPca, Control, FactorAnalysis, Fit as Fitted, Pca, Ppca, Result};

use crate::args::{Axes, Factors, Fit, Wanted};

/// What fits.
pub(crate) enum Estimator {
    Ppca(Ppca),
    Pca(Pca),
    Fa(FactorAnalysis),
    Bpca(Ppca, BayesMethod),
}

impl Estimator {
    pub(crate) fn new(args: &Fit) -> Self {
        match &args.wanted {
            Wanted::Ppca(axes) => Self::Ppca(spectral(args, axes)),
            Wanted::Pca(axes) => Self::Pca(spectral(args, axes)),
            Wanted::Fa(factors) => Self::Fa(factor_analysis(args, factors)),
            Wanted::Bpca(axes, method) => Self::Bpca(spectral(args, axes), *method),
        }
    }

    /// With so many bytes beside the rows.
    pub(crate) fn memory(self, bytes: usize) -> Self {
        match self {
            Self::Ppca(ppca) => Self::Ppca(ppca.memory(bytes)),
            Self::Pca(pca) => Self::Pca(pca.memory(bytes)),
            Self::Fa(fa) => Self::Fa(fa.memory(bytes)),
            Self::Bpca(options, method) => Self::Bpca(options.memory(bytes), method),
        }
    }

    /// On so many threads.
    pub(crate) fn threads(self, threads: usize) -> Self {
        match self {
            Self::Ppca(ppca) => Self::Ppca(ppca.threads(threads)),
            Self::Pca(pca) => Self::Pca(pca.threads(threads)),
            Self::Fa(fa) => Self::Fa(fa.threads(threads)),
            Self::Bpca(options, method) => Self::Bpca(options.threads(threads), method),
        }
    }

    /// Fits rows whose features have these names.
    pub(crate) fn fit_with(
        &self,
        rows: &dyn RowSource,
        features: &[String],
        control: &Control<'_>,
    ) -> Result<SavedModel> {
        match self {
            Self::Ppca(ppca) => saved(ppca.fit_with(rows, control)?, features),
            Self::Pca(pca) => saved(pca.fit_with(rows, control)?, features),
            Self::Fa(fa) => SavedModel::of_factors(fa.fit_with(rows, control)?, Some(features.to_vec())),
            Self::Bpca(options, method) => {
                saved(bayesian(options, *method).fit_with(rows, control)?, features)
            }
        }
    }

    /// Fits moments of features with these names.
    pub(crate) fn fit_moments(&self, moments: &Moments, features: &[String]) -> Result<SavedModel> {
        match self {
            Self::Ppca(ppca) => saved(ppca.fit_moments(moments)?, features),
            Self::Pca(pca) => saved(pca.fit_moments(moments)?, features),
            Self::Fa(fa) => SavedModel::of_factors(fa.fit_moments(moments)?, Some(features.to_vec())),
            Self::Bpca(options, method) => saved(bayesian(options, *method).fit_moments(moments)?, features),
        }
    }
}

fn saved<M: Into<Model>>(fitted: Fitted<M>, features: &[String]) -> Result<SavedModel> {
    SavedModel::new(fitted, Some(features.to_vec()))
}

fn spectral<M: FromSpectrum>(args: &Fit, axes: &Axes) -> Spectral<M> {
    let mut estimator = Spectral::new(axes.components).solver(axes.solver).seed(args.seed);
    if let Some(start) = &axes.start {
        estimator = estimator.start(start.model.clone());
    }
    if let Some(tolerance) = args.tolerance {
        estimator = estimator.tolerance(tolerance);
    }
    if let Some(limit) = args.max_iterations {
        estimator = estimator.max_iterations(limit);
    }
    estimator
}

fn bayesian(options: &Ppca, method: BayesMethod) -> BayesianPca {
    BayesianPca::of(options.clone()).method(method)
}

fn factor_analysis(args: &Fit, factors: &Factors) -> FactorAnalysis {
    let mut estimator = FactorAnalysis::new(factors.count).solver(factors.solver).seed(args.seed);
    if let Some(lower) = factors.lower {
        estimator = estimator.lower(lower);
    }
    if let Some(starts) = factors.starts {
        estimator = estimator.starts(starts);
    }
    if let Some(rotate) = &factors.rotate {
        estimator = estimator.rotation(rotate.clone());
    }
    if let Some(tolerance) = args.tolerance {
        estimator = estimator.tolerance(tolerance);
    }
    if let Some(limit) = args.max_iterations {
        estimator = estimator.max_iterations(limit);
    }
    estimator
}
