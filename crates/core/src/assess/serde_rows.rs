//! Matrices in JSON: a list of rows.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::linalg::Mat;

pub(super) fn serialize<S: Serializer>(a: &Mat<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    let rows: Vec<Vec<f64>> = (0..a.nrows()).map(|i| (0..a.ncols()).map(|j| a[(i, j)]).collect()).collect();
    rows.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mat<f64>, D::Error> {
    let rows = Vec::<Vec<f64>>::deserialize(deserializer)?;
    let width = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|r| r.len() != width) {
        return Err(D::Error::custom("rows of different lengths"));
    }
    Ok(Mat::from_fn(rows.len(), width, |i, j| rows[i][j]))
}
