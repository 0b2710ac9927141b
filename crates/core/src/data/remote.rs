//! Rows that lie elsewhere: evidence goes to them, and comes back filled.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::RowSource;
use crate::error::{Error, Result};

/// Something that travels: a name, by which the other side knows what it is, and its bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parcel {
    /// What it is.
    pub name: String,
    /// The bytes of it.
    pub bytes: Vec<u8>,
}

/// What is to be done where the rows are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// What rows go through before they are added up, in this order: features are divided, say.
    pub steps: Vec<Parcel>,
    /// The evidence that they fill, of no rows so far, with the parameters that it needs.
    pub evidence: Parcel,
    /// Whether rows have to know their number in the whole of the data.
    pub numbered: bool,
}

/// Rows that cannot be read here.
pub trait RemoteRows: Sync {
    /// The evidence of the task, filled with all rows.
    ///
    /// # Errors
    /// Those of the evidence, the first in the order of the rows; those of the way.
    fn fill(&self, task: Task) -> Result<Parcel>;
}

impl Parcel {
    /// Packs.
    ///
    /// # Errors
    /// None that values of this library can cause.
    pub(crate) fn pack(name: &str, value: &impl Serialize) -> Result<Self> {
        Ok(Self { name: name.into(), bytes: to_bytes(value)? })
    }

    /// Unpacks.
    ///
    /// # Errors
    /// When the bytes are not those of such a value.
    pub(crate) fn unpack<T: DeserializeOwned>(&self) -> Result<T> {
        from_bytes(&self.bytes)
    }
}

/// A value as bytes, for others of the same version.
pub(crate) fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_extend(value, Vec::new()).map_err(|e| Error::Format(format!("it cannot be packed: {e}")))
}

/// The value.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|e| Error::Format(format!("it cannot be unpacked: {e}")))
}

/// What is done with rows once they have gone through a step.
pub(crate) type Then<'a> = &'a mut dyn FnMut(&dyn RowSource) -> Result<()>;

/// A view of rows that can be had where they are: how a source that stands before another travels.
pub(crate) trait Step: Serialize + DeserializeOwned {
    /// Its name.
    const NAME: &'static str;

    /// Looks at rows in this way.
    fn over(&self, rows: &dyn RowSource, then: Then<'_>) -> Result<()>;
}

/// Sends a task on to the rows behind a step.
pub(crate) fn fill_through<S: Step>(rows: &dyn RowSource, step: &S, mut task: Task) -> Result<Parcel> {
    let Some(remote) = rows.remote() else { return Err(Error::NoRows) };
    task.steps.insert(0, Parcel::pack(S::NAME, step)?);
    remote.fill(task)
}
