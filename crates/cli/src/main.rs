//! The `covary` command: latent-variable models of tables of numbers.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    covary_cli::main(std::env::args_os()).into()
}
