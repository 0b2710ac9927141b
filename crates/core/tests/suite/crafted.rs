//! Files with a right checksum and wrong contents: each is refused, or is a model that answers every
//! question without a panic.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::common::*;
use covary::algorithm::{MixtureEvidence, em_step, mixture_step, robust_step};
use covary::assess::PpcaEstimate;
use covary::data::Rows;
use covary::estimator::{ppca_estimate, standard_errors, turned};
use covary::evidence::{Accumulator, Clusters, Latent, Moments, Sketch, StudentEvidence, gather};
use covary::expectation::LatentParameters;
use covary::linalg::Mat;
use covary::model::{
    Factors, LinearGaussian, Mixture, Model, Noise, Predictive, PrincipalComponents, Reconstruction, Scores,
    Uncertainty,
};
use covary::persist::{Portable, SavedModel, kind};
use covary::rotate::{Method, Rotate};
use covary::select::Select;
use covary::{BayesianPca, Control, Error, FactorAnalysis, KMeans, MixturePpca, Pca, Ppca};
use serde_json::{Value, json};

/// Files of an ordinary run and of a long one.
const FILES: (usize, usize) = (300, 20_000);

/// What a file holds, open for changes.
#[derive(Clone)]
struct Draft {
    header: Value,
    arrays: BTreeMap<String, Array>,
}

#[derive(Clone)]
struct Array {
    shape: Vec<usize>,
    cells: Vec<f64>,
}

impl Draft {
    /// Reads a container by hand: length, JSON, arrays.
    fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let index: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let (text, data) = (index["__metadata__"]["covary"].as_str().unwrap(), &bytes[8 + length..]);
        let array = |entry: &Value| {
            let sides = |key: &str| -> Vec<usize> { serde_json::from_value(entry[key].clone()).unwrap() };
            let (shape, at) = (sides("shape"), sides("data_offsets"));
            let cells =
                data[at[0]..at[1]].chunks(8).map(|w| f64::from_le_bytes(w.try_into().unwrap())).collect();
            Array { shape, cells }
        };
        let entries = index.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
        let arrays = entries.map(|(name, entry)| (name.clone(), array(entry))).collect();
        Self { header: serde_json::from_str(text).unwrap(), arrays }
    }

    /// Writes it with the checksum that belongs to it, whatever it holds.
    fn to_bytes(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        header["checksum"] = json!("00000000");
        let blank = header.to_string();
        let mut crc = crc32fast::Hasher::new();
        crc.update(blank.as_bytes());
        let (mut index, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, Array { shape, cells }) in &self.arrays {
            let bytes: Vec<u8> = cells.iter().flat_map(|x| x.to_le_bytes()).collect();
            crc.update(name.as_bytes());
            shape.iter().for_each(|n| crc.update(&(*n as u64).to_le_bytes()));
            crc.update(&bytes);
            let ends = [data.len(), data.len() + bytes.len()];
            index.insert(name.clone(), json!({"dtype": "F64", "shape": shape, "data_offsets": ends}));
            data.extend(bytes);
        }
        let checksum = format!("\"checksum\":\"{:08x}\"", crc.finalize());
        let text = blank.replacen("\"checksum\":\"00000000\"", &checksum, 1);
        index.insert("__metadata__".into(), json!({"covary": text}));
        let index = Value::Object(index).to_string();
        [&(index.len() as u64).to_le_bytes()[..], index.as_bytes(), &data].concat()
    }

    fn array(&mut self, name: &str) -> &mut Array {
        self.arrays.get_mut(name).unwrap()
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Vec<u8> {
        change(&mut self);
        self.to_bytes()
    }
}

impl Array {
    /// As many cells as the shape asks for, within reason.
    fn fill(&mut self) {
        let asked = self.shape.iter().fold(1usize, |a, b| a.saturating_mul(*b));
        self.cells.resize(asked.min(100), 0.25);
    }

    fn set(&mut self, cells: &[f64]) {
        (self.shape, self.cells) = (vec![cells.len()], cells.to_vec());
    }
}

// ---------------------------------------------------------------------------------------------------------- right files

fn names(p: usize) -> Vec<String> {
    (0..p).map(|j| format!("feature {j}")).collect()
}

