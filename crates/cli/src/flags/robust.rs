//! The flags of robust PPCA.

use clap::Args;
use covary::DegreesOfFreedom;

/// What only robust PPCA has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Robust PPCA")]
pub(crate) struct Robust {
    /// Degrees of freedom of the t distribution: the fewer, the less rows far out count; inf is the normal
    /// distribution, auto finds them [default: auto]
    #[arg(long, value_name = "X|auto", value_parser = nu, allow_negative_numbers = true)]
    pub(crate) nu: Option<DegreesOfFreedom>,
}

fn nu(text: &str) -> Result<DegreesOfFreedom, String> {
    text.parse().map_err(|error: covary::Error| error.to_string())
}
