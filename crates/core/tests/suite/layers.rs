//! The import rule: which module of the core may import which, and which crate may depend on which.
//!
//! Both tables are in the order of the layers, and each line names lines above it only, so there is no cycle. A new
//! module or crate without a line fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the core, and what they may import.
const MODULES: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("memory", &["error"]),
    ("control", &["error"]),
    ("parallel", &["error"]),
    ("linalg", &["error", "parallel"]),
    ("data", &["error", "control", "parallel", "linalg"]),
    ("blocks", &["error", "parallel", "linalg", "data"]),
    ("kernel", &["error", "parallel", "linalg", "data", "blocks"]),
    ("expectation", &["error", "linalg", "data", "blocks"]),
    ("network", &["error", "linalg"]),
    (
        "evidence",
        &["error", "control", "parallel", "linalg", "data", "blocks", "kernel", "expectation", "network"],
    ),
    (
        "model",
        &[
            "error",
            "memory",
            "control",
            "parallel",
            "linalg",
            "data",
            "blocks",
            "kernel",
            "expectation",
            "network",
        ],
    ),
    ("spectrum", &["error", "linalg", "model"]),
    (
        "algorithm",
        &[
            "error",
            "memory",
            "control",
            "parallel",
            "linalg",
            "data",
            "blocks",
            "kernel",
            "expectation",
            "network",
            "evidence",
            "model",
            "spectrum",
        ],
    ),
    ("rotate", &["error", "control", "parallel", "linalg", "algorithm"]),
    ("assess", &["error", "control", "linalg", "rotate"]),
    (
        "estimator",
        &[
            "error",
            "memory",
            "control",
            "parallel",
            "linalg",
            "data",
            "blocks",
            "kernel",
            "expectation",
            "network",
            "evidence",
            "model",
            "spectrum",
            "algorithm",
            "rotate",
            "assess",
        ],
    ),
    (
        "select",
        &[
            "error",
            "control",
            "parallel",
            "linalg",
            "data",
            "kernel",
            "evidence",
            "model",
            "spectrum",
            "algorithm",
            "estimator",
        ],
    ),
    (
        "persist",
        &[
            "error",
            "linalg",
            "blocks",
            "kernel",
            "expectation",
            "network",
            "evidence",
            "model",
            "spectrum",
            "algorithm",
            "assess",
            "estimator",
        ],
    ),
    ("remote", &["error", "data", "evidence", "algorithm", "estimator", "select"]),
    (
        "describe",
        &["error", "control", "linalg", "evidence", "model", "algorithm", "assess", "estimator", "persist"],
    ),
    (
        "request",
        &[
            "error",
            "memory",
            "control",
            "data",
            "kernel",
            "evidence",
            "model",
            "algorithm",
            "estimator",
            "select",
        ],
    ),
];

/// Crates of the workspace, and which of them they may depend on.
const CRATES: &[(&str, &[&str])] = &[
    ("covary", &[]),
    ("covary-io", &["covary"]),
    ("covary-report", &["covary"]),
    ("covary-cli", &["covary", "covary-io", "covary-report"]),
    ("covary-python", &["covary", "covary-io", "covary-report", "covary-cli"]),
];

#[test]
fn modules_import_lower_layers_only() {
    assert_layered(MODULES);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let present = entries(&source).iter().filter_map(|path| module_of(path, &source)).collect();
    assert_same_names(MODULES, &present);
    let roots = root_names(&fs::read_to_string(source.join("lib.rs")).unwrap());
    let forbidden: Vec<String> = rust_files(&source)
        .iter()
        .flat_map(|path| {
            let module = module_of(path, &source).unwrap_or_default();
            let depth = depth_of(path, &source);
            let text = fs::read_to_string(path).unwrap();
            forbidden_imports(&text, &module, depth, &roots)
                .into_iter()
                .map(|(line, import)| format!("{}:{line}: {module} may not import {import}", path.display()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
}

#[test]
fn crates_depend_on_lower_crates_only() {
    assert_layered(CRATES);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifests: Vec<Manifest> = entries(&crates)
        .iter()
        .filter_map(|folder| fs::read_to_string(folder.join("Cargo.toml")).ok())
        .map(|text| Manifest::new(&text))
        .collect();
    assert_same_names(CRATES, &manifests.iter().map(|m| m.name.clone()).collect());
    for Manifest { name, dependencies } in manifests {
        let allowed = rule(CRATES, &name);
        for other in dependencies.iter().filter(|d| CRATES.iter().any(|(known, _)| known == *d)) {
            assert!(allowed.contains(&other.as_str()), "{name} may not depend on {other}");
        }
    }
}

#[test]
fn imports_are_found_in_groups_and_code_and_not_in_comments_or_tests() {
    let text = "//! crate::estimator\n\
                use crate::{error::Error, algorithm::{em, drive}};\n\
                /* crate::persist */ let s = \"crate::select\"; // crate::select\n\
                fn f<'a>() -> crate::Ppca { super::super::rotate::turn('{') }\n\
                #[cfg(test)]\nmod tests {\n    use crate::persist::save;\n}\n\
                pub(crate) use crate::assess;\n";
    let roots = BTreeMap::from([("Ppca".to_string(), "estimator".to_string())]);
    let found = forbidden_imports(text, "evidence", 2, &roots);
    let expected = [(2, "algorithm"), (4, "estimator"), (4, "rotate"), (9, "assess")];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_string())));
}

/// The rule of a name; nothing where there is none.
fn rule(table: &[(&str, &'static [&'static str])], name: &str) -> &'static [&'static str] {
    table.iter().find(|(known, _)| *known == name).map_or(&[], |(_, allowed)| *allowed)
}

