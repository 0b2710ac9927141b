//! Our reader of text beside the `csv` crate: the same cells, whatever the quoting and wherever a file is cut.

use crate::support::*;
use covary_io::{Carry, DecimalMark, ReadOptions, Selection};
use proptest::prelude::*;

/// A cell as it may stand in a file, rightly quoted or not at all, with whatever follows a closing quote.
fn raw_cell(delimiter: char) -> impl Strategy<Value = String> {
    let inside = prop_oneof![
        3 => "[a-c0-9 .,;\n]{0,6}".boxed(),
        1 => "(\"\"|\r\n|[a|;,\t]|é){0,4}".boxed(),
    ];
    let quoted = (inside, "[a-c \"]{0,2}").prop_map(|(inside, rest)| {
        // A quote right behind the closing one would be inside.
        format!("\"{inside}\"{}", rest.trim_start_matches('"'))
    });
    let bare = "[a-c0-9 .;|,\té\"]{0,6}"
        .prop_map(move |text| text.replace(delimiter, "").trim_start_matches('"').to_owned());
    prop_oneof![quoted, bare]
}

/// A number as it may stand in a file.
fn raw_number() -> impl Strategy<Value = String> {
    let finite = any::<f64>().prop_filter("finite", |x| x.is_finite());
    prop_oneof![
        finite.clone().prop_map(|x| format!("{x:e}")),
        finite.prop_map(|x| format!("\"{x}\"")),
        any::<f32>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| x.to_string()),
        "[0-9]{1,20}\\.[0-9]{0,25}",
        "-?[0-9]{1,25}(e-?[0-9]{1,2})?",
    ]
}

#[derive(Debug)]
struct Text {
    delimiter: char,
    /// Text cells and one number in each row.
    rows: Vec<(Vec<String>, String)>,
    end: &'static str,
    final_end: bool,
    blank: bool,
    chunk_bytes: usize,
}

fn text() -> impl Strategy<Value = Text> {
    let start = (prop::sample::select(vec![',', ';', '\t', '|']), 1..4_usize);
    start.prop_flat_map(|(delimiter, width)| {
        let row = (prop::collection::vec(raw_cell(delimiter), width), raw_number());
        let rows = prop::collection::vec(row, 1..12);
        (rows, prop::sample::select(vec!["\n", "\r\n"]), any::<bool>(), any::<bool>(), 1..60_usize).prop_map(
            move |(rows, end, final_end, blank, chunk_bytes)| Text {
                delimiter,
                rows,
                end,
                final_end,
                blank,
                chunk_bytes,
            },
        )
    })
}

impl Text {
    fn contents(&self) -> String {
        let Self { delimiter, end, .. } = self;
        let mark = delimiter.to_string();
        let row = |(cells, number): &(Vec<String>, String)| [cells.join(&mark), number.clone()].join(&mark);
        let between = if self.blank { end.repeat(2) } else { (*end).to_owned() };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        rows.join(&between) + if self.final_end { end } else { "" }
    }

    fn options(&self) -> ReadOptions {
        ReadOptions {
            delimiter: Some(self.delimiter.to_string().parse().unwrap()),
            decimal: Some(DecimalMark::Point),
            header: Some(false),
            ..small(self.chunk_bytes)
        }
    }
}

/// All cells as the `csv` crate reads them.
fn by_csv(text: &Text) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).delimiter(u8::try_from(text.delimiter).unwrap());
    let contents = text.contents();
    reader
        .from_reader(contents.as_bytes())
        .records()
        .map(|record| record.unwrap().iter().map(str::to_owned).collect())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(u32::try_from(soak(300, 100_000)).unwrap()))]

    #[test]
    fn soak_the_cells_are_those_of_the_csv_crate(text in text()) {
        let expected = by_csv(&text);
        let folder = Folder::new();
        let path = folder.file("t.csv", text.contents());
        let all = ReadOptions { carry: Carry::All, ..text.options() };
        let (_, columns) = read_batches(&path, &all).unwrap();
        let cell = |cell: &Option<String>| cell.clone().unwrap_or_default();
        let row = |i: usize| -> Vec<String> { columns.iter().map(|column| cell(&column[i])).collect() };
        let found: Vec<Vec<String>> = (0..columns[0].len()).map(row).collect();
        prop_assert_eq!(&found, &expected);
        // The last column as numbers, to the last bit; Rust's own parser is exact.
        let last = expected[0].len();
        let numbers = ReadOptions { columns: Some(Selection::parse(&last.to_string()).unwrap()), ..text.options() };
        let value = |row: &Vec<String>| vec![Some(row[last - 1].trim().parse::<f64>().unwrap())];
        let expected: Vec<Row> = expected.iter().map(value).collect();
        prop_assert_eq!(load(&path, &numbers).unwrap(), expected);
    }
}
