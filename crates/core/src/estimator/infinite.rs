//! A number that may be infinite or not known, as text: a number, `"infinite"`, or nothing.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(Word),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Infinite,
}

/// Writes it.
pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    let written = |v: f64| if v.is_finite() { Written::Number(v) } else { Written::Word(Word::Infinite) };
    value.map(written).serialize(to)
}

/// Reads it.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Written>::deserialize(from)?.map(|written| match written {
        Written::Number(v) => v,
        Written::Word(Word::Infinite) => f64::INFINITY,
    }))
}
