//! Where a network starts: PCA, with hidden units that add nothing yet.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::blocks::Frame;
use crate::linalg::{Mat, MatRef, product};
use crate::model::LinearGaussian;
use crate::network::{CurvedMap, Network};
use crate::spectrum::Spectrum;

/// Latent places, drawn from the prior, where searches begin and hidden units bend.
const ANCHORS: usize = 64;
/// How steep the hidden units of the decoder are where they bend, by the deviation of a latent variable.
const STEEPNESS: f64 = 2.0;
/// The stream of the generator that draws inner weights.
const STREAM: u64 = 0xae;
/// Least noise at the start, as a share of the mean variance: a bent plane has none of probability 1.
const LEAST_NOISE: f64 = 1e-6;

/// What a start is made from.
pub(super) struct Start<'a> {
    pub(super) spectrum: &'a Spectrum,
    pub(super) ppca: &'a LinearGaussian,
    pub(super) frame: &'a Arc<Frame>,
    pub(super) hidden: usize,
    pub(super) encoder: bool,
    pub(super) seed: u64,
}

impl Start<'_> {
    /// The network.
    pub(super) fn network(&self) -> Network {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(STREAM);
        let q = self.spectrum.n_components();
        let anchors = Mat::from_fn(q, ANCHORS, |_, _| StandardNormal.sample(&mut rng));
        match self.encoder {
            true => self.encoded(anchors, &mut rng),
            false => self.searched(anchors, &mut rng),
        }
    }

    /// W = UΛ^½ and V = Λ^-½Uᵀ: the encoder's latent variables have variance 1.
    fn encoded(&self, anchors: Mat<f64>, rng: &mut ChaCha8Rng) -> Network {
        let (unit, u) = (self.frame.parts().2, self.spectrum.vectors());
        let (p, q) = (u.nrows(), u.ncols());
        let root = |k: usize| self.spectrum.eigenvalues()[k].sqrt() / unit;
        let w = Mat::from_fn(p, q, |j, k| u[(j, k)] * root(k));
        let v = Mat::from_fn(q, p, |k, j| u[(j, k)] / root(k));
        let x = product(w.as_ref(), anchors.as_ref()); // (p × m)
        let (steep, even) = (STEEPNESS / (q as f64).sqrt(), 1.0 / (p as f64).sqrt());
        let decoder = self.bent(CurvedMap::linear(vec![0.0; p], w), anchors.as_ref(), steep, rng);
        let encoder = self.bent(CurvedMap::linear(vec![0.0; q], v), x.as_ref(), even, rng);
        Network { decoder, encoder: Some(encoder), noise: self.noise(), anchors }
    }

    /// PPCA's own loadings and noise: the log-likelihood is PPCA's.
    fn searched(&self, anchors: Mat<f64>, rng: &mut ChaCha8Rng) -> Network {
        let (unit, w) = (self.frame.parts().2, self.ppca.loadings());
        let w = Mat::from_fn(w.nrows(), w.ncols(), |j, k| w[(j, k)] / unit);
        let steep = STEEPNESS / (w.ncols() as f64).sqrt();
        let decoder = self.bent(CurvedMap::linear(vec![0.0; w.nrows()], w), anchors.as_ref(), steep, rng);
        Network { decoder, encoder: None, noise: self.noise(), anchors }
    }

    fn noise(&self) -> f64 {
        let unit = self.frame.parts().2;
        (self.spectrum.noise_variance() / (unit * unit)).max(LEAST_NOISE)
    }

    /// Hidden units added to a linear map: random directions of a given size, each bending where one of the inputs u
    /// (k × m) lies, with outer weights of 0.
    fn bent(&self, map: CurvedMap, u: MatRef<'_, f64>, size: f64, rng: &mut ChaCha8Rng) -> CurvedMap {
        let (h, k, m) = (self.hidden, map.n_inputs(), map.n_outputs());
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let inner = Mat::from_fn(h, k, |_, _| size * normal());
        let at = |i: usize| (0..k).map(|a| inner[(i, a)] * u[(a, i % u.ncols())]).sum::<f64>();
        let bias = (0..h).map(|i| -at(i)).collect();
        CurvedMap { inner, bias, outer: Mat::zeros(m, h), ..map }
    }
}
