//! Each command with each kind: it answers, or refuses with the one sentence; and every answer is in the units of the data.

use covary::linalg::Mat;
use covary::model::{Capability, KINDS, Kind};

use crate::support::{Place, csv, rows, rows_with_holes, table_of};

/// What each command asks of a model.
const COMMANDS: &[(&[&str], Capability)] = &[
    (&["transform", "MODEL", "x.csv"], Capability::Encode),
    (&["transform", "MODEL", "x.csv", "--std"], Capability::Posterior),
    (&["reconstruct", "MODEL", "x.csv"], Capability::Reconstruct),
    (&["reconstruct", "MODEL", "x.csv", "--posterior"], Capability::Reconstruct),
    (&["impute", "MODEL", "x.csv"], Capability::Fill),
    (&["impute", "MODEL", "x.csv", "--std"], Capability::Fill),
    (&["impute", "MODEL", "x.csv", "--draws", "2"], Capability::Fill),
    (&["impute", "MODEL", "x.csv", "--holdout", "0.1"], Capability::Fill),
    (&["score", "MODEL", "x.csv"], Capability::Density),
    (&["score", "MODEL", "x.csv", "--contributions"], Capability::Explain),
    (&["score", "MODEL", "x.csv", "--limits", "0.95"], Capability::Explain),
    (&["sample", "MODEL", "-n", "3"], Capability::Sample),
    (&["assign", "MODEL", "x.csv"], Capability::Assign),
    (&["assign", "MODEL", "x.csv", "--probabilities"], Capability::Memberships),
    (&["rotate", "MODEL", "--method", "varimax"], Capability::Loadings),
];

/// How many components and groups each kind is asked for.
fn asked(kind: &Kind) -> Vec<&'static str> {
    let has = |capability| kind.capabilities.contains(&capability);
    let groups: &[&str] = if has(Capability::Assign) { &["-k", "2"] } else { &[] };
    let with_components = has(Capability::Sample) || has(Capability::Novelty);
    let latent: &[&str] = if with_components { &["-q", "2"] } else { &[] };
    [&["--model", kind.name], latent, groups].concat()
}

/// A model of each kind, as NAME.covary.
fn fitted(place: &Place, kind: &Kind, data: &str, more: &[&str]) -> String {
    let model = format!("{kind}.covary");
    // To the last digits, so that two runs end at the same point.
    let tolerance: &[&str] = if matches!(kind.name, "fa" | "ica") { &["--tol", "1e-12"] } else { &[] };
    let fit = ["fit", data, "-o", &model, "--quiet"];
    place.ok(&[&fit[..], &asked(kind), tolerance, more].concat());
    model
}

#[test]
fn each_command_answers_or_refuses_by_what_the_kind_can_do() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(40, 6, 3));
    for kind in KINDS {
        let model = fitted(&place, kind, "x.csv", &[]);
        for (command, needed) in COMMANDS {
            let command: Vec<&str> =
                command.iter().map(|word| if *word == "MODEL" { model.as_str() } else { word }).collect();
            // Without a density, score tells how far rows lie from the components.
            let scored = *needed == Capability::Density
                && command[0] == "score"
                && kind.capabilities.contains(&Capability::Novelty);
            if scored || kind.capabilities.contains(needed) {
                assert!(!place.ok(&command).is_empty(), "{command:?}");
                continue;
            }
            let who = Kind::with(*needed).map(|kind| kind.name).collect::<Vec<_>>();
            let mut words = vec![kind.title, "does not have", needed.in_words()];
            words.extend(who);
            place.fails(&command, 2, &words);
        }
        for command in [&["inspect", &model][..], &["inspect", &model, "--json"]] {
            assert!(place.ok(command).contains(kind.name), "{command:?}");
        }
    }
}

#[test]
fn options_of_one_kind_are_refused_with_others_by_name() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(40, 6, 3));
    for (option, value, owner) in [
        ("--rotate", "varimax", "fa"),
        ("--starts", "3", "fa kmeans ica gplvm"),
        ("--lower", "0.01", "fa"),
        ("--method", "vb", "bpca mixture"),
        ("--method", "picard", "ica"),
        ("--method", "bayes", "gplvm"),
        ("--no-noise", "", "ica"),
        ("--nu", "4", "robust"),
        ("--noise", "diagonal", "mixture"),
        ("--prior", "none", "mixture"),
        ("--init", "random", "kmeans"),
        ("--no-polish", "", "kmeans"),
        ("--kernel", "laplacian", "kpca"),
        ("--gamma", "0.5", "kpca"),
        ("--landmarks", "20", "kpca"),
        ("--hidden", "3", "autoencoder"),
        ("--no-encoder", "", "autoencoder"),
        ("--alpha", "0.01", "autoencoder"),
        ("--inducing", "20", "gplvm"),
    ] {
        for kind in KINDS {
            // A switch has no value.
            let option: &[&str] = if value.is_empty() { &[option] } else { &[option, value] };
            let fit = [&["fit", "x.csv"], &asked(kind)[..], option].concat();
            let (owners, owner, option) = (owner, owner.split(' ').next().unwrap_or(owner), option[0]);
            match owners.split(' ').any(|owner| owner == kind.name) {
                true => drop(place.ok(&fit)),
                false => place.fails(&fit, 2, &[option, Kind::named(owner).unwrap().title, "--model"]),
            }
        }
    }
}

