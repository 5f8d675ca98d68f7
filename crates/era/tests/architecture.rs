//! The shape of the workspace, read from its sources: which crate may use which, no cycle between
//! the top-level modules of any crate, one public type for each name.
//!
//! Sources are followed from the root of a crate by its `mod` declarations and read as tokens, so
//! that comments, strings and links in documentation do not count. What is under `#[cfg(test)]`
//! does not count either: a test may use anything as its witness, and nothing that is built
//! depends on it.
//!
//! What cannot be true yet is listed here with its reason. An entry that is no longer needed
//! fails as well, so the lists only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What each crate may use. An arrow carries further: whoever may use `era-store` may use what it
/// is made of.
const ARROWS: &[(&str, &[&str])] = &[
    ("era-core", &[]),
    ("era-drive", &["era-core"]),
    ("era-sim", &["era-drive"]),
    ("era-spec", &[]),
    ("era-api", &["era-spec"]),
    ("era-store", &["era-drive", "era-spec"]),
    ("era-cloud", &["era-core", "era-spec"]),
    ("era-app", &["era-drive", "era-store", "era-cloud", "era-api"]),
    ("era-server", &["era-app"]),
    ("era", &["era-server", "era-sim", "era-api"]),
];

/// Modules that form a cycle: the crate, all modules of the cycle, and why it stands.
const CYCLES: &[(&str, &[&str], &str)] = &[];

/// Names of several public types: which, and why.
const SHARED_NAMES: &[(&str, &str)] = &[
    (
        "Absence After Array Ask Attributes Booking Constraints CounterOffers DataSet Domain \
         Event Explanation Gpu Group Health Hold Job Local Market Measures Mechanism \
         MenuLine Node Offer Outcome Overrun PartQuote Policy Pool Progress Queue Quota \
         Quote Ratios Report Resources Scope Simulated Span Spent StatementLine Stream Task Topology \
         Tree User Value ValueStep Visibility",
        "the form on the wire beside what it is the form of",
    ),
    (
        "Address Again Answer Asked BadAddress Candidate Clock Directory Gate Guarded Hash \
         Holder Lead Lines Names Period Role Rules Settings Sums Taken Told Usage",
        "one of them is in the server, whose parts are being taken apart",
    ),
    ("Away", "one for each kind of system, of which one is built"),
    (
        "Engine Entry Estimates Executor Format History Learner Machine NodeRow Part Party Plan \
         Record Row Run Search Seen Segment Site Step Used Uses",
        "one of them is in the laboratory or under it, which move onto one engine",
    ),
    ("Accounts Ended Fence Keep Limits Line Output Reason Seat Secrets State", "to be told apart"),
];

/// Types that are named like one of the prelude: the file, the type, and why.
const SHADOWS: &[(&str, &str, &str)] = &[
    ("era-api/src/job.rs", "Extend", "its name on the wire"),
    ("era-app/src/auth/token.rs", "Hash", "to be renamed"),
    ("era-server/src/http/extract.rs", "From", HTTP),
    ("era-store/src/files/hash.rs", "Hash", "to be renamed"),
];
const HTTP: &str = "the handlers are on their way into another shape, which names them anew";

