//! What can be asked of a fitted model, as small traits: a model of any kind says which of them it has.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::arrays::Arrays;
use super::{
    Conditional, Contributions, Factors, Imputed, Kind, Limits, Noise, Outliers, Posterior, Predicted,
    Reconstruction, Sample,
};
use crate::control::Control;
use crate::data::{Observed, RowSource};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};

/// A model of any kind, to be shared.
pub type AnyModel = Arc<dyn Model>;

/// A fitted model: its kind, its size, its arrays, and what can be asked of it.
///
/// A capability that a kind does not have is `None`. The functions of `dyn Model`, such as
/// [`encoder`](#method.encoder), give an error instead, which names the kinds that have it.
pub trait Model: Any + Debug + Send + Sync {
    /// Its kind.
    fn kind(&self) -> &'static Kind;

    /// p.
    fn n_features(&self) -> usize;

    /// Number of latent variables of a row, q.
    fn n_latent(&self) -> usize;

    /// The arrays that stand in its file; the `read` of its kind makes the model from them again.
    fn arrays(&self) -> Arrays;

    /// The same model of features that are `scale` times as large (p numbers above 0): the way back from a
    /// fit to features that were divided by `scale`.
    ///
    /// # Errors
    /// When a number overflows.
    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel>;

    /// What each latent variable explains (q), of a model without loadings that knows it.
    fn component_variances(&self) -> Option<&[f64]> {
        None
    }

    /// Rows → latent coordinates.
    fn as_encode(&self) -> Option<&dyn Encode> {
        None
    }

    /// Rows → the distribution of their latent coordinates.
    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
        None
    }

    /// Latent coordinates → rows.
    fn as_decode(&self) -> Option<&dyn Decode> {
        None
    }

    /// Rows → rows, as the model sees them.
    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        None
    }

    /// How far rows lie from the components.
    fn as_novelty(&self) -> Option<&dyn Novelty> {
        None
    }

    /// Densities, outliers and new rows.
    fn as_density(&self) -> Option<&dyn Density> {
        None
    }

    /// New rows of a model that has no density in closed form; those of other models come from their density.
    fn as_generate(&self) -> Option<&dyn Generate> {
        None
    }

    /// What each cell of a row adds to its distance.
    fn as_explain(&self) -> Option<&dyn Explain> {
        None
    }

    /// Imputation of missing cells.
    fn as_fill(&self) -> Option<&dyn Fill> {
        None
    }

    /// What rotations and tables of loadings read.
    fn as_loadings(&self) -> Option<&dyn Loadings> {
        None
    }

    /// Rows → the group that each belongs to.
    fn as_assign(&self) -> Option<&dyn Assign> {
        None
    }

    /// Rows → the probability of each group.
    fn as_memberships(&self) -> Option<&dyn Memberships> {
        None
    }
}

/// Something that a model may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// [`Encode`].
    Encode,
    /// [`LatentPosterior`].
    Posterior,
    /// [`Decode`].
    Decode,
    /// [`Reconstruct`].
    Reconstruct,
    /// [`Novelty`].
    Novelty,
    /// [`Density`].
    Density,
    /// [`Density`] or [`Generate`].
    Sample,
    /// [`Explain`].
    Explain,
    /// [`Fill`].
    Fill,
    /// [`Loadings`].
    Loadings,
    /// [`Assign`].
    Assign,
    /// [`Memberships`].
    Memberships,
}

impl Capability {
    /// Each of them.
    pub const ALL: [Self; 12] = [
        Self::Encode,
        Self::Posterior,
        Self::Decode,
        Self::Reconstruct,
        Self::Novelty,
        Self::Density,
        Self::Sample,
        Self::Explain,
        Self::Fill,
        Self::Loadings,
        Self::Assign,
        Self::Memberships,
    ];

    /// Those of a model with one linear-Gaussian density and a posterior of its latent coordinates.
    pub const LINEAR_GAUSSIAN: [Self; 9] = [
        Self::Encode,
        Self::Posterior,
        Self::Decode,
        Self::Reconstruct,
        Self::Density,
        Self::Sample,
        Self::Explain,
        Self::Fill,
        Self::Loadings,
    ];

