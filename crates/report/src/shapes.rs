//! Features that are pixels of an image, or coordinates of markers in space.

use std::str::FromStr;

use covary::{Error, Result};
use serde::Serialize;

/// Height and width of an image whose pixels, row by row, are the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
}

impl FromStr for Image {
    type Err = String;

    /// From 28x20: height, then width.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once(['x', 'X', '×']).and_then(|(height, width)| {
            Some(Self { height: height.trim().parse().ok()?, width: width.trim().parse().ok()? })
        });
        match parsed {
            Some(image) if image.height > 0 && image.width > 0 => Ok(image),
            _ => Err(format!("'{text}' is no size of an image; give its height and width, as in 28x20")),
        }
    }
}

impl Image {
    /// Whether the features are as many as the pixels.
    pub(crate) fn check(self, features: usize) -> Result<()> {
        match self.height.checked_mul(self.width) == Some(features) {
            true => Ok(()),
            false => Err(Error::Parameter {
                name: "the size of the image",
                value: format!("{}x{} for {features} features", self.height, self.width),
                allowed: "as many pixels as there are features",
            }),
        }
    }
}

/// Markers in space and the lines between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stick {
    /// The features that are x, y and z of each marker, and its name.
    markers: Vec<(String, [usize; 3])>,
    /// Pairs of markers that a line joins.
    links: Vec<[usize; 2]>,
}

impl Stick {
    /// Markers among the features, joined by lines between pairs of them, by name.
    ///
    /// The marker M has three features that are called M and x, y or z, in either case and with or without
    /// one of `: . _ -` or a space between.
    ///
    /// # Errors
    /// When no features are markers, or a pair names none.
    pub fn new<S: AsRef<str>>(pairs: &[(S, S)], features: &[String]) -> Result<Self> {
        let markers = markers(features);
        if markers.is_empty() {
            return Err(wrong("the features".into(), "names of markers with x, y and z, such as HEAD:X"));
        }
        let find = |name: &str| {
            let found = markers.iter().position(|(marker, _)| marker == name);
            found.ok_or_else(|| wrong(name.to_owned(), "names of markers of the model"))
        };
        let link = |(from, to): &(S, S)| Ok([find(from.as_ref())?, find(to.as_ref())?]);
        let links = pairs.iter().map(link).collect::<Result<Vec<_>>>()?;
        Ok(Self { markers, links })
    }

    /// From a text of two names on each line, separated by a comma: the markers that a line joins. A first line
    /// that names no marker is a header.
    ///
    /// # Errors
    /// When no features are markers, or a line does not name two of them.
    pub fn parse(links: &str, features: &[String]) -> Result<Self> {
        let known = markers(features);
        let is_marker = |name: &str| known.iter().any(|(marker, _)| marker == name);
        let mut pairs = Vec::new();
        for (number, line) in links.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let names: Vec<&str> =
                line.split([',', '\t', ';']).map(|name| name.trim().trim_matches('"')).collect();
            match names[..] {
                [from, to] if number == 0 && !is_marker(from) && !is_marker(to) => {}
                [from, to] => pairs.push((from, to)),
                _ => {
                    return Err(wrong(
                        format!("line {}: {line}", number + 1),
                        "two names, separated by a comma",
                    ));
                }
            }
        }
        Self::new(&pairs, features)
    }
}

fn wrong(value: String, allowed: &'static str) -> Error {
    Error::Parameter { name: "the lines between markers", value, allowed }
}

/// The markers among the features, in their order.
fn markers(features: &[String]) -> Vec<(String, [usize; 3])> {
    let mut found: Vec<(String, [Option<usize>; 3])> = Vec::new();
    for (j, feature) in features.iter().enumerate() {
        let Some((name, axis)) = marker(feature) else { continue };
        let place = found.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            found.push((name.to_owned(), [None; 3]));
            found.len() - 1
        });
        found[place].1[axis] = Some(j);
    }
    let whole = |(name, of): (String, [Option<usize>; 3])| Some((name, [of[0]?, of[1]?, of[2]?]));
    found.into_iter().filter_map(whole).collect()
}

/// The marker and the axis that a feature is of.
fn marker(feature: &str) -> Option<(&str, usize)> {
    let last = feature.chars().next_back()?;
    let axis = "xyz".find(last.to_ascii_lowercase())?;
    let name = feature[..feature.len() - last.len_utf8()].trim_end_matches([':', '.', '_', '-', ' ']);
    (!name.is_empty()).then_some((name, axis))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn images_are_height_by_width() {
        assert_eq!("28x20".parse::<Image>().unwrap(), Image { height: 28, width: 20 });
        assert!("28".parse::<Image>().is_err() && "0x3".parse::<Image>().is_err());
        let eight = Image { height: 8, width: 8 };
        assert!(eight.check(64).is_ok() && eight.check(65).is_err());
    }

    #[test]
    fn lines_join_markers_by_name() {
        let features = ["A:X", "A:Y", "A:Z", "b_x", "b_y", "b_z", "time"].map(str::to_owned);
        let stick = Stick::parse("from,to\nA,b\n", &features).unwrap();
        assert_eq!((stick.links.as_slice(), stick.markers[1].1), (&[[0, 1]][..], [3, 4, 5]));
        assert!(Stick::parse("A,b\nA,C\n", &features).is_err());
        assert!(Stick::parse("A,b", &["time".to_owned()]).is_err());
    }
}