fn model_files() -> Vec<Vec<u8>> {
    let x = rows_with_deviations(25, &falling(6, 0.7), 1.0, &mut Rng(4));
    let mut incomplete = x.clone();
    (0..8).for_each(|k| incomplete[(3 * k, k % 6)] = f64::NAN);
    let factors = FactorAnalysis::new(2).rotation(Rotate::new(Method::Varimax)).fit(&x).unwrap();
    let w = Mat::from_fn(6, 2, |i, j| (i as f64) - 2.0 * j as f64);
    let noises = Noise::Diagonal(vec![0.5, 0.25, 2.0, 1.0, 1.0, 0.1]);
    let oblique = Mat::from_fn(2, 2, |i, j| [[1.0, 0.6], [0.0, 0.8]][i][j]);
    let oblique =
        Factors::new(LinearGaussian::new(vec![0.1; 6], w.clone(), noises).unwrap()).with_turn(oblique);
    let known = Uncertainty { loadings: Mat::from_fn(6, 2, |i, _| 0.1 * i as f64), mean: vec![0.3; 6] };
    let uncertain = Predictive::new(vec![0.1; 6], w, 0.5, vec![0.6, 0.1], Some(known)).unwrap();
    let saved = [
        SavedModel::new(Ppca::new(2).fit(&x).unwrap(), Some(names(6))),
        SavedModel::new(Ppca::new(2).fit(&incomplete).unwrap(), None),
        SavedModel::new(Pca::new(3).fit(&x).unwrap(), None),
        SavedModel::new(Pca::new(0).fit(&x).unwrap(), None),
        SavedModel::new(factors, Some(names(6))),
        SavedModel::given(oblique.unwrap(), None),
        SavedModel::new(BayesianPca::new(3).fit(&x).unwrap(), None),
        SavedModel::given(uncertain, None),
        SavedModel::given(
            LinearGaussian::new(vec![2.0], Mat::full(1, 1, 0.5), Noise::Isotropic(0.1)).unwrap(),
            None,
        ),
        SavedModel::new(Ppca::new(0).fit(&x).unwrap(), None),
        SavedModel::new(MixturePpca::new(2, 1).fit(&x).unwrap(), None),
        SavedModel::new(MixturePpca::new(2, 1).diagonal(true).fit(&incomplete).unwrap(), Some(names(6))),
        SavedModel::new(KMeans::new(3).fit(&x).unwrap(), Some(names(6))),
        SavedModel::new(KMeans::new(2).fit(&incomplete).unwrap(), None),
    ];
    saved.into_iter().map(|saved| saved.unwrap().to_bytes().unwrap()).collect()
}

fn evidence_files() -> Vec<Vec<u8>> {
    let x = rows_with_deviations(25, &falling(6, 0.7), 1.0, &mut Rng(4));
    let chunk = chunk_of(x.as_ref(), 0);
    let mut moments = Moments::empty(6);
    let mut sketch = Sketch::empty(Arc::new(normal_matrix(6, 2, &mut Rng(1))));
    moments.update(&chunk).unwrap();
    sketch.update(&chunk).unwrap();
    let w = normal_matrix(6, 2, &mut Rng(2));
    let parameters = [
        LatentParameters::new(vec![0.0; 6], w.as_ref(), 0.7).unwrap(),
        LatentParameters::with_noises(vec![0.0; 6], w.as_ref(), &[0.7, 1.0, 2.0, 0.5, 0.1, 3.0]).unwrap(),
    ];
    let latent = parameters.map(|parameters| {
        let parameters = Arc::new(parameters);
        let latent = gather(&table(&x), || Latent::empty(parameters.clone()), &Control::new()).unwrap();
        latent.to_bytes(&names(6)).unwrap()
    });
    let [first, second] = latent;
    let mut clusters = Clusters::empty(normal_matrix(2, 6, &mut Rng(3)).as_ref());
    clusters.update(&chunk).unwrap();
    let clusters = clusters.to_bytes(&names(6)).unwrap();
    let simple = [moments.to_bytes(&names(6)).unwrap(), sketch.to_bytes(&names(6)).unwrap()];
    simple.into_iter().chain([first, second, clusters]).chain(weighted_files(&x)).collect()
}