/// Types, traits and derivable traits that every module has without asking for them.
const PRELUDE: &[&str] = &[
    "AsMut",
    "AsRef",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Hash",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

/// The node of a module graph that stands for what is defined in `lib.rs` or `main.rs` itself.
const ROOT: &str = "the root";

// ---- what the tests say ----

#[test]
fn crates_use_only_what_the_arrows_lead_to() {
    let mut stray = BTreeSet::new();
    for name in crate_names() {
        let allowed = within_reach(&name);
        let used = dependencies(&name);
        for used in used.iter().filter(|u| u.starts_with("era-") && !allowed.contains(*u)) {
            stray.insert((name.clone(), used.clone()));
        }
    }
    assert!(stray.is_empty(), "dependencies against the arrows: {stray:?}");
}

#[test]
fn the_application_knows_no_http() {
    let used = dependencies("era-app");
    for http in ["axum", "axum-server", "hyper-util", "tower", "tower-http", "utoipa-axum"] {
        assert!(!used.contains(http), "era-app uses {http}: what is HTTP is era-server's");
    }
}

#[test]
fn no_modules_of_a_crate_form_a_cycle() {
    let mut cycles = BTreeSet::new();
    let mut shown = String::new();
    for name in crate_names() {
        let graph = Graph::of(&sources(&name));
        for cycle in graph.cycles() {
            shown += &format!("{name}:\n{}", graph.show(&cycle));
            cycles.insert((name.clone(), cycle));
        }
    }
    let modules = |list: &[&str]| list.iter().map(|m| (*m).to_owned()).collect();
    let known = CYCLES.iter().map(|(name, list, _)| ((*name).into(), modules(list))).collect();
    compare("cycles", &cycles, &known, &shown);
}

#[test]
fn a_name_is_of_one_public_type() {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in crate_names() {
        for source in sources(&name) {
            for (public, ty) in types(&source.tokens) {
                if public {
                    homes.entry(ty).or_default().push(source.place());
                }
            }
        }
    }
    homes.retain(|_, places| places.len() > 1);
    let shown =
        |(name, places): (&String, &Vec<String>)| format!("{name}: {}\n", places.join(", "));
    let shown: String = homes.iter().map(shown).collect();
    let shared = homes.into_keys().collect();
    let listed = SHARED_NAMES.iter().flat_map(|(names, _)| names.split_whitespace());
    let known = listed.map(str::to_owned).collect();
    compare("names of several public types", &shared, &known, &shown);
}

#[test]
fn no_type_is_named_like_one_of_the_prelude() {
    let mut shadows = BTreeSet::new();
    for name in crate_names() {
        for source in sources(&name) {
            for (_, ty) in types(&source.tokens) {
                if PRELUDE.contains(&ty.as_str()) {
                    shadows.insert((source.place(), ty));
                }
            }
        }
    }
    let known = SHADOWS.iter().map(|(place, ty, _)| ((*place).into(), (*ty).into())).collect();
    compare("types named like one of the prelude", &shadows, &known, "");
}

#[test]
fn every_public_type_says_what_it_is() {
    let mut silent = Vec::new();
    for name in crate_names() {
        for source in sources(&name) {
            let names = undocumented(&source.tokens);
            silent.extend(names.into_iter().map(|ty| format!("{}: {ty}", source.place())));
        }
    }
    assert!(silent.is_empty(), "public types without a doc comment: {silent:#?}");
}

/// A field whose name says all needs no comment. In the binary a comment is the help of an option.
#[test]
fn no_comment_only_fills_a_line() {
    let mut found = Vec::new();
    for name in crate_names().into_iter().filter(|name| name != "era") {
        for source in sources(&name) {
            let text = read(&source.path);
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for (index, line) in lines.iter().enumerate() {
                let alone = [index.wrapping_sub(1), index + 1]
                    .map(|beside| lines.get(beside).is_some_and(|l| l.starts_with("///")));
                let words = line.strip_prefix("/// ").map(|text| text.split(' ').count());
                if alone == [false, false]
                    && words.is_some_and(|n| n < 3)
                    && is_field(&lines[index + 1..])
                {
                    found.push(format!("{}:{}: {line}", source.place(), index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "say more or nothing: {found:#?}");
}

/// Whether these lines begin with a field or a variant.
fn is_field(lines: &[&str]) -> bool {
    let Some(line) = lines.iter().find(|line| !line.starts_with("#[")) else { return false };
    let items = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "impl", "use"];
    !line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| items.contains(&word))
}

/// The public types before whose name no comment stands.
fn undocumented(tokens: &[TokenTree]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            found.extend(undocumented(&group.stream().into_iter().collect::<Vec<_>>()));
        }
        let kind = tokens.get(index + 1).map(ToString::to_string).unwrap_or_default();
        if !is_ident(token, "pub") || !["struct", "enum", "trait"].contains(&kind.as_str()) {
            continue;
        }
        let attributes = tokens[..index].rchunks(2).take_while(|pair| {
            is_punct(&pair[0], '#') && pair.last().is_some_and(|t| is_group(t, Delimiter::Bracket))
        });
        // A macro writes the comment where it is used.
        let macros = is_punct(&tokens[index + 2], '$');
        if !macros && !attributes.map(|p| p[1].to_string()).any(|text| text.starts_with("[doc")) {
            found.push(tokens[index + 2].to_string());
        }
    }
    found
}

/// Fails on what is not listed, and on what is listed in vain.
fn compare<T: Ord + std::fmt::Debug>(
    what: &str,
    found: &BTreeSet<T>,
    known: &BTreeSet<T>,
    places: &str,
) {
    let new: Vec<&T> = found.difference(known).collect();
    let vain: Vec<&T> = known.difference(found).collect();
    assert!(new.is_empty(), "{what} that are not listed: {new:#?}\n{places}");
    assert!(vain.is_empty(), "{what} that are listed and are no more, take them off: {vain:#?}");
}

// ---- crates ----

/// All crates of the workspace.
fn crate_names() -> Vec<String> {
    let entries = std::fs::read_dir(CRATES).expect("the folder of crates");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let crates = paths.filter(|path| path.join("Cargo.toml").is_file());
    let mut names: Vec<String> =
        crates.map(|path| path.file_name().expect("a name").to_string_lossy().into()).collect();
    names.sort();
    names
}

/// The crates that a crate is built with, on any system.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest: toml::Table =
        read(&Path::new(CRATES).join(name).join("Cargo.toml")).parse().expect("a manifest is TOML");
    let mut tables = vec![manifest.get("dependencies")];
    for target in manifest.get("target").and_then(|t| t.as_table()).into_iter().flatten() {
        tables.push(target.1.get("dependencies"));
    }
    let keys = tables.into_iter().flatten().filter_map(|t| t.as_table()).flat_map(|t| t.keys());
    keys.cloned().collect()
}

/// What a crate may use: wherever the arrows lead from it.
fn within_reach(name: &str) -> BTreeSet<String> {
    let arrows = ARROWS.iter().find(|(from, _)| *from == name);
    let (_, next) = arrows.unwrap_or_else(|| panic!("{name} has no arrows: say what it may use"));
    let mut reached: BTreeSet<String> = next.iter().map(|n| (*n).to_owned()).collect();
    for further in *next {
        reached.extend(within_reach(further));
    }
    reached
}

// ---- sources ----

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A file of a crate that is part of what is built.
struct Source {
    path: PathBuf,
    /// Where it is in the tree of modules; nothing for the root.
    module: Vec<String>,
    /// What it says, without what is for tests alone.
    tokens: Vec<TokenTree>,
}

impl Source {
    fn place(&self) -> String {
        self.path.strip_prefix(CRATES).unwrap_or(&self.path).display().to_string()
    }
}

/// The files of a crate, root first.
fn sources(name: &str) -> Vec<Source> {
    let folder = Path::new(CRATES).join(name).join("src");
    let root = ["lib.rs", "main.rs"].map(|file| folder.join(file)).into_iter().find(|p| p.exists());
    let mut found = Vec::new();
    read_source(&root.expect("a root"), &folder, Vec::new(), &mut found);
    found
}

/// Reads a file, and those of the modules that it declares, which lie under `folder`.
fn read_source(path: &Path, folder: &Path, module: Vec<String>, found: &mut Vec<Source>) {
    let stream: TokenStream =
        read(path).parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let tokens = without_tests(stream);
    let declared = declared(&tokens);
    found.push(Source { path: path.to_owned(), module: module.clone(), tokens });
    for (name, files) in declared {
        let inner = [&module[..], std::slice::from_ref(&name)].concat();
        let under = folder.join(&name);
        let beside = folder.join(format!("{name}.rs"));
        let default = if beside.exists() { beside } else { under.join("mod.rs") };
        for file in files.iter().map(|file| path.with_file_name(file)) {
            read_source(&file, &under, inner.clone(), found);
        }
        if files.is_empty() || default.exists() {
            read_source(&default, &under, inner, found);
        }
    }
}

/// The names of `mod name;`, with the files that `path` attributes name for it.
fn declared(tokens: &[TokenTree]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for index in 0..tokens.len().saturating_sub(2) {
        if !is_ident(&tokens[index], "mod") || !is_punct(&tokens[index + 2], ';') {
            continue;
        }
        let before = tokens[..index].iter().rev();
        let begun = before.take_while(|t| !is_punct(t, ';') && !is_group(t, Delimiter::Brace));
        let attributes = begun.filter(|t| is_group(t, Delimiter::Bracket)).map(ToString::to_string);
        let files = attributes.filter_map(|text| {
            let (_, rest) = text.split_once("path = \"")?;
            Some(rest.split('"').next()?.to_owned())
        });
        found.push((tokens[index + 1].to_string(), files.collect()));
    }
    found
}

/// The tokens without the items that are for tests alone.
fn without_tests(stream: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = stream.into_iter();
    while let Some(token) = tokens.next() {
        let TokenTree::Group(group) = &token else {
            kept.push(token);
            continue;
        };
        let attribute = group.delimiter() == Delimiter::Bracket
            && kept.last().is_some_and(|before| is_punct(before, '#'));
        if attribute && is_for_tests(&group.stream()) {
            kept.pop();
            // An item ends with a semicolon or with its body.
            tokens.find(|t| is_punct(t, ';') || is_group(t, Delimiter::Brace));
            continue;
        }
        let inner = without_tests(group.stream()).into_iter().collect();
        kept.push(TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner)));
    }
    kept
}

