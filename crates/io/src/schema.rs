//! What a file holds and what becomes of each of its columns: feature, weight, carried along, or left out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use arrow_schema::DataType;

use crate::dialect::{DecimalMark, Delimiter, MissingWords, TextEncoding};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::header::HeaderGuess;
use crate::recognised::Recognised;
use crate::select::{self, Selection};

/// What to read of a file.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Exactly these features in this order, as a model needs them; other columns of numbers are left out.
    /// Columns without names are taken by position, and there must be as many as features.
    pub features: Option<Vec<String>>,
    /// The features have no names of their own: where no columns are called so, columns of numbers are taken
    /// by position, and there must be as many.
    pub nameless: bool,
    /// Whether the first line of a text is a header; guessed if nobody says.
    pub header: Option<bool>,
    /// What separates the cells of a text; recognised if nobody says.
    pub delimiter: Option<Delimiter>,
    /// What marks decimals in a text; recognised if nobody says.
    pub decimal: Option<DecimalMark>,
    /// How a text is encoded; recognised if nobody says.
    pub encoding: Option<TextEncoding>,
    /// The sheet of a spreadsheet, by name or by number from 1 on; the first if nobody says.
    pub sheet: Option<String>,
    /// Words of a text that stand for a missing value, beside the usual ones.
    pub missing: MissingWords,
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
    /// Size of a chunk, in bytes of text or of decoded cells. The grid of a file depends on it and on nothing
    /// else.
    pub chunk_bytes: usize,
    /// Most bytes of a row of text. Other parts that must be in memory at once, such as the pages of Parquet
    /// or a record batch of Arrow, may take up to [`ReadOptions::PIECES`] times as many; what is larger is
    /// refused.
    pub piece_bytes: usize,
}

impl ReadOptions {
    /// How many times the size of the longest row may be in memory.
    pub const PIECES: usize = 16;

    /// Refuses what has no meaning for the format of a file.
    pub(crate) fn check_format(&self, path: &Path, format: Format) -> Result<()> {
        let is_text = matches!(format, Format::Delimited { .. });
        let wrong = [
            (self.delimiter.is_some() && !is_text, "a delimiter"),
            (self.decimal.is_some() && !is_text, "a decimal mark"),
            (self.encoding.is_some() && !is_text, "an encoding"),
            (self.sheet.is_some() && format != Format::Spreadsheet, "a sheet"),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, what)) => Err(Error::NotForFormat { path: path.into(), format: format.name(), what }),
            None => Ok(()),
        }
    }

    /// What parts that are read whole may take together.
    pub(crate) fn part_bytes(&self) -> usize {
        self.piece_bytes.saturating_mul(Self::PIECES)
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            features: None,
            nameless: false,
            header: None,
            delimiter: None,
            decimal: None,
            encoding: None,
            sheet: None,
            missing: MissingWords::default(),
            columns: None,
            drop: None,
            id: None,
            carry: Carry::Text,
            weights: None,
            chunk_bytes: 8 << 20,
            piece_bytes: 1 << 30,
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
    /// Also those of numbers that a model has no feature for.
    Others,
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
    /// It is the index of the data frame that the file was written from.
    Index,
    /// The model has no feature of this name.
    NotInModel,
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
    /// What was guessed about the first line, where it was not obvious whether it is a header.
    pub header_guess: Option<HeaderGuess>,
    /// What was recognised of how the file is written.
    pub recognised: Vec<Recognised>,
    /// Whether columns that have names were taken as a model's features by position, because those have none.
    pub by_position: bool,
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
    /// Whether it is the index of a data frame.
    pub(crate) is_index: bool,
}

impl Column {
    pub(crate) fn new(name: String, kind: Kind, data_type: DataType) -> Self {
        Self { name, kind, data_type, is_index: false }
    }

