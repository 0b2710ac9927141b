//! What is wanted, as one value: a family with its options, how to run, in which units; and the one door that
//! fits it.

use std::sync::Arc;

use crate::algorithm::{Components, RedundantFeatures};
use crate::control::{Control, Event};
use crate::data::{RowSource, RowStream, ScaledRows};
use crate::error::{Error, Result};
use crate::estimator::{
    Batch, Chooser, Family, Fit, KernelPca, Online, OnlineFit, Report, Run, Scale, Scaling, most_factors,
    with_threads,
};
use crate::evidence::{Moments, gather, gather_stream};
use crate::kernel::Gamma;
use crate::memory;
use crate::model::AnyModel;
use crate::select::{Select, SelectKernel, Selection};

/// What a fit is asked for. The command's flags and Python's constructors become this, and nothing else.
///
/// ```
/// use covary::data::Rows;
/// use covary::{Components, Control, Ppca, Request, Scale};
///
/// let cells = [1.0, 210.0, 3.0, 2.0, 390.0, 1.0, 3.0, 620.0, 2.0, 4.0, 780.0, 4.0, 5.0, 990.0, 3.0];
/// let rows = Rows::from_slice(&cells, 3)?;
/// let request = Request::new(Ppca::new(1)).scale(Scale::Unit);
/// let fit = request.fit(rows.source(), &Control::new())?;
/// // Answers are in the units of the data.
/// let mean = fit.model.with_loadings()?.mean();
/// assert!((mean[1] - 598.0).abs() < 1e-9);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    family: Arc<dyn Family>,
    run: Run,
    scale: Scale,
    start: Option<AnyModel>,
    select: Select,
}

/// What a model is fitted to.
pub enum Data<'a> {
    /// Rows that can be read more than once.
    Rows(&'a dyn RowSource),
    /// Rows that pass once, without missing values: their moments are all that can be had.
    Stream(&'a mut dyn RowStream),
    /// Moments of rows.
    Moments(&'a Moments),
}

impl<'a> From<&'a dyn RowSource> for Data<'a> {
    fn from(rows: &'a dyn RowSource) -> Self {
        Self::Rows(rows)
    }
}

impl<'a> From<&'a mut dyn RowStream> for Data<'a> {
    fn from(stream: &'a mut dyn RowStream) -> Self {
        Self::Stream(stream)
    }
}

impl<'a> From<&'a Moments> for Data<'a> {
    fn from(moments: &'a Moments) -> Self {
        Self::Moments(moments)
    }
}

impl Request {
    /// A family with its options.
    pub fn new(family: impl Family + 'static) -> Self {
        Self::of(Arc::new(family))
    }

    /// The same of a family of any kind.
    pub fn of(family: Arc<dyn Family>) -> Self {
        Self { run: family.how(), family, scale: Scale::None, start: None, select: Select::new() }
    }

    /// How to run.
    pub fn run(self, run: Run) -> Self {
        Self { run, ..self }
    }

    /// What features are divided by before the fit.
    pub fn scale(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }

    /// A warm start: a model of the same features and number of components, where a fit with missing values
    /// begins.
    pub fn start(self, model: AnyModel) -> Self {
        Self { start: Some(model), ..self }
    }

    /// How the number of components is chosen where that is [`Components::Auto`].
    pub fn select(self, select: Select) -> Self {
        Self { select, ..self }
    }

    /// The family.
    pub fn family(&self) -> &dyn Family {
        &*self.family
    }

    /// How it runs.
    pub fn how(&self) -> Run {
        self.run
    }

    /// Whether the number of components is to be chosen before the fit.
    pub fn chooses(&self) -> bool {
        self.family.components() == Components::Auto && self.family.chooser() != Chooser::Fit
    }