/// Each line of a table names earlier lines only.
fn assert_layered(table: &[(&str, &[&str])]) {
    for (at, (name, allowed)) in table.iter().enumerate() {
        for other in *allowed {
            let earlier = table[..at].iter().any(|(before, _)| before == other);
            assert!(earlier, "{name} imports {other}, which is not in a layer below it");
        }
    }
}

fn assert_same_names(table: &[(&str, &[&str])], present: &BTreeSet<String>) {
    let ruled: BTreeSet<String> = table.iter().map(|(name, _)| (*name).to_string()).collect();
    assert_eq!(&ruled, present, "each module and crate has one line in the table of its layers");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| match path.is_dir() {
        true => rust_files(&path),
        false => Vec::from_iter((path.extension().is_some_and(|e| e == "rs")).then_some(path)),
    };
    entries(folder).into_iter().flat_map(below).collect()
}

/// The module of the core that a path belongs to; none for the root.
fn module_of(path: &Path, source: &Path) -> Option<String> {
    let first = path.strip_prefix(source).unwrap().components().next()?;
    let name = Path::new(first.as_os_str()).file_stem()?.to_string_lossy().into_owned();
    (name != "lib").then_some(name)
}

/// How many modules a file is inside of, itself included: 1 for `data/mod.rs`, 2 for `data/table.rs`.
fn depth_of(path: &Path, source: &Path) -> usize {
    let parts = path.strip_prefix(source).unwrap().components().count();
    if path.ends_with("mod.rs") || path.ends_with("lib.rs") { parts - 1 } else { parts }
}

/// What the root of the crate re-exports, and from which module.
fn root_names(lib: &str) -> BTreeMap<String, String> {
    let code = code_of(lib);
    let exports = code.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let names = exports.filter_map(|(export, _)| export.split_once("::")).flat_map(|(module, names)| {
        let words = names.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        words.map(|word| (word.to_string(), module.to_string())).collect::<Vec<_>>()
    });
    names.collect()
}

/// Line and module of each import that the rule of a module forbids.
fn forbidden_imports(
    text: &str,
    module: &str,
    depth: usize,
    roots: &BTreeMap<String, String>,
) -> Vec<(usize, String)> {
    let code = code_of(text);
    let root = format!("{}::", vec!["super"; depth].join("::"));
    let mut found = BTreeSet::new();
    for prefix in ["crate::", root.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let whole_word = !code[..at].ends_with(is_word) && !code[..at].ends_with("super::");
            let line = code[..at].matches('\n').count() + 1;
            let names = if whole_word { first_names(&code[at + prefix.len()..]) } else { Vec::new() };
            found.extend(names.into_iter().map(|name| (line, roots.get(&name).cloned().unwrap_or(name))));
        }
    }
    let allowed = |name: &str| module.is_empty() || name == module || rule(MODULES, module).contains(&name);
    found.into_iter().filter(|(_, name)| !allowed(name)).collect()
}

/// The first name of a path, or those of a group of paths.
fn first_names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![rest.chars().take_while(|c| is_word(*c)).collect()];
    };
    let (mut names, mut name, mut depth, mut first) = (Vec::new(), String::new(), 0, true);
    for c in group.chars() {
        match c {
            '}' | ',' if depth == 0 => {
                names.push(std::mem::take(&mut name));
                first = true;
                if c == '}' {
                    break;
                }
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            ':' => first = false,
            c if first && depth == 0 && is_word(c) => name.push(c),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text without comments, strings, characters and `#[cfg(test)]` items; lines stay where they are.
fn code_of(text: &str) -> String {
    without_tests(&without_comments(text))
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = skipped(rest, out.ends_with(is_word));
        if skipped == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            rest = &rest[skipped..];
        }
    }
    out
}

/// Bytes of the comment, string or character that a text begins with.
fn skipped(text: &str, after_word: bool) -> usize {
    let until =
        |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    if !after_word && (text.starts_with("r\"") || text.starts_with("r#")) {
        let hashes = text[1..].chars().take_while(|c| *c == '#').count();
        if text[1 + hashes..].starts_with('"') {
            return until(2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    match text.as_bytes() {
        [b'"', ..] => end_of_quoted(text, '"'),
        [b'\'', b'\\', ..] => end_of_quoted(text, '\''),
        // A character, not a lifetime.
        [b'\'', ..] if text[1..].chars().nth(1) == Some('\'') => end_of_quoted(text, '\''),
        _ => 0,
    }
}

fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

fn without_tests(code: &str) -> String {
    let Some((before, rest)) = code.split_once("#[cfg(test)]") else { return code.to_string() };
    let body = rest.find('{').unwrap_or(rest.len());
    let end = rest.find(';').filter(|end| *end < body).unwrap_or_else(|| end_of_braces(rest));
    let lines = "\n".repeat(rest[..end].matches('\n').count());
    format!("{before}{lines}{}", without_tests(&rest[end..]))
}

/// Where the first pair of braces ends.
fn end_of_braces(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == '}' && depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// What the rule needs of a `Cargo.toml`.
struct Manifest {
    name: String,
    dependencies: Vec<String>,
}

impl Manifest {
    fn new(text: &str) -> Self {
        let (mut name, mut dependencies, mut section) = (String::new(), Vec::new(), "");
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let key: String = line.chars().take_while(|c| is_word(*c) || *c == '-').collect();
            match section {
                "[package]" if key == "name" => {
                    name = line.split('"').nth(1).unwrap_or_default().to_string();
                }
                "[dependencies]" => dependencies.push(key),
                _ => {}
            }
        }
        Self { name, dependencies }
    }
}