/// Scaling by hand, fitting and scaling back gives what --standardise gives.
#[test]
fn standardised_fits_answer_in_the_units_of_the_data() {
    let units = [1.0, 1e3, 1e-3, 10.0, 5.0, 0.2];
    for (missing, flag) in
        [(false, &["--standardise"][..]), (true, &["--standardise"]), (true, &["--scale", "pareto"])]
    {
        let x = if missing { rows_with_holes(60, 6, 0.1, 4) } else { rows(60, 6, 4) };
        let x = Mat::from_fn(60, 6, |i, j| x[(i, j)] * units[j]);
        let root = flag.len() > 1;
        let d: Vec<f64> = (0..6).map(|j| deviation(&x, j)).map(|d| if root { d.sqrt() } else { d }).collect();
        let by_hand = Mat::from_fn(60, 6, |i, j| x[(i, j)] / d[j]);
        let (ours, theirs) = (Place::new(), Place::new());
        table_of(&ours, "x.csv", &x);
        table_of(&theirs, "x.csv", &by_hand);
        for kind in KINDS.iter().filter(|kind| kind.capabilities.contains(&Capability::Loadings)) {
            let model = fitted(&ours, kind, "x.csv", flag);
            fitted(&theirs, kind, "x.csv", &[]);
            let both = |command: &[&str]| {
                let numbers = |place: &Place| csv(&place.ok(command)).1;
                (numbers(&ours), numbers(&theirs))
            };
            let asked = [
                (&["reconstruct", &model, "x.csv"][..], Capability::Reconstruct),
                (&["impute", &model, "x.csv"], Capability::Fill),
                (&["sample", &model, "-n", "7", "--seed", "5"], Capability::Sample),
            ];
            let has = |capability: Capability| kind.capabilities.contains(&capability);
            for (command, _) in asked.into_iter().filter(|(_, needed)| has(*needed)) {
                let (a, b) = both(command);
                for (a, b) in a.iter().zip(&b) {
                    for j in 0..6 {
                        let (a, b) = (a[j] / d[j], b[j]);
                        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{kind} {command:?}: {a} and {b}");
                    }
                }
            }
            if has(Capability::Assign) {
                let (a, b) = both(&["assign", &model, "x.csv"]);
                assert_eq!(a, b, "{kind} assigns in scaled units");
                let (a, b) = both(&["transform", &model, "x.csv"]);
                let pairs = a.iter().flatten().zip(b.iter().flatten());
                assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-11 * (1.0 + b)), "{kind} distances");
            }
            assert!(ours.ok(&["inspect", &model]).contains("standard deviation"), "{kind}");
            if !has(Capability::Density) {
                continue;
            }
            let (a, b) = both(&["score", &model, "x.csv"]);
            for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                let seen = (0..6).filter(|j| !x[(i, *j)].is_nan());
                let shift: f64 = seen.map(|j| d[j].ln()).sum();
                let pairs = [(a[0], b[0] - shift), (a[1], b[1]), (a[3], b[3])];
                for (a, b) in pairs {
                    assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{kind} score: {a} and {b}");
                }
            }
            let told = |place: &Place| place.json(&["inspect", &model, "--json"]);
            let (a, b) = (told(&ours), told(&theirs));
            let number = |value: &serde_json::Value| value.as_f64().unwrap();
            for j in 0..6 {
                let (mean, expected) = (number(&a["mean"][j]) / d[j], number(&b["mean"][j]));
                assert!((mean - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{kind} mean");
                // Of PCA the directions are those of the scaled features.
                let unit = if kind.name == "pca" { 1.0 } else { d[j] };
                let (w, expected) = (number(&a["loadings"][j][0]) / unit, number(&b["loadings"][j][0]));
                let most = 1e-11 * (1.0 + expected.abs());
                assert!((w - expected).abs() < most, "{kind} loadings: {w} and {expected}");
            }
            assert_eq!(a["scaled"].as_str(), Some(if root { "pareto" } else { "unit" }));
        }
    }
}

fn deviation(x: &Mat<f64>, j: usize) -> f64 {
    let cells: Vec<f64> = (0..x.nrows()).map(|i| x[(i, j)]).filter(|v| !v.is_nan()).collect();
    let n = cells.len() as f64;
    let mean = cells.iter().sum::<f64>() / n;
    (cells.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()
}

#[test]
fn scales_are_named_and_checked() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(30, 4, 1));
    let bad = place.run(&["fit", "x.csv", "--scale", "large"]);
    assert_eq!(bad.status.code(), Some(2));
    let both = place.run(&["fit", "x.csv", "--standardise", "--scale", "range"]);
    assert_eq!(both.status.code(), Some(2));
    place.ok(&["moments", "x.csv", "-o", "x.moments"]);
    let unit = place.json(&["fit", "x.moments", "-q", "1", "--standardise", "--json"]);
    let rows = place.json(&["fit", "x.csv", "-q", "1", "--standardise", "--json"]);
    let likelihood = |told: &serde_json::Value| told["log_likelihood"].as_f64().unwrap();
    assert!((likelihood(&unit) - likelihood(&rows)).abs() < 1e-10 * likelihood(&rows).abs());
    place.fails(&["fit", "x.moments", "-q", "1", "--scale", "range"], 2, &["range"]);
}