    /// What a model without it lacks, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Encode => "latent coordinates",
            Self::Posterior => "a posterior distribution of its latent coordinates",
            Self::Decode => "a way back from latent coordinates to rows",
            Self::Reconstruct => "a reconstruction of rows",
            Self::Novelty => "a novelty of rows without a density",
            Self::Density => "a density",
            Self::Sample => "new rows to draw",
            Self::Explain => "contributions of cells",
            Self::Fill => "a prediction of missing cells",
            Self::Loadings => "loadings",
            Self::Assign => "groups of rows",
            Self::Memberships => "probabilities of groups",
        }
    }

    /// Whether a model has it.
    pub fn is_of(self, model: &dyn Model) -> bool {
        match self {
            Self::Encode => model.as_encode().is_some(),
            Self::Posterior => model.as_posterior().is_some(),
            Self::Decode => model.as_decode().is_some(),
            Self::Reconstruct => model.as_reconstruct().is_some(),
            Self::Novelty => model.as_novelty().is_some(),
            Self::Density => model.as_density().is_some(),
            Self::Sample => model.as_density().is_some() || model.as_generate().is_some(),
            Self::Explain => model.as_explain().is_some(),
            Self::Fill => model.as_fill().is_some(),
            Self::Loadings => model.as_loadings().is_some(),
            Self::Assign => model.as_assign().is_some(),
            Self::Memberships => model.as_memberships().is_some(),
        }
    }
}

impl dyn Model {
    /// As a model of one kind.
    pub fn downcast_ref<M: Model>(&self) -> Option<&M> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }

    /// The capability to encode.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn encoder(&self) -> Result<&dyn Encode> {
        self.as_encode().ok_or_else(|| self.lacks(Capability::Encode))
    }

    /// The posterior of latent coordinates.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn latent_posterior(&self) -> Result<&dyn LatentPosterior> {
        self.as_posterior().ok_or_else(|| self.lacks(Capability::Posterior))
    }

    /// The capability to decode.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn decoder(&self) -> Result<&dyn Decode> {
        self.as_decode().ok_or_else(|| self.lacks(Capability::Decode))
    }

    /// The capability to rebuild rows.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn reconstructor(&self) -> Result<&dyn Reconstruct> {
        self.as_reconstruct().ok_or_else(|| self.lacks(Capability::Reconstruct))
    }

    /// The novelty of rows.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn novelty(&self) -> Result<&dyn Novelty> {
        self.as_novelty().ok_or_else(|| self.lacks(Capability::Novelty))
    }

    /// The density.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn density(&self) -> Result<&dyn Density> {
        self.as_density().ok_or_else(|| self.lacks(Capability::Density))
    }

    /// What draws new rows.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn sampler(&self) -> Result<Sampler<'_>> {
        let own = self.as_generate().map(Sampler::Own);
        own.or_else(|| self.as_density().map(Sampler::Density)).ok_or_else(|| self.lacks(Capability::Sample))
    }

    /// The contributions of cells.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn explainer(&self) -> Result<&dyn Explain> {
        self.as_explain().ok_or_else(|| self.lacks(Capability::Explain))
    }

    /// The capability to impute.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn imputer(&self) -> Result<&dyn Fill> {
        self.as_fill().ok_or_else(|| self.lacks(Capability::Fill))
    }

    /// The loadings.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn with_loadings(&self) -> Result<&dyn Loadings> {
        self.as_loadings().ok_or_else(|| self.lacks(Capability::Loadings))
    }

    /// The groups of rows.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn groups(&self) -> Result<&dyn Assign> {
        self.as_assign().ok_or_else(|| self.lacks(Capability::Assign))
    }

    /// The probabilities of groups.
    ///
    /// # Errors
    /// [`Error::Capability`].
    pub fn memberships(&self) -> Result<&dyn Memberships> {
        self.as_memberships().ok_or_else(|| self.lacks(Capability::Memberships))
    }

    fn lacks(&self, what: Capability) -> Error {
        Error::Capability {
            kind: self.kind().title,
            lacks: what.in_words(),
            kinds: Kind::with(what).map(|kind| kind.name).collect(),
        }
    }
}