    /// Whether it is modelled when nobody says which columns are.
    fn is_measured(&self) -> bool {
        matches!(self.kind, Kind::Double | Kind::Single) && !self.is_index
    }
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
    check_width(path, columns.len(), options)?;
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    check_unique(path, &names)?;
    let plan = Plan::new(path, named, columns, &names, options)?;
    let features = plan.features(path, columns)?;
    if features.order.is_empty() && options.carry != Carry::All {
        let selected = options.columns.is_some() || options.drop.is_some();
        let text = columns.iter().find_map(|column| match &column.kind {
            Kind::Other(what) => Some(format!("column '{}': {what}", column.name)),
            _ => None,
        });
        return Err(Error::NoFeatures { path: path.into(), selected, text });
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
        header_guess: None,
        recognised: Vec::new(),
        by_position: plan.by_position && named,
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
    /// The wanted ones are a model's, and were not found by name.
    by_position: bool,
    /// Columns of numbers that a model has no feature for go along too.
    carry_others: bool,
    dropped: Vec<bool>,
    /// To be carried whatever they hold.
    kept: Vec<bool>,
    weights: Option<usize>,
}

impl Plan {
    fn new(
        path: &Path,
        named: bool,
        columns: &[Column],
        names: &[&str],
        options: &ReadOptions,
    ) -> Result<Self> {
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
            by_position: false,
            carry_others: options.carry == Carry::Others,
            dropped,
            kept,
            weights: find(&options.weights)?,
        };
        match (&options.features, &options.columns) {
            (Some(features), _) => plan.with_features(path, named, columns, features, options.nameless),
            (None, None) => Ok(plan),
            (None, Some(columns)) => Ok(Self { wanted: Some(columns.resolve(path, names)?), ..plan }),
        }
    }

    /// With the columns that are a model's features: by name where both have some, otherwise by position.
    fn with_features(
        self,
        path: &Path,
        named: bool,
        columns: &[Column],
        features: &[String],
        nameless: bool,
    ) -> Result<Self> {
        let index: HashMap<&str, usize> =
            columns.iter().enumerate().map(|(i, column)| (column.name.as_str(), i)).collect();
        let found: Vec<Option<usize>> = features.iter().map(|f| index.get(f.as_str()).copied()).collect();
        let by_position = !named || (nameless && found.iter().all(Option::is_none));
        let wanted = match by_position {
            true => self.by_position(path, named, columns, features.len())?,
            false => self.by_name(path, columns, features, &found)?,
        };
        Ok(Self { wanted: Some(wanted), by_position, ..self })
    }

    /// The columns that a model's features are called after, if all were found and are free.
    fn by_name(
        &self,
        path: &Path,
        columns: &[Column],
        features: &[String],
        found: &[Option<usize>],
    ) -> Result<Vec<usize>> {
        let missing: Vec<&str> =
            features.iter().zip(found).filter(|(_, i)| i.is_none()).map(|(f, _)| f.as_str()).collect();
        if !missing.is_empty() {
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            return Err(select::missing(path, &names, features, &missing));
        }
        let found: Vec<usize> = found.iter().copied().flatten().collect();
        match found.iter().find(|&&i| !self.is_free(i)) {
            Some(&i) => Err(Error::FeatureTaken { path: path.into(), column: columns[i].name.clone() }),
            None => Ok(found),
        }
    }

    /// The columns in their order, when there are as many as a model's features; of columns with names those
    /// of numbers.
    fn by_position(
        &self,
        path: &Path,
        named: bool,
        columns: &[Column],
        expected: usize,
    ) -> Result<Vec<usize>> {
        let fits = |i: &usize| self.is_free(*i) && (!named || columns[*i].is_measured());
        let free: Vec<usize> = (0..columns.len()).filter(fits).collect();
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
            None => (0..columns.len()).filter(|&i| self.is_free(i) && columns[i].is_measured()).collect(),
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
            () if self.wanted.is_some() && !self.for_model => Err(LeftOutBecause::NotSelected),
            () if column.is_index => Ok(CarriedBecause::Index),
            () if numeric && self.carry_others => Ok(CarriedBecause::NotInModel),
            () if numeric && self.wanted.is_some() => Err(LeftOutBecause::NotSelected),
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

/// Whether so many columns can be described within the memory limit.
pub(crate) fn check_width(path: &Path, found: usize, options: &ReadOptions) -> Result<()> {
    let most = most_columns(options);
    match found <= most {
        true => Ok(()),
        false => Err(Error::Wide { path: path.into(), found, most }),
    }
}

/// How many columns can be described within the memory limit.
pub(crate) fn most_columns(options: &ReadOptions) -> usize {
    /// Names, kinds and roles of a column, some of them several times.
    const COLUMN_BYTES: usize = 1 << 10;
    options.part_bytes() / COLUMN_BYTES
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
