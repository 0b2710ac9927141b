//! A moving display on standard error while something takes time, when there is a terminal to show it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use covary::Event;
use indicatif::{ProgressBar, ProgressStyle};

use crate::console::Console;
use crate::interrupt;

const KNOWN: &str = "{msg} {wide_bar} {human_pos}/{human_len} rows, {eta} left";
const UNKNOWN: &str = "{spinner} {msg} {human_pos} rows, {elapsed}";

/// The display; does nothing when nobody watches.
pub(crate) struct Progress {
    bar: ProgressBar,
    rows: AtomicUsize,
    choosing: AtomicBool,
}

impl Progress {
    /// Begins something that goes through so many rows, if that is known.
    pub(crate) fn new(console: Console, what: &str, total: Option<usize>) -> Self {
        let bar = if console.is_watched() { ProgressBar::no_length() } else { ProgressBar::hidden() };
        let progress = Self { bar, rows: AtomicUsize::new(0), choosing: AtomicBool::new(false) };
        progress.bar.set_message(what.to_owned());
        progress.set_total(total);
        progress.bar.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    /// So many more rows are done.
    pub(crate) fn add(&self, rows: usize) {
        let done = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        self.bar.set_position(done as u64);
    }

    /// Follows a fit; once an iteration of it is through there is a model worth saving.
    pub(crate) fn follow(&self, event: Event) {
        match event {
            Event::Rows { done, total } => {
                if self.bar.length() != total.map(|t| t as u64) {
                    self.set_total(total);
                }
                self.bar.set_position(done as u64);
            }
            Event::Iteration { number, measure, objective, change } => {
                interrupt::worth_saving(!self.choosing.load(Ordering::Relaxed));
                let what = format!("iteration {number}: {measure} {objective:.7e}, change {change:.0e}");
                self.bar.set_message(what);
            }
            Event::Choosing => self.stage("choosing", true),
            Event::Fitting => self.stage("fitting", false),
            _ => {}
        }
    }

    fn stage(&self, what: &'static str, choosing: bool) {
        self.choosing.store(choosing, Ordering::Relaxed);
        interrupt::worth_saving(false);
        self.bar.set_message(what);
    }

    fn set_total(&self, total: Option<usize>) {
        let template = if total.is_some() { KNOWN } else { UNKNOWN };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        match total {
            Some(total) => self.bar.set_length(total as u64),
            None => self.bar.unset_length(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
