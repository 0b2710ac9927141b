//! Kernel PCA.

use std::sync::Arc;

use covary::estimator::Family;
use covary::kernel::KernelForm;
use covary::model::KernelComponents;
use covary::{Components, Control, Gamma, KernelPca, Landmarks};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{Manner, caught, run};
use crate::given;
use crate::input::Rows;
use crate::model::Model;
use crate::output::{double, matrix, vector};
use crate::threads::Threads;

/// `kernel` by its name, `gamma` (1/p where it is not given), `degree`, `coef0`; `landmarks` a number or an array,
/// `centres`: whether they are centres of clusters.
pub(super) fn kpca(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let gamma: Option<f64> = keywords.take("gamma")?;
    let form = form(keywords)?;
    let mut family = KernelPca::new(components)
        .kernel(form)
        .gamma(match gamma {
            Some(gamma) => Gamma::Given(gamma),
            // Kernel parallel analysis looks around the median.
            None if components == Components::Auto => Gamma::Median,
            None => Gamma::PerFeature,
        })
        .solver(keywords.word("solver")?.unwrap_or_default())
        .drop_empty(keywords.take("drop_empty")?.unwrap_or(false));
    let centres = keywords.take("centres")?.unwrap_or(false);
    if let Some(count) = keywords.take("n_landmarks")? {
        family = family.landmarks(if centres { Landmarks::KMeans(count) } else { Landmarks::Pivoted(count) });
    }
    if let Some(points) = keywords.take::<PyReadonlyArray2<'_, f64>>("landmarks")? {
        family = family.landmarks(Landmarks::Given(given::matrix(points.py(), &points)?));
    }
    let fixed_point = keywords.take("fixed_point")?.unwrap_or(true);
    if let Some(alpha) = keywords.take("alpha")? {
        family = family.same_kernel_back(alpha, fixed_point);
    }
    Ok(Arc::new(family))
}

fn form(keywords: &mut Keywords<'_>) -> PyResult<KernelForm> {
    let name: String = keywords.take("kernel")?.unwrap_or_else(|| "linear".into());
    let degree = keywords.take("degree")?.unwrap_or(3);
    let coef0 = keywords.take("coef0")?.unwrap_or(1.0);
    form_of(&name, degree, coef0)
}

/// The form of a kernel by its name.
pub(crate) fn form_of(name: &str, degree: u32, coef0: f64) -> PyResult<KernelForm> {
    Ok(match name {
        "linear" => KernelForm::Linear,
        "rbf" => KernelForm::Rbf,
        "laplacian" => KernelForm::Laplacian,
        "poly" => KernelForm::Polynomial { degree, coef0 },
        "sigmoid" => KernelForm::Sigmoid { coef0 },
        "cosine" => KernelForm::Cosine,
        "precomputed" => KernelForm::Precomputed,
        other => {
            return Err(PyValueError::new_err(format!(
                "kernel={other:?} must be 'linear', 'poly', 'rbf', 'sigmoid', 'cosine', 'laplacian', \
                 'precomputed' or a function of two rows"
            )));
        }
    })
}

/// Points (m, p), coefficients (m, q), weights of the mean (m,), γ (1,) and the noise variance (1,).
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<KernelComponents>() else { return Ok(None) };
    caught(|| {
        let (dict, parts) = (PyDict::new(py), model.parts());
        dict.set_item("points", matrix(py, parts.points.as_ref())?)?;
        dict.set_item("coefficients", matrix(py, parts.coefficients.as_ref())?)?;
        dict.set_item("centre", vector(py, &parts.centre))?;
        dict.set_item("gamma", vector(py, &[parts.kernel.gamma()]))?;
        dict.set_item("noise", vector(py, &[parts.noise]))?;
        dict.set_item("alpha", vector(py, &[parts.preimage.alpha]))?;
        Ok(Some(dict))
    })
}

fn kernel_components(model: &dyn covary::model::Model) -> covary::Result<&KernelComponents> {
    model.downcast_ref().ok_or_else(|| covary::Error::Parameter {
        name: "the model",
        value: model.kind().name.into(),
        allowed: "one of kernel PCA",
    })
}

#[pymethods]
impl Model {
    /// How far each row lies from the components of a model without a density (n,).
    #[pyo3(signature = (rows, threads=None))]
    fn novelty<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = self.ask(py, rows, threads, |m, rows| m.novelty()?.novelty(rows))?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// Coordinates of the points of a kernel model (m, q).
    #[pyo3(signature = (threads=None))]
    fn coordinates_of_points<'py>(
        &self,
        py: Python<'py>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        let found = move |_: &Control<'_>| double(&kernel_components(&*inner)?.coordinates_of_points()?);
        run(py, &Manner { threads, progress: None }, found)?.into_numpy(py)
    }

    /// Weights of the regression from coordinates to rows of a kernel model (m, p).
    #[pyo3(signature = (threads=None))]
    fn ridge_weights<'py>(
        &self,
        py: Python<'py>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        let found = move |_: &Control<'_>| double(kernel_components(&*inner)?.ridge_weights()?);
        run(py, &Manner { threads, progress: None }, found)?.into_numpy(py)
    }
}
