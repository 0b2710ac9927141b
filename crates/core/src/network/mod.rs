//! Autoassociative networks: from rows to a few latent variables and back, along a surface that may be bent.
//!
//! Rows are taken in a frame of their own (around their mean, in a common unit), and stand as columns of a block.

mod curved_map;
mod laplace;
mod mode;

pub use curved_map::CurvedMap;
pub(crate) use curved_map::MapGradient;
pub(crate) use laplace::LaplaceGradient;
pub(crate) use mode::{Mode, ModeSearch};

use crate::error::{Error, Result};
use crate::linalg::Mat;

/// x̂ = decoder(z), and z = encoder(x) where there is one.
///
/// As a density it is x = decoder(z) + ε with z ~ N(0, I) and ε of variance `noise`: PPCA whose plane is bent.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// From q latent variables to p features.
    pub decoder: CurvedMap,
    /// From p features to q latent variables; without it, coordinates are searched for each row.
    pub encoder: Option<CurvedMap>,
    /// σ², the variance of a cell around the surface.
    pub noise: f64,
    /// Latent places where the search of the coordinates of a row begins (q × m); at 0 where there is none.
    pub anchors: Mat<f64>,
}

impl Network {
    /// p.
    pub fn n_features(&self) -> usize {
        self.decoder.n_outputs()
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        self.decoder.n_inputs()
    }

    /// Whether the parts fit together.
    ///
    /// # Errors
    /// When they do not, or a number is not possible.
    pub(crate) fn check(&self) -> Result<()> {
        self.decoder.check()?;
        let (p, q) = (self.n_features(), self.n_latent());
        let mut lengths = vec![("latent variables of the anchors", q, self.anchors.nrows())];
        if let Some(encoder) = &self.encoder {
            encoder.check()?;
            lengths.push(("features of the encoder", p, encoder.n_inputs()));
            lengths.push(("latent variables of the encoder", q, encoder.n_outputs()));
        }
        if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
            return Err(Error::Length { what, expected, found });
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            let (name, value) = ("the noise variance", self.noise.to_string());
            return Err(Error::Parameter { name, value, allowed: "finite and not negative" });
        }
        match self.anchors.as_ref().is_all_finite() {
            true => Ok(()),
            false => {
                let (name, value) = ("an anchor of the network", "not finite".into());
                Err(Error::Parameter { name, value, allowed: "finite" })
            }
        }
    }

    /// All numbers that a fit moves: the decoder's, then the encoder's or the logarithm of the noise.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut numbers = self.decoder.numbers();
        match &self.encoder {
            Some(encoder) => numbers.extend(encoder.numbers()),
            None => numbers.push(self.noise.ln()),
        }
        numbers
    }

    /// The same network with other numbers.
    pub(crate) fn with_numbers(&self, numbers: &[f64]) -> Self {
        let (of_decoder, others) = numbers.split_at(self.decoder.len());
        let decoder = self.decoder.with_numbers(of_decoder);
        let (encoder, noise) = match &self.encoder {
            Some(encoder) => (Some(encoder.with_numbers(others)), self.noise),
            None => (None, others[0].exp()),
        };
        Self { decoder, encoder, noise, anchors: self.anchors.clone() }
    }

    /// All weights, in the order in which gradients have them: of the decoder, then of the encoder or, without one, the
    /// logarithm of the noise.
    pub fn weights(&self) -> Vec<f64> {
        self.numbers()
    }

    /// The same network with other weights.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn with_weights(&self, weights: &[f64]) -> Result<Self> {
        let (expected, found) = (self.numbers().len(), weights.len());
        match expected == found {
            true => Ok(self.with_numbers(weights)),
            false => Err(Error::Length { what: "weights of the network", expected, found }),
        }
    }

    /// 1 for each number that weight decay is about.
    pub(crate) fn decaying(&self) -> Vec<f64> {
        let mut decaying = self.decoder.decaying();
        match &self.encoder {
            Some(encoder) => decaying.extend(encoder.decaying()),
            None => decaying.push(0.0),
        }
        decaying
    }
}
