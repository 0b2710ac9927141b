//! Files: exact, stable, and never read when a single bit is wrong.

use std::sync::Arc;

use std::collections::HashMap;

use crate::common::*;
use covary::data::Rows;
use covary::evidence::{Accumulator, Moments, Sketch};
use covary::linalg::Mat;
use covary::model::{Array, Factors, LinearGaussian, Model, Noise, Predictive, Uncertainty};
use covary::persist::{FORMAT_VERSION, Portable, SavedEvidence, SavedModel, kind};
use covary::{BayesianPca, Components, Error, Pca, Ppca, Solver};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView, serialize};

fn data() -> Mat<f64> {
    rows_with_deviations(20, &falling(3, 0.5), 1.0, &mut Rng(4))
}

fn models() -> Vec<SavedModel> {
    let x = data();
    let names = || Some(vec!["a".to_string(), "b \"quoted\"".into(), "ß\\n".into()]);
    let krylov = Ppca::new(1).solver(Solver::Krylov).fit(&x).unwrap();
    let diagonal = LinearGaussian::new(
        vec![0.1, 0.2, 0.3],
        Mat::from_fn(3, 1, |i, _| i as f64),
        Noise::Diagonal(vec![0.5, 0.25, 1e-300]),
    );
    let mut factor = SavedModel::new(Ppca::new(1).fit(&x).unwrap(), None).unwrap();
    let diagonal = diagonal.unwrap();
    factor.model = Arc::new(diagonal.clone());
    let w = Mat::from_fn(3, 2, |i, j| (i as f64) - 0.5 * j as f64);
    let two = LinearGaussian::new(vec![0.1, 0.2, 0.3], w, Noise::Diagonal(vec![0.5, 0.25, 2.0])).unwrap();
    let turn = Mat::from_fn(2, 2, |i, j| [[0.8, 0.6], [-0.6, 0.8]][i][j]);
    let turned = Factors::new(two).with_turn(turn).unwrap();
    let known =
        Uncertainty { loadings: Mat::from_fn(3, 1, |i, _| 0.1 * i as f64), mean: vec![0.3, 0.2, 0.1] };
    let column = Mat::from_fn(3, 1, |i, _| i as f64);
    let uncertain = Predictive::new(vec![0.1, 0.2, 0.3], column, 0.5, vec![0.6], Some(known)).unwrap();
    vec![
        SavedModel::new(Ppca::new(2).fit(&x).unwrap(), names()).unwrap(),
        SavedModel::new(Pca::new(Components::All).fit(&x).unwrap(), names()).unwrap(),
        SavedModel::new(Pca::new(0.8).fit(&x).unwrap(), None).unwrap(),
        SavedModel::new(krylov, None).unwrap(),
        factor,
        SavedModel::given(Factors::new(diagonal), names()).unwrap(),
        SavedModel::given(turned, None).unwrap(),
        SavedModel::new(BayesianPca::new(2).fit(&x).unwrap(), None).unwrap(),
        SavedModel::given(uncertain, names()).unwrap(),
    ]
}

/// Everything that a file holds, by bits.
fn content(saved: &SavedModel) -> (Vec<u64>, Vec<String>, String) {
    let mut numbers = bits(saved.model.with_loadings().unwrap().mean());
    numbers.extend(bits(&saved.eigenvalues));
    for array in saved.model.arrays().values() {
        numbers.extend(match array {
            Array::Vector(cells) => bits(cells),
            Array::Matrix(m) => matrix_bits(m),
        });
    }
    let gaussian = saved.model.with_loadings().unwrap().factors().gaussian().clone();
    numbers.extend(gaussian_bits(&gaussian));
    let mut report = saved.report.clone();
    (report.seconds, report.spectrum) = (0.0, None); // not part of a file
    (numbers, saved.features.clone(), format!("{} {report:?}", saved.model.kind()))
}

fn gaussian_bits(m: &LinearGaussian) -> Vec<u64> {
    let mut numbers = matrix_bits(m.loadings());
    match m.noise() {
        Noise::Isotropic(v) => numbers.extend([0, v.to_bits()]),
        Noise::Diagonal(psi) => numbers.extend(bits(psi)),
    }
    numbers
}