    /// Fits.
    ///
    /// # Errors
    /// When the request makes no sense, the data do not allow it, or a caller cancels.
    pub fn fit<'a>(&self, data: impl Into<Data<'a>>, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        self.run.check()?;
        match data.into() {
            Data::Rows(rows) => self.fit_rows(rows, control),
            Data::Moments(moments) => self.fit_moments(moments, control),
            Data::Stream(stream) => self.fit_stream(stream, control),
        }
    }

    /// What a batch of rows adds to batches before it.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); for missing values when features are scaled, because the steps that take them
    /// in are in units that are known only at the end.
    pub fn look(&self, seen: &Online, rows: &dyn RowSource, control: &Control<'_>) -> Result<Batch> {
        self.run.check()?;
        if self.scale != Scale::None {
            let p = seen.n_features();
            return seen.batch_of(gather(rows, || Moments::empty(p), control)?);
        }
        self.family.with_run(self.run).look(seen, rows, control)
    }

    /// The model of the batches so far.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub fn fit_online(&self, seen: &Online, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        if seen.parts().1.is_none() {
            return self.fit(seen.parts().0, control);
        }
        self.family.with_run(self.run).fit_online(seen, control)
    }

    /// The model after a batch of rows, the first of which is fitted: for families whose evidence depends on the
    /// model.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); when features are to be scaled, because their scale is known only at the end.
    pub fn step(
        &self,
        before: Option<&OnlineFit<AnyModel>>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<AnyModel>> {
        self.run.check()?;
        if self.scale != Scale::None {
            let (name, value) = ("the scale of rows in batches", self.scale.name().into());
            let allowed = "none, because it is known only when all rows are; divide the features before";
            return Err(Error::Parameter { name, value, allowed });
        }
        let family = self.family.with_run(self.run);
        match before {
            Some(before) => family.step(before, rows, control),
            None => family.begun(self.fit(rows, control)?, rows, control),
        }
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        let threads = self.run.threads;
        let Some(scaling) = with_threads(threads, || Scaling::of_rows(self.scale, rows, control))? else {
            return self.fit_unscaled(rows, self.start.as_ref(), control);
        };
        if let Some(table) = rows.as_table() {
            let (n, p) = table.shape();
            memory::check("the scaled copy of the rows", &[n, p])?;
        }
        let scaled = ScaledRows::new(rows, scaling.factors(), true)?;
        let start = self.start.as_ref().map(|start| scaling.divided(&**start)).transpose()?;
        scaling.undone(self.fit_unscaled(&scaled, start.as_ref(), control)?)
    }

    /// Fits rows as they are.
    fn fit_unscaled(
        &self,
        rows: &dyn RowSource,
        start: Option<&AnyModel>,
        control: &Control<'_>,
    ) -> Result<Fit<AnyModel>> {
        let select =
            |select: &Select| match self.family.with_run(self.run).rows_to_choose_by(rows, control)? {
                Some(others) => select.run_with(&*others, control),
                None => select.run_with(rows, control),
            };
        let (family, number) = match self.family.as_kernel_pca() {
            Some(kernel) if self.chooses() => self.settled_kernel(kernel, rows, control)?,
            _ => self.settled(rows.n_features(), select, control)?,
        };
        let family = match start {
            Some(start) => family.with_start(start)?,
            None => family,
        };
        family.with_run(self.run).fit_rows(rows, control).map(|fit| chosen(fit, number))
    }

    fn fit_moments(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        let Some(scaling) = Scaling::of_moments(self.scale, moments)? else {
            return self.fit_unscaled_moments(moments, control);
        };
        scaling.undone(self.fit_unscaled_moments(&moments.divided(scaling.factors()), control)?)
    }

    fn fit_unscaled_moments(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        let select = |select: &Select| select.run_moments_with(moments, control);
        let (family, number) = self.settled(moments.n_features(), select, control)?;
        family.with_run(self.run).fit_moments(moments, control).map(|fit| chosen(fit, number))
    }

    fn fit_stream(&self, stream: &mut dyn RowStream, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        let p = stream.n_features();
        let moments = gather_stream(stream, || Moments::empty(p), control)?;
        let Fit { model, mut report } = self.fit_moments(&moments, control)?;
        report.passes = 1;
        report.plan.reason = format!("the rows pass once: one pass gives the {p} × {p} covariance");
        Ok(Fit { model, report })
    }

    /// Kernel PCA with a width and a number of components, and what chose them.
    fn settled_kernel(
        &self,
        kernel: &KernelPca,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<(Arc<dyn Family>, Option<ChosenNumber>)> {
        control.emit(Event::Choosing);
        let select = SelectKernel::new(kernel.clone().run(self.run)).seed(self.run.seed);
        let select = self.run.threads.map_or(select.clone(), |threads| select.threads(threads));
        let found = select.run_with(rows, control)?;
        control.emit(Event::Fitting);
        let family = match found.recommended.gamma {
            Some(gamma) => kernel.clone().gamma(Gamma::Given(gamma)),
            None => kernel.clone(),
        };
        let chosen = ChosenNumber { reason: format!("chosen by {}", found.reason), redundant: None };
        Ok((family.with_components(Components::Count(found.recommended.components)), Some(chosen)))
    }

    /// The family with a number of components, and what chose it where it was chosen.
    fn settled(
        &self,
        features: usize,
        select: impl FnOnce(&Select) -> Result<Selection>,
        control: &Control<'_>,
    ) -> Result<(Arc<dyn Family>, Option<ChosenNumber>)> {
        let chooser = match self.family.components() {
            Components::Auto => self.family.chooser(),
            _ => return Ok((Arc::clone(&self.family), None)),
        };
        match chooser {
            Chooser::Fit => return Ok((self.family.with_components(Components::All), None)),
            // Moments do not tell kernels, and the fit says so.
            Chooser::KernelParallelAnalysis => return Ok((Arc::clone(&self.family), None)),
            _ => (),
        }
        control.emit(Event::Choosing);
        let selection = select(&self.select)?;
        control.emit(Event::Fitting);
        let (count, reason) = match chooser {
            Chooser::ParallelAnalysis => by_parallel_analysis(&selection, features)?,
            _ => (selection.recommended, format!("chosen by {}", selection.reason)),
        };
        let chosen = ChosenNumber { reason, redundant: selection.redundant };
        Ok((self.family.with_components(Components::Count(count)), Some(chosen)))
    }
}

/// The number of factors, at least one and as many as leave degrees of freedom.
fn by_parallel_analysis(selection: &Selection, features: usize) -> Result<(usize, String)> {
    let Some(choice) = selection.choice("parallel") else {
        let allowed = "a number, because parallel analysis, which chooses it, needs complete rows";
        return Err(Error::Parameter { name: "the number of factors", value: "auto".into(), allowed });
    };
    let factors = choice.components.clamp(1, most_factors(features).max(1));
    let reason = match choice.components {
        0 => "no factor is above noise by parallel analysis, but a model needs one".into(),
        n if n > factors => format!("as many of {n} by parallel analysis as degrees of freedom allow"),
        _ => format!("chosen by parallel analysis: {}", choice.reason),
    };
    Ok((factors, reason))
}

/// Why there are so many components, and which features had no say in that.
struct ChosenNumber {
    reason: String,
    redundant: Option<RedundantFeatures>,
}

/// The fit with what chose its number of components, unless the fit itself did.
fn chosen(fit: Fit<AnyModel>, number: Option<ChosenNumber>) -> Fit<AnyModel> {
    let Some(ChosenNumber { reason, redundant }) = number else { return fit };
    let redundant = redundant.or(fit.report.redundant);
    Fit { model: fit.model, report: Report { choice: Some(reason), redundant, ..fit.report } }
}
