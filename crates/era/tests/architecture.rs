//! The shape of the workspace, read from its sources: which crate may use which, no cycle between
//! the modules of any crate or between those within any module, one public type for each name.
//!
//! Sources are followed from the root of a crate by its `mod` declarations and read as tokens, so
//! that comments, strings and links in documentation do not count. What is under `#[cfg(test)]`
//! does not count either: a test may use anything as its witness, and nothing that is built
//! depends on it. Only what is named by a path is seen, not what a method call comes to.

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
    let mut shown = String::new();
    for name in crate_names() {
        for (within, graph) in Modules::of(&sources(&name)).graphs() {
            for cycle in graph.cycles() {
                let within = [std::slice::from_ref(&name), &within[..]].concat().join("::");
                shown += &format!("{within}:\n{}", graph.show(&cycle));
            }
        }
    }
    assert!(shown.is_empty(), "modules that form cycles:\n{shown}");
}

#[test]
fn a_name_is_of_one_public_type() {
    // By module: where it has a file for each kind of system, one of them is built.
    let mut homes: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for name in crate_names() {
        for source in sources(&name) {
            let module = format!("{name}::{}", source.module.join("::"));
            for (_, ty) in types(&source.tokens).into_iter().filter(|(public, _)| *public) {
                homes.entry(ty).or_default().insert(module.clone(), source.place());
            }
        }
    }
    homes.retain(|_, modules| modules.len() > 1);
    assert!(homes.is_empty(), "names of several public types: {homes:#?}");
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
    assert!(shadows.is_empty(), "types named like one of the prelude: {shadows:#?}");
}

#[test]
fn the_glossary_names_types_that_exist() {
    let text = read(&Path::new(CRATES).join("../docs/glossary.md"));
    let mut crates: BTreeMap<String, (Vec<Source>, Modules)> = BTreeMap::new();
    let mut missing = Vec::new();
    for named in text.split('`').skip(1).step_by(2).filter(|word| word.starts_with("era_")) {
        let Some((name, rest)) = named.split_once("::") else { continue };
        let (sources, modules) = crates.entry(name.to_owned()).or_insert_with(|| {
            let sources = sources(&name.replace('_', "-"));
            let modules = Modules::of(&sources);
            (sources, modules)
        });
        let (front, last) = rest.rsplit_once("::").unwrap_or(("", rest));
        for last in last.trim_matches(['{', '}']).split(", ") {
            let path: Vec<String> =
                front.split_terminator("::").chain([last]).map(str::to_owned).collect();
            if !is_there(sources, modules, &path) {
                missing.push(named);
            }
        }
    }
    assert!(missing.is_empty(), "words of the glossary without a type: {missing:#?}");
}

