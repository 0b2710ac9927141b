//! Evidence that goes to rows elsewhere and comes back filled.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Accumulator;
use crate::control::Control;
use crate::data::{Parcel, RemoteRows, RowSource, Task};
use crate::error::{Error, Result};

/// How a kind of evidence travels.
pub struct Travel<A> {
    name: [&'static str; 3],
    numbered: bool,
    pack: fn(&str, &A) -> Result<Parcel>,
    unpack: fn(&Parcel) -> Result<A>,
}

impl<A: Serialize + DeserializeOwned> Travel<A> {
    /// Under a name that no other kind has.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self::of([name, "", ""])
    }

    const fn of(name: [&'static str; 3]) -> Self {
        Self {
            name,
            numbered: false,
            pack: |name, evidence| Parcel::pack(name, evidence),
            unpack: Parcel::unpack,
        }
    }

    /// Evidence that is made of parts, which travel too, by something of this name.
    pub(crate) const fn of_parts<E: Accumulator>(name: &'static str, by: &'static str) -> Option<Self> {
        match &E::TRAVEL {
            Some(part) => Some(Self::of([name, part.name[0], by])),
            None => None,
        }
    }

    /// The same for evidence that depends on the numbers of the rows.
    pub(crate) const fn numbered(name: &'static str) -> Self {
        Self { numbered: true, ..Self::named(name) }
    }
}

impl<A> Travel<A> {
    /// The name.
    pub fn name(&self) -> String {
        let words: Vec<&str> = self.name.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" of ")
    }

    /// Packs.
    ///
    /// # Errors
    /// None that evidence can cause.
    pub fn pack(&self, evidence: &A) -> Result<Parcel> {
        (self.pack)(&self.name(), evidence)
    }

    /// Unpacks.
    ///
    /// # Errors
    /// When it is other evidence, or damaged.
    pub fn unpack(&self, parcel: &Parcel) -> Result<A> {
        match parcel.name == self.name() {
            true => (self.unpack)(parcel),
            false => Err(Error::Format(format!("it holds '{}', not {}", parcel.name, self.name()))),
        }
    }
}

/// One pass over rows that are elsewhere.
pub(super) fn fill<A: Accumulator>(
    remote: &dyn RemoteRows,
    empty: &A,
    source: &dyn RowSource,
    control: &Control<'_>,
) -> Result<A> {
    control.check()?;
    let Some(travel) = A::TRAVEL else { return Err(stays()) };
    let task = Task { steps: Vec::new(), evidence: travel.pack(empty)?, numbered: travel.numbered };
    let filled = travel.unpack(&remote.fill(task)?)?;
    if let Some(rows) = source.n_rows() {
        control.rows_read(rows, Some(rows));
    }
    Ok(filled)
}

/// The error of evidence that cannot be sent.
pub(crate) fn stays() -> Error {
    Error::Solver {
        solver: "asked-for",
        reason:
            "a step of this fit needs the rows themselves, and they are on other machines; fit a sample of \
            the rows here"
                .into(),
    }
}