/// Evidence of rows that a mixture or a t distribution weighs.
fn weighted_files(x: &Mat<f64>) -> Vec<Vec<u8>> {
    let chunk = chunk_of(x.as_ref(), 0);
    let components = [1, 2].map(|q| random_model(6, q, false, &mut Rng(q as u64))).to_vec();
    let mixture = Arc::new(Mixture::new(vec![0.6, 0.4], components).unwrap());
    let w = normal_matrix(6, 2, &mut Rng(2));
    let parameters = Arc::new(LatentParameters::new(vec![0.0; 6], w.as_ref(), 0.7).unwrap());
    let mixtures = [MixtureEvidence::complete(mixture.clone()), MixtureEvidence::incomplete(mixture)];
    let students = [
        StudentEvidence::complete(parameters.clone(), 3.0).unwrap(),
        StudentEvidence::incomplete(parameters, f64::INFINITY).unwrap(),
    ];
    let mixtures = mixtures.map(|mut evidence| {
        evidence.update(&chunk).unwrap();
        evidence.to_bytes(&names(6)).unwrap()
    });
    let students = students.map(|mut evidence| {
        evidence.update(&chunk).unwrap();
        evidence.to_bytes(&names(6)).unwrap()
    });
    mixtures.into_iter().chain(students).collect()
}

// ------------------------------------------------------------------------------------------------------- wrong contents

fn odd_number(rng: &mut Rng) -> f64 {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        -1.0,
        1e308,
        -1e308,
        1e155,
        5e-324,
        1e-200,
        3.0,
    ];
    odd[rng.below(odd.len())]
}

fn odd_value(rng: &mut Rng) -> Value {
    let odd = [
        json!(null),
        json!(-1),
        json!(0),
        json!(1),
        json!(7),
        json!(-0.5),
        json!(1e300),
        json!(1e-300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!("text"),
        json!(""),
        json!("\u{1b}[2J\u{0}\n"),
        json!(true),
        json!([]),
        json!([1, -1]),
        json!([[1.0], [2.0, 3.0]]),
        json!({}),
    ];
    odd[rng.below(odd.len())].clone()
}

fn odd_shape(array: &Array, rng: &mut Rng) -> Vec<usize> {
    let n = array.cells.len();
    let huge = 1 << 62;
    let shapes = [
        vec![0, huge],
        vec![huge, 0],
        vec![0],
        vec![0, 0],
        vec![],
        vec![n],
        vec![n, 1],
        vec![1, n],
        vec![1, 1, n],
        vec![huge, 4, 0],
        vec![usize::MAX, 1],
        array.shape.iter().rev().copied().collect(),
    ];
    shapes[rng.below(shapes.len())].clone()
}

/// Changes one array.
fn change_array(draft: &mut Draft, rng: &mut Rng) {
    let all: Vec<String> = draft.arrays.keys().cloned().collect();
    let name = &all[rng.below(all.len())];
    let other = draft.arrays[&all[rng.below(all.len())]].clone();
    let array = draft.array(name);
    let n = array.cells.len();
    match rng.below(13) {
        0 => array.shape = odd_shape(array, rng),
        1 => {
            array.shape = odd_shape(array, rng);
            array.fill();
        }
        2 | 3 if n > 0 => array.cells[rng.below(n)] = odd_number(rng),
        4 => {
            let value = odd_number(rng);
            array.cells.iter_mut().for_each(|x| *x = value);
        }
        5 => {
            let factor = [-1.0, 1e200, 1e-200, 1e-160, 1e150][rng.below(5)];
            array.cells.iter_mut().for_each(|x| *x *= factor);
        }
        6 => {
            let order = rng.shuffled(n);
            array.cells = order.iter().map(|i| array.cells[*i]).collect();
        }
        // Cut or extended along one side, consistently.
        7 | 8 if !array.shape.is_empty() => {
            let side = rng.below(array.shape.len());
            array.shape[side] = rng.below(9);
            array.fill();
        }
        9 => drop(draft.arrays.remove(name)),
        10 => *draft.array(name) = other,
        11 => drop(draft.arrays.insert("extra".into(), other)),
        _ => {
            let taken = draft.arrays.remove(name).unwrap();
            let to = ["turn", "loadings_std", "mean_std", "deviations", "components", "x"][rng.below(6)];
            draft.arrays.insert(to.into(), taken);
        }
    }
}

/// Walks down to some value and changes it.
fn change_value(value: &mut Value, rng: &mut Rng, deep: bool) {
    let stop = rng.below(if deep { 12 } else { 3 }) == 0;
    match value {
        Value::Object(map) if !map.is_empty() && !stop => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = &keys[rng.below(keys.len())];
            match rng.below(12) {
                0 => drop(map.remove(key)),
                1 => drop(map.insert("unheard of".into(), odd_value(rng))),
                _ => change_value(&mut map[key], rng, deep),
            }
        }
        Value::Array(list) if !list.is_empty() && !stop => {
            let at = rng.below(list.len());
            match rng.below(5) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                2 => list[at] = odd_value(rng),
                _ => change_value(&mut list[at], rng, deep),
            }
        }
        Value::Number(n) if rng.below(3) > 0 => {
            let x = n.as_f64().unwrap_or(0.0);
            *value = [json!(-x), json!(x * 1e6), json!(x + 1.0), json!(0), json!(-1), json!(x / 3.0)]
                [rng.below(6)]
            .clone();
        }
        other => *other = odd_value(rng),
    }
}

