//! covary explains the covariance of data with a few hidden variables: probabilistic PCA and its family.
//!
//! ```
//! use covary::data::Rows;
//!
//! // Four rows of three features.
//! let cells = [2.5, 2.4, 0.1, 0.5, 0.7, -0.2, 2.2, 2.9, 0.0, 1.9, 2.2, 0.3];
//! let fit = covary::Ppca::new(1).fit(Rows::from_slice(&cells, 3)?)?;
//! println!("noise variance {:?}", fit.model.noise());
//! let z = fit.model.posterior(Rows::from_slice(&cells, 3)?)?;
//! assert_eq!(z.mean.nrows(), 4);
//! # Ok::<(), covary::Error>(())
//! ```
//!
//! The code is laid out by one idea: model, algorithm and data are three things.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | rows from anywhere, as chunks: single or double precision, missing values, weights |
//! | [`blocks`] | what works on a block of rows |
//! | [`network`] | autoassociative networks: maps with hidden units and their derivatives |
//! | [`kernel`] | kernel functions k(x, x′), and their values by blocks |
//! | [`expectation`] | the expectation step: the posterior of latent variables for given parameters |
//! | [`evidence`] | statistics of rows that can be merged |
//! | [`algorithm`] | how a model is found: mathematics only, and the one loop |
//! | [`model`] | what a fitted model is and what can be asked of it |
//! | [`spectrum`] | eigenvalues and directions of a covariance, Minka's evidence and information criteria |
//! | [`estimator`] | the front doors: options → plan → algorithm → model and report |
//! | [`rotate`] | loadings turned so that they can be read |
//! | [`assess`] | how well a factor model fits, how sure its numbers are, whether data are worth one |
//! | [`select`] | choosing the number of components |
//! | [`memory`] | planned sizes, checked before they are allocated |
//! | [`persist`] | models and evidence as bytes that two languages can read |
//! | [`remote`] | rows on other machines: evidence goes to them and comes back filled |
//! | [`describe`] | one description of a model: facts for programs, lines and tables for people |
//!
//! Symbols, once and for all: x is a row of p features, z its q latent variables, W the p × q loadings, μ the
//! mean, ε the noise of variance σ², and $x = Wz + \mu + \varepsilon$.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod algorithm;
pub mod assess;
pub mod blocks;
mod control;
pub mod data;
pub mod describe;
pub mod error;
pub mod estimator;
pub mod evidence;
pub mod expectation;
pub mod kernel;
pub mod linalg;
pub mod memory;
pub mod model;
pub mod network;
mod parallel;
pub mod persist;
pub mod remote;
mod request;
pub mod rotate;
pub mod select;
pub mod spectrum;

pub use algorithm::{Components, Seeding};
pub use control::{Control, Event};
pub use error::{Error, ErrorClass, Result};
pub use estimator::{
    Activation, Autoencoder, BayesMethod, BayesianPca, DegreesOfFreedom, FactorAnalysis, FactorSolver, Fit,
    Gplvm, GplvmMethod, Groups, Ica, IcaMethod, KMeans, KernelPca, Landmarks, MixturePpca, Pca, Ppca,
    RobustPpca, Run, Scale, Solver,
};

pub use kernel::{Gamma, LatentForm};
pub use request::{Data, Request};

/// The example in the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
