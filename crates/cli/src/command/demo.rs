//! `covary demo`: a tour of the whole command on real data that the program carries.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Parser;
use covary::data::Table;
use covary_io::{Loaded, ReadOptions, Selection, open, write_file};

use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::flags::{Demo, Flags};
use crate::interrupt;

/// 1797 handwritten digits of 8 × 8 pixels; see `data/README.md` for where they come from.
const DIGITS: &[u8] = include_bytes!("../../data/digits.csv.gz");
/// Everything that the tour leaves in its folder.
const FILES: [&str; 8] = [
    "digits.csv",
    "coarse.covary",
    "digits.covary",
    "coarse.csv",
    "rebuilt.csv",
    "scores.csv",
    "new.csv",
    "report.html",
];
/// Pixels along a side of a digit.
const SIDE: usize = 8;
/// Digits that are drawn beside each other.
const DRAWN: usize = 4;

/// Walks through every step, running the commands that it shows.
pub(super) fn run(flags: &Demo) -> Result<Code> {
    let tour = Tour { dir: flags.dir.clone() };
    tour.prepare()?;
    tour.meet_the_data()?;
    tour.fit()?;
    tour.rebuild()?;
    tour.find_the_strangest()?;
    tour.fill_holes()?;
    tour.draw_new_ones()?;
    tour.report()?;
    tour.what_next()?;
    Ok(Code::Done)
}

struct Tour {
    dir: PathBuf,
}

impl Tour {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Makes the folder and the data; files that somebody else put there are left alone.
    fn prepare(&self) -> Result<()> {
        let digits = unpack()?;
        let ours = fs::read(self.path("digits.csv")).is_ok_and(|found| found == digits);
        if let Some(name) = FILES.iter().find(|name| !ours && self.path(name).exists()) {
            return Err(Failure::file(format!(
                "'{}' is there already and not from an earlier tour; give another folder: covary demo DIR",
                self.path(name).display()
            )));
        }
        fs::create_dir_all(&self.dir).map_err(|error| {
            Failure::file(format!("cannot make the folder '{}': {error}", self.dir.display()))
        })?;
        interrupt::wrote();
        Ok(write_file(self.path("digits.csv"), &digits)?)
    }

    fn meet_the_data(&self) -> Result<()> {
        let digits = self.rows("digits.csv", "2-65")?;
        print(&format!(
            "A tour of covary on {} handwritten digits of {SIDE} × {SIDE} pixels, in {}.\n\
             (E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0, as in scikit-learn.)\n\n{}",
            digits.shape().0,
            self.path("digits.csv").display(),
            draw(&digits, &FIRST, 16.0)
        ))
    }

    fn fit(&self) -> Result<()> {
        step(
            1,
            "Fit. 64 pixels vary together, so fewer numbers say almost as much: as many as explain 90 % of the \
             variance.\nThe column 'digit' is what each is meant to be: it is carried along, not modelled.",
        )?;
        let (data, model) = (self.path("digits.csv"), self.path("digits.covary"));
        command(&["fit", &text(&data), "--id", "digit", "-q", "0.9", "-o", &text(&model)])
    }

    fn rebuild(&self) -> Result<()> {
        step(2, "Choose the number of components by what they keep. For comparison, half of the variance:")?;
        let data = text(&self.path("digits.csv"));
        let coarse = text(&self.path("coarse.covary"));
        command(&["fit", &data, "--id", "digit", "-q", "0.5", "-o", &coarse, "--quiet"])?;
        for (model, out) in [("coarse.covary", "coarse.csv"), ("digits.covary", "rebuilt.csv")] {
            let (model, out) = (text(&self.path(model)), text(&self.path(out)));
            command(&["reconstruct", &model, &data, "--id", "digit", "-o", &out])?;
        }
        for (name, title) in [("coarse.csv", "from half of the variance"), ("rebuilt.csv", "from 90 % of it")]
        {
            let rows = self.rows(name, "2-65")?;
            print(&format!("\nThe same digits rebuilt {title}:\n\n{}", draw(&rows, &FIRST, 16.0)))?;
        }
        Ok(())
    }

    fn find_the_strangest(&self) -> Result<()> {
        step(3, "Score. The model knows what digits look like; these fit it worst:")?;
        let (model, data) = (text(&self.path("digits.covary")), text(&self.path("digits.csv")));
        let out = text(&self.path("scores.csv"));
        command(&["score", &model, &data, "--id", "digit", "-o", &out])?;
        let scores = self.rows("scores.csv", "digit,log_density,p_value")?;
        let score = |i: usize| scores.cells().get(i, 1);
        let mut order: Vec<usize> = (0..scores.shape().0).collect();
        order.sort_by(|a, b| score(*a).total_cmp(&score(*b)));
        let list: String = order.iter().take(DRAWN).map(|&i| describe(&scores, i)).collect();
        let digits = self.rows("digits.csv", "2-65")?;
        print(&format!("\n{list}\n{}", draw(&digits, &order[..DRAWN], 16.0)))
    }

