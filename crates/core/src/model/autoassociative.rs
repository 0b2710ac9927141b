//! An autoassociative network: latent variables along a surface that may be bent.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{Decode, Encode, Fill, LatentPosterior, Novelty, Reconstruct, numbered};
use super::{AnyModel, Capability, Kind, Model};
use crate::blocks::Frame;
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::network::{CurvedMap, Network};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "autoencoder",
    title: "autoassociative network",
    about: "a network that gives rows back through a few latent variables: components that bend",
    components: "latent variables",
    capabilities: &[
        Capability::Encode,
        Capability::Posterior,
        Capability::Decode,
        Capability::Reconstruct,
        Capability::Novelty,
        Capability::Fill,
    ],
    read: |file| Ok(Arc::new(read(file)?)),
};

/// The numbers of an autoassociative network.
#[derive(Debug, Clone)]
pub struct NetworkParts {
    /// Mean of the rows (p), around which the network sees them.
    pub mean: Vec<f64>,
    /// What features are divided by before the network sees them (p), besides the unit; ones when they are not.
    pub scale: Vec<f64>,
    /// What all features are divided by: the root of their mean variance.
    pub unit: f64,
    /// Encoder, decoder, noise and anchors.
    pub network: Network,
    /// What each latent variable explains, in the units of the divided features (q).
    pub variances: Vec<f64>,
}

/// x̂ = μ + Wz + f(z): a decoder whose layer of tanh units f bends the plane of PCA, and an encoder z = Vx + g(x)
/// (PRML, section 12.4.2). As a density, x = x̂(z) + ε with z ~ N(0, I): PPCA whose plane is bent.
///
/// Coordinates of a row are what the encoder makes of it. Where a cell is missing, or there is no encoder, they are the
/// most probable ones given the observed cells, found for each row by Newton's method from several places; with
/// J = ∂x̂/∂z and M = σ²I + JᵀJ over the observed cells, the posterior is N(z, σ²M⁻¹) (Laplace).
///
/// ```
/// use covary::data::Rows;
/// use covary::model::Fill;
///
/// // A parabola, with the noise of a grid.
/// let cells: Vec<f64> = (0..200)
///     .flat_map(|i| {
///         let t = i as f64 / 100.0 - 1.0;
///         [t, t * t + 0.02 * f64::from(i % 5), 0.5 * t]
///     })
///     .collect();
/// let fit = covary::Autoencoder::new(1).fit(Rows::from_slice(&cells, 3)?)?;
/// let filled = fit.model.impute(Rows::from_slice(&[0.8, f64::NAN, 0.4], 3)?.source())?;
/// assert!((filled[(0, 1)] - 0.68).abs() < 0.1);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AutoassociativeNetwork {
    parts: NetworkParts,
    frame: Arc<Frame>,
}

impl AutoassociativeNetwork {
    /// From given numbers.
    ///
    /// # Errors
    /// When lengths disagree or a number is not possible.
    pub fn new(parts: NetworkParts) -> Result<Self> {
        parts.network.check()?;
        check(&parts)?;
        let frame = Arc::new(Frame::in_unit(parts.mean.clone(), &parts.scale, parts.unit));
        Ok(Self { parts, frame })
    }

    /// Its numbers.
    pub fn parts(&self) -> &NetworkParts {
        &self.parts
    }

    /// Encoder, decoder and noise, in the frame of the network.
    pub fn network(&self) -> &Network {
        &self.parts.network
    }

    /// Whether it has an encoder.
    pub fn has_encoder(&self) -> bool {
        self.parts.network.encoder.is_some()
    }

    /// σ², in the units of the divided features.
    pub fn noise_variance(&self) -> f64 {
        self.frame.square(self.parts.network.noise)
    }

    /// What each latent variable explains, in the units of the divided features (q).
    pub fn variances(&self) -> &[f64] {
        &self.parts.variances
    }

    /// Where rows are seen: around the mean, in the unit.
    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// What a cell of a feature is in the units of the data for each 1 in the frame.
    pub(super) fn unit_of(&self, feature: usize) -> f64 {
        self.parts.unit * self.parts.scale[feature]
    }
}

fn check(parts: &NetworkParts) -> Result<()> {
    let (p, q) = (parts.network.n_features(), parts.network.n_latent());
    if p == 0 {
        return Err(Error::NoFeatures);
    }
    let lengths = [
        ("means", p, parts.mean.len()),
        ("divisors", p, parts.scale.len()),
        ("variances", q, parts.variances.len()),
    ];
    if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
        return Err(Error::Length { what, expected, found });
    }
    if let Some(x) = parts.mean.iter().chain(&parts.variances).find(|x| !x.is_finite()) {
        let (name, value) = ("a number of the network", x.to_string());
        return Err(Error::Parameter { name, value, allowed: "finite" });
    }
    let divides = |d: &&f64| d.is_finite() && **d > 0.0 && (1.0 / **d).is_finite();
    match parts.scale.iter().chain([&parts.unit]).find(|d| !divides(d)) {
        None => Ok(()),
        Some(d) => {
            let (name, value) = ("what a feature is divided by", d.to_string());
            Err(Error::Parameter { name, value, allowed: "finite and positive" })
        }
    }
}

