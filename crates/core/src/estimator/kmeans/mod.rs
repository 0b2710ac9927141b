//! k-means: options, a start found on a sample of the rows, Lloyd's method on all of them.

mod choose;
mod fit;
mod online;
mod report;

use std::sync::Arc;

use super::run::run_options;
use super::{Family, Fit, Groups, Run, explained, with_threads};
use crate::algorithm::{Components, Seeding};
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::linalg::Mat;
use crate::model::{AnyModel, Clustering, Kind, kind};

pub use report::{ClusterReport, KTable, KTableRow};

/// k-means: K centres that make the sum of squared distances of rows to their nearest centre small.
///
/// Minimises $\sum_i w_i \min_k \lVert x_i - c_k \rVert^2$ by Lloyd's method \[L82\] from greedy k-means++
/// \[AV07\]. Lloyd's method ends at the optimum next to its start, so swaps of centres follow, by which nearly
/// every start ends at the same, best known optimum. The search takes place on all rows where they are few, and
/// on a weighted sample of them (a coreset \[BLK18\]) where they are many; Lloyd's method on all rows has the
/// last word. It ends when no row changes its cluster.
///
/// Of rows with missing values the observed cells count, in distances and in means. Where clusters overlap this
/// is biased, because a row with few cells goes to whichever centre is near in those; a mixture with q = 0 is
/// not.
///
/// ```
/// use covary::KMeans;
/// use covary::data::Rows;
/// let cells = [0.0, 0.1, 0.2, 0.0, 5.0, 5.1, 5.2, 5.0, 4.9, 5.2];
/// let fit = KMeans::new(2).fit(Rows::from_slice(&cells, 2)?)?;
/// assert_eq!(fit.model.shares(), [0.6, 0.4]);
/// assert_eq!(fit.model.nearest(Rows::from_slice(&cells, 2)?)?.0, [1, 1, 0, 0, 0]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KMeans {
    groups: Groups,
    start: Start,
    starts: usize,
    polish: bool,
    brief: bool,
    run: Run,
}

/// Where Lloyd's method starts.
#[derive(Debug, Clone)]
enum Start {
    Drawn(Seeding),
    Given(Mat<f64>), // (K × p)
}

impl KMeans {
    /// So many clusters, or as many as are best of a range.
    pub fn new(groups: impl Into<Groups>) -> Self {
        let start = Start::Drawn(Seeding::default());
        Self { groups: groups.into(), start, starts: 1, polish: true, brief: false, run: Run::default() }
    }

    /// How the first centres are drawn; greedy k-means++ by default.
    pub fn seeding(self, seeding: Seeding) -> Self {
        Self { start: Start::Drawn(seeding), ..self }
    }

    /// The first centres (K × p), from which Lloyd's method goes its way without swaps.
    pub fn centres(self, centres: Mat<f64>) -> Self {
        Self { groups: Groups::Count(centres.nrows()), start: Start::Given(centres), ..self }
    }

    /// Starts that are drawn, of which the best is taken; 1 by default.
    pub fn starts(self, starts: usize) -> Self {
        Self { starts, ..self }
    }

    /// Whether swaps of centres follow Lloyd's method; they do by default.
    pub fn polish(self, polish: bool) -> Self {
        Self { polish, ..self }
    }

    /// Ends after few swaps in a row that fail, as a start for something else.
    pub(crate) fn brief(self) -> Self {
        Self { brief: true, ..self }
    }

    run_options! {
        /// The sum of squared steps of the centres, in units of the mean variance of a feature, at which a
        /// fit ends. By default it ends when no row changes its cluster.
    }

    /// Fits rows.
    ///
    /// # Errors
    /// When the options make no sense, there are no rows, a feature was never observed or a cell is infinite.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<Clustering>> {
        self.fit_with(rows, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Fit<Clustering>> {
        let rows = rows.into();
        self.run.check()?;
        self.check(rows.source().n_features())?;
        let fitted = with_threads(self.run.threads, || fit::fit(self, rows.source(), control));
        fitted.map_err(|error| explained(error, rows.source(), control))
    }

    /// What makes no sense, of so many features.
    fn check(&self, features: usize) -> Result<()> {
        self.groups.check()?;
        if self.starts == 0 {
            let (name, value) = ("the number of starts", "0".into());
            return Err(Error::Parameter { name, value, allowed: "at least 1" });
        }
        let Start::Given(centres) = &self.start else { return Ok(()) };
        if centres.ncols() != features {
            return Err(Error::FeatureCount { expected: features, found: centres.ncols() });
        }
        let cells = (0..centres.ncols()).flat_map(|j| centres.col_as_slice(j));
        match cells.copied().find(|x| !x.is_finite()) {
            Some(x) => {
                let (name, value) = ("a cell of the first centres", x.to_string());
                Err(Error::Parameter { name, value, allowed: "finite" })
            }
            None => Ok(()),
        }
    }
}

impl Family for KMeans {
    fn kind(&self) -> &'static Kind {
        &kind::KMEANS
    }

    fn components(&self) -> Components {
        Components::Count(self.groups.range().1)
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        match components {
            Components::Count(count) => Arc::new(Self { groups: Groups::Count(count), ..self.clone() }),
            _ => Arc::new(self.clone()),
        }
    }

    fn how(&self) -> Run {
        self.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(self.clone().run(run))
    }

    fn with_start(&self, start: &AnyModel) -> Result<Arc<dyn Family>> {
        match start.downcast_ref::<Clustering>() {
            Some(model) => Ok(Arc::new(self.clone().centres(model.centres().clone()))),
            None => Err(Error::Parameter {
                name: "the start",
                value: start.kind().name.into(),
                allowed: "a model of k-means: others have no centres",
            }),
        }
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        Err(Error::Parameter {
            name: "what k-means is fitted to",
            value: "moments, or rows that pass once".into(),
            allowed: "rows that can be read again: moments do not tell which rows lie together",
        })
    }
}