/// Whether a crate has a type or a module by this path, or a variant of such a type.
fn is_there(sources: &[Source], modules: &Modules, path: &[String]) -> bool {
    let Some(home) = modules.home(&[], path, HOPS_MAX) else { return false };
    let (last, before) = (path.last(), path.iter().rev().nth(1));
    let is_it = |ty: &String| Some(ty) == last || Some(ty) == before;
    let in_home = sources.iter().filter(|source| source.module == home);
    home.last() == last || in_home.flat_map(|s| types(&s.tokens)).any(|(_, ty)| is_it(&ty))
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

// ---- the graphs of modules ----

/// How often a name is handed on at most.
const HOPS_MAX: u8 = 20;

/// Where a module is in the tree of a crate's modules; nothing for the root.
type Module = Vec<String>;

/// The modules of a crate, and the paths that each of them writes.
#[derive(Default)]
struct Modules {
    all: BTreeSet<Module>,
    /// What a name that a module asks for stands for.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// Paths as they are written: where, and in which file.
    used: Vec<(Module, Vec<String>, String)>,
}

impl Modules {
    fn of(sources: &[Source]) -> Modules {
        let mut modules = Modules::default();
        for source in sources {
            modules.declare(&source.tokens, &source.module);
        }
        for source in sources {
            modules.read(&source.tokens, &source.module, &source.place());
        }
        modules
    }

    /// Notes a module, and those that are written within it.
    fn declare(&mut self, tokens: &[TokenTree], module: &[String]) {
        self.all.insert(module.to_vec());
        for (index, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else { continue };
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            match module_name(tokens, index) {
                Some(name) => self.declare(&inner, &[module, &[name]].concat()),
                None => self.declare(&inner, module),
            }
        }
    }

    /// Notes what a module asks for and what it names by a path.
    fn read(&mut self, tokens: &[TokenTree], module: &[String], place: &str) {
        let mut index = 0;
        while index < tokens.len() {
            let begins = index < 2 || !tokens[index - 2..index].iter().all(|t| is_punct(t, ':'));
            if is_ident(&tokens[index], "use") {
                let length = tokens[index..].iter().take_while(|t| !is_punct(t, ';')).count();
                self.ask(
                    &tokens[index + 1..index + length],
                    is_public(tokens, index),
                    module,
                    place,
                );
                index += length;
            } else if let TokenTree::Group(group) = &tokens[index] {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                match module_name(tokens, index) {
                    Some(name) => self.read(&inner, &[module, &[name]].concat(), place),
                    None => self.read(&inner, module, place),
                }
            } else if begins && is_path(tokens, index + 1) {
                let mut path = vec![tokens[index].to_string()];
                while is_path(tokens, index + 1) {
                    index += 3;
                    path.extend(ident(&tokens[index]));
                }
                self.used.push((module.to_vec(), path, place.to_owned()));
            }
            index += 1;
        }
    }

    /// Notes the names of a `use`. What the root hands on, it does not use itself.
    fn ask(&mut self, tree: &[TokenTree], public: bool, module: &[String], place: &str) {
        let mut leaves = Vec::new();
        leaves_of(tree, &[], &mut leaves);
        for (path, name) in leaves {
            if !(public && module.is_empty()) {
                self.used.push((module.to_vec(), path.clone(), place.to_owned()));
            }
            self.imports.entry(module.to_vec()).or_default().insert(name, path);
        }
    }

    /// The module that has what a path leads to, however often it is handed on; nothing if that is
    /// of another crate.
    fn home(&self, module: &[String], path: &[String], hops_left: u8) -> Option<Module> {
        let mut at = module.to_vec();
        for (index, name) in path.iter().enumerate() {
            let inner = [&at[..], std::slice::from_ref(name)].concat();
            let import = self.imports.get(&at).and_then(|names| names.get(name));
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => at.truncate(at.len().checked_sub(1)?),
                _ if self.all.contains(&inner) => at = inner,
                _ if let Some(import) = import => {
                    let path = [&import[..], &path[index + 1..]].concat();
                    return self.home(&at, &path, hops_left.checked_sub(1)?);
                }
                _ => return (index > 0).then_some(at),
            }
        }
        Some(at)
    }

    /// For each module with others within, which of them uses which. What the root defines itself
    /// is one of its modules; what another module defines itself is part of none of those within.
    fn graphs(&self) -> BTreeMap<Module, Graph> {
        let mut graphs: BTreeMap<Module, Graph> = BTreeMap::new();
        for (from, path, place) in &self.used {
            let Some(to) = self.home(from, path, HOPS_MAX) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let node = |m: &Module| match m.get(shared) {
                None if shared == 0 => Some(ROOT.to_owned()),
                name => name.cloned(),
            };
            let (Some(a), Some(b)) = (node(from), node(&to)) else { continue };
            if a != b {
                let graph = graphs.entry(from[..shared].to_vec()).or_default();
                let seen = || format!("{place}: {}", path.join("::"));
                graph.0.entry(a).or_default().entry(b).or_insert_with(seen);
            }
        }
        graphs
    }
}

/// Which module uses which, and where it can be seen.
#[derive(Default)]
struct Graph(BTreeMap<String, BTreeMap<String, String>>);

impl Graph {
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

    /// The edges within a cycle, with a path by which each can be seen.
    fn show(&self, cycle: &[String]) -> String {
        let edges = self.0.iter().filter(|(from, _)| cycle.contains(from));
        let lines = edges.flat_map(|(from, edges)| {
            let within = edges.iter().filter(|(to, _)| cycle.contains(to));
            within.map(move |(to, seen)| format!("    {from} -> {to}  ({seen})\n"))
        });
        lines.collect()
    }
}

/// The name of the module whose body stands at an index.
fn module_name(tokens: &[TokenTree], index: usize) -> Option<String> {
    let named = index >= 2 && is_ident(&tokens[index - 2], "mod");
    (named && is_group(&tokens[index], Delimiter::Brace)).then(|| tokens[index - 1].to_string())
}

/// Whether what begins at an index is handed on.
fn is_public(tokens: &[TokenTree], index: usize) -> bool {
    index > 0 && is_ident(&tokens[index - 1], "pub")
        || index > 1 && is_ident(&tokens[index - 2], "pub")
}

