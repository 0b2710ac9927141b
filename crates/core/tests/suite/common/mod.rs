//! Brute force, on purpose naive: what the library computes cleverly, computed from its definition.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::doc_markdown,
    clippy::needless_range_loop,
    clippy::should_implement_trait,
    clippy::unwrap_used,
    reason = "textbook loops, shared by tests that each use a part"
)]

use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use covary::data::{Block, Cells, Chunk, Observed, Table};
use covary::linalg::{Mat, MatRef};
use covary::model::{LinearGaussian, Noise};
use faer::Side;

pub mod holes;
pub mod twofold;

pub const LN_2PI: f64 = 1.837_877_066_409_345_5;

/// How often a test of many cases tries: a few times, and often where `make soak` asks for it.
pub fn soak(small: usize, large: usize) -> usize {
    if std::env::var_os("COVARY_SOAK").is_some() { large } else { small }
}

// ---------------------------------------------------------------------------------------------- random numbers

/// SplitMix64: the same numbers everywhere.
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Standard normal (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    pub fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| order.swap(i, self.below(i + 1)));
        order
    }
}

pub fn normal_matrix(n: usize, p: usize, rng: &mut Rng) -> Mat<f64> {
    let mut x = Mat::zeros(n, p);
    (0..n).for_each(|i| (0..p).for_each(|j| x[(i, j)] = rng.normal()));
    x
}

/// A random orthogonal matrix (Gram–Schmidt of normal columns, twice).
pub fn orthogonal(n: usize, rng: &mut Rng) -> Mat<f64> {
    let mut r = normal_matrix(n, n, rng);
    for j in 0..n {
        for _ in 0..2 {
            for k in 0..j {
                let along: f64 = (0..n).map(|i| r[(i, k)] * r[(i, j)]).sum();
                (0..n).for_each(|i| r[(i, j)] -= along * r[(i, k)]);
            }
            let norm = (0..n).map(|i| r[(i, j)].powi(2)).sum::<f64>().sqrt();
            (0..n).for_each(|i| r[(i, j)] /= norm);
        }
    }
    r
}

/// Rows with these standard deviations along random orthogonal directions, around a given mean for every feature.
pub fn rows_with_deviations(n: usize, deviations: &[f64], mean: f64, rng: &mut Rng) -> Mat<f64> {
    let p = deviations.len();
    let r = orthogonal(p, rng);
    let z = normal_matrix(n, p, rng);
    Mat::from_fn(n, p, |i, j| mean + (0..p).map(|k| z[(i, k)] * deviations[k] * r[(j, k)]).sum::<f64>())
}

/// Deviations that fall by a fixed factor, so that eigenvalues are well apart.
pub fn falling(p: usize, factor: f64) -> Vec<f64> {
    (0..p).map(|k| 3.0 * factor.powi(k as i32)).collect()
}

// ------------------------------------------------------------------------------------------ statistics by definition

/// Weighted mean and covariance (divisor: the total weight), in two passes of plain loops.
pub fn mean_and_covariance(x: &Mat<f64>, weights: Option<&[f64]>) -> (Vec<f64>, Mat<f64>) {
    let (n, p) = (x.nrows(), x.ncols());
    let w = |i: usize| weights.map_or(1.0, |w| w[i]);
    let total: f64 = (0..n).map(w).sum();
    let mut mean = vec![0.0; p];
    for j in 0..p {
        // Around the first cell and once more around the result: exact for constants, good for large means.
        let mut m = x[(0, j)];
        for _ in 0..2 {
            m += (0..n).map(|i| w(i) * (x[(i, j)] - m)).sum::<f64>() / total;
        }
        mean[j] = m;
    }
    let mut c = Mat::zeros(p, p);
    let mut d = vec![0.0; p];
    for i in 0..n {
        (0..p).for_each(|j| d[j] = x[(i, j)] - mean[j]);
        for j in 0..p {
            let scaled = w(i) * d[j];
            c.col_mut(j).iter_mut().zip(&d).for_each(|(c, d)| *c += scaled * d);
        }
    }
    c.col_iter_mut().for_each(|col| col.iter_mut().for_each(|v| *v /= total));
    (mean, c)
}

