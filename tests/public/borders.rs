//! The order of the modules: each imports only those below it, and the applications stand at the border.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Applications of the method: nothing but `bindings` imports them, and they use public names and `internal`.
const APPLICATIONS: [&str; 5] = ["moments", "certificate/bound", "finite_sum", "ultrahyperbolic", "rotation"];

/// Imports of an application from outside it: its own room, and sums among the objectives of the probe.
const ALLOWED: [(&str, &str); 2] = [("certificate", "certificate/bound"), ("ultrahyperbolic", "finite_sum")];

/// Files that list names of others.
const LISTS: [&str; 2] = ["lib", "internal"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Returns the text of a file without comments and without its inner tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns the files of the crate, but for tests, by their modules such as `solver/ledger`.
fn files() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root().join("src")).unwrap().with_extension("");
            let name = name.to_str().unwrap().replace('\\', "/");
            if name == "python" {
                continue; // A crate of its own.
            }
            if path.is_dir() {
                folders.push(path);
            } else if !name.ends_with("tests") && !LISTS.contains(&name.as_str()) {
                found.insert(name.trim_end_matches("/mod").to_owned(), code(&path));
            }
        }
    }
    found
}

/// Returns the text of a file with the paths that begin at modules above the file written from the crate on.
fn from_the_crate(name: &str, text: &str) -> String {
    let mut parts = text.split("super::");
    let mut written = parts.next().unwrap().to_owned();
    let mut module = name;
    for part in parts {
        module = module.rsplit_once('/').map_or("", |(above, _)| above);
        if part.is_empty() {
            continue;
        }
        written += &["crate", module].join("/").trim_end_matches('/').replace('/', "::");
        written += "::";
        written += part;
        module = name;
    }
    written
}

/// Returns the paths after `crate::` of a text, with groups in braces taken apart.
fn paths(code: &str) -> BTreeSet<String> {
    fn expand(prefix: &str, rest: &str, found: &mut BTreeSet<String>) -> usize {
        let mut at = 0;
        let mut own = prefix.to_owned();
        while let Some(next) = rest[at..].chars().next() {
            match next {
                '{' => {
                    at += 1;
                    loop {
                        at += rest[at..].len() - rest[at..].trim_start().len();
                        if rest[at..].starts_with('}') {
                            return at + 1;
                        }
                        at += expand(&own, &rest[at..], found);
                        at += rest[at..].find([',', '}']).unwrap();
                        let end = rest[at..].starts_with('}');
                        at += 1;
                        if end {
                            return at;
                        }
                    }
                }
                c if c.is_alphanumeric() || c == '_' || c == ':' => {
                    own.push(c);
                    at += 1;
                }
                _ => break,
            }
        }
        found.insert(own);
        at
    }
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        expand("", &code[at + "crate::".len()..], &mut found);
    }
    found
}

/// Returns the modules of the table of docs/architecture.md with their places in it, the lowest first.
fn places() -> BTreeMap<String, usize> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let table = page.split("| where in `src` | what |").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut found = BTreeMap::new();
    for (place, row) in table.lines().skip(2).enumerate() {
        for name in row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2) {
            found.insert(name.trim_end_matches(".rs").to_owned(), place);
        }
    }
    found
}

/// Returns the modules of the names that a file exports.
fn exported(file: &str, text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in text.split(';').filter_map(|part| part.trim().strip_prefix("pub")) {
        let Some((_, list)) = part.split_once("use ") else {
            continue;
        };
        let inside = if LISTS.contains(&file) || list.starts_with("crate::") { "" } else { file };
        for path in paths(&format!("crate::{}", list.trim_start_matches("crate::"))) {
            let (module, name) = path.rsplit_once("::").unwrap_or((&path, &path));
            let module = [inside, &module.replace("::", "/")].join("/");
            found.insert(name.to_owned(), module.trim_start_matches('/').to_owned());
        }
    }
    found
}

/// Returns the modules of the names that a list exports.
fn listed(list: &str) -> BTreeMap<String, String> {
    exported(list, &code(&root().join("src").join(list).with_extension("rs")))
}

