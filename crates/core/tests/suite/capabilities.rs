//! Kinds and what can be asked of them: the registry says what models do, and models without a capability say who has it.

use std::sync::Arc;

use covary::data::Rows;
use covary::kernel::{Kernel, KernelForm, LatentForm, LatentKernel};
use covary::linalg::Mat;
use covary::model::{
    AnyModel, Array, Arrays, Capability, Clustering, Factors, IndependentComponents, KINDS, KernelComponents,
    KernelParts, Kind, LatentProcess, LinearGaussian, LinearStudent, Mixture, Model, Noise, Predictive,
    Preimage, PrincipalComponents, ProcessParts, Uncertainty,
};
use covary::persist::SavedModel;
use covary::{Error, Result};

use crate::common::{
    Rng, close_all, close_matrix, dense_covariance, normal_matrix, random_model, row, table,
};

/// A model of each kind, of three features.
fn models() -> Vec<AnyModel> {
    let mut rng = Rng(7);
    let u = Mat::from_fn(3, 1, |i, _| [0.6, 0.8, 0.0][i]);
    let known = Uncertainty { loadings: Mat::from_fn(3, 1, |i, _| 0.1 * (i + 1) as f64), mean: vec![0.3; 3] };
    let column = Mat::from_fn(3, 1, |i, _| 1.0 + i as f64);
    let turn = Mat::from_fn(2, 2, |i, j| [[0.8, 0.6], [-0.6, 0.8]][i][j]);
    vec![
        Arc::new(random_model(3, 1, false, &mut rng)),
        Arc::new(PrincipalComponents::new(vec![1.0, 2.0, 3.0], u, vec![2.0], 0.5).unwrap()),
        Arc::new(Factors::new(random_model(3, 2, true, &mut rng)).with_turn(turn.clone()).unwrap()),
        Arc::new(Predictive::new(vec![0.1; 3], column, 0.5, vec![0.6], Some(known)).unwrap()),
        Arc::new(mixture(&mut rng)),
        Arc::new(LinearStudent::new(random_model(3, 1, false, &mut rng), 4.5).unwrap()),
        Arc::new(Clustering::new(normal_matrix(2, 3, &mut rng), vec![0.75, 0.25], vec![2.0, 1.0]).unwrap()),
        Arc::new(IndependentComponents::new(random_model(3, 2, false, &mut rng), turn).unwrap()),
        Arc::new(kernel_components(&mut rng)),
        Arc::new(latent_process()),
        Arc::new(crate::network::hand_made(true, &mut rng)),
    ]
}

/// Two points and the direction between them: its length in the feature space is 1.
fn kernel_components(rng: &mut Rng) -> KernelComponents {
    let kernel = Kernel::new(KernelForm::Rbf, 0.5).unwrap();
    let points = normal_matrix(2, 3, rng);
    let apart = kernel.of(&row(&points, 0), &row(&points, 1));
    let length = (2.0 - 2.0 * apart).sqrt();
    KernelComponents::new(KernelParts {
        kernel,
        mean: vec![0.0; 3],
        divisors: vec![1.0; 3],
        points,
        coefficients: Mat::from_fn(2, 1, |i, _| [1.0, -1.0][i] / length),
        centre: vec![0.5, 0.5],
        offset: vec![0.0],
        square: 0.5 + 0.5 * apart,
        variances: vec![0.5 * (1.0 - apart)],
        noise: 0.0,
        preimage: Preimage { kernel, alpha: 0.1, fixed_point: true },
        filling: None,
    })
    .unwrap()
}

