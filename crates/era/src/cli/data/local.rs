//! Which files a folder stands for.
//!
//! Code leaves out what `.gitignore` and `.eraignore` say; data leaves out only what `.eraignore`
//! says; an image leaves out what code does, and what `.dockerignore` says. A link is sent as what
//! it leads to, as long as that is in the folder. What cannot be sent (a socket, a pipe, a link to
//! nothing) and what is the platform's own is left out, and told in one line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use era_api::client::transfer::LocalFile;
use ignore::WalkBuilder;

use super::dockerignore::DockerIgnore;
use crate::cli::BadUsage;
use crate::cli::look::note;
use crate::own_folder;

/// What a folder is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// A job's code.
    Code,
    /// A data set.
    Data,
    /// What an image is built from, with the path of its Dockerfile.
    Image(&'a str),
}

/// Most of what is left out that is named.
const NAMED_MAX: usize = 5;

/// What is in a folder and is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LeftOut {
    path: PathBuf,
    why: &'static str,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.to_string_lossy().escape_debug(), self.why)
    }
}

/// The files of a folder, or the one file that is named, by path. What is left out is told.
pub(crate) fn files(root: &Path, kind: Kind<'_>) -> anyhow::Result<Vec<LocalFile>> {
    let (files, left_out) = gathered(root, kind)?;
    if !left_out.is_empty() {
        note(&told(&left_out));
    }
    Ok(files)
}

/// In one line, however much it is.
fn told(left_out: &[LeftOut]) -> String {
    let named: Vec<String> = left_out.iter().take(NAMED_MAX).map(LeftOut::to_string).collect();
    let more = left_out.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("Left out: {}{more}.", named.join(", "))
}