#[test]
fn models_come_back_exactly() {
    for saved in models() {
        let bytes = saved.to_bytes().unwrap();
        let read = SavedModel::from_bytes(&bytes).unwrap();
        assert_eq!(content(&read), content(&saved));
        assert_eq!(kind(&bytes).unwrap(), saved.model.kind().name);
        assert_eq!(read.to_bytes().unwrap(), bytes, "written again");
    }
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let fit = || SavedModel::new(Ppca::new(2).fit(&data()).unwrap(), None).unwrap().to_bytes().unwrap();
    let first = fit();
    (0..5).for_each(|_| assert_eq!(fit(), first));
}

#[test]
fn a_model_answers_the_same_from_its_file() {
    let x = data();
    for saved in models() {
        let read = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        let answers = |m: &dyn Model| matrix_bits(&m.encoder().unwrap().encode(&table(&x)).unwrap());
        assert_eq!(answers(&*read.model), answers(&*saved.model));
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    for saved in [&models()[0], &models()[2], &models()[6]] {
        let bytes = saved.to_bytes().unwrap();
        let expected = content(saved);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Ok(read) = SavedModel::from_bytes(&damaged) {
                    assert_eq!(content(&read), expected, "byte {at}, bit {bit}");
                }
            }
        }
    }
}

fn evidence() -> (Moments, Sketch) {
    let x = data();
    let mut moments = Moments::empty(3);
    let mut sketch = Sketch::empty(Arc::new(normal_matrix(3, 2, &mut Rng(1))));
    moments.update(&chunk_of(x.as_ref(), 0)).unwrap();
    sketch.update(&chunk_of(x.as_ref(), 0)).unwrap();
    (moments, sketch)
}

fn moments_bits(saved: &SavedEvidence<Moments>) -> (Vec<u64>, Vec<String>) {
    let m = &saved.evidence;
    let mut numbers = vec![m.rows() as u64, m.weight().to_bits()];
    numbers.extend(bits(m.mean()));
    numbers.extend(matrix_bits(&m.covariance()));
    (numbers, saved.features.clone())
}