/// Two inducing points and one row of the fit, with the weights of ordinary regression.
fn latent_process() -> LatentProcess {
    let kernel = LatentKernel::new(LatentForm::Rbf, 2.0, vec![0.5]).unwrap();
    let inducing = Mat::from_fn(2, 1, |i, _| [-1.0, 1.0][i]);
    let own = kernel.of(&[-1.0], &[-1.0]) + 0.1;
    let other = kernel.of(&[-1.0], &[1.0]);
    let det = own * own - other * other;
    let inverse = [own / det, -other / det, own / det];
    let target = [[1.0, -0.5, 0.3], [-1.0, 0.5, 0.8]];
    let weights = Mat::from_fn(2, 3, |i, j| {
        (0..2).map(|k| if i == k { inverse[0] } else { inverse[1] } * target[k][j]).sum()
    });
    LatentProcess::new(ProcessParts {
        mean: vec![0.1, 0.2, 0.3],
        divisors: vec![1.0; 3],
        kernel,
        bias: 0.0,
        noise: 0.1,
        inducing,
        weights,
        reduction: Mat::from_fn(3, 1, |i, _| inverse[i]),
        latent_mean: Mat::from_fn(1, 1, |_, _| 0.2),
        latent_variance: Mat::from_fn(1, 1, |_, _| 0.3),
    })
    .unwrap()
}

/// Two components with one latent variable and none.
fn mixture(rng: &mut Rng) -> Mixture {
    Mixture::new(vec![0.7, 0.3], vec![random_model(3, 1, false, rng), random_model(3, 0, false, rng)])
        .unwrap()
}

#[test]
fn the_registry_says_what_models_can_do() {
    let models = models();
    assert_eq!(models.len(), KINDS.len(), "a model of each kind");
    for (model, kind) in models.iter().zip(KINDS) {
        assert_eq!(model.kind(), *kind);
        for capability in Capability::ALL {
            let has = kind.capabilities.contains(&capability);
            assert_eq!(capability.is_of(&**model), has, "{kind} and {capability:?}");
        }
    }
}

#[test]
fn every_kind_comes_back_from_its_file() {
    for model in models() {
        let saved = SavedModel::of_numbers(Arc::clone(&model), None).unwrap();
        let bytes = saved.to_bytes().unwrap();
        let read = SavedModel::from_bytes(&bytes).unwrap();
        assert_eq!((read.model.kind(), read.to_bytes().unwrap()), (model.kind(), bytes));
    }
}

/// A model that can do nothing.
#[derive(Debug)]
struct Mute;

static MUTE: Kind = Kind {
    name: "mute",
    title: "a mute model",
    about: "says nothing",
    components: "components",
    capabilities: &[],
    read: |_| Ok(Arc::new(Mute)),
};

impl Model for Mute {
    fn kind(&self) -> &'static Kind {
        &MUTE
    }

    fn n_features(&self) -> usize {
        1
    }

    fn n_latent(&self) -> usize {
        0
    }

    fn arrays(&self) -> Arrays {
        Arrays::from([("mean", Array::Vector(vec![0.0]))])
    }

    fn rescaled(&self, _: &[f64]) -> Result<AnyModel> {
        Ok(Arc::new(Self))
    }
}

#[test]
fn what_a_model_cannot_do_is_one_sentence_that_names_who_can() {
    let model: AnyModel = Arc::new(Mute);
    let told = |error: Error| {
        assert!(matches!(error, Error::Capability { .. }));
        error.to_string()
    };
    assert_eq!(
        told(model.encoder().map(|_| ()).unwrap_err()),
        "a mute model does not have latent coordinates; ppca, pca, fa, bpca, mixture, robust, kmeans, ica, kpca, gplvm \
         and autoencoder have"
    );
    assert_eq!(
        told(model.latent_posterior().map(|_| ()).unwrap_err()),
        "a mute model does not have a posterior distribution of its latent coordinates; ppca, fa, bpca, \
         mixture, robust, ica, gplvm and autoencoder have"
    );
    let decoder = told(model.decoder().map(|_| ()).unwrap_err());
    assert!(
        decoder.ends_with("; ppca, pca, fa, bpca, robust, ica, kpca, gplvm and autoencoder have"),
        "{decoder}"
    );
    let loadings = told(model.with_loadings().map(|_| ()).unwrap_err());
    assert!(loadings.ends_with("; ppca, pca, fa, bpca, robust and ica have"), "{loadings}");
    let imputer = told(model.imputer().map(|_| ()).unwrap_err());
    assert!(
        imputer.contains("ppca, pca, fa, bpca, mixture, robust, ica, gplvm and autoencoder have"),
        "{imputer}"
    );
    let unable = [model.density().map(|_| ()).unwrap_err(), model.explainer().map(|_| ()).unwrap_err()];
    for error in unable {
        assert!(told(error).contains("ppca, pca, fa, bpca, mixture, robust and ica have"));
    }
    let sampler = told(model.sampler().map(|_| ()).unwrap_err());
    assert!(sampler.contains("ppca, pca, fa, bpca, mixture, robust, ica and gplvm have"), "{sampler}");
    assert_eq!(
        told(model.memberships().map(|_| ()).unwrap_err()),
        "a mute model does not have probabilities of groups; mixture has"
    );
    // A file of a model without loadings holds no eigenvalues.
    let bytes = SavedModel::of_numbers(model, None).unwrap().to_bytes().unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("eigenvalues"));
}

