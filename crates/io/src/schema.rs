//! What a file holds and what becomes of each of its columns: feature, weight, carried along, or left out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::select::{self, Selection};

/// What to read of a file.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Exactly these features in this order, as a model needs them; other columns of numbers are left out. Columns
    /// without names are taken by position, and there must be as many as features.
    pub features: Option<Vec<String>>,
    /// Only these columns are features; all others are left out, text too.
    pub columns: Option<Selection>,
    /// Columns to leave out altogether.
    pub drop: Option<Selection>,
    /// A column to carry through, whatever it holds.
    pub id: Option<String>,
    /// More columns to carry through, whatever they hold.
    pub carry: Carry,
    /// A column that holds the weights of the rows.
    pub weights: Option<String>,
    /// Size of a chunk, in bytes of text or of decoded cells. The grid of a file depends on it and on nothing else.
    pub chunk_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            features: None,
            columns: None,
            drop: None,
            id: None,
            carry: Carry::Text,
            weights: None,
            chunk_bytes: 8 << 20,
        }
    }
}

/// Which columns are carried along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Carry {
    /// Those that are not numeric, unless features are selected.
    #[default]
    Text,
    /// These too.
    Columns(Selection),
    /// All; then there need not be any features.
    All,
}

/// Why a column is carried along instead of modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarriedBecause {
    /// It was asked for, as what identifies the rows is.
    Id,
    /// It holds something else than numbers.
    NotNumeric,
}

/// A column that goes from input to output untouched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedColumn {
    /// Its name.
    pub name: String,
    /// Its type; text formats carry text.
    pub data_type: DataType,
    /// Why it is not modelled.
    pub because: CarriedBecause,
}

/// Why a column is not read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutBecause {
    /// Others were selected.
    NotSelected,
    /// It was dropped.
    Dropped,
    /// It has no value in any row.
    Empty,
}

/// A column that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutColumn {
    /// Its name.
    pub name: String,
    /// Why.
    pub because: LeftOutBecause,
}

/// What a file holds, as far as it will be read.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The file, `-` for standard input.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Names of all columns, in the order of the file.
    pub columns: Vec<String>,
    /// Names of the features, in order.
    pub features: Vec<String>,
    /// Columns that are carried along, in order.
    pub carried: Vec<CarriedColumn>,
    /// Columns that are not read, in the order of the file.
    pub left_out: Vec<LeftOutColumn>,
    /// The column of weights.
    pub weights: Option<String>,
    /// Number of rows, when known before reading (streams do not know it).
    pub n_rows: Option<usize>,
    /// Whether the names come from the file; otherwise the columns are called x1, x2, ….
    pub named: bool,
    /// Whether all features are single precision, and are kept so.
    pub single_precision: bool,
}

/// What the cells of a column are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Double,
    Single,
    /// Truth values: 0 and 1 when asked for, otherwise carried.
    Boolean,
    /// Something else; says what.
    Other(String),
}

/// A column of a file before anybody decided about it.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) data_type: DataType,
}

/// What becomes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Feature(usize),
    Carried(usize),
    Weight,
    Skip,
}

/// The name of a column that has none, counted from 0 here and from 1 in the name.
pub(crate) fn default_name(index: usize) -> String {
    format!("x{}", index + 1)
}

/// Decides about every column: the schema, and one role per column of the file.
pub(crate) fn resolve(
    path: &Path,
    format: Format,
    named: bool,
    columns: &[Column],
    options: &ReadOptions,
) -> Result<(Schema, Vec<Role>)> {
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    check_unique(path, &names)?;
    let plan = Plan::new(path, named, &names, options)?;
    let features = plan.features(path, columns)?;
    if features.order.is_empty() && options.carry != Carry::All {
        let selected = options.columns.is_some() || options.drop.is_some();
        return Err(Error::NoFeatures { path: path.into(), selected });
    }
    let mut schema = Schema {
        path: path.into(),
        format,
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        features: features.order.iter().map(|&i| columns[i].name.clone()).collect(),
        carried: Vec::new(),
        left_out: Vec::new(),
        weights: plan.weights.map(|i| columns[i].name.clone()),
        n_rows: None,
        named,
        single_precision: features.order.iter().all(|&i| columns[i].kind == Kind::Single),
    };
    let mut roles = vec![Role::Skip; columns.len()];
    for (k, &i) in features.order.iter().enumerate() {
        roles[i] = Role::Feature(k);
    }
    for (i, column) in columns.iter().enumerate().filter(|(i, _)| !features.is_feature[*i]) {
        roles[i] = plan.other_role(i, column, &mut schema);
    }
    Ok((schema, roles))
}

/// Features in the order asked for, and which columns they are.
struct Features {
    order: Vec<usize>,
    is_feature: Vec<bool>,
}

/// What the options say about the columns by index.
struct Plan {
    wanted: Option<Vec<usize>>,
    /// The wanted ones are a model's: text goes along, as without a selection.
    for_model: bool,
    dropped: Vec<bool>,
    /// To be carried whatever they hold.
    kept: Vec<bool>,
    weights: Option<usize>,
}

