//! What the tests share: a folder, the binary, small data with known answers, and files of every format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use covary::linalg::Mat;
use covary_io::Writer;
use serde_json::Value;

/// Six rows on the axes: mean 0, covariance diag(3, 4/3, 1/3) with divisor n.
pub(crate) const CROSS: &str = "a,b,c\n3,0,0\n-3,0,0\n0,2,0\n0,-2,0\n0,0,1\n0,0,-1\n";

/// A folder of its own that runs the command in it.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// With `cross.csv` and its model of one component.
    pub(crate) fn with_model() -> Self {
        let place = Self::new();
        place.write("cross.csv", CROSS);
        place.ok(&["fit", "cross.csv", "-q", "1", "-o", "cross.covary", "--quiet"]);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Names of the files, hidden ones too.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.dir()).env_remove("RUST_BACKTRACE");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    /// Runs a command that must succeed, and gives its standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this code and one sentence that contains all of these words.
    pub(crate) fn fails(&self, args: &[&str], code: i32, words: &[&str]) {
        check_failure(args, &self.run(args), code, words);
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    /// A line of shell in the folder, with `covary` as a word.
    pub(crate) fn shell(&self, line: &str) -> Output {
        let line = format!("covary() {{ '{}' \"$@\"; }}; {line}", binary().display());
        Command::new("bash").args(["-c", &line]).current_dir(self.dir()).output().unwrap()
    }

    /// Rows of numbers in a format told by the ending.
    pub(crate) fn table(&self, name: &str, names: &[&str], rows: &Mat<f64>) {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let mut writer = Writer::create(self.path(name), &[], &names).unwrap();
        writer.write(&[], rows.as_ref()).unwrap();
        writer.finish().unwrap();
    }
}

pub(crate) fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("covary").to_path_buf()
}

/// One sentence on standard error, no backtrace, the right code.
pub(crate) fn check_failure(args: &[&str], output: &Output, code: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with("covary: ")).collect();
    assert_eq!(told.len(), 1, "{args:?}: {text}");
    assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
    for word in words {
        assert!(text.contains(word), "{args:?} should say {word:?}: {text}");
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Named columns of numbers out of CSV; empty cells are NaN.
pub(crate) fn csv(text: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut lines = text.lines();
    let header = lines.next().unwrap().split(',').map(String::from).collect();
    let cell = |text: &str| if text.is_empty() { f64::NAN } else { text.parse().unwrap_or(f64::NAN) };
    (header, lines.map(|line| line.split(',').map(cell).collect()).collect())
}

#[track_caller]
pub(crate) fn close(found: f64, expected: f64, relative: f64) {
    let error = (found - expected).abs();
    assert!(error <= relative * expected.abs().max(1e-300), "{found} is not {expected}: off by {error:e}");
}

/// Numbers that look random and are the same everywhere.
pub(crate) fn noise(mut seed: u64) -> impl FnMut() -> f64 {
    move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 11) as f64) / (1u64 << 53) as f64 - 0.5
    }
}

/// Rows with a few strong directions.
pub(crate) fn rows(n: usize, p: usize, seed: u64) -> Mat<f64> {
    let mut draw = noise(seed);
    let mut x = Mat::zeros(n, p);
    for i in 0..n {
        let (u, v) = (draw(), draw());
        for j in 0..p {
            x[(i, j)] = 5.0 + u * (j as f64 + 1.0) + v * (7 * j % 5) as f64 + 0.3 * draw();
        }
    }
    x
}

/// x1, x2, …
pub(crate) fn names(p: usize) -> Vec<String> {
    (1..=p).map(|j| format!("x{j}")).collect()
}

pub(crate) fn table_of(place: &Place, name: &str, rows: &Mat<f64>) {
    let names = names(rows.ncols());
    place.table(name, &names.iter().map(String::as_str).collect::<Vec<_>>(), rows);
}
