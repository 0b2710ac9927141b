//! The flags of autoassociative networks.

use clap::{Args, ValueEnum};

use crate::args;

/// What only networks have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Autoassociative networks")]
pub(crate) struct NetworkFlags {
    /// Hidden units of the encoder and of the decoder [default: the root of the number of rows, from 2 to 50]
    #[arg(long, value_name = "N", value_parser = args::positive)]
    pub(crate) hidden: Option<usize>,
    /// What hidden units do [default: tanh]
    #[arg(long, value_enum)]
    pub(crate) activation: Option<ActivationName>,
    /// Search the latent variables of each row instead of having an encoder; always so where cells are missing
    #[arg(long)]
    pub(crate) no_encoder: bool,
    /// Decay of the weights towards PCA [default: 0.001]
    #[arg(long, value_name = "X", value_parser = args::number, allow_negative_numbers = true)]
    pub(crate) alpha: Option<f64>,
    /// Hide no part of the data from the fit; otherwise, where there is an encoder, a tenth of at least a hundred rows is
    /// hidden, and the fit ends when it is predicted no better
    #[arg(long)]
    pub(crate) no_early_stopping: bool,
}

/// What hidden units do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActivationName {
    /// They bend
    Tanh,
    /// There are none: PCA itself
    Linear,
}