/// Returns the module that a path belongs to.
fn module_of(path: &str) -> String {
    static HOMES: LazyLock<[BTreeMap<String, String>; 2]> = LazyLock::new(|| LISTS.map(listed));
    let (homes, path) = match path.strip_prefix("internal::") {
        Some(name) => (&HOMES[1], name),
        None => (&HOMES[0], path),
    };
    let first = path.split("::").next().unwrap();
    homes.get(first).cloned().unwrap_or_else(|| path.replace("::", "/"))
}

/// Returns what a file of a public module declares as public.
fn public_of(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("pub ") {
        let rest = &text[at + "pub ".len()..];
        if let Some(list) = rest.strip_prefix("use ") {
            let list = list.split(';').next().unwrap();
            let list = list.strip_prefix("crate::").unwrap_or(list);
            found.extend(
                paths(&format!("crate::{list}")).iter().map(|path| path.rsplit("::").next().unwrap().to_owned()),
            );
        } else {
            let words: Vec<&str> = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).take(2).collect();
            found.insert(words[1].to_owned());
        }
    }
    found
}

/// Returns the name in `all` that is the longest beginning of a module or path.
fn within<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_in = |room: &&str| name == *room || name.starts_with(&format!("{room}/"));
    all.into_iter().filter(is_in).max_by_key(|room| room.len())
}

#[test]
fn each_module_uses_only_those_below_it() {
    let places = places();
    let place = |name: &str| within(name, places.keys().map(String::as_str)).map(|room| places[room]);
    let mut wrong = Vec::new();
    for (name, text) in files() {
        let Some(own) = place(&name) else {
            wrong.push(format!("docs/architecture.md must name {name}"));
            continue;
        };
        for path in paths(&text) {
            let module = module_of(&path);
            match place(&module) {
                Some(place) if place <= own => {}
                _ => wrong.push(format!("{name} uses {path}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_imports_an_application() {
    let mut wrong = Vec::new();
    for (name, text) in files() {
        for path in paths(&text) {
            let module = module_of(&path);
            let Some(application) = within(&module, APPLICATIONS) else {
                continue;
            };
            let own = within(&name, [application]).is_some() || name == "bindings";
            let allowed = |&(user, used): &(&str, &str)| used == application && within(&name, [user]).is_some();
            if !own && !ALLOWED.iter().any(allowed) {
                wrong.push(format!("{name} uses {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn applications_use_public_names() {
    let (files, exported) = (files(), listed("lib"));
    let library = code(&root().join("src/lib.rs"));
    let mut wrong = Vec::new();
    for (name, text) in &files {
        let Some(application) = within(name, APPLICATIONS) else {
            continue;
        };
        for path in paths(text) {
            let mut parts = path.split("::");
            let (module, item) = (parts.next().unwrap(), parts.next().unwrap_or("self"));
            let public = exported.contains_key(module)
                || exported.get(item).is_some_and(|home| home == module)
                || library.contains(&format!("pub mod {module};"))
                    && (item == "self" || public_of(&files[module]).contains(item));
            if !public && module != "internal" && within(&path.replace("::", "/"), [application]).is_none() {
                wrong.push(format!("{name} uses {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the file that declares the name at the end of a path.
fn declared(path: &str, files: &BTreeMap<String, String>) -> Option<String> {
    let module = module_of(path);
    let file = within(&module, files.keys().map(String::as_str))?;
    let name = module[file.len()..].trim_start_matches('/').split('/').next().unwrap();
    match exported(file, &from_the_crate(file, &files[file])).get(name) {
        Some(home) if home != file && home != &module => declared(&format!("{home}/{name}").replace('/', "::"), files),
        _ => Some(file.to_owned()),
    }
}

/// A file may use the file of a module above it, whose names its files share.
#[test]
fn no_imports_run_in_a_circle() {
    let files = files();
    let is_below = |file: &str, other: &str| file.starts_with(&format!("{other}/"));
    let uses = files.iter().map(|(file, text)| {
        let named = paths(&from_the_crate(file, text)).into_iter().filter_map(|path| declared(&path, &files));
        let parts = files.keys().filter(|other| is_below(other, file)).cloned();
        let others = named.chain(parts).filter(|other| other != file && !is_below(file, other));
        (file.clone(), others.collect())
    });
    let mut uses: BTreeMap<String, BTreeSet<String>> = uses.collect();
    loop {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.retain(|_, used| !used.is_disjoint(&left));
        if uses.len() == left.len() {
            break;
        }
    }
    assert!(uses.is_empty(), "{uses:#?}");
}