fn gathered(root: &Path, kind: Kind<'_>) -> anyhow::Result<(Vec<LocalFile>, Vec<LeftOut>)> {
    let whole = root.canonicalize().with_context(|| root.display().to_string())?;
    if whole.is_file() {
        let name = root.file_name().or_else(|| whole.file_name()).unwrap_or_default();
        return Ok((vec![one(root, Path::new(name))?], Vec::new()));
    }
    // A task that submits jobs works in a folder that was made for it, wherever that is.
    let in_a_task = std::env::var_os("ERA_JOB").is_some();
    let kept_by_era = match kind {
        Kind::Code if !in_a_task => own_folder::is_within_one(&whole),
        _ => own_folder::is_marked(&whole),
    };
    if kept_by_era {
        bail!(BadUsage(format!(
            "{} is where ERA keeps its own files: go to the folder of your code, or name it",
            whole.display()
        )));
    }
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(kind != Kind::Data)
        .hidden(false)
        .require_git(false)
        .follow_links(true)
        .add_custom_ignore_filename(".eraignore");
    let ignored = match kind {
        Kind::Image(dockerfile) => Some(DockerIgnore::of(root, dockerfile)?),
        _ => None,
    };
    let left_out = Arc::new(Mutex::new(Vec::new()));
    let leave_out = {
        let (left_out, root) = (left_out.clone(), root.to_owned());
        move |path: &Path, why: &'static str| {
            let path = path.strip_prefix(&root).unwrap_or(path).to_owned();
            left_out.lock().unwrap_or_else(PoisonError::into_inner).push(LeftOut { path, why });
        }
    };
    let (leave_folder, takes_all) = (leave_out.clone(), kind == Kind::Data);
    let (from, inside) = (root.to_owned(), whole.clone());
    walk.filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let path = entry.path().strip_prefix(&from).unwrap_or(entry.path());
        let is_ignored = ignored.as_ref().is_some_and(|all| all.leaves_out(path, is_folder));
        if is_ignored || (!takes_all && entry.file_name() == ".git") {
            return false;
        }
        if is_own(entry, is_folder, &inside) {
            leave_folder(entry.path(), "ERA's own folder");
            return false;
        }
        true
    });
    let mut found = Vec::new();
    for entry in walk.build() {
        if let Some(link) = entry.as_ref().err().and_then(dangling) {
            leave_out(link, "a link to nothing");
            continue;
        }
        let entry = entry?;
        let path = entry.path();
        if entry.path_is_symlink() {
            stays_inside(path, &whole)?;
        }
        let Some(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            found.push(one(path, path.strip_prefix(root)?)?);
        } else if !kind.is_dir() {
            leave_out(path, what_it_is(kind));
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let left_out = std::mem::take(&mut *left_out.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((found, left_out))
}

/// Whether an entry is the platform's own folder, or a link to it or into it.
fn is_own(entry: &ignore::DirEntry, is_folder: bool, whole: &Path) -> bool {
    if !entry.path_is_symlink() {
        return is_folder && own_folder::is_marked(entry.path());
    }
    let Ok(leads_to) = entry.path().canonicalize() else { return false };
    let below = |folder: &&Path| folder.starts_with(whole) && *folder != whole;
    leads_to.ancestors().take_while(below).any(own_folder::is_marked)
}

/// The link that leads nowhere, if that is what is wrong.
fn dangling(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithDepth { err, .. } => dangling(err),
        ignore::Error::WithPath { path, .. } => {
            let denied = std::io::ErrorKind::PermissionDenied;
            let leads_nowhere = path.metadata().is_err_and(|error| error.kind() != denied);
            (path.is_symlink() && leads_nowhere).then_some(path)
        }
        _ => None,
    }
}

/// What is neither file nor folder.
#[cfg(unix)]
fn what_it_is(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        kind if kind.is_socket() => "a socket",
        kind if kind.is_fifo() => "a pipe",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn what_it_is(_: std::fs::FileType) -> &'static str {
    "neither file nor folder"
}

fn stays_inside(link: &Path, whole: &Path) -> anyhow::Result<()> {
    let leads_to = link.canonicalize().with_context(|| format!("the link {}", link.display()))?;
    if leads_to.starts_with(whole) {
        return Ok(());
    }
    bail!(BadUsage(format!(
        "the link {} leads out of the folder, to {}: copy it there, or name it in .eraignore",
        link.display(),
        leads_to.display()
    )))
}

/// One file, and where it is to lie.
pub(crate) fn one(file: &Path, relative: &Path) -> anyhow::Result<LocalFile> {
    let about = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
    let Some(parts) = parts else { bail!("{} is not UTF-8: rename it", file.display()) };
    Ok(LocalFile {
        file: PathBuf::from(file),
        path: parts.join("/"),
        bytes: about.len(),
        executable: is_executable(&about),
    })
}

#[cfg(unix)]
fn is_executable(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    about.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn paths(root: &Path, kind: Kind<'_>) -> Vec<String> {
        files(root, kind).unwrap().into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn code_leaves_out_what_the_ignore_files_say() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["train.py", ".env", "data/x", "run.log", ".git/HEAD", "keep/y"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "x").unwrap();
        }
        fs::write(root.join(".gitignore"), "*.log\n").unwrap();
        fs::write(root.join(".eraignore"), "data/\n").unwrap();
        let code = [".env", ".eraignore", ".gitignore", "keep/y", "train.py"];
        assert_eq!(paths(root, Kind::Code), code);
        let data =
            [".env", ".eraignore", ".git/HEAD", ".gitignore", "keep/y", "run.log", "train.py"];
        assert_eq!(paths(root, Kind::Data), data);
        assert_eq!(paths(&root.join("train.py"), Kind::Data), ["train.py"]);
        fs::write(root.join(".dockerignore"), "keep\n.env\n").unwrap();
        let image = [".dockerignore", ".eraignore", ".gitignore", "train.py"];
        assert_eq!(paths(root, Kind::Image("Dockerfile")), image);
    }

    /// What is sent, and what is left out, in a line.
    fn sent(root: &Path, kind: Kind<'_>) -> (Vec<String>, String) {
        let (files, left_out) = gathered(root, kind).unwrap();
        (files.into_iter().map(|file| file.path).collect(), told(&left_out))
    }

    #[cfg(unix)]
    #[test]
    fn sockets_pipes_and_links_to_nothing_are_left_out_and_told() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("train.py"), "x").unwrap();
        fs::write(root.join("secret"), "x").unwrap();
        fs::write(root.join(".gitignore"), "secret\n").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("s")).unwrap();
        let pipe = root.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        symlink("gone", root.join("dead")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let whys = [
            "circle (a link to nothing)",
            "dead (a link to nothing)",
            "pipe (a pipe)",
            "s (a socket)",
        ];
        let (code, told) = sent(root, Kind::Code);
        assert_eq!(code, [".gitignore", "train.py"]);
        assert!(
            told.starts_with("Left out: ") && whys.iter().all(|it| told.contains(it)),
            "{told}"
        );
        assert_eq!(sent(root, Kind::Data).0, [".gitignore", "secret", "train.py"]);
        for number in 0..9 {
            symlink("gone", root.join(format!("dead{number}"))).unwrap();
        }
        let (_, told) = sent(root, Kind::Code);
        assert!(told.ends_with(" and 8 more.") && told.lines().count() == 1, "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn the_platforms_own_folder_is_never_sent_wherever_it_stands_and_whatever_it_is_called() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for own in ["era-data", "deep/er/state"] {
            fs::create_dir_all(root.join(own).join("jobs/1/outputs")).unwrap();
            fs::write(root.join(own).join("era.db"), "x").unwrap();
            fs::write(root.join(own).join("jobs/1/outputs/model"), "x").unwrap();
            own_folder::mark(&root.join(own)).unwrap();
        }
        // The name alone says nothing.
        fs::create_dir_all(root.join("lib/era-data")).unwrap();
        fs::write(root.join("lib/era-data/x"), "x").unwrap();
        fs::write(root.join("t.py"), "x").unwrap();
        fs::write(root.join("Dockerfile"), "x").unwrap();
        symlink("era-data", root.join("link")).unwrap();
        symlink("era-data/era.db", root.join("database")).unwrap();
        let left = ["Dockerfile", "lib/era-data/x", "t.py"];
        for kind in [Kind::Code, Kind::Data, Kind::Image("Dockerfile")] {
            let (files, told) = sent(root, kind);
            assert_eq!(files, left, "{kind:?}");
            for own in ["era-data", "deep/er/state", "link", "database"] {
                assert!(told.contains(&format!("{own} (ERA's own folder)")), "{told}");
            }
        }
        // Whoever named it need not hear of it.
        fs::write(root.join(".eraignore"), "era-data/\ndeep/\nlink\ndatabase\n").unwrap();
        let (files, left_out) = gathered(root, Kind::Code).unwrap();
        assert_eq!((files.len(), left_out), (3, Vec::new()));
        for own in ["era-data", "era-data/jobs", "era-data/jobs/1"] {
            let refused = gathered(&root.join(own), Kind::Code).unwrap_err();
            assert!(refused.downcast_ref::<BadUsage>().is_some(), "{own}: {refused}");
        }
        assert_eq!(sent(&root.join("era-data/jobs/1/outputs"), Kind::Code).0, ["model"]);
        // What a job left in it may become data all the same.
        assert_eq!(sent(&root.join("era-data/jobs/1/outputs"), Kind::Data).0, ["model"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_what_it_leads_to_and_never_leads_out() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("code");
        fs::create_dir_all(root.join("real")).unwrap();
        fs::write(root.join("real/a"), "x").unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        symlink("real", root.join("lib")).unwrap();
        symlink("real/a", root.join("b")).unwrap();
        assert_eq!(paths(&root, Kind::Code), ["b", "lib/a", "real/a"]);
        symlink("../secret", root.join("out")).unwrap();
        let refused = files(&root, Kind::Code).unwrap_err().to_string();
        assert!(refused.contains("out leads out of the folder"), "{refused}");
        fs::write(root.join(".eraignore"), "out\n").unwrap();
        assert_eq!(paths(&root, Kind::Code), [".eraignore", "b", "lib/a", "real/a"]);
        symlink("..", root.join("real/loop")).unwrap();
        assert!(files(&root, Kind::Code).is_err());
    }
}