impl Plan {
    fn new(path: &Path, named: bool, names: &[&str], options: &ReadOptions) -> Result<Self> {
        let mut dropped = vec![false; names.len()];
        if let Some(drop) = &options.drop {
            drop.resolve(path, names)?.into_iter().for_each(|i| dropped[i] = true);
        }
        let find = |name: &Option<String>| name.as_ref().map(|n| select::find(path, names, n)).transpose();
        let mut kept = vec![options.carry == Carry::All; names.len()];
        if let Carry::Columns(carry) = &options.carry {
            carry.resolve(path, names)?.into_iter().for_each(|i| kept[i] = true);
        }
        if let Some(i) = find(&options.id)? {
            kept[i] = true;
        }
        let plan = Self {
            wanted: None,
            for_model: options.features.is_some(),
            dropped,
            kept,
            weights: find(&options.weights)?,
        };
        let wanted = match (&options.features, &options.columns) {
            (Some(features), _) if named => Some(plan.by_name(path, names, features)?),
            (Some(features), _) => Some(plan.by_position(path, names.len(), features.len())?),
            (None, columns) => columns.as_ref().map(|s| s.resolve(path, names)).transpose()?,
        };
        Ok(Self { wanted, ..plan })
    }

    /// The columns that a model's features are called after.
    fn by_name(&self, path: &Path, names: &[&str], features: &[String]) -> Result<Vec<usize>> {
        let index: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        let find = |f: &String| index.get(f.as_str()).copied().filter(|&i| self.is_free(i));
        let missing: Vec<&str> = features.iter().filter(|f| find(f).is_none()).map(String::as_str).collect();
        match missing.is_empty() {
            true => Ok(features.iter().filter_map(find).collect()),
            false => Err(select::missing(path, names, &missing)),
        }
    }

    /// The columns in their order, when there are as many as a model's features.
    fn by_position(&self, path: &Path, columns: usize, expected: usize) -> Result<Vec<usize>> {
        let free: Vec<usize> = (0..columns).filter(|&i| self.is_free(i)).collect();
        match free.len() == expected {
            true => Ok(free),
            false => Err(Error::FeatureCount { path: path.into(), expected, found: free.len() }),
        }
    }

    fn features(&self, path: &Path, columns: &[Column]) -> Result<Features> {
        if let Some(i) = self.weights {
            must_be_numeric(path, &columns[i], "weights")?;
        }
        let order: Vec<usize> = match &self.wanted {
            Some(wanted) => wanted.iter().copied().filter(|&i| self.is_free(i)).collect(),
            None => (0..columns.len())
                .filter(|&i| self.is_free(i) && matches!(columns[i].kind, Kind::Double | Kind::Single))
                .collect(),
        };
        order.iter().try_for_each(|&i| must_be_numeric(path, &columns[i], "a feature"))?;
        let mut is_feature = vec![false; columns.len()];
        order.iter().for_each(|&i| is_feature[i] = true);
        Ok(Features { order, is_feature })
    }

    fn is_free(&self, index: usize) -> bool {
        !self.dropped[index] && !self.kept[index] && self.weights != Some(index)
    }

    /// The role of a column that is no feature; the schema takes note.
    fn other_role(&self, index: usize, column: &Column, schema: &mut Schema) -> Role {
        let numeric = matches!(column.kind, Kind::Double | Kind::Single);
        let because = match () {
            () if self.weights == Some(index) => return Role::Weight,
            () if self.kept[index] => Ok(CarriedBecause::Id),
            () if self.dropped[index] => Err(LeftOutBecause::Dropped),
            () if self.wanted.is_some() && (numeric || !self.for_model) => Err(LeftOutBecause::NotSelected),
            () => Ok(CarriedBecause::NotNumeric),
        };
        let name = column.name.clone();
        match because {
            Err(because) => {
                schema.left_out.push(LeftOutColumn { name, because });
                Role::Skip
            }
            Ok(because) => {
                schema.carried.push(CarriedColumn { name, data_type: column.data_type.clone(), because });
                Role::Carried(schema.carried.len() - 1)
            }
        }
    }
}

fn must_be_numeric(path: &Path, column: &Column, role: &'static str) -> Result<()> {
    match &column.kind {
        Kind::Other(what) => Err(Error::NotNumeric {
            path: path.into(),
            column: column.name.clone(),
            what: what.clone(),
            role,
        }),
        _ => Ok(()),
    }
}

/// Names must tell columns apart.
pub(crate) fn check_unique(path: &Path, names: &[&str]) -> Result<()> {
    let mut seen = HashMap::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        if let Some(first) = seen.insert(*name, i) {
            return Err(Error::DuplicateColumn {
                path: path.into(),
                column: (*name).into(),
                first: first + 1,
                second: i + 1,
            });
        }
    }
    Ok(())
}
