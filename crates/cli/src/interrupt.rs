//! Ctrl-C and SIGTERM: stop at once while there is nothing to save, otherwise ask the work to come to an end.

use std::fs;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use covary::Control;

use crate::exit::Code;

/// Set by the first Ctrl-C when there is something to save; fits and loops over rows watch it.
static CANCEL: AtomicBool = AtomicBool::new(false);
/// Whether something would be lost by ending at once: a usable model, or a temporary file that needs
/// removing.
static WORTH_SAVING: AtomicBool = AtomicBool::new(false);
/// Whether something can be seen of the output already, as of a pipe.
static WROTE: AtomicBool = AtomicBool::new(false);

/// Starts to listen. Without a handler the system ends the process, which loses no more than a message.
pub(crate) fn install() {
    // Under nohup the end of the terminal must not end the work, and a handler would listen to that signal
    // too.
    drop(match fs::read_to_string("/proc/self/status") {
        Ok(status) if ignores_hangup(&status) => Ok(()),
        Ok(_) => ctrlc::set_handler(on_signal),
        Err(_) => ctrlc::try_set_handler(on_signal),
    });
}

/// SIGHUP is the lowest bit of the mask of ignored signals.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A second Ctrl-C always ends at once.
fn on_signal() {
    let first = !CANCEL.swap(true, Ordering::Relaxed);
    if first && WORTH_SAVING.load(Ordering::Relaxed) {
        eprintln!("\ncovary: stopping as soon as possible (Ctrl-C again stops at once)");
        return;
    }
    eprintln!("\ncovary: {}", sentence());
    process::exit(i32::from(Code::Interrupted as u8));
}

/// What an interrupted command has done.
pub(crate) fn sentence() -> &'static str {
    match WROTE.load(Ordering::Relaxed) {
        true => "interrupted; what was written so far is only a part",
        false => "interrupted; nothing was written",
    }
}

/// From now on something can be seen of the output.
pub(crate) fn wrote() {
    WROTE.store(true, Ordering::Relaxed);
}

/// The flag that says "stop".
pub(crate) fn flag() -> &'static AtomicBool {
    &CANCEL
}

/// Under which work ends when Ctrl-C is pressed.
pub(crate) fn control() -> Control<'static> {
    Control::new().cancel(flag())
}

/// Whether Ctrl-C was pressed.
pub(crate) fn requested() -> bool {
    CANCEL.load(Ordering::Relaxed)
}

/// From now on Ctrl-C asks instead of ending.
pub(crate) fn worth_saving(yes: bool) {
    WORTH_SAVING.store(yes, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_noticed() {
        assert!(ignores_hangup("Name:\tcovary\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("Name:\tcovary\nSigIgn:\t0000000000001002\n"));
        assert!(!ignores_hangup(""));
    }
}