fn crafted(file: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng(seed);
    let mut draft = Draft::of(file);
    for _ in 0..=rng.below(3) {
        match rng.below(8) {
            0 => {
                let models = ["ppca", "pca", "fa", "bpca", "robust", "mixture", "kmeans"];
                let others =
                    ["moments", "sketch", "latent", "clusters", "mixture_evidence", "student_evidence"];
                let kinds: Vec<&str> = models.into_iter().chain(others).chain(["other", ""]).collect();
                draft.header["kind"] = json!(kinds[rng.below(kinds.len())]);
            }
            1 => change_value(&mut draft.header["details"], &mut rng, false),
            2..=4 => change_value(&mut draft.header["details"], &mut rng, true),
            _ => change_array(&mut draft, &mut rng),
        }
        if draft.arrays.is_empty() {
            break;
        }
    }
    draft.to_bytes()
}

// ------------------------------------------------------------------------------------------------------------ questions

/// Whatever is asked gets an answer or an error.
fn ask_model(saved: &SavedModel) {
    let p = saved.model.n_features();
    assert_eq!(
        (saved.features.len(), saved.report.features, saved.report.components),
        (p, p, saved.model.n_latent())
    );
    let shares = saved.explained_ratio();
    let expected = saved.model.as_loadings().map_or(0, |_| saved.model.n_latent());
    assert!(shares.len() >= expected && shares.iter().all(|v| v.is_finite()), "{shares:?}");
    assert!(saved.singular_values().iter().all(|v| !v.is_nan()));
    let whole: Vec<f64> = (0..3 * p).map(|k| (k as f64).sin()).collect();
    let holes: Vec<f64> =
        whole.iter().enumerate().map(|(k, x)| if k % 4 == 1 { f64::NAN } else { *x }).collect();
    for cells in [&whole, &holes] {
        ask_about_rows(&*saved.model, &|| Rows::from_slice(cells, p).unwrap());
    }
    if let Some(loadings) = saved.model.as_loadings() {
        let factors = loadings.factors();
        ask_gaussian(factors.gaussian());
        ask_estimate(saved, factors.gaussian());
    }
    ask_kind(saved);
    let again = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
    assert_eq!(again.to_bytes().unwrap(), saved.to_bytes().unwrap());
}

fn ask_about_rows<'a>(model: &dyn Model, rows: &dyn Fn() -> Rows<'a>) {
    let _ = model.encoder().unwrap().encode(rows().source());
    let rebuilder = model.reconstructor().unwrap();
    let _ = rebuilder.reconstruct(rows().source(), Reconstruction::Orthogonal);
    let _ = rebuilder.reconstruct(rows().source(), Reconstruction::Posterior);
    if let Some(imputer) = model.as_fill() {
        let _ = imputer.impute(rows().source());
        let _ = imputer.impute_with_std(rows().source());
        let _ = imputer.draw_missing(rows().source(), 0..2, 1);
    }
    if let Some(density) = model.as_density() {
        let _ = density.log_density(rows().source());
        let _ = density.outliers(rows().source());
        let _ = density.distances(rows().source());
    }
    if let Some(groups) = model.as_assign() {
        let _ = groups.assign(rows().source());
    }
    if let Some(m) = model.as_posterior() {
        let _ = m.posterior(rows().source());
    }
    if let Some(m) = model.downcast_ref::<Factors>() {
        let _ = m.transform(rows(), Scores::Bartlett);
    }
    if let Some(m) = model.downcast_ref::<PrincipalComponents>() {
        let _ = m.whiten(rows());
    }
}

fn ask_gaussian(m: &LinearGaussian) {
    let _ = (m.sample(3, 0), m.covariance(), m.precision(), m.principal_axes(), m.marginal(&[0]));
}

