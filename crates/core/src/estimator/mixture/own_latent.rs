//! Numbers of latent variables that differ between components: one more or one less wherever the criterion
//! gains.

use super::report::NumberOfGroups;
use super::search::{Optimum, Search};
use crate::algorithm::mixture::MixtureMethod;
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::{LinearGaussian, Mixture, Noise};

/// Length of a new column of loadings, in deviations of the noise.
const NEW: f64 = 0.3;

impl<M: MixtureMethod> Search<'_, M> {
    /// The optimum after all changes of the number of latent variables of single components that gain.
    pub(super) fn with_own_latent(
        &self,
        mut best: Optimum<M>,
        row: &(impl Fn(&Optimum<M>) -> NumberOfGroups + Sync),
    ) -> Result<Optimum<M>> {
        let most = 2 * best.mixture.n_components();
        for _ in 0..most {
            self.control.check()?;
            let mut found: Vec<Optimum<M>> = Vec::new();
            for start in changed(&best.mixture)? {
                match self.optimum(start) {
                    Ok(end) if end.starved.is_none() => found.push(end),
                    Ok(_) | Err(Error::ShrunkComponent { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            let cost = |of: &Optimum<M>| row(of).criterion();
            let next = found.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
            match next.filter(|next| cost(next) < cost(&best)) {
                Some(next) => best = next,
                None => break,
            }
        }
        Ok(best)
    }
}

/// The mixture with one latent variable more or less in one of its components.
fn changed(mixture: &Mixture) -> Result<Vec<Mixture>> {
    let mut all = Vec::new();
    for (k, component) in mixture.components().iter().enumerate() {
        let fewer = (component.n_latent() > 0).then(|| fewer(component));
        let more = (component.n_latent() + 1 < component.n_features()).then(|| more(component));
        for other in [fewer, more].into_iter().flatten() {
            let mut components = mixture.components().to_vec();
            components[k] = other?;
            all.push(Mixture::new(mixture.weights().to_vec(), components)?);
        }
    }
    Ok(all)
}

/// Without the shortest column of loadings, whose squares go to the noise.
fn fewer(component: &LinearGaussian) -> Result<LinearGaussian> {
    let (p, q, w) = (component.n_features(), component.n_latent(), component.loadings());
    let square = |k: usize| w.col(k).squared_norm_l2();
    let shortest = (0..q).min_by(|a, b| square(*a).total_cmp(&square(*b))).unwrap_or(0);
    let noise = match component.noise() {
        Noise::Isotropic(v) => Noise::Isotropic(v + square(shortest) / (p - q + 1) as f64),
        Noise::Diagonal(psi) => {
            Noise::Diagonal(psi.iter().enumerate().map(|(j, v)| v + w[(j, shortest)].powi(2)).collect())
        }
    };
    let kept: Vec<usize> = (0..q).filter(|k| *k != shortest).collect();
    let loadings = Mat::from_fn(p, q - 1, |j, k| w[(j, kept[k])]);
    LinearGaussian::new(component.mean().to_vec(), loadings, noise)
}

/// With one more column of loadings, short and in no direction that features share.
fn more(component: &LinearGaussian) -> Result<LinearGaussian> {
    let (p, q, w) = (component.n_features(), component.n_latent(), component.loadings());
    let new = |j: usize| NEW * component.noise().of(j).sqrt() * (1.0 + 2.0 * j as f64).cos();
    let loadings = Mat::from_fn(p, q + 1, |j, k| if k < q { w[(j, k)] } else { new(j) });
    LinearGaussian::new(component.mean().to_vec(), loadings, component.noise().clone())
}