/// Whether `::` and a name stand at an index.
fn is_path(tokens: &[TokenTree], index: usize) -> bool {
    let colon = |i: usize| tokens.get(i).is_some_and(|t| is_punct(t, ':'));
    colon(index) && colon(index + 1) && tokens.get(index + 2).is_some_and(|t| ident(t).is_some())
}

fn ident(token: &TokenTree) -> Option<String> {
    let TokenTree::Ident(ident) = token else { return None };
    Some(ident.to_string())
}

/// The paths of a tree of `use`, each with the name that it gets.
fn leaves_of(tree: &[TokenTree], before: &[String], leaves: &mut Vec<(Vec<String>, String)>) {
    let mut path = before.to_vec();
    let mut name = None;
    for (index, token) in tree.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in inner.split(|t| is_punct(t, ',')).filter(|tree| !tree.is_empty()) {
                    leaves_of(tree, &path, leaves);
                }
                return;
            }
            TokenTree::Ident(word) if word == "as" => {
                name = tree.get(index + 1).map(ToString::to_string);
                break;
            }
            TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
            TokenTree::Ident(word) => path.push(word.to_string()),
            _ => {}
        }
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    leaves.push((path, name));
}

// ---- the reader itself ----

/// The graph of the modules within one, of sources as texts.
fn graph_of(within: &str, texts: &[(&str, &str)]) -> Graph {
    let module = |path: &str| path.split_terminator("::").map(str::to_owned).collect::<Module>();
    let source = |(path, text): &(&str, &str)| Source {
        path: PathBuf::from(path),
        module: module(path),
        tokens: without_tests(text.parse().expect("tokens")),
    };
    let sources: Vec<Source> = texts.iter().map(source).collect();
    Modules::of(&sources).graphs().remove(&module(within)).unwrap_or_default()
}

fn edges(graph: &Graph) -> Vec<(&str, &str)> {
    let all = graph.0.iter().flat_map(|(a, to)| to.keys().map(|b| (a.as_str(), b.as_str())));
    all.collect()
}

#[test]
fn paths_of_every_form_are_seen() {
    let text = r#"
        //! [`crate::comment`]
        use crate::{a::b, c, d as e, Exported};
        #[cfg(test)]
        mod tests { use crate::test_only; }
        fn f(x: crate::inline::T) { let _ = super::upper::g("crate::string"); e::h::<std::mem::M>() }
        mod inner { use super::not_upper; use super::super::above; }
    "#;
    let others = ["a", "c", "d", "other", "inline", "upper", "above", "comment", "test_only"];
    let mut texts = vec![("", "pub use other::Exported; fn main() { a::run() }"), ("x", text)];
    texts.extend(others.map(|name| (name, "")));
    let graph = graph_of("", &texts);
    let from_x = ["a", "above", "c", "d", "inline", "other", "upper"].map(|to| ("x", to));
    assert_eq!(edges(&graph), [&[(ROOT, "a")][..], &from_x].concat());
}

#[test]
fn what_is_handed_on_counts_as_where_it_comes_from() {
    let texts = [
        ("", ""),
        ("m", "pub use low::{Deep, deeper}; use crate::n::Far; struct Own; use high::run;"),
        ("m::high", "use super::{Deep, Own, Far}; fn run() { crate::m::deeper::f(); }"),
        ("m::low", "pub use self::deeper::Deep; use crate::m; fn f() { m::side::g() }"),
        ("m::low::deeper", "fn f() { super::super::far::g() }"),
        ("m::side", "use super::low::deeper::Deep as D; impl D { fn f() { D::new() } }"),
        ("m::far", "use std::fmt; fn g() { fmt::far() }"),
        ("n", ""),
    ];
    let within = graph_of("m", &texts);
    let expected = [("high", "low"), ("low", "far"), ("low", "side"), ("side", "low")];
    assert_eq!(edges(&within), expected);
    assert_eq!(within.cycles(), [["low", "side"].map(str::to_owned).to_vec()].into());
    assert_eq!(edges(&graph_of("", &texts)), [("m", "n")]);
}

#[test]
fn cycles_are_found_whole() {
    let edge = |to: &str| (to.to_owned(), String::new());
    let node = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|t| edge(t)).collect());
    let graph = Graph([node("a", &["b"]), node("b", &["c"]), node("c", &["a", "d"])].into());
    assert_eq!(graph.cycles(), [["a", "b", "c"].map(str::to_owned).to_vec()].into());
}