#[test]
fn every_flipped_bit_of_evidence_is_noticed() {
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    let bytes = evidence().0.to_bytes(&names).unwrap();
    let expected = moments_bits(&Moments::from_bytes(&bytes).unwrap());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(read) = Moments::from_bytes(&damaged) {
                assert_eq!(moments_bits(&read), expected, "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    let model = models()[0].to_bytes().unwrap();
    let (moments, sketch) = evidence();
    let (moments, sketch) = (moments.to_bytes(&names).unwrap(), sketch.to_bytes(&names).unwrap());
    (0..model.len()).for_each(|n| assert!(SavedModel::from_bytes(&model[..n]).is_err(), "model cut at {n}"));
    (0..moments.len())
        .for_each(|n| assert!(Moments::from_bytes(&moments[..n]).is_err(), "moments cut at {n}"));
    (0..sketch.len()).for_each(|n| assert!(Sketch::from_bytes(&sketch[..n]).is_err(), "sketch cut at {n}"));
    let mut longer = model;
    longer.push(0);
    assert!(SavedModel::from_bytes(&longer).is_err(), "one byte too many");
}

#[test]
fn another_version_is_told_before_anything_else() {
    let text = |version: &str| format!("{{\"format\":{version},\"and\":\"nothing else that we know\"}}");
    for version in ["2", "99", "18446744073709551615", "0"] {
        let bytes = container(&text(version));
        let error = SavedModel::from_bytes(&bytes).unwrap_err();
        let Error::Version { found, supported } = error else { panic!("{version}: {error}") };
        assert_eq!((found.to_string().as_str(), supported), (version, FORMAT_VERSION));
        assert!(matches!(Moments::from_bytes(&bytes), Err(Error::Version { .. })));
        assert!(matches!(kind(&bytes), Err(Error::Version { .. })));
    }
    for text in ["", "{}", "[]", "{\"format\":-1}", "{\"format\":\"1\"}", "{\"format\":1}", "null"] {
        assert!(matches!(SavedModel::from_bytes(&container(text)), Err(Error::Format(_))), "{text}");
    }
}

/// A safetensors file with this text as its covary metadata.
fn container(text: &str) -> Vec<u8> {
    let data = 1f64.to_le_bytes();
    let view = TensorView::new(Dtype::F64, vec![1], &data).unwrap();
    let metadata = HashMap::from([("covary".to_string(), text.to_string())]);
    serialize([("mean", view)], Some(metadata)).unwrap()
}

#[test]
fn files_of_others_are_refused() {
    let data = [0u8; 16];
    let view = || TensorView::new(Dtype::F32, vec![2, 2], &data).unwrap();
    let foreign = [
        serialize([("weight", view())], None).unwrap(),
        serialize([("weight", view())], Some(HashMap::from([("format".into(), "pt".into())]))).unwrap(),
        b"alcohol,malic_acid\n1,2\n".to_vec(),
        b"PAR1".to_vec(),
        Vec::new(),
        vec![0xff; 64],
    ];
    for bytes in &foreign {
        let errors = [
            SavedModel::from_bytes(bytes).map(|_| ()).unwrap_err(),
            Moments::from_bytes(bytes).map(|_| ()).unwrap_err(),
            Sketch::from_bytes(bytes).map(|_| ()).unwrap_err(),
            kind(bytes).map(|_| ()).unwrap_err(),
        ];
        errors.iter().for_each(|e| assert!(matches!(e, Error::Format(_)), "{e}"));
    }
}

#[test]
fn one_kind_is_not_read_as_another() {
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    let (moments, sketch) = evidence();
    let (moments, sketch) = (moments.to_bytes(&names).unwrap(), sketch.to_bytes(&names).unwrap());
    let model = models()[0].to_bytes().unwrap();
    assert_eq!(kind(&moments).unwrap(), "moments");
    assert_eq!(kind(&sketch).unwrap(), "sketch");
    assert!(SavedModel::from_bytes(&moments).is_err() && SavedModel::from_bytes(&sketch).is_err());
    assert!(Moments::from_bytes(&model).is_err() && Moments::from_bytes(&sketch).is_err());
    assert!(Sketch::from_bytes(&model).is_err() && Sketch::from_bytes(&moments).is_err());
}

#[test]
fn names_must_fit() {
    let x = data();
    let error = SavedModel::new(Ppca::new(1).fit(&x).unwrap(), Some(vec!["one".into()])).unwrap_err();
    assert!(matches!(error, Error::Length { expected: 3, found: 1, .. }));
    let saved = &models()[0];
    let good = saved.features.clone();
    assert!(saved.check_features(3, Some(&good)).is_ok() && saved.check_features(3, None).is_ok());
    assert!(matches!(saved.check_features(4, None), Err(Error::FeatureCount { expected: 3, found: 4 })));
    let mut other = good;
    other[1] = "z".into();
    let error = saved.check_features(3, Some(&other)).unwrap_err();
    assert!(matches!(&error, Error::FeatureName { position: 1, found, .. } if found == "z"), "{error}");
}

/// Evidence whose names do not fit could be written but never read again.
#[test]
fn evidence_is_not_written_with_names_that_do_not_fit() {
    let (moments, sketch) = evidence();
    let names = vec!["a".to_string(), "b".into()];
    assert!(matches!(moments.to_bytes(&names), Err(Error::Length { expected: 3, found: 2, .. })));
    assert!(matches!(sketch.to_bytes(&names), Err(Error::Length { expected: 3, found: 2, .. })));
}

#[test]
fn a_model_without_density_is_a_file_too() {
    // Rank 1: the noise is 0 and the likelihood infinite, which JSON cannot say.
    let x = Mat::from_fn(10, 3, |i, j| (i * (j + 1)) as f64);
    let fit = Ppca::new(1).fit(&x).unwrap();
    assert_eq!(fit.report.log_likelihood, Some(f64::INFINITY));
    let saved = SavedModel::new(fit, None).unwrap();
    let read = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
    assert_eq!(content(&read), content(&saved));
    let row = Rows::from_slice(&[1.0, 2.0, 3.0], 3).unwrap();
    assert_eq!(read.model.encoder().unwrap().encode(row.source()).unwrap().nrows(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(SavedModel::from_bytes(&bytes).is_err());
        prop_assert!(Moments::from_bytes(&bytes).is_err());
        prop_assert!(Sketch::from_bytes(&bytes).is_err());
    }

    #[test]
    fn random_headers_are_an_error(text in ".{0,200}") {
        prop_assert!(SavedModel::from_bytes(&container(&text)).is_err());
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        prop_assert!(SavedModel::from_bytes(&bytes).is_err());
    }

    #[test]
    fn many_damaged_bytes_are_noticed(seed: u64, count in 1usize..20) {
        let saved = &models()[0];
        let mut bytes = saved.to_bytes().unwrap();
        let mut rng = Rng(seed);
        for _ in 0..count {
            let at = rng.below(bytes.len());
            bytes[at] = u8::try_from(rng.below(256)).unwrap();
        }
        if let Ok(read) = SavedModel::from_bytes(&bytes) {
            prop_assert_eq!(content(&read), content(saved));
        }
    }
}