/// Whether an attribute is `cfg(test)` or `cfg(all(test, ...))`.
fn is_for_tests(attribute: &TokenStream) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

/// The types and traits that are defined, and whether they are public. Types of an `impl` or of a
/// trait have the names that the trait gives them.
fn types(tokens: &[TokenTree]) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut associated = false;
    for (index, token) in tokens.iter().enumerate() {
        if is_ident(token, "impl") || is_ident(token, "trait") {
            associated = true;
        }
        if let TokenTree::Group(group) = token {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let body = associated && group.delimiter() == Delimiter::Brace;
            match body {
                true => associated = false,
                false => found.extend(types(&inner)),
            }
        }
        let kinds = ["struct", "enum", "union", "trait", "type"];
        let Some(TokenTree::Ident(name)) = tokens.get(index + 1) else { continue };
        if kinds.iter().any(|kind| is_ident(token, kind)) {
            let public = index > 0 && is_ident(&tokens[index - 1], "pub");
            found.push((public, name.to_string()));
        }
    }
    found
}

// ---- the graph of a crate's top-level modules ----

/// Which module uses which, and where it can be seen.
struct Graph(BTreeMap<String, BTreeMap<String, String>>);

impl Graph {
    fn of(sources: &[Source]) -> Graph {
        let root = &sources[0].tokens;
        let modules: BTreeSet<String> =
            sources.iter().filter_map(|s| s.module.first().cloned()).collect();
        let exported = exported(root);
        let mut graph = Graph(BTreeMap::new());
        for source in sources {
            let from = source.module.first().map_or(ROOT, String::as_str);
            let mut names = Vec::new();
            match source.module.len() {
                0 => root_names(&without_exports(root), &modules, &mut names),
                depth => used_names(&source.tokens, depth, &mut names),
            }
            for name in names {
                let to = match modules.contains(&name) {
                    true => &name,
                    false => exported.get(&name).map_or(ROOT, String::as_str),
                };
                if to != from {
                    let edges = graph.0.entry(from.to_owned()).or_default();
                    edges.entry(to.to_owned()).or_insert_with(|| source.place());
                }
            }
        }
        graph
    }