/// Rows → latent coordinates.
pub trait Encode: Sync {
    /// A name for each coordinate: z1, z2, …
    fn coordinate_names(&self) -> Vec<String>;

    /// Latent coordinates of each row (n × q).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>>;
}

/// Rows → the distribution of their latent coordinates, whose mean is what [`Encode`] gives.
pub trait LatentPosterior: Sync {
    /// Mean and covariance for each row.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior>;
}

/// Latent coordinates → rows.
pub trait Decode: Sync {
    /// Rows (n × p) of latent coordinates (n × q).
    ///
    /// # Errors
    /// When the coordinates are not q to a row.
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>>;

    /// The same with the standard deviation of each cell of a new row there (n × p), noise included; `None` where the
    /// model does not tell it.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_with_std(&self, latent: MatRef<'_, f64>) -> Result<Option<(Mat<f64>, Mat<f64>)>> {
        let _ = latent;
        Ok(None)
    }
}

/// Rows → rows, as the model sees them.
pub trait Reconstruct: Sync {
    /// Each row rebuilt from its coordinates or its group (n × p), the missing cells too.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>>;
}

/// How far rows lie from the components of a model that has no density.
pub trait Novelty: Sync {
    /// Squared distance of each row from the plane of the components: what SPE is, in the model's own space.
    ///
    /// # Errors
    /// When the rows have another number of features, or a cell that is missing or infinite.
    fn novelty(&self, rows: &dyn RowSource) -> Result<Vec<f64>>;
}

/// New rows of a model without a density in closed form.
pub trait Generate: Sync {
    /// Rows of these numbers among those that the seed gives.
    fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64>;

    /// The first n rows that the seed gives, until a caller cancels.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and when they do not fit in memory.
    fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>>;
}

/// What draws new rows of a model.
pub enum Sampler<'a> {
    /// Its density.
    Density(&'a dyn Density),
    /// The model itself.
    Own(&'a dyn Generate),
}

impl Sampler<'_> {
    /// Rows of these numbers among those that the seed gives.
    pub fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64> {
        match self {
            Self::Density(density) => density.sample_rows(rows, seed),
            Self::Own(own) => own.sample_rows(rows, seed),
        }
    }

    /// The first n rows that the seed gives, until a caller cancels.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and when they do not fit in memory.
    pub fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        match self {
            Self::Density(density) => density.sample(n, seed, control),
            Self::Own(own) => own.sample(n, seed, control),
        }
    }
}

/// A density of rows.
pub trait Density: Sync {
    /// Log density of the observed cells of each row.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or there is no noise.
    fn log_density(&self, rows: &dyn RowSource) -> Result<Vec<f64>>;

    /// T², SPE and p-value of each row.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    fn outliers(&self, rows: &dyn RowSource) -> Result<Outliers>;

    /// How much each row counts in a fit of this model; `None` where all count alike.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    fn row_weights(&self, rows: &dyn RowSource) -> Result<Option<Vec<f64>>> {
        let _ = rows;
        Ok(None)
    }

    /// T² and SPE of each row, which exist without noise too.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn distances(&self, rows: &dyn RowSource) -> Result<(Vec<f64>, Vec<f64>)>;

    /// Whether rows have a density: a model without noise has none.
    ///
    /// # Errors
    /// When arithmetic breaks down.
    fn is_proper(&self) -> Result<bool>;

    /// Rows of these numbers among those that the seed gives.
    fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64>;

    /// The first n rows that the seed gives, until a caller cancels.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and when they do not fit in memory.
    fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>>;

    /// Covariance of the features (p × p).
    ///
    /// # Errors
    /// When it does not fit in memory.
    fn covariance(&self) -> Result<Mat<f64>>;

    /// Its inverse (p × p), until a caller cancels.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and when there is none, or it does not fit in memory.
    fn precision(&self, control: &Control<'_>) -> Result<Mat<f64>>;

    /// The model of some of the features, in the given order.
    ///
    /// # Errors
    /// When a feature does not exist.
    fn marginal(&self, features: &[usize]) -> Result<AnyModel>;
}

