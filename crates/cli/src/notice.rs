//! What was decided about a file that somebody might not expect.

use std::path::Path;

use covary_io::{CarriedBecause, HeaderGuess, Recognised, Schema};

use crate::advice;
use crate::console::Console;
use crate::phrase::{count, file_name};

/// Names that are listed.
const LISTED: usize = 8;

/// Says what was guessed, and by what the columns were found.
pub(crate) fn schema(console: Console, schema: &Schema) {
    text(console, &schema.path, &schema.recognised, schema.header_guess.as_ref());
    if schema.by_position {
        console.warn(&format!(
            "the model's features have no names, so the columns of {} are taken in their order: {}",
            file_name(&schema.path),
            listed(schema.features.iter())
        ));
    }
}

/// Says what was recognised in a file, and what was guessed about its first line.
pub(crate) fn text(console: Console, path: &Path, recognised: &[Recognised], guess: Option<&HeaderGuess>) {
    for one in recognised {
        console.warn(&format!("{}: {one}; {}", file_name(path), advice::otherwise(one)));
    }
    header(console, path, guess, true);
}

/// Says what was guessed about the first line, and what to do if that is wrong.
pub(crate) fn header(console: Console, path: &Path, guess: Option<&HeaderGuess>, has_flag: bool) {
    let Some(guess) = guess else { return };
    let wrong = match (has_flag, guess.header) {
        (true, true) => "add --header no",
        (true, false) => "add --header yes",
        (false, true) => "put a line of names above it",
        (false, false) => "give its columns names that are no numbers",
    };
    console.warn(&format!("{}: {guess}; if that is wrong, {wrong}", file_name(path)));
}

/// Says which columns are carried along although nobody asked for that.
pub(crate) fn carried(console: Console, schema: &Schema) {
    for (because, words) in [
        (CarriedBecause::NotNumeric, "not numeric, so not modelled"),
        (CarriedBecause::Index, "the index of a data frame, so not modelled"),
    ] {
        let mut names = schema.carried.iter().filter(|c| c.because == because).peekable();
        if names.peek().is_some() {
            console.note(&format!("{words}: {}", listed(names.map(|c| &c.name))));
        }
    }
}

/// The first few names.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    match names.len().saturating_sub(LISTED) {
        0 | 1 => names.join(", "),
        more => format!("{} and {}", names[..LISTED].join(", "), count(more, "other")),
    }
}