    /// All modules that can be come to from one.
    fn reach(&self, from: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut ahead = vec![from.to_owned()];
        while let Some(next) = ahead.pop() {
            for to in self.0.get(&next).into_iter().flat_map(|edges| edges.keys()) {
                if reached.insert(to.clone()) {
                    ahead.push(to.clone());
                }
            }
        }
        reached
    }

    /// The largest sets of modules each of which depends on all others.
    fn cycles(&self) -> BTreeSet<Vec<String>> {
        let reach: BTreeMap<&String, BTreeSet<String>> =
            self.0.keys().map(|m| (m, self.reach(m))).collect();
        let of = |m: &String| {
            let mutual = reach[m].iter().filter(|o| reach.get(o).is_some_and(|r| r.contains(m)));
            mutual.cloned().collect::<Vec<String>>()
        };
        self.0.keys().map(of).filter(|cycle| !cycle.is_empty()).collect()
    }

    /// The edges within a cycle, with a file in which each can be seen.
    fn show(&self, cycle: &[String]) -> String {
        let edges = self.0.iter().filter(|(from, _)| cycle.contains(from));
        let lines = edges.flat_map(|(from, edges)| {
            let within = edges.iter().filter(|(to, _)| cycle.contains(to));
            within.map(move |(to, place)| format!("    {from} -> {to}  ({place})\n"))
        });
        lines.collect()
    }
}

