//! What is wanted, as Python gives it: a kind with its keywords, how to run, in which units.

use covary::{Components, Request as Wanted, Run, Scale};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use crate::door::{Manner, now};
use crate::kinds;
use crate::model::Model;
use crate::threads::Threads;

/// How a model is to be fitted.
#[pyclass(frozen, skip_from_py_object, module = "covary._covary")]
#[derive(Clone)]
pub(crate) struct Request {
    wanted: Wanted,
    threads: Option<Threads>,
}

/// What people call `n_components`.
struct NumberOfComponents(Components);

impl FromPyObject<'_, '_> for NumberOfComponents {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let word = given.extract::<&str>().ok();
        let number = || match given.is_instance_of::<PyInt>() {
            true => given.extract().map(Components::Count),
            false => given.extract().map(Components::Count).or_else(|_| share(given)),
        };
        let known = match word {
            Some("all") => Some(Components::All),
            Some("mle") => Some(Components::Evidence),
            Some("auto") => Some(Components::Auto),
            Some(_) => None,
            None => number().ok(),
        };
        known.map(Self).ok_or_else(|| {
            let text = given.repr().map_or("?".into(), |text| text.to_string());
            let large = given.is_instance_of::<PyInt>() && given.gt(0).unwrap_or(false);
            PyValueError::new_err(match large {
                true => format!("n_components={text} is more than any rows and features allow"),
                false => format!(
                    "n_components={text} must be a whole number such as 2, a fraction of the variance in (0, 1), \
                     'mle' or None"
                ),
            })
        })
    }
}

/// A share of the variance, not a number of components that is written as a fraction.
fn share(given: Borrowed<'_, '_, PyAny>) -> PyResult<Components> {
    let share: f64 = given.extract()?;
    match share < 1.0 {
        true => Ok(Components::Fraction(share)),
        false => Err(PyValueError::new_err("a share of the variance is below 1")),
    }
}

#[pymethods]
impl Request {
    /// `components`: a number, a fraction of the variance, "mle", "auto" or "all"; other keywords are those
    /// of the kind.
    #[new]
    #[pyo3(signature = (kind, components, *, scale="none", start=None, tolerance=None, max_iterations=None, seed=0, threads=None, **keywords))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        py: Python<'_>,
        kind: &str,
        components: NumberOfComponents,
        scale: &str,
        start: Option<&Model>,
        tolerance: Option<f64>,
        max_iterations: Option<usize>,
        seed: u64,
        threads: Option<Threads>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let family = kinds::family(kind, components.0, keywords)?;
        let run = Run { seed, tolerance, max_iterations, ..Run::default() };
        let scale: Scale = now(py, || scale.parse())?;
        let wanted = Wanted::of(family).run(run).scale(scale);
        let wanted = match start {
            Some(start) => wanted.start(start.saved().model.clone()),
            None => wanted,
        };
        Ok(Self { wanted, threads })
    }
}

impl Request {
    /// What the core is asked for.
    pub(crate) fn wanted(&self) -> Wanted {
        self.wanted.clone()
    }

    pub(crate) fn manner(&self, progress: Option<Py<PyAny>>) -> Manner {
        Manner { threads: self.threads, progress }
    }
}
