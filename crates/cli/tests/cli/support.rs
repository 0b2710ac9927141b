//! What the tests share: a folder, the binary, small data with known answers, and files of every format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

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
        // Two tests run side by side: a thread for each. Tests about threads ask for some with --threads.
        command.current_dir(self.dir()).env_remove("RUST_BACKTRACE").env("RAYON_NUM_THREADS", "1");
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

/// The numbers of a model, as `inspect` tells them.
pub(crate) struct Parameters {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Vec<Vec<f64>>,
}

impl Parameters {
    /// μ and WWᵀ + σ²I.
    pub(crate) fn of(place: &Place, model: &str) -> Self {
        let told = place.json(&["inspect", model, "--json"]);
        let numbers =
            |v: &Value| v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
        let w: Vec<Vec<f64>> = told["loadings"].as_array().unwrap().iter().map(numbers).collect();
        let noise = told["noise_variance"].as_f64().unwrap();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let cell = |i: usize, j: usize| dot(&w[i], &w[j]) + if i == j { noise } else { 0.0 };
        let covariance = (0..w.len()).map(|i| (0..w.len()).map(|j| cell(i, j)).collect()).collect();
        Self { mean: numbers(&told["mean"]), covariance }
    }

    /// Mean and standard deviation of a cell given those that a row has (NaN elsewhere), by dense solves.
    pub(crate) fn conditional(&self, row: &[f64], j: usize) -> (f64, f64) {
        let seen: Vec<usize> = (0..row.len()).filter(|i| !row[*i].is_nan()).collect();
        let c = |i: usize, j: usize| self.covariance[i][j];
        let square: Vec<Vec<f64>> = seen.iter().map(|&i| seen.iter().map(|&k| c(i, k)).collect()).collect();
        let weights = solve(square, seen.iter().map(|&i| c(i, j)).collect());
        let along = |f: &dyn Fn(usize) -> f64| seen.iter().zip(&weights).map(|(&i, w)| w * f(i)).sum::<f64>();
        (self.mean[j] + along(&|i| row[i] - self.mean[i]), (c(j, j) - along(&|i| c(i, j))).sqrt())
    }
}

/// Gaussian elimination with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let (factor, above) = (a[i][k] / a[k][k], a[k].clone());
            a[i].iter_mut().zip(above).for_each(|(x, y)| *x -= factor * y);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        b[k] = (b[k] - (k + 1..n).map(|j| a[k][j] * b[j]).sum::<f64>()) / a[k][k];
    }
    b
}

/// Rows of which a share of the cells is missing.
pub(crate) fn rows_with_holes(n: usize, p: usize, share: f64, seed: u64) -> Mat<f64> {
    let mut draw = noise(seed ^ 0xabcd);
    let mut x = rows(n, p, seed);
    for i in 0..n {
        for j in 0..p {
            if draw() + 0.5 < share {
                x[(i, j)] = f64::NAN;
            }
        }
    }
    x
}

/// Five features and a model of two components, fitted to complete rows; `holes.csv` lacks a fifth of its cells.
pub(crate) fn place_with_holes() -> (Place, Mat<f64>) {
    let place = Place::new();
    table_of(&place, "whole.csv", &rows(300, 5, 4));
    place.ok(&["fit", "whole.csv", "-q", "2", "-o", "m.covary", "--quiet"]);
    let mut x = rows_with_holes(120, 5, 0.2, 11);
    (0..5).for_each(|j| x[(7, j)] = f64::NAN);
    table_of(&place, "holes.csv", &x);
    (place, x)
}

/// The rows of a matrix.
pub(crate) fn row_of(x: &Mat<f64>, i: usize) -> Vec<f64> {
    (0..x.ncols()).map(|j| x[(i, j)]).collect()
}

/// The cells that are there as triples, in an order that is not that of the table.
pub(crate) fn triples_of(x: &Mat<f64>, names: &[String]) -> String {
    let mut lines: Vec<String> = (0..x.nrows())
        .flat_map(|i| (0..x.ncols()).map(move |j| (i, j)))
        .filter(|&(i, j)| !x[(i, j)].is_nan())
        .map(|(i, j)| format!("{},{},{i}\n", x[(i, j)], names[j]))
        .collect();
    let n = lines.len();
    (0..n).for_each(|k| lines.swap(k, (k * 7919 + 13) % n));
    format!("value,item,user\n{}", lines.concat())
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits a while; a process that does not end is a failure of its own.
pub(crate) fn wait_for_end(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it did not stop");
        }
        sleep(Duration::from_millis(5));
    }
}

/// How often a property is tried: few times as a rule, many when `COVARY_SOAK` is set, as `make soak` does.
pub(crate) fn soak(small: usize, large: usize) -> usize {
    if std::env::var_os("COVARY_SOAK").is_some() { large } else { small }
}
