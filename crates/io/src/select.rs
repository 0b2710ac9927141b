//! Columns as people type them, names or positions, resolved against the columns of a file.

use std::path::Path;

use crate::error::{Error, Result};

/// Columns by name (`a,b,c`) or by position counted from 1 (`3-20`, `1,4-6`).
///
/// A name wins where a column is literally called so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    text: Option<String>,
    parts: Vec<String>,
    /// Names that are no positions, whatever they look like.
    literal: Vec<String>,
}

impl Selection {
    /// What somebody typed.
    ///
    /// # Errors
    /// When nothing was typed.
    pub fn parse(text: &str) -> Result<Self> {
        let parts: Vec<String> =
            text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            return Err(Error::EmptySelection);
        }
        Ok(Self { text: Some(text.to_owned()), parts, literal: Vec::new() })
    }

    /// Columns by name, each taken literally.
    pub fn names(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { text: None, parts: Vec::new(), literal: Vec::new() }.and_names(names)
    }

    /// These columns too, each name taken literally.
    pub fn and_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.literal.extend(names.into_iter().map(Into::into));
        self
    }

    /// The columns of both.
    pub(crate) fn and(self, other: Self) -> Self {
        let parts = self.parts.into_iter().chain(other.parts).collect();
        Self { text: None, parts, literal: self.literal }.and_names(other.literal)
    }

    /// Indices of the selected columns in the order they were asked for, each once.
    pub(crate) fn resolve(&self, path: &Path, names: &[&str]) -> Result<Vec<usize>> {
        let mut chosen = self.resolve_typed(path, names)?;
        for name in &self.literal {
            chosen.push(find(path, names, name)?);
        }
        let mut seen = vec![false; names.len()];
        chosen.retain(|&index| !std::mem::replace(&mut seen[index], true));
        Ok(chosen)
    }

    fn resolve_typed(&self, path: &Path, names: &[&str]) -> Result<Vec<usize>> {
        // A column whose name holds a comma can only be typed as the whole selection.
        if let Some(index) = self.text.as_ref().and_then(|text| names.iter().position(|n| n == text)) {
            return Ok(vec![index]);
        }
        let parts: Result<Vec<_>> = self.parts.iter().map(|part| resolve_part(path, names, part)).collect();
        Ok(parts?.into_iter().flatten().collect())
    }
}

fn resolve_part(path: &Path, names: &[&str], part: &str) -> Result<std::ops::Range<usize>> {
    if let Some(index) = names.iter().position(|name| *name == part) {
        return Ok(index..index + 1);
    }
    match positions(part) {
        Some((first, last)) if 1 <= first && first <= last && last <= names.len() => Ok(first - 1..last),
        Some(_) => Err(Error::Position { path: path.into(), part: part.into(), columns: names.len() }),
        None => Err(unknown(path, names, part)),
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parts.iter().chain(&self.literal).cloned().collect::<Vec<_>>().join(","))
    }
}

/// `7` or `3-20`.
fn positions(part: &str) -> Option<(usize, usize)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// The index of one column by name.
pub(crate) fn find(path: &Path, names: &[&str], name: &str) -> Result<usize> {
    names.iter().position(|n| *n == name).ok_or_else(|| unknown(path, names, name))
}

fn unknown(path: &Path, names: &[&str], wanted: &str) -> Error {
    let nearest = nearest(names, wanted);
    Error::UnknownColumn { path: path.into(), column: wanted.into(), nearest, known: list(names) }
}

/// The error that a file lacks features of a model. A column that is a feature itself is not meant for
/// another.
pub(crate) fn missing(path: &Path, names: &[&str], features: &[String], missing: &[&str]) -> Error {
    let free = |name: &&&str| !features.iter().any(|feature| feature == **name);
    let others: Vec<&str> = names.iter().filter(free).copied().collect();
    let nearest = missing.iter().find_map(|wanted| nearest(&others, wanted));
    Error::MissingFeatures { path: path.into(), missing: list(missing), nearest, known: list(names) }
}

/// The other name that is most like the wanted one, if any is.
pub(crate) fn nearest(names: &[&str], wanted: &str) -> Option<String> {
    let others = names.iter().filter(|name| **name != wanted);
    let closest = others.map(|name| (distance(name, wanted), *name)).min();
    closest.filter(|(d, _)| *d <= 1 + wanted.chars().count() / 3).map(|(_, name)| name.to_owned())
}

/// The first few names.
fn list(names: &[&str]) -> String {
    const SHOWN: usize = 10;
    let mut list = names.iter().take(SHOWN).map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        list.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    list
}

/// Levenshtein's distance, upper and lower case alike.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn resolve(text: &str, names: &[&str]) -> Result<Vec<usize>> {
        Selection::parse(text)?.resolve(Path::new("t.csv"), names)
    }

    #[test]
    fn names_and_positions_mix_and_count_once() {
        let names = ["a", "b", "c", "d", "e"];
        assert_eq!(resolve("c,a", &names).unwrap(), [2, 0]);
        assert_eq!(resolve("1,3-5", &names).unwrap(), [0, 2, 3, 4]);
        assert_eq!(resolve(" b , 1-3", &names).unwrap(), [1, 0, 2]);
    }

    #[test]
    fn a_literal_name_wins_over_a_position() {
        assert_eq!(resolve("1", &["3", "2", "1"]).unwrap(), [2]);
        assert_eq!(resolve("1-2", &["x", "y", "1-2"]).unwrap(), [2]);
        assert_eq!(resolve("a,b", &["a", "b", "a,b"]).unwrap(), [2]);
        let more = Selection::parse("1").unwrap().and_names(["1", "y"]);
        assert_eq!(more.resolve(Path::new("t.csv"), &["x", "y", "1"]).unwrap(), [2, 1]);
        assert!(Selection::names(["1"]).resolve(Path::new("t.csv"), &["x"]).is_err());
    }

    #[test]
    fn positions_outside_the_file_are_refused() {
        for text in ["0", "3", "0-1", "2-1", "1-3"] {
            assert!(matches!(resolve(text, &["a", "b"]), Err(Error::Position { columns: 2, .. })), "{text}");
        }
        assert!(matches!(resolve(" , ", &["a"]), Err(Error::EmptySelection)));
    }

    #[test]
    fn an_unknown_name_brings_the_nearest_to_mind() {
        let error = resolve("widht", &["height", "width", "depth"]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("did you mean 'width'?") && text.contains("'depth'"), "{text}");
        let error = resolve("zzz", &["height", "width"]).unwrap_err();
        assert!(!error.to_string().contains("did you mean"), "{error}");
    }
}
