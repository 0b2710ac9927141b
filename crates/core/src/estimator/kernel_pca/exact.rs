//! The model that the eigenvectors of the kernel matrix make.

use super::super::Solver;
use super::report::KernelReport;
use super::{KernelPca, WayBack};
use crate::algorithm::kernel::{CentredKernel, KernelSpectrum, SpectrumOptions, rounding};
use crate::control::Control;
use crate::data::Rows;
use crate::error::Result;
use crate::kernel::{Gamma, Kernel, KernelForm};
use crate::linalg::Mat;
use crate::model::{KernelComponents, KernelParts, LinearGaussian, Preimage};

/// What the kernel matrix has told.
pub(super) struct Exact {
    pub(super) spectrum: KernelSpectrum,
    means: Vec<f64>, // (n)
    square: f64,
    noise: f64,
}

impl Exact {
    /// `within` is the variance of images that no direction has: of rows that miss cells.
    pub(super) fn of(
        mut centred: CentredKernel,
        (weights, within): (&[f64], f64),
        family: &KernelPca,
        solver: Solver,
        control: &Control<'_>,
    ) -> Result<Self> {
        let (means, square) = (centred.means.clone(), centred.square);
        let options = SpectrumOptions {
            components: family.components,
            whole: solver == Solver::Dual,
            indefinite: family.form.may_be_indefinite(),
            seed: family.run.seed,
        };
        centred.trace += within;
        let mut spectrum = centred.solve(options, control)?;
        if within > 0.0 {
            spectrum.rest = spectrum.trace - spectrum.values.iter().sum::<f64>();
        }
        if family.drop_empty && spectrum.rank < spectrum.values.len() {
            let left: f64 = spectrum.values.split_off(spectrum.rank).iter().sum();
            spectrum.vectors = spectrum.vectors.subcols(0, spectrum.rank).to_owned();
            spectrum.rest += left;
        }
        let rows = weights.iter().filter(|w| **w > 0.0).count();
        let noise = noise(spectrum.rest, spectrum.trace, rows, spectrum.values.len());
        Ok(Self { spectrum, means, square, noise })
    }

    /// Coordinates of the rows (n × q): √λ v / √w.
    pub(super) fn coordinates(&self, weights: &[f64]) -> Mat<f64> {
        let KernelSpectrum { values, vectors, .. } = &self.spectrum;
        let root = |i: usize| if weights[i] > 0.0 { weights[i].sqrt() } else { 1.0 };
        let (n, q) = (vectors.nrows(), values.len());
        Mat::from_fn(n, q, |i, j| values[j].max(0.0).sqrt() * vectors[(i, j)] / root(i))
    }

    pub(super) fn model(
        &self,
        kernel: Kernel,
        points: Mat<f64>,
        (mean, filling): (Vec<f64>, Option<LinearGaussian>),
        weights: &[f64],
        back: WayBack,
        coordinates: &Mat<f64>,
    ) -> Result<KernelComponents> {
        let KernelSpectrum { values, vectors, .. } = &self.spectrum;
        let (n, q) = (vectors.nrows(), values.len());
        let weight: f64 = weights.iter().sum();
        // Of no length: there is no direction of no variance, nor one of negative variance.
        let scale = |j: usize| if values[j] > 0.0 { 1.0 / values[j].sqrt() } else { 0.0 };
        let coefficients = Mat::from_fn(n, q, |i, j| weights[i].sqrt() * vectors[(i, j)] * scale(j));
        let dot = |j: usize| coefficients.col_as_slice(j).iter().zip(&self.means).map(|(a, m)| a * m).sum();
        KernelComponents::new(KernelParts {
            kernel,
            divisors: vec![1.0; mean.len()],
            mean,
            points,
            centre: weights.iter().map(|w| w / weight).collect(),
            offset: (0..q).map(dot).collect(),
            coefficients,
            square: self.square,
            variances: values.iter().map(|v| v / weight).collect(),
            noise: self.noise,
            preimage: preimage(back, kernel, coordinates)?,
            filling,
        })
    }

    pub(super) fn report(&self, kernel: Kernel, points: usize) -> KernelReport {
        KernelReport {
            rank: self.spectrum.rank,
            noise_variance: self.noise,
            negative: self.spectrum.negative,
            ..KernelReport::new(kernel, points)
        }
    }
}

/// The mean of the eigenvalues that were left out: (trace − kept)/(n − 1 − q).
pub(super) fn noise(rest: f64, trace: f64, rows: usize, q: usize) -> f64 {
    match (rows - 1).checked_sub(q) {
        None | Some(0) => 0.0,
        Some(_) if rest.abs() <= rounding(rows, &[trace]) => 0.0,
        Some(left) => rest / left as f64,
    }
}

/// How rows are found from coordinates, of which those of the points are given (m × q).
pub(super) fn preimage(back: WayBack, kernel: Kernel, coordinates: &Mat<f64>) -> Result<Preimage> {
    let table = match Rows::from(coordinates) {
        Rows::Table(table) => table,
        Rows::Source(_) => return back.preimage(kernel, None),
    };
    let known = coordinates.nrows() > 1 && coordinates.ncols() > 0;
    let width = known.then(|| Gamma::Median.kernel(KernelForm::Rbf, &table, 1.0).ok()).flatten();
    back.preimage(kernel, width.map(Kernel::gamma))
}
