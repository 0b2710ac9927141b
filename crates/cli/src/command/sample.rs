//! `covary sample`: new rows drawn from a model.

use crate::args::{output, set_threads};
use crate::console::Console;
use crate::exit::{Code, Failure, Result};
use crate::files::read_model;
use crate::flags::Sample;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Cells that are drawn at once.
const PIECE: usize = 1 << 21;
/// Pieces hold whole blocks of the generator, so that no row is drawn twice.
const BLOCK: usize = 256;

/// Draws piece by piece.
pub(super) fn run(flags: Sample) -> Result<Code> {
    set_threads(flags.running.threads);
    let output = output(flags.output)?;
    let saved = read_model(&flags.model)?;
    let model = saved.model.sampler()?;
    let mut writer = Output::create(&output, &[&flags.model], &[], &saved.features)?;
    let progress = Progress::new(Console::new(flags.running.quiet), "drawing", Some(flags.rows));
    let piece = (PIECE / saved.model.n_features()).max(1).next_multiple_of(BLOCK);
    for start in (0..flags.rows).step_by(piece) {
        let rows = start..flags.rows.min(start.saturating_add(piece));
        progress.add(rows.len());
        writer.write(&[], model.sample_rows(rows, flags.seed).as_ref())?;
        if interrupt::requested() {
            return Err(Failure::interrupted());
        }
    }
    writer.finish()?;
    Ok(Code::Done)
}
