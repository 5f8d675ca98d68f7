//! Every crate that is built and shipped has a licence that `deny.toml` allows.
//!
//! `cargo deny` says the same and more where it is installed; this needs nothing but cargo, so
//! that the list is checked everywhere. Licence expressions are read by the library that
//! cargo-deny itself uses.

use std::process::Command;

use serde_json::Value;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The strings of the list at `table.key`.
fn strings<'a>(config: &'a toml::Table, table: &str, key: &str) -> Vec<&'a str> {
    let list = config[table][key].as_array().expect("a list");
    list.iter().map(|entry| entry.as_str().expect("a string")).collect()
}

/// Why a package may not be used, if it may not.
fn objection(package: &Value, allowed: &[spdx::Licensee]) -> Option<String> {
    // Crates of this workspace have no source; all others come from a registry, not from git.
    let source = package["source"].as_str();
    if source.is_some_and(|s| !s.starts_with("registry+")) {
        return Some(format!("it comes from {}", package["source"]));
    }
    let Some(licence) = package["license"].as_str() else {
        return Some("it states no licence".into());
    };
    // Older crates write `MIT/Apache-2.0`, and `MPL-2.0+` for "or later".
    match spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) {
        Err(e) => Some(format!("its licence `{licence}` cannot be read: {}", e.reason)),
        Ok(terms) => {
            let fits = terms.evaluate(|req| allowed.iter().any(|l| l.satisfies(req)));
            (!fits).then(|| format!("its licence `{licence}` is not on the list"))
        }
    }
}

fn allowed(config: &toml::Table) -> Vec<spdx::Licensee> {
    let names = strings(config, "licenses", "allow");
    names.iter().map(|l| spdx::Licensee::parse(l).expect("an SPDX name")).collect()
}

fn config() -> toml::Table {
    let text = std::fs::read_to_string(format!("{WORKSPACE}/deny.toml")).expect("deny.toml");
    text.parse().expect("deny.toml is TOML")
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let config = config();
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    for target in strings(&config, "graph", "targets") {
        cargo.args(["--filter-platform", target]);
    }
    let output = cargo.current_dir(WORKSPACE).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 1, "the workspace has dependencies");

    let allowed = allowed(&config);
    let objections: Vec<String> = packages
        .iter()
        .filter_map(|p| {
            Some(format!("{} {}: {}", p["name"], p["version"], objection(p, &allowed)?))
        })
        .collect();
    assert!(objections.is_empty(), "see deny.toml:\n{}", objections.join("\n"));
}

#[test]
fn a_choice_needs_one_allowed_licence_and_a_sum_needs_all() {
    let allowed = allowed(&config());
    let objects = |licence: &str| {
        objection(&serde_json::json!({ "license": licence, "source": null }), &allowed).is_some()
    };
    for fine in ["MIT", "MIT/Apache-2.0", "MIT OR GPL-3.0-only", "(MIT OR Zlib) AND Unicode-3.0"] {
        assert!(!objects(fine), "{fine}");
    }
    for wrong in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "LGPL-2.1-or-later", "no such thing"] {
        assert!(objects(wrong), "{wrong}");
    }
    let from_git = serde_json::json!({ "license": "MIT", "source": "git+https://example.org/x" });
    assert!(objection(&from_git, &allowed).is_some());
    assert!(objection(&serde_json::json!({ "source": null }), &allowed).is_some());
}
