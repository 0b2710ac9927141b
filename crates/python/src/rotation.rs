//! Rotations of loadings, and whether correlations are worth factors: plain arrays in, plain arrays out.

use covary::assess::Adequacy;
use covary::linalg::Mat;
use covary::rotate::{Method, Rotate};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::{Manner, now, run};
use crate::given;
use crate::output::{matrix, to_python, vector};

/// A rotation to be made.
#[pyclass(frozen, skip_from_py_object, module = "covary._covary")]
#[derive(Clone)]
pub(crate) struct Rotation {
    rotate: Rotate,
}

impl Rotation {
    pub(crate) fn rotate(&self) -> Rotate {
        self.rotate.clone()
    }
}

#[pymethods]
impl Rotation {
    /// `parameter`: promax's power, oblimin's γ or geomin's δ.
    #[new]
    #[pyo3(signature = (method, *, parameter=None, target=None, oblique=None, kaiser=None, starts=None, seed=0, tolerance=None, max_iterations=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        py: Python<'_>,
        method: &str,
        parameter: Option<f64>,
        target: Option<PyReadonlyArray2<'_, f64>>,
        oblique: Option<bool>,
        kaiser: Option<bool>,
        starts: Option<usize>,
        seed: u64,
        tolerance: Option<f64>,
        max_iterations: Option<usize>,
    ) -> PyResult<Self> {
        let target = target.map(|target| given::matrix(py, &target)).transpose()?;
        let method = method_of(py, method, parameter, target, oblique)?;
        let usual = Rotate::new(method);
        let rotate = kaiser.map_or(usual.clone(), |kaiser| usual.kaiser(kaiser));
        let rotate = starts.map_or(rotate.clone(), |starts| rotate.starts(starts));
        let rotate = tolerance.map_or(rotate.clone(), |tolerance| rotate.tolerance(tolerance));
        let rotate = max_iterations.map_or(rotate.clone(), |limit| rotate.max_iterations(limit));
        Ok(Self { rotate: rotate.seed(seed) })
    }

    /// The method's name in the core's spelling.
    #[getter]
    fn method(&self) -> &'static str {
        self.rotate.method().name()
    }

    /// Promax's power, oblimin's γ or geomin's δ.
    #[getter]
    fn parameter(&self) -> Option<f64> {
        self.rotate.method().parameter()
    }

    /// Whether rows are brought to length 1 before.
    #[getter]
    fn kaiser(&self) -> bool {
        self.rotate.is_kaiser()
    }

    /// Loadings (p, q) turned.
    fn run<'py>(&self, py: Python<'py>, loadings: PyReadonlyArray2<'_, f64>) -> PyResult<Bound<'py, PyDict>> {
        let (rotate, loadings) = (self.rotate.clone(), given::matrix(py, &loadings)?);
        let found = run(py, &Manner::default(), move |control| rotate.run_with(loadings.as_ref(), control))?;
        let dict = PyDict::new(py);
        dict.set_item("pattern", matrix(py, found.pattern.as_ref())?)?;
        dict.set_item("structure", matrix(py, found.structure.as_ref())?)?;
        dict.set_item("factor_correlation", matrix(py, found.correlation.as_ref())?)?;
        dict.set_item("rotation_matrix", matrix(py, found.turn.as_ref())?)?;
        dict.set_item("explained", vector(py, &found.explained()))?;
        dict.set_item("criterion", found.criterion)?;
        dict.set_item("converged", found.converged)?;
        dict.set_item("n_iter", found.iterations)?;
        dict.set_item("starts", vector(py, &found.starts))?;
        dict.set_item("agreeing", found.agreeing)?;
        Ok(dict)
    }
}

/// The method of a name with what belongs to it; what does not is an error.
fn method_of(
    py: Python<'_>,
    name: &str,
    parameter: Option<f64>,
    target: Option<Mat<f64>>,
    oblique: Option<bool>,
) -> PyResult<Method> {
    let turn = |otherwise: bool| oblique.unwrap_or(otherwise);
    let method = match (name.to_ascii_lowercase().as_str(), target) {
        ("target", Some(target)) => Method::Target { target, oblique: turn(false) },
        ("procrustes", Some(target)) => Method::Procrustes { target, oblique: turn(false) },
        (_, Some(_)) => {
            return Err(PyValueError::new_err(format!(
                "a target is for 'target' and 'procrustes', not '{name}'"
            )));
        }
        (_, None) => now(py, || name.parse())?,
    };
    let method = match (method, parameter) {
        (Method::Promax { .. }, Some(power)) => Method::Promax { power },
        (Method::Oblimin { .. }, Some(gamma)) => Method::Oblimin { gamma },
        (Method::Geomin { oblique: usual, .. }, Some(delta)) => {
            Method::Geomin { delta, oblique: turn(usual) }
        }
        (Method::Geomin { delta, oblique: usual }, None) => Method::Geomin { delta, oblique: turn(usual) },
        (method, None) => method,
        (method, Some(_)) => {
            return Err(PyValueError::new_err(format!("{} has no parameter", method.name())));
        }
    };
    match oblique {
        Some(asked) if asked != method.is_oblique() => {
            let kind = if method.is_oblique() { "oblique" } else { "orthogonal" };
            Err(PyValueError::new_err(format!("{} is always {kind}", method.name())))
        }
        _ => Ok(method),
    }
}

/// Sampling adequacy, Bartlett's test and squared multiple correlations of a covariance (p, p) and the number
/// of rows, when known.
#[pyfunction]
#[pyo3(signature = (covariance, n_rows=None, names=None))]
pub(crate) fn adequacy<'py>(
    py: Python<'py>,
    covariance: PyReadonlyArray2<'_, f64>,
    n_rows: Option<f64>,
    names: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    judged(py, given::matrix(py, &covariance)?, n_rows, names)
}

pub(crate) fn judged(
    py: Python<'_>,
    covariance: Mat<f64>,
    n_rows: Option<f64>,
    names: Option<Vec<String>>,
) -> PyResult<Bound<'_, PyAny>> {
    let found = run(py, &Manner::default(), move |_| {
        Adequacy::of(covariance.as_ref(), n_rows).map_err(|error| error.named(names.as_deref()))
    })?;
    to_python(py, &found)
}