/// The first names of paths of the crate: `crate::NAME`, and `super::NAME` where that is the root.
/// `depth` is how deep in the tree of modules this stands.
fn used_names(tokens: &[TokenTree], depth: usize, names: &mut Vec<String>) {
    let mut index = 0;
    while index < tokens.len() {
        if is_ident(&tokens[index], "crate") && is_path(tokens, index + 1) {
            first_names(&tokens[index + 3..], names);
        } else if is_ident(&tokens[index], "super") {
            let mut up = 1;
            while is_path(tokens, index + 1) && is_ident(&tokens[index + 3], "super") {
                index += 3;
                up += 1;
            }
            if up == depth && is_path(tokens, index + 1) {
                first_names(&tokens[index + 3..], names);
            }
        } else if let TokenTree::Group(group) = &tokens[index] {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let named = index >= 2 && is_ident(&tokens[index - 2], "mod");
            let deeper = named && group.delimiter() == Delimiter::Brace;
            used_names(&inner, depth + usize::from(deeper), names);
        }
        index += 1;
    }
}

/// Whether `::` stands at an index, with something behind it.
fn is_path(tokens: &[TokenTree], index: usize) -> bool {
    tokens.len() > index + 2 && is_punct(&tokens[index], ':') && is_punct(&tokens[index + 1], ':')
}

/// The first names of what follows `::`: one, or those of a group in braces.
fn first_names(tokens: &[TokenTree], names: &mut Vec<String>) {
    match tokens.first() {
        Some(TokenTree::Group(group)) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for tree in inner.split(|t| is_punct(t, ',')).filter(|tree| !tree.is_empty()) {
                first_names(tree, names);
            }
        }
        Some(first) => names.push(first.to_string()),
        None => {}
    }
}

/// The modules that the root's own code uses, which it names without `crate`.
fn root_names(tokens: &[TokenTree], modules: &BTreeSet<String>, names: &mut Vec<String>) {
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                root_names(&inner, modules, names);
            }
            TokenTree::Ident(ident) if is_path(tokens, index + 1) => {
                let name = ident.to_string();
                let inside = index > 0 && is_punct(&tokens[index - 1], ':');
                if modules.contains(&name) && !inside {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
}

/// Where each `pub use` begins, up to its semicolon.
fn exports(tokens: &[TokenTree]) -> Vec<std::ops::Range<usize>> {
    let begins = |i: &usize| {
        let public = *i > 0 && is_ident(&tokens[*i - 1], "pub")
            || *i > 1 && is_ident(&tokens[*i - 2], "pub");
        is_ident(&tokens[*i], "use") && public
    };
    let end = |i: usize| (i..tokens.len()).find(|j| is_punct(&tokens[*j], ';'));
    (0..tokens.len()).filter(begins).filter_map(|i| Some(i..end(i)?)).collect()
}

/// Names that the root hands on, each with the module that it is of.
fn exported(root: &[TokenTree]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for range in exports(root) {
        let tree = &root[range.start + 1..range.end];
        let Some(module) = tree.first().map(ToString::to_string) else { continue };
        let mut names = Vec::new();
        last_names(tree, &mut names);
        found.extend(names.into_iter().map(|name| (name, module.clone())));
    }
    found
}

fn without_exports(root: &[TokenTree]) -> Vec<TokenTree> {
    let exports = exports(root);
    let kept = |i: &usize| !exports.iter().any(|range| range.contains(i));
    (0..root.len()).filter(kept).map(|i| root[i].clone()).collect()
}

/// The names that a tree of `use` brings.
fn last_names(tree: &[TokenTree], names: &mut Vec<String>) {
    match tree.last() {
        Some(TokenTree::Group(group)) => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for tree in inner.split(|t| is_punct(t, ',')).filter(|tree| !tree.is_empty()) {
                last_names(tree, names);
            }
        }
        Some(last) => names.push(last.to_string()),
        None => {}
    }
}

// ---- the reader itself ----

#[test]
fn paths_of_every_form_are_seen() {
    let text = r#"
        //! [`crate::comment`]
        use crate::{a::b, c, d as e, Exported};
        #[cfg(test)]
        mod tests { use crate::test_only; }
        fn f(x: crate::inline::T) { let _ = super::upper::g("crate::string"); }
        mod inner { use super::not_upper; use super::super::above; }
    "#;
    let tokens = without_tests(text.parse().expect("tokens"));
    let mut names = Vec::new();
    used_names(&tokens, 1, &mut names);
    assert_eq!(names, ["a", "c", "d", "Exported", "inline", "upper", "above"]);
}

#[test]
fn cycles_are_found_whole() {
    let edge = |to: &str| (to.to_owned(), String::new());
    let node = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|t| edge(t)).collect());
    let graph = Graph([node("a", &["b"]), node("b", &["c"]), node("c", &["a", "d"])].into());
    assert_eq!(graph.cycles(), [["a", "b", "c"].map(str::to_owned).to_vec()].into());
}