/// Eigenvalues in descending order with vectors, by faer's dense decomposition.
pub fn eigen(a: &Mat<f64>) -> (Vec<f64>, Mat<f64>) {
    let n = a.nrows();
    let e = a.self_adjoint_eigen(Side::Lower).unwrap();
    let (s, u) = (e.S(), e.U());
    let values = (0..n).rev().map(|i| s.column_vector()[i]).collect();
    (values, Mat::from_fn(n, n, |i, j| u[(i, n - 1 - j)]))
}

/// Lower Cholesky factor, textbook loops.
pub fn cholesky(a: &Mat<f64>) -> Mat<f64> {
    let n = a.nrows();
    // Rows of L in rows of vectors: contiguous.
    let mut l: Vec<Vec<f64>> = Vec::with_capacity(n);
    for i in 0..n {
        let mut row = vec![0.0; i + 1];
        for j in 0..=i {
            let before: f64 =
                if j < i { dot(&row[..j], &l[j][..j]) } else { row[..i].iter().map(|v| v * v).sum() };
            let v = a[(i, j)] - before;
            row[j] = if i == j {
                assert!(v > 0.0, "brute force: not positive definite");
                v.sqrt()
            } else {
                v / l[j][j]
            };
        }
        l.push(row);
    }
    Mat::from_fn(n, n, |i, j| if j <= i { l[i][j] } else { 0.0 })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A multivariate normal with a dense covariance.
pub struct Dense {
    pub mean: Vec<f64>,
    pub covariance: Mat<f64>,
    l: Vec<Vec<f64>>,
}

impl Dense {
    pub fn new(mean: Vec<f64>, covariance: Mat<f64>) -> Self {
        let l = cholesky(&covariance);
        let l = (0..mean.len()).map(|i| (0..=i).map(|j| l[(i, j)]).collect()).collect();
        Self { mean, covariance, l }
    }

    pub fn of(model: &LinearGaussian) -> Self {
        Self::new(model.mean().to_vec(), dense_covariance(model))
    }

    pub fn log_det(&self) -> f64 {
        2.0 * self.l.iter().enumerate().map(|(i, row)| row[i].ln()).sum::<f64>()
    }

    /// (x − μ)ᵀ C⁻¹ (x − μ).
    pub fn mahalanobis(&self, x: &[f64]) -> f64 {
        let mut y: Vec<f64> = Vec::with_capacity(x.len());
        for i in 0..x.len() {
            let v = (x[i] - self.mean[i] - dot(&self.l[i][..i], &y)) / self.l[i][i];
            y.push(v);
        }
        y.iter().map(|v| v * v).sum()
    }

    pub fn log_density(&self, x: &[f64]) -> f64 {
        -0.5 * (x.len() as f64 * LN_2PI + self.log_det() + self.mahalanobis(x))
    }

    /// C⁻¹ b.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = b.len();
        let mut y: Vec<f64> = Vec::with_capacity(n);
        for i in 0..n {
            let v = (b[i] - dot(&self.l[i][..i], &y)) / self.l[i][i];
            y.push(v);
        }
        for i in (0..n).rev() {
            let after: f64 = (i + 1..n).map(|k| self.l[k][i] * y[k]).sum();
            y[i] = (y[i] - after) / self.l[i][i];
        }
        y
    }

    pub fn marginal(&self, features: &[usize]) -> Self {
        Self::new(
            features.iter().map(|&j| self.mean[j]).collect(),
            Mat::from_fn(features.len(), features.len(), |i, j| self.covariance[(features[i], features[j])]),
        )
    }
}

/// W Wᵀ + noise, entry by entry.
pub fn dense_covariance(model: &LinearGaussian) -> Mat<f64> {
    let (p, q, w) = (model.n_features(), model.n_latent(), model.loadings());
    Mat::from_fn(p, p, |i, j| {
        let noise = if i == j { model.noise().of(i) } else { 0.0 };
        (0..q).map(|k| w[(i, k)] * w[(j, k)]).sum::<f64>() + noise
    })
}

/// Maximum-likelihood PPCA from the dense covariance.
pub struct DensePpca {
    pub mean: Vec<f64>,
    pub eigenvalues: Vec<f64>,
    pub vectors: Mat<f64>,
    pub noise: f64,
    pub total: f64,
}

impl DensePpca {
    pub fn of(x: &Mat<f64>, weights: Option<&[f64]>, q: usize) -> Self {
        let (mean, c) = mean_and_covariance(x, weights);
        let p = mean.len();
        let total = (0..p).map(|j| c[(j, j)]).sum();
        let (eigenvalues, vectors) = eigen(&c);
        let noise = if q == p { 0.0 } else { eigenvalues[q..].iter().sum::<f64>() / (p - q) as f64 };
        Self { mean, eigenvalues, vectors, noise, total }
    }