fn ask_estimate(saved: &SavedModel, m: &LinearGaussian) {
    if let Ok(estimate) = ppca_estimate(m, &saved.report) {
        let _ =
            (estimate.standard_errors(), estimate.unbiased_noise(), estimate.intervals(PpcaEstimate::LEVEL));
    }
    let _ = turned(Factors::new(m.clone()), &Rotate::new(Method::Varimax));
}

fn ask_kind(saved: &SavedModel) {
    let report = &saved.report;
    let _ = (
        report.counted_rows(),
        report.converged(),
        report.holes.as_ref().map(covary::estimator::MissingCells::share),
    );
    let _ = saved.model.density().map(|density| density.marginal(&[0]));
    let _ = covary::describe::describe(saved, &covary::describe::Detail::default());
    if let Some(m) = saved.model.downcast_ref::<PrincipalComponents>() {
        let _ = (m.unbiased(report.weight), m.completed(m.n_features()));
    }
    if let Some(m) = saved.model.downcast_ref::<Factors>() {
        let _ = (m.communalities(), m.uniquenesses(), m.factor_variances(), m.correlation());
        let _ = standard_errors(m, report);
        let _ = report.rotation.as_ref().map(covary::estimator::RotationReport::method);
    }
}

fn ask_moments(moments: &Moments, features: &[String]) {
    assert_eq!(moments.n_features(), features.len());
    let _ = moments.clone().merge(moments);
    let _ = (moments.covariance(), moments.total_variance(), moments.to_bytes(features).unwrap());
    let _ = Ppca::new(2).fit_moments(moments);
    let _ = Pca::new(0.9).fit_moments(moments);
    let _ = Select::new().samples(2).run_moments(moments);
    let _ = FactorAnalysis::new(1).max_iterations(20).fit_moments(moments);
    let _ = BayesianPca::new(2).fit_moments(moments);
}

/// Reads a file as everything that it could be and asks; whether it was taken as something.
fn read_and_ask(bytes: &[u8]) -> bool {
    let _ = kind(bytes);
    let model = SavedModel::from_bytes(bytes).map(|saved| ask_model(&saved));
    let moments = Moments::from_bytes(bytes).map(|saved| ask_moments(&saved.evidence, &saved.features));
    let sketch = Sketch::from_bytes(bytes).map(|saved| {
        let _ = saved.evidence.clone().merge(&saved.evidence);
        drop(saved.evidence.to_bytes(&saved.features).unwrap());
    });
    let latent = Latent::from_bytes(bytes).map(|saved| {
        let _ = (em_step(&saved.evidence), saved.evidence.log_likelihood());
        let _ = saved.evidence.clone().merge(&saved.evidence);
        drop(saved.evidence.to_bytes(&saved.features).unwrap());
    });
    let clusters = Clusters::from_bytes(bytes).map(|saved| {
        let _ = (saved.evidence.means(), saved.evidence.clone().merge(&saved.evidence));
        drop(saved.evidence.to_bytes(&saved.features).unwrap());
    });
    let mixture = MixtureEvidence::from_bytes(bytes).map(|saved| {
        let _ = (mixture_step(&saved.evidence), saved.evidence.log_likelihood());
        let _ = saved.evidence.clone().merge(&saved.evidence);
        drop(saved.evidence.to_bytes(&saved.features).unwrap());
    });
    let student = StudentEvidence::from_bytes(bytes).map(|saved| {
        let _ = (robust_step(&saved.evidence), saved.evidence.log_likelihood());
        let _ = saved.evidence.clone().merge(&saved.evidence);
        drop(saved.evidence.to_bytes(&saved.features).unwrap());
    });
    let all = [model, moments, sketch, latent, clusters, mixture, student];
    all.iter().filter_map(|r| r.as_ref().err()).for_each(|e| {
        assert!(matches!(e, Error::Format(_) | Error::Version { .. } | Error::Length { .. }), "{e}");
    });
    all.iter().any(Result::is_ok)
}

// ---------------------------------------------------------------------------------------------------------------- tests

fn files() -> Vec<Vec<u8>> {
    model_files().into_iter().chain(evidence_files()).collect()
}

#[test]
fn drafts_that_are_not_changed_are_read() {
    for file in files() {
        assert!(read_and_ask(&Draft::of(&file).to_bytes()));
    }
}