    fn fill_holes(&self) -> Result<()> {
        step(
            4,
            "Missing values. Hide a tenth of the pixels, fit what is left and predict them. Ink goes from 0 to 16, so this is\n\
             how far off a prediction is, beside how far off the mean of each pixel would be:",
        )?;
        let data = text(&self.path("digits.csv"));
        command(&["impute", &data, "--id", "digit", "--holdout", "0.1", "-q", "20"])
    }

    fn draw_new_ones(&self) -> Result<()> {
        step(5, "Sample. A probabilistic model also makes new rows; not all of them are good handwriting:")?;
        let (model, out) = (text(&self.path("digits.covary")), text(&self.path("new.csv")));
        command(&["sample", &model, "-n", "100", "--seed", "1", "-o", &out])?;
        let rows = self.rows("new.csv", "1-64")?;
        print(&format!("\n{}", draw(&rows, &[0, 1, 2, 3], 16.0)))
    }

    fn report(&self) -> Result<()> {
        step(
            6,
            "Report. One page to open in a browser and play with: drag a point, and the digit there is drawn:",
        )?;
        let (model, data) = (text(&self.path("digits.covary")), text(&self.path("digits.csv")));
        let page = text(&self.path("report.html"));
        command(&["report", &model, &data, "--id", "digit", "--image", "8x8", "-o", &page])?;
        print(&format!("\nThe page is {page}: open it by double click; it needs no network.\n"))
    }

    fn what_next(&self) -> Result<()> {
        let (model, data) = (text(&self.path("digits.covary")), text(&self.path("digits.csv")));
        print(&format!(
            "\nThe files are in {}. What to try next:\n\n  \
             covary inspect {model}\n  \
             covary transform {model} {data} --id digit --std | head\n  \
             covary fit {data} --id digit --model pca -q 2 --json\n  \
             covary fit YOUR.csv -o model.covary\n  \
             covary impute model.covary YOUR.csv\n  \
             covary help\n",
            self.dir.display()
        ))
    }

    /// Some columns of a file of the tour.
    fn rows(&self, name: &str, columns: &str) -> Result<Table<'static>> {
        let options = ReadOptions { columns: Some(Selection::parse(columns)?), ..ReadOptions::default() };
        match open(self.path(name), &options)?.load(usize::MAX)? {
            Loaded::Table(table) => Ok(table),
            _ => Err(Failure::file(format!("'{}' does not fit in memory", self.path(name).display()))),
        }
    }
}

/// Rows that are shown again and again.
const FIRST: [usize; DRAWN] = [0, 4, 8, 16];

fn unpack() -> Result<Vec<u8>> {
    let mut digits = Vec::new();
    let unpacked = flate2::read::GzDecoder::new(DIGITS).read_to_end(&mut digits);
    unpacked.map_err(|error| Failure::file(format!("cannot unpack the digits: {error}")))?;
    Ok(digits)
}

fn step(number: usize, words: &str) -> Result<()> {
    print(&format!("\n── {number} ── {words}\n\n"))
}

/// Shows a command as a person would type it, and runs it by the same door.
fn command(words: &[&str]) -> Result<()> {
    let quoted = words.iter().map(|w| if w.contains(' ') { format!("'{w}'") } else { (*w).to_owned() });
    print(&format!("$ covary {}\n", quoted.collect::<Vec<_>>().join(" ")))?;
    let line = std::iter::once("covary").chain(words.iter().copied()).map(OsString::from);
    let flags = Flags::try_parse_from(line).map_err(|error| Failure::usage(error.to_string()))?;
    super::run(flags.command).map(drop)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn describe(scores: &Table<'_>, row: usize) -> String {
    let cell = |j| scores.cells().get(row, j);
    format!("  row {:>4}: a {}, log density {:.1}, p-value {:.1e}\n", row + 1, cell(0), cell(1), cell(2))
}

/// Rows of pixels beside each other, in shades.
fn draw(rows: &Table<'_>, which: &[usize], white: f64) -> String {
    let line = |y: usize| {
        let digit = |&row: &usize| -> String {
            (0..SIDE).map(|x| shade(rows.cells().get(row, y * SIDE + x) / white)).collect()
        };
        let line: Vec<String> = which.iter().map(digit).collect();
        format!("  {}", line.join("  ")).trim_end().to_owned() + "\n"
    };
    (0..SIDE).map(line).collect()
}

/// Two characters for a pixel, as terminals are twice as high as wide.
fn shade(ink: f64) -> &'static str {
    match ink {
        x if x < 0.15 => "  ",
        x if x < 0.4 => "░░",
        x if x < 0.65 => "▒▒",
        x if x < 0.85 => "▓▓",
        _ => "██",
    }
}
