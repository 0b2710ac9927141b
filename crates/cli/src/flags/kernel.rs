//! The flags of kernel PCA.

use clap::{Args, ValueEnum};

use crate::args;

/// What only kernel PCA has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kernel PCA")]
pub(crate) struct KernelFlags {
    /// The kernel, which says how alike two rows are [default: rbf]
    #[arg(long, value_name = "KERNEL", value_enum)]
    pub(crate) kernel: Option<KernelName>,
    /// Width of the rbf kernel exp(-gamma d²) and the laplacian, factor of inner products in poly and sigmoid
    /// [default: from the median distance of rows]
    #[arg(long, value_name = "X", value_parser = args::number, allow_negative_numbers = true)]
    pub(crate) gamma: Option<f64>,
    /// Degree of the polynomial kernel [default: 3]
    #[arg(long, value_name = "D", value_parser = args::positive)]
    pub(crate) degree: Option<usize>,
    /// Constant of the polynomial and sigmoid kernels [default: 1]
    #[arg(long, value_name = "X", value_parser = args::number, allow_negative_numbers = true)]
    pub(crate) coef0: Option<f64>,
    /// Use so many landmarks in place of all rows; without it they are used where the kernel matrix does not fit in
    /// memory
    #[arg(long, value_name = "M", value_parser = args::positive)]
    pub(crate) landmarks: Option<usize>,
}

/// A kernel by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelName {
    /// exp(-gamma d²), d the distance of two rows
    Rbf,
    /// (gamma x·y + coef0)^degree
    Poly,
    /// tanh(gamma x·y + coef0)
    Sigmoid,
    /// exp(-gamma d), d the sum of absolute differences
    Laplacian,
    /// The cosine of the angle between two rows
    Cosine,
    /// x·y: PCA itself
    Linear,
    /// The table holds the kernel values of each pair of rows
    Precomputed,
}
