//! How the command ends: one table of exit codes, one sentence for each failure, and no backtrace ever.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use covary::ErrorClass;

use crate::advice;
use crate::console::say;
use crate::interrupt;

/// The exit codes that scripts can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// All is done.
    Done = 0,
    /// Done, but the method stopped before it converged.
    NotConverged = 1,
    /// The request makes no sense.
    Usage = 2,
    /// The data do not allow it.
    Data = 3,
    /// Arithmetic broke down.
    Numerical = 4,
    /// A file or a model in it.
    File = 5,
    /// A panic: a bug of ours.
    Bug = 70,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
}

impl From<ErrorClass> for Code {
    fn from(class: ErrorClass) -> Self {
        match class {
            // More than the machine can do is a request that makes no sense here.
            ErrorClass::Usage | ErrorClass::Memory => Self::Usage,
            ErrorClass::Data => Self::Data,
            ErrorClass::Numerical => Self::Numerical,
            ErrorClass::File => Self::File,
            ErrorClass::Interrupted => Self::Interrupted,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Told in one sentence on standard error.
    Told { code: Code, sentence: String },
    /// Whoever read our output went away (`| head`): nothing to complain about.
    BrokenPipe,
}

/// How a command ends.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A request that makes no sense.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::Told { code: Code::Usage, sentence: sentence.into() }
    }

    /// Data that do not allow what was asked.
    pub(crate) fn data(sentence: impl Into<String>) -> Self {
        Self::Told { code: Code::Data, sentence: sentence.into() }
    }

    /// A file, or a model in it.
    pub(crate) fn file(sentence: impl Into<String>) -> Self {
        Self::Told { code: Code::File, sentence: sentence.into() }
    }

    pub(crate) fn interrupted() -> Self {
        Self::Told { code: Code::Interrupted, sentence: interrupt::sentence().into() }
    }
}

impl From<covary_io::Error> for Failure {
    fn from(error: covary_io::Error) -> Self {
        match error {
            error if error.is_broken_pipe() => Self::BrokenPipe,
            error => Self::Told { code: error.class().into(), sentence: advice::sentence(&error) },
        }
    }
}

/// For trouble that no file is to blame for; otherwise see [`crate::phrase`].
impl From<covary::Error> for Failure {
    fn from(error: covary::Error) -> Self {
        match error {
            covary::Error::Interrupted => Self::interrupted(),
            covary::Error::Source { class, error } => {
                Self::Told { code: class.into(), sentence: advice::source_sentence(&*error) }
            }
            error => Self::Told { code: error.class().into(), sentence: error.to_string() },
        }
    }
}

/// The message of the last panic, in case nobody recovers from it.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the command and turns whatever happens into an exit code.
pub(crate) fn guarded(run: impl FnOnce() -> Result<Code>) -> Code {
    // A decoder that panics on a damaged file is caught where the file is read: the hook must stay silent.
    panic::set_hook(Box::new(|info| {
        let text = info.to_string().replace('\n', " ");
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => tell(&failure),
        Err(_) => tell_bug(),
    }
}

fn tell(failure: &Failure) -> Code {
    match failure {
        Failure::BrokenPipe => Code::Done,
        Failure::Told { code, sentence } => {
            say(sentence);
            *code
        }
    }
}

fn tell_bug() -> Code {
    let panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    let place = env!("CARGO_PKG_REPOSITORY");
    say(&format!("this is a bug in covary, please report it at {place}/issues ({panic})"));
    Code::Bug
}
