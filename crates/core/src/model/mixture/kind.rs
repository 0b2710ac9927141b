//! A mixture as a kind of model: its file, its groups, and which questions it answers.

use std::sync::Arc;

use super::{Mixture, most_probable};
use crate::data::{RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::arrays::{Array, Arrays, StoredArrays};
use crate::model::ppca;
use crate::model::questions::{room_for, stack};
use crate::model::{
    AnyModel, Assign, Capability, Density, Encode, Explain, Fill, Kind, LatentPosterior, LinearGaussian,
    Memberships, Model, Noise, Reconstruct,
};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "mixture",
    title: "a mixture",
    about: "groups of rows, each with components of its own",
    components: "latent variables",
    capabilities: &[
        Capability::Encode,
        Capability::Posterior,
        Capability::Reconstruct,
        Capability::Density,
        Capability::Sample,
        Capability::Explain,
        Capability::Fill,
        Capability::Assign,
        Capability::Memberships,
    ],
    read: |file| Ok(Arc::new(read(file)?)),
};

/// From `weights` (K), `means` (K × p), `latent` (K), `loadings` (K·p × q, component after component, columns
/// beyond a component's own number 0) and `noise_variance` (K × 1, or K × p).
fn read(file: &dyn StoredArrays) -> Result<Mixture> {
    let weights = file.vector("weights", None)?;
    let groups = weights.len();
    if groups == 0 {
        return Err(Error::Format("a mixture without components".into()));
    }
    let means = file.matrix("means", [Some(groups), None])?;
    if means.ncols() == 0 {
        return Err(Error::Format("a mixture without features".into()));
    }
    let noises = file.matrix("noise_variance", [Some(groups), None])?;
    let (latent, p) = (file.vector("latent", Some(groups))?, means.ncols());
    let rows = groups.checked_mul(p).ok_or_else(|| Error::Format("impossible shapes".into()))?;
    let loadings = file.matrix("loadings", [Some(rows), None])?;
    let most = loadings.ncols();
    let component = |k: usize| {
        let q = (0..=most).find(|q| *q as f64 == latent[k]);
        let q = q.ok_or_else(|| Error::Format(format!("{} latent variables of {most}", latent[k])))?;
        let w = Mat::from_fn(p, q, |j, i| loadings[(k * p + j, i)]);
        let noise = match noises.ncols() {
            1 => Noise::Isotropic(noises[(k, 0)]),
            _ => Noise::Diagonal((0..noises.ncols()).map(|j| noises[(k, j)]).collect()),
        };
        LinearGaussian::new((0..p).map(|j| means[(k, j)]).collect(), w, noise)
    };
    Mixture::new(weights, (0..groups).map(component).collect::<Result<_>>()?)
}

fn arrays(model: &Mixture) -> Arrays {
    let (groups, p, most) = (model.n_components(), model.n_features(), model.n_latent());
    let of = |k: usize| &model.components()[k];
    let loading = |row: usize, i: usize| {
        let w = of(row / p).loadings();
        if i < w.ncols() { w[(row % p, i)] } else { 0.0 }
    };
    let isotropic = matches!(of(0).noise(), Noise::Isotropic(_));
    let noises = Mat::from_fn(groups, if isotropic { 1 } else { p }, |k, j| of(k).noise().of(j));
    Arrays::from([
        ("weights", Array::Vector(model.weights().to_vec())),
        ("means", Array::Matrix(Mat::from_fn(groups, p, |k, j| of(k).mean()[j]))),
        ("latent", Array::Vector((0..groups).map(|k| of(k).n_latent() as f64).collect())),
        ("loadings", Array::Matrix(Mat::from_fn(groups * p, most, loading))),
        ("noise_variance", Array::Matrix(noises)),
    ])
}

impl Model for Mixture {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        Self::n_features(self)
    }

    fn n_latent(&self) -> usize {
        self.components().iter().map(LinearGaussian::n_latent).max().unwrap_or(0)
    }

    fn arrays(&self) -> Arrays {
        arrays(self)
    }

    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let components = self.components().iter().map(|c| ppca::rescaled(c, scale)).collect::<Result<_>>()?;
        Ok(Arc::new(Self::new(self.weights().to_vec(), components)?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
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

    fn as_assign(&self) -> Option<&dyn Assign> {
        Some(self)
    }

    fn as_memberships(&self) -> Option<&dyn Memberships> {
        Some(self)
    }
}

impl Assign for Mixture {
    fn n_groups(&self) -> usize {
        self.n_components()
    }

    fn assign(&self, rows: &dyn RowSource) -> Result<Vec<usize>> {
        let parts = map_chunks(rows, |chunk| {
            let found = self.memberships_of(chunk)?.probabilities;
            Ok((0..chunk.nrows()).map(|i| most_probable(&found, i)).collect::<Vec<_>>())
        })?;
        Ok(parts.concat())
    }
}

impl Memberships for Mixture {
    fn probabilities(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        room_for("the table of probabilities", rows, self.n_components())?;
        let parts = map_chunks(rows, |chunk| Ok(self.memberships_of(chunk)?.probabilities))?;
        Ok(stack(self.n_components(), parts.iter().map(Mat::as_ref)))
    }
}