/// What each cell of a row adds to its distance, and how far rows may lie out.
pub trait Explain: Sync {
    /// What each observed cell adds to the T² and SPE of its row that [`Density::outliers`] gives, and how it
    /// compares with what the rest of the row expects.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or the answer does not fit in memory.
    fn contributions(&self, rows: &dyn RowSource) -> Result<Contributions>;

    /// Control limits of T² and SPE: what a new row of the model, of which the same cells are observed as of each
    /// row here, stays below with probability `level`. `sample` says from how many rows the model was found.
    ///
    /// # Errors
    /// When the level is not between 0 and 1, or the rows have another number of features or an infinite cell.
    fn limits(&self, rows: &dyn RowSource, level: f64, sample: Option<Sample>) -> Result<Limits>;
}

/// Imputation.
pub trait Fill: Sync {
    /// The rows with each missing cell replaced by its conditional mean (n × p).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn impute(&self, rows: &dyn RowSource) -> Result<Mat<f64>>;

    /// The same with standard deviations.
    ///
    /// # Errors
    /// As [`impute`](Self::impute).
    fn impute_with_std(&self, rows: &dyn RowSource) -> Result<Imputed>;

    /// Multiple imputation: draws of the missing cells given the observed ones.
    ///
    /// # Errors
    /// As [`impute`](Self::impute).
    fn draw_missing(&self, rows: &dyn RowSource, draws: Range<usize>, seed: u64) -> Result<Vec<Mat<f64>>>;

    /// Mean and covariance of the missing cells of one row, until a caller cancels.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and when it has another number of features or an infinite cell.
    fn conditional(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional>;

    /// Mean and standard deviation of named cells (row, feature) of rows of which only some cells were seen.
    ///
    /// # Errors
    /// When a row or feature does not exist.
    fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted>;
}

/// What rotations, biplots and tables of loadings read.
pub trait Loadings: Sync {
    /// μ (p).
    fn mean(&self) -> &[f64];

    /// W, or the pattern of rotated factors (p × q).
    fn loadings(&self) -> &Mat<f64>;

    /// What tables show as loadings (p × q).
    fn shown(&self) -> &Mat<f64> {
        self.loadings()
    }

    /// Standard deviations of the loadings where they have a distribution (p × q).
    fn deviations(&self) -> Option<&Mat<f64>> {
        None
    }

    /// The noise of a cell.
    fn noise(&self) -> Noise;

    /// Directions of the components (p × q): orthonormal, largest variance first, or the pattern of factors.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    fn axes(&self) -> Result<Mat<f64>>;

    /// Variance along each direction under the model (q), in descending order.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    fn variances(&self) -> Result<Vec<f64>>;

    /// As factors, which can be rotated.
    fn factors(&self) -> Factors;
}

/// Rows → the group that each belongs to: a cluster, or a component of a mixture.
pub trait Assign: Sync {
    /// Number of groups, K.
    fn n_groups(&self) -> usize;

    /// The group of each row, counted from 0. A row without any cell belongs to the largest.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn assign(&self, rows: &dyn RowSource) -> Result<Vec<usize>>;
}

/// Rows → the probability of each group, of which [`Assign`] names the largest.
pub trait Memberships: Sync {
    /// Probabilities that add up to 1 in each row (n × K).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    fn probabilities(&self, rows: &dyn RowSource) -> Result<Mat<f64>>;
}

/// z1, z2, …: a letter and a number for each of q coordinates.
pub(super) fn numbered(letter: char, q: usize) -> Vec<String> {
    (1..=q).map(|k| format!("{letter}{k}")).collect()
}
