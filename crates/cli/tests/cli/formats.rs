//! The same table gives the same answer, whatever file it comes from and goes to.

use std::io::Write;

use crate::support::{Place, close, csv, names, noise, rows, table_of};

fn noise_variance(place: &Place, args: &[&str]) -> f64 {
    place.json(&[&["fit"], args, &["-q", "2", "--json"]].concat())["noise_variance"].as_f64().unwrap()
}

#[test]
fn every_format_gives_the_same_model() {
    let place = Place::new();
    let x = rows(500, 6, 1);
    let endings = ["csv", "tsv", "csv.gz", "tsv.zst", "parquet", "arrow", "feather", "npy"];
    let expected = {
        table_of(&place, "x.csv", &x);
        noise_variance(&place, &["x.csv"])
    };
    for ending in endings {
        let name = format!("x.{ending}");
        table_of(&place, &name, &x);
        close(noise_variance(&place, &[&name]), expected, 1e-12);
    }
    let output = place.shell("covary fit - -q 2 --json < x.csv");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    close(told["noise_variance"].as_f64().unwrap(), expected, 1e-12);
}

#[test]
fn answers_go_to_every_format_and_come_back() {
    let place = Place::new();
    let x = rows(50, 4, 2);
    table_of(&place, "x.csv", &x);
    place.ok(&["fit", "x.csv", "-q", "2", "-o", "m.covary", "--quiet"]);
    let expected = noise_of_latent(&place, "x.csv");
    for ending in ["csv", "tsv.gz", "csv.zst", "parquet", "arrow", "npy"] {
        let out = format!("z.{ending}");
        place.ok(&["transform", "m.covary", "x.csv", "-o", &out]);
        let told = place.json(&["fit", &out, "-q", "1", "--json"]);
        close(told["total_variance"].as_f64().unwrap(), expected, 1e-12);
    }
}

fn noise_of_latent(place: &Place, data: &str) -> f64 {
    let (_, z) = csv(&place.ok(&["transform", "m.covary", data]));
    let n = z.len() as f64;
    let variance = |j: usize| {
        let mean = z.iter().map(|r| r[j]).sum::<f64>() / n;
        z.iter().map(|r| (r[j] - mean).powi(2)).sum::<f64>() / n
    };
    variance(0) + variance(1)
}

#[test]
fn a_small_memory_limit_gives_the_same_answer() {
    let place = Place::new();
    let mut draw = noise(5);
    let mut file = std::io::BufWriter::new(std::fs::File::create(place.path("big.csv")).unwrap());
    writeln!(file, "{}", names(40).join(",")).unwrap();
    for _ in 0..30_000 {
        let u = draw();
        let line: Vec<String> =
            (0..40).map(|j| format!("{:.4}", 100.0 + u * f64::from(j) + draw())).collect();
        writeln!(file, "{}", line.join(",")).unwrap();
    }
    drop(file);
    let expected = noise_variance(&place, &["big.csv", "--memory", "1G"]);
    // 9.6 MB of cells where 8 MB may be loaded: passes over a grid, one pass over a stream.
    close(noise_variance(&place, &["big.csv", "--memory", "16M"]), expected, 1e-11);
    close(noise_variance(&place, &["big.csv", "--memory", "16M", "--solver", "krylov"]), expected, 1e-8);
    let output = place.shell("covary fit - --memory 16M -q 2 --json < big.csv");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    close(told["noise_variance"].as_f64().unwrap(), expected, 1e-11);
    assert!(told["solver_reason"].as_str().unwrap().contains("pass once"));
    for solver in ["svd", "dual", "krylov"] {
        let output = place.shell(&format!("covary fit - --memory 16M -q 2 --solver {solver} < big.csv"));
        crate::support::check_failure(&[solver], &output, 2, &["--memory", solver]);
    }
    place.fails(&["fit", "big.csv", "--memory", "16M", "-q", "2", "--solver", "svd"], 2, &["svd", "memory"]);
}

#[test]
fn columns_without_names_are_matched_by_position() {
    let place = Place::with_model();
    let x = covary::linalg::Mat::from_fn(2, 3, |i, j| if i == j { 3.0 } else { 0.0 });
    table_of(&place, "x.npy", &x);
    let (_, z) = csv(&place.ok(&["transform", "cross.covary", "x.npy"]));
    close(z[0][0], (3.0f64 - 5.0 / 6.0).sqrt(), 1e-14);
    place.write("bare.csv", "3,0,0\n0,3,0\n");
    assert_eq!(csv(&place.ok(&["transform", "cross.covary", "bare.csv"])).1, z);
    place.write("more.csv", "9,3,0,0\n9,0,3,0\n");
    assert_eq!(csv(&place.ok(&["transform", "cross.covary", "more.csv", "--columns", "2-4"])).1, z);
    place.fails(&["transform", "cross.covary", "more.csv"], 3, &["4 columns", "3 features", "--columns"]);
}

#[test]
fn single_precision_far_from_zero_keeps_its_variance() {
    let place = Place::new();
    let mut draw = noise(9);
    // NPY of float32 by hand: header, then the cells.
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (2000, 3), }");
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    #[allow(clippy::cast_possible_truncation, reason = "single precision is the point")]
    let cells: Vec<f32> = (0..6000).map(|_| (1e4 + 4.0 * draw()) as f32).collect();
    bytes.extend(cells.iter().flat_map(|x| x.to_le_bytes()));
    place.write("f.npy", bytes);
    let column = |j: usize| cells.iter().skip(j).step_by(3).map(|x| f64::from(*x));
    let variance = |j: usize| {
        let mean = column(j).sum::<f64>() / 2000.0;
        column(j).map(|x| (x - mean).powi(2)).sum::<f64>() / 2000.0
    };
    let told = place.json(&["fit", "f.npy", "-q", "1", "--json"]);
    close(told["total_variance"].as_f64().unwrap(), (0..3).map(variance).sum(), 1e-5);
}
