//! What was guessed about the first line of a text file, in facts and in words.

use std::fmt;

/// What speaks for a first line of numbers being a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderSign {
    /// Its numbers are in quotes, those below are not.
    Quoted,
    /// Its numbers are whole, most of those below have decimals.
    Whole,
    /// Its numbers ascend or descend from left to right, those below do not.
    Ordered,
    /// Its numbers are evenly spaced, those below are not.
    Even,
    /// Its numbers lie far from those below them.
    Far,
    /// It has numbers above columns of text.
    AboveText,
    /// It has a name above a column of numbers too.
    BesideName,
}

impl HeaderSign {
    fn words(self) -> &'static str {
        match self {
            Self::Quoted => "are in quotes where those below are not",
            Self::Whole => "are whole where those below have decimals",
            Self::Ordered => "are in order where those below are not",
            Self::Even => "are evenly spaced where those below are not",
            Self::Far => "lie far from those below",
            Self::AboveText => "stand above columns of text",
            Self::BesideName => "stand beside a name above numbers",
        }
    }
}

/// A guess about the first line of a text file whose cells leave it open whether they are names or values.
///
/// As text it is one sentence without an end, to which a surface adds what to do when the guess is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderGuess {
    /// Whether the line was taken as the header; otherwise it is the first row, and the columns are called
    /// x1, x2, ….
    pub header: bool,
    /// What speaks for a header.
    pub signs: Vec<HeaderSign>,
}

impl fmt::Display for HeaderGuess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signs: Vec<&str> = self.signs.iter().map(|sign| sign.words()).collect();
        let signs = signs.join(", ");
        match (self.header, signs.as_str()) {
            (true, _) => write!(f, "the first line is taken as the header, because its numbers {signs}"),
            (false, "") => f.write_str("the first line is taken as a row, because it is like those below"),
            (false, _) => write!(f, "the first line is taken as a row, although its numbers {signs}"),
        }
    }
}