/// Many when `COVARY_SOAK` is set.
#[test]
fn soak_crafted_files() {
    let files = files();
    let count = soak(FILES.0, FILES.1) as u64;
    let answer = |seed: u64| {
        let bytes = crafted(&files[seed as usize % files.len()], seed);
        catch_unwind(AssertUnwindSafe(|| read_and_ask(&bytes)))
    };
    let answers: Vec<_> = (0..count).map(|seed| (seed, answer(seed))).collect();
    let panics: Vec<u64> = answers.iter().filter(|(_, a)| a.is_err()).map(|(seed, _)| *seed).collect();
    assert!(panics.is_empty(), "files that made a panic: {panics:?}");
    let taken = answers.iter().filter(|(_, a)| matches!(a, Ok(true))).count() as u64;
    assert!(
        count / 20 < taken && taken < count / 2,
        "{taken} of {count} files were taken: changes are too strong or too weak"
    );
}

fn refused(bytes: &[u8], words: &str) {
    let error = SavedModel::from_bytes(bytes).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Format(_)) && error.to_string().contains(words), "{error}");
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let files = model_files();
    let draft = |k: usize| Draft::of(&files[k]);
    refused(&draft(0).with(|d| d.array("eigenvalues").set(&[1.0])), "1 eigenvalues");
    refused(&draft(2).with(|d| d.array("mean").set(&[0.0; 7])), "'components' has shape");
    refused(&draft(2).with(|d| d.array("eigenvalues").set(&[1.0])), "variances");
    refused(&draft(0).with(|d| d.array("mean").set(&[])), "no features");
    for (shape, k) in
        [(vec![0, 1 << 62], 0), (vec![1 << 62, 0], 0), (vec![1 << 62, 0], 6), (vec![0, 1 << 62], 7)]
    {
        let bytes = draft(k).with(|d| *d.array("loadings") = Array { shape, cells: Vec::new() });
        refused(&bytes, "'loadings' has shape");
    }
    refused(
        &draft(5).with(|d| d.array("turn").set(&[1.0, 0.0])),
        "'turn' has shape [2] where [2, 2] is needed",
    );
}

#[test]
fn numbers_that_no_model_has_are_refused() {
    let files = model_files();
    let draft = |k: usize| Draft::of(&files[k]);
    for name in ["mean", "loadings", "noise_variance", "eigenvalues"] {
        refused(&draft(0).with(|d| d.array(name).cells[0] = f64::NAN), &format!("'{name}' holds NaN"));
    }
    for value in [1e300, -1e300] {
        refused(
            &draft(5).with(|d| d.array("loadings").cells[0] = value),
            "the variance of all features is inf",
        );
    }
    refused(&draft(0).with(|d| d.array("noise_variance").cells[0] = -1.0), "noise variance");
    refused(&draft(0).with(|d| d.array("noise_variance").cells[0] = 1e-323), "0 or at least 2.3e-308");
    refused(&draft(0).with(|d| d.array("eigenvalues").cells[0] = -1.0), "eigenvalues");
    let report =
        |k: usize, change: &dyn Fn(&mut Value)| draft(k).with(|d| change(&mut d.header["details"]["report"]));
    refused(&report(0, &|r| r["total_variance"] = json!(-1.0)), "eigenvalues");
    refused(&report(3, &|r| r["total_variance"] = json!(-1.0)), "total variance");
    refused(&report(0, &|r| r["total_variance"] = json!(0)), "eigenvalues");
    refused(&report(0, &|r| r["total_variance"] = json!(1e-300)), "eigenvalues");
    refused(&report(0, &|r| r["weight"] = json!(-25.0)), "total weight");
    refused(&report(0, &|r| r["rows"] = json!(0)), "total weight");
    refused(&report(0, &|r| r["components"] = json!(3)), "number of components");
    refused(&report(0, &|r| r["features"] = json!(60)), "number of features");
    refused(&report(1, &|r| r["holes"]["missing"] = json!(u64::MAX)), "missing cells");
    refused(&report(4, &|r| r["factor"]["heywood"] = json!([6])), "Heywood");
    refused(&report(4, &|r| r["factor"]["assessment"]["fit"]["p_value"] = json!(2)), "fit indices");
    refused(
        &report(4, &|r| r["factor"]["assessment"]["adequacy"]["smc"] = json!([0.5])),
        "sampling adequacy",
    );
}