/// Names of the arrays of a map in a file.
struct Names {
    offset: &'static str,
    linear: &'static str,
    inner: &'static str,
    bias: &'static str,
    outer: &'static str,
}

const DECODER: Names = Names {
    offset: "decoder_offset",
    linear: "decoder_linear",
    inner: "decoder_inner",
    bias: "decoder_bias",
    outer: "decoder_outer",
};
const ENCODER: Names = Names {
    offset: "encoder_offset",
    linear: "encoder_linear",
    inner: "encoder_inner",
    bias: "encoder_bias",
    outer: "encoder_outer",
};

fn write_map(arrays: &mut Arrays, names: &Names, map: &CurvedMap) {
    arrays.insert(names.offset, Array::Vector(map.offset.clone()));
    arrays.insert(names.linear, Array::Matrix(map.linear.clone()));
    if map.n_hidden() > 0 {
        arrays.insert(names.inner, Array::Matrix(map.inner.clone()));
        arrays.insert(names.bias, Array::Vector(map.bias.clone()));
        arrays.insert(names.outer, Array::Matrix(map.outer.clone()));
    }
}

/// From k to m numbers.
fn read_map(file: &dyn StoredArrays, names: &Names, k: Option<usize>, m: usize) -> Result<CurvedMap> {
    let offset = file.vector(names.offset, Some(m))?;
    let linear = file.matrix(names.linear, [Some(m), k])?;
    if !file.has(names.bias) {
        return Ok(CurvedMap::linear(offset, linear));
    }
    let bias = file.vector(names.bias, None)?;
    let h = Some(bias.len()).filter(|h| *h > 0);
    let inner = file.matrix(names.inner, [h, Some(linear.ncols())])?;
    let outer = file.matrix(names.outer, [Some(m), h])?;
    Ok(CurvedMap { offset, linear, inner, bias, outer })
}

fn read(file: &dyn StoredArrays) -> Result<AutoassociativeNetwork> {
    let mean = file.mean()?;
    let p = mean.len();
    let decoder = read_map(file, &DECODER, None, p)?;
    let q = decoder.n_inputs();
    let encoder = match file.has(ENCODER.offset) {
        true => Some(read_map(file, &ENCODER, Some(p), q)?),
        false => None,
    };
    let anchors = match file.has("anchors") {
        true => file.matrix("anchors", [Some(q), None])?,
        false => Mat::zeros(q, 0),
    };
    let scalars = file.vector("scalars", Some(2))?;
    AutoassociativeNetwork::new(NetworkParts {
        scale: file.vector("divisors", Some(p))?,
        unit: scalars[0],
        network: Network { decoder, encoder, noise: scalars[1], anchors },
        variances: file.vector("eigenvalues", Some(q))?,
        mean,
    })
}

impl Model for AutoassociativeNetwork {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.parts.mean.len()
    }

    fn n_latent(&self) -> usize {
        self.parts.network.n_latent()
    }

    fn arrays(&self) -> Arrays {
        let (parts, network) = (&self.parts, &self.parts.network);
        let mut arrays = Arrays::from([
            ("mean", Array::Vector(parts.mean.clone())),
            ("divisors", Array::Vector(parts.scale.clone())),
            ("scalars", Array::Vector(vec![parts.unit, network.noise])),
            ("eigenvalues", Array::Vector(parts.variances.clone())),
        ]);
        write_map(&mut arrays, &DECODER, &network.decoder);
        if let Some(encoder) = &network.encoder {
            write_map(&mut arrays, &ENCODER, encoder);
        }
        if network.anchors.ncols() > 0 {
            arrays.insert("anchors", Array::Matrix(network.anchors.clone()));
        }
        arrays
    }

    /// The network stays as it is; what features are divided by before it sees them changes.
    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let times = |of: &[f64]| of.iter().zip(scale).map(|(x, d)| x * d).collect::<Vec<_>>();
        let parts = self.parts.clone();
        let (mean, scale) = (times(&parts.mean), times(&parts.scale));
        Ok(Arc::new(Self::new(NetworkParts { mean, scale, ..parts })?))
    }

    fn component_variances(&self) -> Option<&[f64]> {
        Some(&self.parts.variances)
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

    fn as_novelty(&self) -> Option<&dyn Novelty> {
        Some(self)
    }

    fn as_fill(&self) -> Option<&dyn Fill> {
        Some(self)
    }
}

/// z1, z2, …
pub(super) fn names(model: &AutoassociativeNetwork) -> Vec<String> {
    numbered('z', model.n_latent())
}
