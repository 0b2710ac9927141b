//! Carried columns as text, for those who show them.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::schema::Schema;

/// The cells of a carried column, by its position in [`Schema::carried`], as text; `None` where there is none.
///
/// # Errors
/// When the column holds something that has no text, such as lists.
pub fn texts(schema: &Schema, column: usize, cells: &ArrayRef) -> Result<Vec<Option<String>>> {
    let unsupported = |error| Error::Unsupported {
        path: schema.path.clone(),
        what: format!(
            "the column '{}' cannot be shown ({error}); leave it out, or make it text",
            schema.carried.get(column).map(|c| c.name.as_str()).unwrap_or_default()
        ),
    };
    let text = cast(cells, &DataType::Utf8).map_err(unsupported)?;
    Ok(text.as_string::<i32>().iter().map(|cell| cell.map(str::to_owned)).collect())
}
