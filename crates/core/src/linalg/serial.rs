//! Matrices as bytes on their way between machines: `#[serde(with = "serial")]`, to the last bit.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Mat;

/// What goes as something else that serde knows.
pub(crate) trait Serial: Sized {
    /// What goes.
    type Sent: Serialize + DeserializeOwned;

    /// As it goes.
    fn sent(&self) -> Self::Sent;

    /// As it was; `None` when no such thing was sent.
    fn received(sent: Self::Sent) -> Option<Self>;
}

/// Writes.
pub(crate) fn serialize<T: Serial, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.sent().serialize(serializer)
}

/// Reads.
pub(crate) fn deserialize<'de, T: Serial, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::received(T::Sent::deserialize(deserializer)?)
        .ok_or_else(|| D::Error::custom("a matrix of another shape"))
}

/// The cells of a matrix, column after column.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cells(usize, usize, Doubles);

impl Serial for Mat<f64> {
    type Sent = Cells;

    fn sent(&self) -> Cells {
        let columns = (0..self.ncols()).flat_map(|j| self.col_as_slice(j));
        Cells(self.nrows(), self.ncols(), Doubles::of(columns))
    }

    fn received(Cells(rows, columns, Doubles(cells)): Cells) -> Option<Self> {
        let fits = rows.checked_mul(columns) == Some(cells.len());
        fits.then(|| Self::from_fn(rows, columns, |i, j| cells[j * rows + i]))
    }
}

impl Serial for Option<Mat<f64>> {
    type Sent = Option<Cells>;

    fn sent(&self) -> Option<Cells> {
        self.as_ref().map(Serial::sent)
    }

    fn received(sent: Option<Cells>) -> Option<Self> {
        match sent {
            Some(sent) => Mat::received(sent).map(Some),
            None => Some(None),
        }
    }
}

impl<T: Serial> Serial for Arc<T> {
    type Sent = T::Sent;

    fn sent(&self) -> T::Sent {
        (**self).sent()
    }

    fn received(sent: T::Sent) -> Option<Self> {
        T::received(sent).map(Self::new)
    }
}

/// The lower triangle of a square matrix, of which nothing else counts: half of the bytes.
pub(crate) mod lower {
    use super::{Deserialize, Deserializer, Doubles, Mat, Serialize, Serializer};
    use serde::de::Error as _;

    /// Writes.
    pub(crate) fn serialize<S: Serializer>(matrix: &Mat<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = (0..matrix.ncols()).flat_map(|j| &matrix.col_as_slice(j)[j..]);
        (matrix.ncols(), Doubles::of(columns)).serialize(serializer)
    }

    /// Reads.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mat<f64>, D::Error> {
        let (side, Doubles(cells)) = <(usize, Doubles)>::deserialize(deserializer)?;
        if side.checked_mul(side + 1).map(|twice| twice / 2) != Some(cells.len()) {
            return Err(D::Error::custom("a triangle of another size"));
        }
        let (mut matrix, mut cells) = (Mat::zeros(side, side), &cells[..]);
        for j in 0..side {
            let (column, left) = cells.split_at(side - j);
            matrix.col_as_slice_mut(j)[j..].copy_from_slice(column);
            cells = left;
        }
        Ok(matrix)
    }
}

/// Something that several share, each with a copy of its own on the other side.
pub(crate) mod shared {
    use super::{Arc, Deserialize, Deserializer, Serialize, Serializer};

    /// Writes.
    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        T::serialize(value, serializer)
    }

    /// Reads.
    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Arc<T>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// Numbers as the bytes that they are, at once.
struct Doubles(Vec<f64>);

impl Doubles {
    fn of<'a>(numbers: impl Iterator<Item = &'a f64>) -> Self {
        Self(numbers.copied().collect())
    }
}

impl Serialize for Doubles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|x| x.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Doubles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes).map(Self)
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Vec<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of doubles")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<f64>, E> {
        match bytes.as_chunks::<8>() {
            (words, []) => Ok(words.iter().map(|word| f64::from_le_bytes(*word)).collect()),
            _ => Err(E::custom("doubles that are cut off")),
        }
    }
}