#[test]
fn evidence_that_no_rows_can_have_is_refused() {
    let files = weighted_files(&rows_with_deviations(25, &falling(6, 0.7), 1.0, &mut Rng(4)));
    let refused = |k: usize, words: &str, change: &dyn Fn(&mut Draft)| {
        let bytes = Draft::of(&files[k]).with(|d| change(d));
        let error = match k {
            0 | 1 => MixtureEvidence::from_bytes(&bytes).err().unwrap(),
            _ => StudentEvidence::from_bytes(&bytes).err().unwrap(),
        };
        assert!(matches!(error, Error::Format(_)) && error.to_string().contains(words), "{error}");
    };
    for k in [0, 1] {
        refused(k, "noise is not positive", &|d| d.array("noise_variance").cells[0] = 0.0);
        refused(k, "mixture is not possible", &|d| d.array("weights").cells[0] = -0.5);
        refused(k, "'means' holds NaN", &|d| d.array("means").cells[0] = f64::NAN);
        refused(k, "'overlap' has shape", &|d| d.array("overlap").set(&[1.0]));
        refused(k, "no rows can have", &|d| d.header["details"]["weight"] = json!(-1.0));
        refused(k, "feature names", &|d| d.header["details"]["features"] = json!(["a"]));
        refused(k, "it holds 'latent'", &|d| d.header["kind"] = json!("latent"));
    }
    let parts = |d: &mut Draft, parts: Value| d.header["details"]["parts"]["complete"] = parts;
    refused(0, "one part for each component", &|d| parts(d, json!([[25, 10.0]])));
    refused(0, "moments that no rows can have", &|d| parts(d, json!([[0, 10.0], [25, 15.0]])));
    refused(0, "'component_1.scatter' has shape", &|d| d.array("component_1.scatter").set(&[1.0]));
    refused(1, "'component_0.cross' is missing", &|d| drop(d.arrays.remove("component_0.cross")));
    for k in [2, 3] {
        refused(k, "above 0", &|d| d.array("degrees_of_freedom").cells[0] = -1.0);
        refused(k, "noise is not positive", &|d| d.header["details"]["noise"] = json!(0.0));
        refused(k, "no rows can have", &|d| d.header["details"]["sums"]["counted"] = json!(-1.0));
        refused(k, "no rows can have", &|d| d.header["details"]["sums"]["low"] = json!(26));
    }
    refused(2, "'rows.scatter' holds inf", &|d| d.array("rows.scatter").cells[0] = f64::INFINITY);
    refused(3, "'second' has shape", &|d| d.array("second").set(&[1.0]));
}

/// Names are what people wrote, control characters too; but there is one for each feature.
#[test]
fn names_are_counted() {
    let draft = Draft::of(&model_files()[0]);
    for count in [0, 5, 7] {
        let bytes = draft.clone().with(|d| d.header["details"]["features"] = json!(names(count)));
        refused(&bytes, &format!("{count} feature names for 6 features"));
    }
    let odd = ["a\u{1b}[31m", "b\nc", "\u{0}", "", "ü", "a"];
    let bytes = draft.with(|d| d.header["details"]["features"] = json!(odd));
    assert_eq!(SavedModel::from_bytes(&bytes).unwrap().features, odd);
}

#[test]
fn evidence_that_no_rows_have_is_refused() {
    let files = evidence_files();
    let details =
        |k: usize, key: &str, value: Value| Draft::of(&files[k]).with(|d| d.header["details"][key] = value);
    for (key, value) in [("weight", 0.0), ("weight", -1.0), ("rows", 0.0)] {
        let value = if key == "rows" { json!(0) } else { json!(value) };
        assert!(
            matches!(Moments::from_bytes(&details(0, key, value.clone())), Err(Error::Format(_))),
            "{key}"
        );
        assert!(matches!(Sketch::from_bytes(&details(1, key, value)), Err(Error::Format(_))), "{key}");
    }
    let bytes = Draft::of(&files[0]).with(|d| {
        d.array("mean").set(&[]);
        *d.array("scatter") = Array { shape: vec![0, 0], cells: Vec::new() };
        d.header["details"]["features"] = json!([]);
    });
    assert!(matches!(Moments::from_bytes(&bytes), Err(Error::Format(_))));
    let shape = vec![0, 1 << 62];
    let bytes = Draft::of(&files[2]).with(|d| *d.array("loadings") = Array { shape, cells: Vec::new() });
    assert!(matches!(Latent::from_bytes(&bytes), Err(Error::Format(_))));
}
