//! Help that a newcomer understands, and what is made from the flags.

use crate::support::Place;

const COMMANDS: [&str; 14] = [
    "fit",
    "transform",
    "reconstruct",
    "impute",
    "score",
    "assign",
    "sample",
    "select",
    "rotate",
    "inspect",
    "report",
    "moments",
    "merge",
    "demo",
];

#[test]
fn the_first_page() {
    let text = Place::new().ok(&["-h"]);
    insta::assert_snapshot!(text.split("\nExit codes").next().unwrap(), @r"
    Explain the covariance of a table of numbers with a few hidden variables

    Usage: covary <COMMAND>

    Commands:
      fit          Fit a model to a table
      transform    Latent coordinates of each row
      reconstruct  Each row rebuilt from its latent coordinates
      impute       Fill the missing values of a table, predict named cells, or say how well that goes
      score        How well each row fits the model
      assign       The cluster or mixture component of each row
      sample       Draw new rows from a model
      select       How many components or groups: what each method would take, and a recommendation
      rotate       Rotate loadings so that they can be read
      inspect      What is in a model, for people or as JSON
      report       Write one interactive page about a model and its rows
      moments      Summarise one part of the data, to be merged with others
      merge        Merge the moments of several parts of the data
      demo         A tour of the whole command on data that the program carries
      completions  Print completions for a shell
      man          Print the man page, or write all pages to a folder
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version
    ");
    assert!(text.contains("130 interrupted"));
}

#[test]
fn every_command_has_help_and_examples() {
    let place = Place::new();
    for command in COMMANDS {
        let text = place.ok(&[command, "--help"]);
        assert!(text.contains("Usage: covary "), "{command}");
        assert!(text.contains("Example") || command == "demo", "{command}");
    }
}

#[test]
fn the_documented_keys_are_the_keys() {
    let place = Place::with_model();
    let holdout = ["impute", "cross.covary", "cross.csv", "--holdout", "0.5", "--json"];
    for args in [&["fit", "cross.csv", "--json"][..], &holdout] {
        let help = place.ok(&[args[0], "--help"]);
        let keys = help.split("Keys of --json:").nth(1).unwrap().replace(['\n', '.'], " ");
        let mut documented: Vec<String> =
            keys.split(',').map(|k| k.trim().split(' ').next().unwrap().to_owned()).collect();
        let told = place.json(args);
        let mut found: Vec<String> = told.as_object().unwrap().keys().cloned().collect();
        documented.sort();
        found.sort();
        assert_eq!(documented, found);
    }
}

/// Text without what stands in brackets.
fn without_brackets(text: &str) -> String {
    let mut depth = 0;
    let outside = |c: char| {
        depth += i32::from(c == '(');
        let keep = depth == 0;
        depth -= i32::from(c == ')');
        keep.then_some(c)
    };
    text.chars().filter_map(outside).collect()
}

#[test]
fn the_documented_keys_of_factors_are_the_keys() {
    let place = Place::new();
    place.write("r.csv", ",a,b,c\na,1,0.5,0.5\nb,0.5,1,0.5\nc,0.5,0.5,1\n");
    let args = ["fit", "r.csv", "--matrix", "--rows", "9", "--model", "fa", "-q", "1", "-o", "m.covary"];
    place.ok(&args);
    let help = place.ok(&["inspect", "--help"]);
    let keys = help.split("Keys of --json under factors").nth(1).unwrap().replace(['\n', '.'], " ");
    let keys = without_brackets(&keys);
    let mut documented: Vec<String> =
        keys.trim().trim_start_matches(':').split(',').map(|k| k.trim().to_owned()).collect();
    let told = place.json(&["inspect", "m.covary", "--json"]);
    let mut found: Vec<String> = told["factors"].as_object().unwrap().keys().cloned().collect();
    documented.sort();
    found.sort();
    assert_eq!(documented, found);
}

#[test]
fn usage_errors_exit_with_2() {
    let place = Place::new();
    place.write("x.csv", "a,b\n1,2\n3,5\n4,4\n");
    let cases: [&[&str]; 12] = [
        &[],
        &["fly"],
        &["fit"],
        &["fit", "x.csv", "-q", "0"],
        &["fit", "x.csv", "-q", "-3"],
        &["fit", "x.csv", "-q", "many"],
        &["fit", "x.csv", "--model", "forest"],
        &["fit", "x.csv", "--memory", "lots"],
        &["fit", "x.csv", "--threads", "0"],
        &["fit", "x.csv", "--threads", "4000"],
        &["fit", "x.csv", "--header", "maybe"],
        &["sample", "m.covary"],
    ];
    for args in cases {
        assert_eq!(place.run(args).status.code(), Some(2), "{args:?}");
    }
    let text = String::from_utf8(place.run(&["fit", "x.csv", "-q", "many"]).stderr).unwrap();
    assert!(text.contains("such as 5") && text.contains("0.95, or auto"), "{text}");
    let text = String::from_utf8(place.run(&["fit", "x.csv", "--model", "forest"]).stderr).unwrap();
    assert!(text.contains("ppca") && text.contains("pca") && text.contains("fa"), "{text}");
}

#[test]
fn completions_and_man_pages_come_from_the_flags() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(place.ok(&["completions", shell]).contains("reconstruct"), "{shell}");
    }
    assert!(place.ok(&["man"]).contains(".TH covary"));
    place.ok(&["man", "pages"]);
    for command in COMMANDS {
        assert!(place.path(&format!("pages/covary-{command}.1")).is_file(), "{command}");
    }
}
