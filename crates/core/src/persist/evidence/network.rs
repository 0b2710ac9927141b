//! The gradient of a network as bytes, with the network that it belongs to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Portable, SavedEvidence, Tensors, check_kind, check_names};
use crate::blocks::Frame;
use crate::error::{Error, Result};
use crate::evidence::{HiddenPart, NetworkSums};
use crate::linalg::Mat;
use crate::model::StoredArrays;
use crate::network::{CurvedMap, Network};
use crate::persist::container::{Container, Tensor, to_bytes};

/// Numbers of the evidence that are not tensors.
#[derive(Serialize, Deserialize)]
struct Details {
    features: Vec<String>,
    rows: usize,
    weight: f64,
    loss: f64,
    hidden_weight: f64,
    hidden_squares: f64,
    hidden_part: Option<(u64, u64)>, // one in so many, and the seed
    noise: f64,
    unit: f64,
    latent: usize,
    units: usize,
    encoder_units: Option<usize>,
}

impl Portable for NetworkSums {
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>> {
        let (network, (shift, factor, unit)) = (&self.network, self.frame.parts());
        check_names(features, shift.len())?;
        let mut tensors = Tensors::from([
            ("shift".into(), Tensor::vector(shift)),
            ("factor".into(), Tensor::vector(factor)),
            ("decoder".into(), Tensor::vector(&network.decoder.numbers())),
            ("gradient".into(), Tensor::vector(&self.gradient)),
        ]);
        if let Some(encoder) = &network.encoder {
            tensors.insert("encoder".into(), Tensor::vector(&encoder.numbers()));
        }
        if network.anchors.ncols() > 0 {
            tensors.insert("anchors".into(), Tensor::matrix(&network.anchors));
        }
        let details = Details {
            features: features.to_vec(),
            rows: self.rows,
            weight: self.weight,
            loss: self.loss,
            hidden_weight: self.hidden_weight,
            hidden_squares: self.hidden_squares,
            hidden_part: self.hidden_part.map(|part| (part.one_in, part.seed)),
            noise: network.noise,
            unit,
            latent: network.n_latent(),
            units: network.decoder.n_hidden(),
            encoder_units: network.encoder.as_ref().map(CurvedMap::n_hidden),
        };
        to_bytes("network_sums", &details, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>> {
        let file = Container::from_bytes(bytes)?;
        check_kind(&file, "network_sums")?;
        let details: Details = file.details()?;
        let (network, frame) = (Arc::new(read_network(&file, &details)?), read_frame(&file, &details)?);
        let hidden_part = details.hidden_part.map(|(one_in, seed)| HiddenPart { one_in, seed });
        let mut evidence = Self::empty(network, Arc::new(frame), hidden_part);
        evidence.gradient = file.vector("gradient", Some(evidence.gradient.len()))?;
        (evidence.rows, evidence.weight, evidence.loss) = (details.rows, details.weight, details.loss);
        (evidence.hidden_weight, evidence.hidden_squares) = (details.hidden_weight, details.hidden_squares);
        Ok(SavedEvidence { evidence, features: details.features })
    }
}

fn impossible() -> Error {
    Error::Format("sums of a network that no rows can have".into())
}

fn read_frame(file: &Container, details: &Details) -> Result<Frame> {
    let p = details.features.len();
    let (shift, factor) = (file.vector("shift", Some(p))?, file.vector("factor", Some(p))?);
    let size = |x: f64| x.is_finite() && x >= 0.0;
    let sums = [details.weight, details.hidden_weight, details.hidden_squares];
    let counted = (details.rows > 0) == (details.weight > 0.0) && sums.into_iter().all(size);
    let hides = details.hidden_part.is_none_or(|(one_in, _)| one_in > 0);
    match counted && hides && details.unit > 0.0 && size(details.unit) && factor.iter().all(|x| *x > 0.0) {
        true => Ok(Frame::from_parts(shift, factor, details.unit)),
        false => Err(impossible()),
    }
}

fn read_network(file: &Container, details: &Details) -> Result<Network> {
    let (p, q, h) = (details.features.len(), details.latent, details.units);
    // The arrays that are there limit every size before anything is allocated.
    let cells = file.vector("decoder", None)?.len();
    if p == 0 || q == 0 || p.saturating_mul(q) > cells || p.saturating_mul(h) > cells {
        return Err(impossible());
    }
    let decoder = read_map(file, "decoder", (q, p, h))?;
    let encoder = match details.encoder_units {
        Some(units) if p.saturating_mul(units) > file.vector("encoder", None)?.len() => {
            return Err(impossible());
        }
        Some(units) => Some(read_map(file, "encoder", (p, q, units))?),
        None => None,
    };
    let anchors = match file.has("anchors") {
        true => file.matrix("anchors", [Some(q), None])?,
        false => Mat::zeros(q, 0),
    };
    let network = Network { decoder, encoder, noise: details.noise, anchors };
    network.check()?;
    Ok(network)
}

/// A map from k to m numbers by h hidden units.
fn read_map(file: &Container, name: &str, (k, m, h): (usize, usize, usize)) -> Result<CurvedMap> {
    let shape = CurvedMap {
        offset: vec![0.0; m],
        linear: Mat::zeros(m, k),
        inner: Mat::zeros(h, k),
        bias: vec![0.0; h],
        outer: Mat::zeros(m, h),
    };
    Ok(shape.with_numbers(&file.vector(name, Some(shape.len()))?))
}