/// x ← Dx: mean, covariance and density of the features in other units, by brute force.
#[test]
fn a_model_of_rescaled_features_is_the_model_of_those_features() {
    let scale = [3.0, 0.25, 100.0];
    let x = normal_matrix(6, 3, &mut Rng(3));
    let scaled = Mat::from_fn(6, 3, |i, j| x[(i, j)] * scale[j]);
    let shift: f64 = scale.iter().map(|d| d.ln()).sum();
    for model in models() {
        let other = model.rescaled(&scale).unwrap();
        assert_eq!(other.kind(), model.kind());
        let (z, t) = (model.encoder().unwrap(), other.encoder().unwrap());
        let (there, here) = (t.encode(&table(&scaled)).unwrap(), z.encode(&table(&x)).unwrap());
        // Positions of a GP-LVM are found by a search, which rounding turns a little.
        let digits = if model.kind().name == "gplvm" { 1e-5 } else { 1e-12 };
        close_matrix(&there, &here, digits, model.kind());
        if let (Some(a), Some(b)) = (model.as_assign(), other.as_assign()) {
            assert_eq!(a.assign(&table(&x)).unwrap(), b.assign(&table(&scaled)).unwrap());
        }
        let Some(a) = model.as_density() else { continue };
        let b = other.density().unwrap();
        let c = a.covariance().unwrap();
        let expected = Mat::from_fn(3, 3, |i, j| c[(i, j)] * scale[i] * scale[j]);
        close_matrix(&b.covariance().unwrap(), &expected, 1e-11, model.kind());
        let expected: Vec<f64> = a.log_density(&table(&x)).unwrap().iter().map(|l| l - shift).collect();
        close_all(&b.log_density(&table(&scaled)).unwrap(), &expected, 1e-11, model.kind());
        let there_and_back = other.rescaled(&scale.map(|d| 1.0 / d)).unwrap();
        close_matrix(&there_and_back.density().unwrap().covariance().unwrap(), &c, 1e-13, model.kind());
    }
}

/// Whitened coordinates are part of the model and of its file.
#[test]
fn whitening_stays_with_the_model() {
    let u = Mat::from_fn(2, 1, |i, _| [0.6, 0.8][i]);
    let pca = PrincipalComponents::new(vec![0.0; 2], u, vec![4.0], 0.5).unwrap().whitened(true);
    let bytes = SavedModel::given(pca, None).unwrap().to_bytes().unwrap();
    let read = SavedModel::from_bytes(&bytes).unwrap();
    let rows = Rows::from_slice(&[1.2, 1.6], 2).unwrap();
    let z = read.model.encoder().unwrap().encode(rows.source()).unwrap();
    assert!((z[(0, 0)] - 1.0).abs() < 1e-15, "2 along the direction, whose deviation is 2");
    let back = read.model.decoder().unwrap().decode(z.as_ref()).unwrap();
    assert!((back[(0, 1)] - 1.6).abs() < 1e-15);
}

#[test]
fn noise_of_scaled_features_differs_between_them() {
    let model = LinearGaussian::new(vec![0.0; 2], Mat::zeros(2, 1), Noise::Isotropic(2.0)).unwrap();
    let other = Model::rescaled(&model, &[1.0, 3.0]).unwrap();
    let found: &LinearGaussian = other.downcast_ref().unwrap();
    assert_eq!(found.noise(), &Noise::Diagonal(vec![2.0, 18.0]));
    assert_eq!(dense_covariance(found)[(1, 1)], 18.0);
}
