//! A mixture as one vector, in which steps can be combined: log weights, means, loadings and log noises.

use crate::error::Result;
use crate::linalg::{Mat, nearest_orthogonal, product};
use crate::model::{LinearGaussian, Mixture, Noise};

/// The numbers of a mixture: ln π (K), then μ (p), W column after column (p·q) and ln of the noise variances
/// (1 or p) of each component.
pub(super) fn vector(mixture: &Mixture) -> Vec<f64> {
    let mut out: Vec<f64> = mixture.weights().iter().map(|w| w.ln()).collect();
    for component in mixture.components() {
        out.extend_from_slice(component.mean());
        component.loadings().col_iter().for_each(|w| out.extend(w.iter()));
        match component.noise() {
            Noise::Isotropic(v) => out.push(v.ln()),
            Noise::Diagonal(psi) => out.extend(psi.iter().map(|v| v.ln())),
        }
    }
    out
}

/// About the square root of the information about each of these numbers: natural lengths of steps.
pub(super) fn scale(mixture: &Mixture, weight: f64) -> Vec<f64> {
    let counts: Vec<f64> = mixture.weights().iter().map(|w| w * weight).collect();
    let mut out: Vec<f64> = counts.iter().map(|n| n.sqrt()).collect();
    for (n, component) in counts.iter().zip(mixture.components()) {
        let (p, q) = (component.n_features(), component.n_latent());
        let of = |j: usize| (n / component.noise().of(j)).sqrt();
        (0..=q).for_each(|_| out.extend((0..p).map(of)));
        match component.noise() {
            Noise::Isotropic(_) => out.push((0.5 * n * p as f64).sqrt()),
            Noise::Diagonal(_) => out.extend(std::iter::repeat_n((0.5 * n).sqrt(), p)),
        }
    }
    out
}

/// The mixture of a vector, of the shape of another one.
pub(super) fn mixture(x: &[f64], like: &Mixture) -> Result<Mixture> {
    let groups = like.n_components();
    let largest = x[..groups].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = x[..groups].iter().map(|l| (l - largest).exp()).collect();
    let mut rest = &x[groups..];
    let mut take = |n: usize| {
        let (taken, left) = rest.split_at(n);
        rest = left;
        taken
    };
    let component = |like: &LinearGaussian| {
        let (p, q) = (like.n_features(), like.n_latent());
        let mean = take(p).to_vec();
        let w = take(p * q);
        let loadings = Mat::from_fn(p, q, |i, j| w[j * p + i]);
        let noise = match like.noise() {
            Noise::Isotropic(_) => Noise::Isotropic(take(1)[0].exp()),
            Noise::Diagonal(_) => Noise::Diagonal(take(p).iter().map(|l| l.exp()).collect()),
        };
        LinearGaussian::new(mean, loadings, noise)
    };
    Mixture::new(weights, like.components().iter().map(component).collect::<Result<_>>()?)
}

/// The same mixture with the latent axes of each component turned to those of another one as closely as they
/// can be (Procrustes): steps of loadings mean nothing while their axes turn freely.
pub(super) fn aligned(mixture: &Mixture, to: &Mixture) -> Result<Mixture> {
    let turned = |(component, to): (&LinearGaussian, &LinearGaussian)| match component.n_latent() {
        0 => Ok(component.clone()),
        _ => {
            let cross = product(component.loadings().transpose(), to.loadings().as_ref());
            component.rotate(&nearest_orthogonal(cross.as_ref())?)
        }
    };
    let each = mixture.components().iter().zip(to.components());
    Mixture::new(mixture.weights().to_vec(), each.map(turned).collect::<Result<_>>()?)
}
