//! A job's code on its way to the server, and its outputs on their way back: only contents that
//! the other side does not have yet, each by its hash.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use era_api::client::{Client, encode};
use era_api::data::{BlobList, FileEntry, Tree, TreeMade};
use era_api::page::PageAsk;
use ignore::WalkBuilder;

use super::failure::BadUsage;
use super::look;

/// Most files of a job's code.
const FILES_MAX: usize = 20_000;
/// Most bytes of it: data belongs into data sets.
const BYTES_MAX: u64 = 1 << 30;
/// Hashes that are asked about at a time.
const HASHES_MAX: usize = 1000;

/// Uploads a folder as a job's code, without what `.gitignore` and `.eraignore` leave out; the
/// hash of its tree.
pub(crate) fn upload(client: &Client, folder: &Path) -> anyhow::Result<String> {
    let files = gather(folder)?;
    let mut places = BTreeMap::new();
    let mut tree = Tree { files: Vec::with_capacity(files.len()) };
    for found in files {
        let mut hasher = blake3::Hasher::new();
        let mut file = File::open(&found.place).with_context(|| named(&found.place))?;
        let bytes = std::io::copy(&mut file, &mut hasher).with_context(|| named(&found.place))?;
        let hash = hasher.finalize().to_hex().to_string();
        places.insert(hash.clone(), found.place);
        tree.files.push(FileEntry { path: found.path, bytes, hash, executable: found.executable });
    }
    let hashes: Vec<String> = places.keys().cloned().collect();
    for some in hashes.chunks(HASHES_MAX) {
        let asked = BlobList { hashes: some.to_vec() };
        let missing: BlobList = client.post("/blobs/missing", &asked)?;
        for hash in missing.hashes {
            let place =
                places.get(&hash).context("the server asked for what it was not told of")?;
            let file = File::open(place).with_context(|| named(place))?;
            client.put_file(&format!("/blobs/{}", encode(&hash)), file)?;
        }
    }
    let made: TreeMade = client.post("/trees", &tree)?;
    Ok(made.hash)
}

fn named(path: &Path) -> String {
    path.display().to_string()
}

/// A file of a folder.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    place: PathBuf,
    path: String,
    executable: bool,
    bytes: u64,
}

/// The files that go along, in order. A link that leaves the folder is refused: what it points to
/// would not be there.
fn gather(folder: &Path) -> anyhow::Result<Vec<Found>> {
    let root = folder.canonicalize().with_context(|| named(folder))?;
    if !root.is_dir() {
        bail!(BadUsage(format!("{} is no folder: --code takes one", folder.display())));
    }
    let walk = WalkBuilder::new(&root)
        .hidden(false)
        .parents(false)
        .require_git(false)
        .add_custom_ignore_filename(".eraignore")
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    let mut files = Vec::new();
    let mut bytes = 0;
    for entry in walk {
        let entry = entry?;
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_symlink()) {
            let leads = entry.path().canonicalize().with_context(|| named(entry.path()))?;
            if !leads.starts_with(&root) {
                let sentence = "is a link that leaves the folder: list it in .eraignore";
                bail!(BadUsage(format!("{} {sentence}", entry.path().display())));
            }
            if leads.is_dir() {
                continue;
            }
        } else if !kind.is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let about = std::fs::metadata(entry.path()).with_context(|| named(entry.path()))?;
        bytes += about.len();
        let path = entry.path().strip_prefix(&root).context("a file outside its folder")?;
        files.push(Found {
            place: entry.path().to_owned(),
            path: slashed(path)?,
            executable: is_executable(&about),
            bytes: about.len(),
        });
        if files.len() > FILES_MAX || bytes > BYTES_MAX {
            bail!(too_much(&files, folder));
        }
    }
    Ok(files)
}

/// What is too much, and what it is that takes the room.
fn too_much(files: &[Found], folder: &Path) -> BadUsage {
    let mut largest: Vec<&Found> = files.iter().collect();
    largest.sort_by_key(|found| std::cmp::Reverse(found.bytes));
    let largest = largest.iter().take(3).map(|f| format!("{} ({})", f.path, look::bytes(f.bytes)));
    BadUsage(format!(
        "{} is too much to upload as code (at most {FILES_MAX} files and {}): keep data in data \
         sets, or list it in .eraignore; largest: {}",
        folder.display(),
        look::bytes(BYTES_MAX),
        largest.collect::<Vec<_>>().join(", ")
    ))
}

/// A relative path as the wire writes it.
fn slashed(path: &Path) -> anyhow::Result<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().map(str::to_owned),
        _ => None,
    };
    let parts: Option<Vec<String>> = path.components().map(part).collect();
    let parts = parts.with_context(|| format!("{} has no name that is text", path.display()))?;
    Ok(parts.join("/"))
}

#[cfg(unix)]
fn is_executable(about: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

/// Brings a job's outputs into a folder; how many files. What is there already, whole, stays.
pub(crate) fn bring_outputs(client: &Client, job: u64, into: &Path) -> anyhow::Result<u64> {
    let mut files = 0;
    let mut page = PageAsk { cursor: None, limit: Some(1000) };
    loop {
        let some = client.outputs(job, &page)?;
        for entry in &some.items {
            let place = into.join(safe(&entry.path)?);
            if let Some(folder) = place.parent() {
                std::fs::create_dir_all(folder).with_context(|| named(folder))?;
            }
            let path: Vec<String> = entry.path.split('/').map(encode).collect();
            let mut from = client.download(&format!("/jobs/{job}/outputs/{}", path.join("/")))?;
            fetch(&mut from, &place)?;
            files += 1;
        }
        page.cursor = some.next;
        if page.cursor.is_none() {
            return Ok(files);
        }
    }
}

/// A path that stays below its folder, whatever the other side says.
fn safe(path: &str) -> anyhow::Result<PathBuf> {
    let parts = path.split('/');
    let fine = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', ':', '\0'])
    };
    if !parts.clone().all(fine) {
        bail!("the server named an output `{}` that leaves its folder", path.escape_debug());
    }
    Ok(parts.collect())
}

/// Writes a file beside its place first, so that a cut leaves no half of it.
fn fetch(from: &mut impl Read, place: &Path) -> anyhow::Result<()> {
    let mut part = place.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut file = File::create(&part).with_context(|| named(&part))?;
    std::io::copy(from, &mut file).with_context(|| named(place))?;
    std::fs::rename(&part, place).with_context(|| named(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_stays_here() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(".gitignore", "*.log\n");
        put(".eraignore", "data/\n");
        put(".git/config", "x");
        put("train.py", "x");
        put("lib/net.py", "x");
        put("run.log", "x");
        put("data/big", "x");
        let found: Vec<String> =
            gather(folder.path()).unwrap().into_iter().map(|f| f.path).collect();
        assert_eq!(found, [".eraignore", ".gitignore", "lib/net.py", "train.py"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leaves_the_folder_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("away")).unwrap();
        let error = gather(folder.path()).unwrap_err().to_string();
        assert!(error.contains("away"), "{error}");
    }

    #[test]
    fn an_output_cannot_leave_its_folder() {
        for bad in ["../x", "/etc/passwd", "a/../../b", "", "a//b", "c:\\x", "a/."] {
            assert!(safe(bad).is_err(), "{bad}");
        }
        assert_eq!(safe("a/b.txt").unwrap(), Path::new("a").join("b.txt"));
    }
}
