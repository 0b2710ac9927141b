//! The flags of models of curved surfaces.

use clap::Args;

use crate::args;

/// What only GP-LVMs have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Curved surfaces")]
pub(crate) struct Curved {
    /// Of a GP-LVM: points in the latent space that stand for the surface; more follow it more closely, in time that grows
    /// with their square [default: 50, at most as many as rows]
    #[arg(long, value_name = "M", value_parser = args::positive)]
    pub(crate) inducing: Option<usize>,
}
