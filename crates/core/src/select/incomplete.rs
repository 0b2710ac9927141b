//! The table of rows with missing values: a fit for each number of components, and hidden cells to choose by.

use std::f64::consts::TAU;

use super::Select;
use super::cells::{CellCrossValidation, MOST_COMPONENTS};
use super::split::CellSplit;
use super::table::{Absent, Choice, Line, Selection, recommend};
use crate::control::Control;
use crate::data::{RowSource, counted_weight};
use crate::error::Result;
use crate::estimator::{Grown, Growth, IncompleteSummary};
use crate::spectrum::Spectrum;
use crate::spectrum::criteria::{aic, bic, parameters};

/// Nats per row that a fit may leave.
const TOLERANCE: f64 = 1e-8;

/// The table, the choices and the recommendation.
pub(super) fn selection(select: &Select, source: &dyn RowSource, control: &Control<'_>) -> Result<Selection> {
    let splits = CellSplit::folds(source, select.cell_folds(), select.seed, control)?;
    let ppca = select.ppca(select.max.unwrap_or(MOST_COMPONENTS));
    let (growth, IncompleteSummary { holes, .. }) = ppca.growth(source, control)?;
    let cells = CellCrossValidation::run(source, &splits, &ppca, control)?;
    let most = cells.as_ref().map_or(growth.most(), CellCrossValidation::most).min(growth.most());
    let fits = Fits { empty_rows: holes.empty_rows, ..Fits::new(growth, most, &splits[0], source, control)? };
    let (mut table, mut choices) = (fits.lines(), Vec::new());
    if let Ok(cells) = &cells {
        table.iter_mut().for_each(|line| cells.fill(line));
        choices.extend(cells.choice());
    }
    choices.extend(least("bic", "least −2ℓ + k ln n", &table, |line| line.bic));
    choices.extend(least("aic", "least −2ℓ + 2k", &table, |line| line.aic));
    let (recommended, reason) = recommend(&choices);
    Ok(Selection {
        rows: fits.rows(),
        features: source.n_features(),
        redundant: None,
        holes: Some(holes).filter(|holes| holes.missing > 0),
        table,
        choices,
        converged: fits.converged && cells.as_ref().is_ok_and(|cells| cells.converged),
        absent: cells.err().into_iter().chain(need_complete_rows()).collect(),
        recommended,
        reason,
    })
}

/// The number of components for which a criterion is least.
fn least(method: &str, reason: &str, table: &[Line], of: impl Fn(&Line) -> Option<f64>) -> Option<Choice> {
    let known = table.iter().filter_map(|line| of(line).map(|value| (line.components, value)));
    let best = known.min_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(q, _)| Choice::new(method, q, reason))
}

/// What a spectrum decides, and why it does not here.
fn need_complete_rows() -> impl Iterator<Item = Absent> {
    let spectrum = "needs the spectrum of complete rows";
    let rows = "holding rows out would take fits of its own; hidden cells answer what missing values ask";
    let all = [("cross-validation", rows), ("evidence", spectrum), ("parallel", spectrum)];
    let more = [("threshold", spectrum), ("variance", spectrum)];
    all.into_iter().chain(more).map(|(method, reason)| Absent::new(method, reason))
}

/// The best fits to all observed cells, for each number of components.
struct Fits<'a> {
    all: &'a CellSplit, // knows all cells
    empty_rows: u64,
    spectra: Vec<Spectrum>,
    converged: bool,
}

impl<'a> Fits<'a> {
    fn new(
        mut growth: Growth,
        most: usize,
        all: &'a CellSplit,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Self> {
        let mut fits = Self { all, empty_rows: 0, spectra: Vec::new(), converged: true };
        for _ in 0..most {
            let Grown { spectrum, noiseless, converged } = growth.next(TOLERANCE, source, control)?;
            fits.spectra.push(spectrum);
            fits.converged &= converged;
            if noiseless {
                break;
            }
        }
        Ok(fits)
    }

    fn rows(&self) -> usize {
        self.spectra.first().map_or(0, Spectrum::rows)
    }

    /// n of the rows that have a cell.
    fn counted_weight(&self) -> f64 {
        let empty = usize::try_from(self.empty_rows).unwrap_or(usize::MAX);
        counted_weight(self.rows().saturating_sub(empty), self.all.weight())
    }

    fn lines(&self) -> Vec<Line> {
        let fits = (1..).zip(&self.spectra).map(|(q, spectrum)| {
            let explained = spectrum.explained_ratio().iter().sum();
            let eigenvalue = Some(spectrum.eigenvalues()[q - 1]);
            Line {
                eigenvalue,
                explained,
                ..self.line(q, spectrum.noise_variance(), spectrum.log_likelihood())
            }
        });
        std::iter::once(self.without_components()).chain(fits).collect()
    }

    /// Each feature's mean and one noise: ℓ = −½ N (ln 2πσ² + 1) of N cells.
    fn without_components(&self) -> Line {
        let (noise, cells) = (self.all.margins().pooled_variance(), self.all.margins().weight());
        let cells: f64 = cells.iter().sum();
        self.line(0, noise, -0.5 * cells * ((TAU * noise).ln() + 1.0))
    }

    fn line(&self, q: usize, noise_variance: f64, log_likelihood: f64) -> Line {
        let finite = |x: f64| x.is_finite().then_some(x);
        let n = self.counted_weight();
        let log_likelihood = log_likelihood * (n / self.all.weight());
        let k = parameters(self.all.margins().mean().len(), q);
        Line {
            components: q,
            noise_variance,
            log_likelihood: finite(log_likelihood),
            aic: finite(aic(log_likelihood, k)),
            bic: finite(bic(log_likelihood, k, n)),
            ..Line::default()
        }
    }
}