    /// Σ over the leading q of λ u uᵀ, σ² along everything else.
    pub fn covariance(&self, q: usize) -> Mat<f64> {
        let p = self.mean.len();
        let u = &self.vectors;
        let excess: Vec<f64> = self.eigenvalues[..q].iter().map(|v| v - self.noise).collect();
        Mat::from_fn(p, p, |i, j| {
            let noise = if i == j { self.noise } else { 0.0 };
            (0..q).map(|k| u[(i, k)] * excess[k] * u[(j, k)]).sum::<f64>() + noise
        })
    }
}

// ------------------------------------------------------------------------------------------------------- models

pub fn random_model(p: usize, q: usize, diagonal: bool, rng: &mut Rng) -> LinearGaussian {
    let mean = (0..p).map(|_| 3.0 * rng.normal()).collect();
    let w = normal_matrix(p, q, rng);
    let mut noise = || 0.2 + 2.0 * rng.uniform();
    let noise =
        if diagonal { Noise::Diagonal((0..p).map(|_| noise()).collect()) } else { Noise::Isotropic(noise()) };
    LinearGaussian::new(mean, w, noise).unwrap()
}

pub fn row(x: &Mat<f64>, i: usize) -> Vec<f64> {
    (0..x.ncols()).map(|j| x[(i, j)]).collect()
}

pub fn table(x: &Mat<f64>) -> Table<'_> {
    Table::new(Cells::F64(Block::View(x.as_ref())))
}

/// The same rows as a list of the cells that are not NaN.
pub fn stored(x: &Mat<f64>) -> Observed<'static> {
    let cells = (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| (i, j, x[(i, j)])));
    Observed::from_triples(x.nrows(), x.ncols(), cells).unwrap()
}

pub fn chunk_of(x: MatRef<'_, f64>, first: usize) -> Chunk<'_> {
    Chunk::new(first, Cells::F64(Block::View(x)))
}

#[allow(clippy::cast_possible_truncation)]
pub fn narrowed(x: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] as f32)
}

pub fn widened(x: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| f64::from(x[(i, j)]))
}

// ------------------------------------------------------------------------------------------------------ sources

/// Rows in chunks of a given size.
pub struct Cut<'a> {
    pub x: &'a Mat<f64>,
    pub rows: usize,
}

impl covary::data::RowSource for Cut<'_> {
    fn n_features(&self) -> usize {
        self.x.ncols()
    }
    fn n_chunks(&self) -> usize {
        self.x.nrows().div_ceil(self.rows)
    }
    fn chunk(&self, index: usize) -> covary::Result<Chunk<'_>> {
        let first = index * self.rows;
        Ok(chunk_of(self.x.subrows(first, self.rows.min(self.x.nrows() - first)), first))
    }
}

// -------------------------------------------------------------------------------------------------- comparisons

#[track_caller]
pub fn close(a: f64, b: f64, tolerance: f64, what: impl Debug) {
    let same = a == b || (a.is_nan() && b.is_nan());
    assert!(
        same || (a - b).abs() <= tolerance,
        "{what:?}: {a} and {b} differ by {:e}, allowed {tolerance:e}",
        (a - b).abs()
    );
}

#[track_caller]
pub fn relative(a: f64, b: f64, tolerance: f64, what: impl Debug) {
    close(a, b, tolerance * a.abs().max(b.abs()), what);
}

#[track_caller]
pub fn close_all(a: &[f64], b: &[f64], tolerance: f64, what: impl Debug) {
    assert_eq!(a.len(), b.len(), "{what:?}: lengths");
    a.iter().zip(b).enumerate().for_each(|(i, (a, b))| close(*a, *b, tolerance, (&what, i)));
}

#[track_caller]
pub fn close_matrix(a: &Mat<f64>, b: &Mat<f64>, tolerance: f64, what: impl Debug) {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()), "{what:?}: shapes");
    for i in 0..a.nrows() {
        for j in 0..a.ncols() {
            close(a[(i, j)], b[(i, j)], tolerance, (&what, i, j));
        }
    }
}

pub fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

pub fn matrix_bits(m: &Mat<f64>) -> Vec<u64> {
    (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| m[(i, j)].to_bits())).collect()
}

pub fn max_abs(m: &Mat<f64>) -> f64 {
    m.col_iter().flat_map(|c| c.iter().copied().collect::<Vec<_>>()).fold(0.0, |a, b| b.abs().max(a))
}

// ---------------------------------------------------------------------------------------------------- data sets

/// The folder of data sets: `../shared/data` beside the repository, or what `COVARY_DATA` says.
pub fn data_folder() -> PathBuf {
    std::env::var_os("COVARY_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    )
}

/// A file of reference results: in the folder `reference` beside the data sets.
pub fn reference(name: &str) -> Option<serde_json::Value> {
    let path = data_folder().join("..").join("reference").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
        Err(_) => {
            eprintln!("skipped: the reference file {name} is not there ({})", path.display());
            None
        }
    }
}

/// A CSV file: its header and its cells as text.
pub struct Csv {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// The fields of a line; a comma inside quotes is part of its field.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// Reads `name.csv` or `name.csv.gz`; says so and gives `None` when it is not there.
pub fn read_csv(name: &str) -> Option<Csv> {
    let folder = data_folder();
    let mut text = String::new();
    if let Ok(mut file) = File::open(folder.join(format!("{name}.csv"))) {
        file.read_to_string(&mut text).unwrap();
    } else if let Ok(file) = File::open(folder.join(format!("{name}.csv.gz"))) {
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    } else {
        eprintln!("skipped: the data set {name} is not there ({})", folder.display());
        return None;
    }
    let mut lines = text.lines();
    let header = split(lines.next().unwrap());
    let rows: Vec<Vec<String>> = lines.filter(|l| !l.is_empty()).map(split).collect();
    assert!(rows.iter().all(|r| r.len() == header.len()), "{name}: ragged");
    Some(Csv { header, rows })
}

impl Csv {
    /// The columns whose cells are numbers or empty.
    pub fn numbers(&self) -> Mat<f64> {
        let number = |cell: &String| cell.is_empty() || cell.parse::<f64>().is_ok();
        self.columns(|c| {
            let j = self.header.iter().position(|h| h == c).unwrap();
            self.rows.iter().all(|r| number(&r[j]))
        })
    }

    /// The columns whose name passes, as numbers; an empty cell is NaN.
    pub fn columns(&self, wanted: impl Fn(&str) -> bool) -> Mat<f64> {
        let picked: Vec<usize> = (0..self.header.len()).filter(|&j| wanted(&self.header[j])).collect();
        let number = |text: &str| if text.is_empty() { f64::NAN } else { text.parse().unwrap() };
        Mat::from_fn(self.rows.len(), picked.len(), |i, j| number(&self.rows[i][picked[j]]))
    }
}

/// The measured columns of a data set, as the reference files use them.
pub fn data_set(name: &str) -> Option<Mat<f64>> {
    let csv = read_csv(name)?;
    let decathlon = [
        "100m",
        "Long.jump",
        "Shot.put",
        "High.jump",
        "400m",
        "110m.hurdle",
        "Discus",
        "Pole.vault",
        "Javeline",
        "1500m",
    ];
    Some(match name {
        "decathlon" => csv.columns(|c| decathlon.contains(&c)),
        "holzinger_swineford1939_9" => {
            csv.columns(|c| c.strip_prefix('x').is_some_and(|d| d.parse::<u8>().is_ok()))
        }
        "mocap_run1" => without_holes(&csv.columns(|c| !matches!(c, "Field" | "Time"))),
        _ => csv.columns(|c| !matches!(c, "target" | "label" | "subject" | "state" | "sp" | "sex" | "index")),
    })
}

/// The columns without a hole.
fn without_holes(x: &Mat<f64>) -> Mat<f64> {
    let whole: Vec<usize> = (0..x.ncols()).filter(|&j| (0..x.nrows()).all(|i| !x[(i, j)].is_nan())).collect();
    Mat::from_fn(x.nrows(), whole.len(), |i, j| x[(i, whole[j])])
}

/// Columns of mean 0 and unit variance; `ddof` 0 divides by n, 1 by n − 1.
pub fn standardised(x: &Mat<f64>, ddof: usize) -> Mat<f64> {
    let (mean, c) = mean_and_covariance(x, None);
    let n = x.nrows() as f64;
    let scale = |j: usize| (c[(j, j)] * n / (n - ddof as f64)).sqrt();
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| (x[(i, j)] - mean[j]) / scale(j))
}
