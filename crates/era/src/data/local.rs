//! Which files a folder stands for.
//!
//! Code leaves out what `.gitignore` and `.eraignore` say; data leaves out only what `.eraignore`
//! says; an image leaves out what code does, and what `.dockerignore` says. A link is sent as what it leads to, as long as that is in the folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use era_api::client::transfer::Local;
use ignore::WalkBuilder;

use super::dockerignore::DockerIgnore;
use crate::cli::BadUsage;

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

/// The files of a folder, or the one file that is named, by path.
pub(crate) fn files(root: &Path, kind: Kind<'_>) -> anyhow::Result<Vec<Local>> {
    let whole = root.canonicalize().with_context(|| root.display().to_string())?;
    if whole.is_file() {
        let name = root.file_name().or_else(|| whole.file_name()).unwrap_or_default();
        return Ok(vec![one(root, Path::new(name))?]);
    }
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(kind != Kind::Data)
        .hidden(false)
        .require_git(false)
        .follow_links(true)
        .add_custom_ignore_filename(".eraignore");
    let left_out = match kind {
        Kind::Image(dockerfile) => Some(DockerIgnore::of(root, dockerfile)?),
        _ => None,
    };
    if kind != Kind::Data {
        let root = root.to_owned();
        walk.filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            let left_out = left_out.as_ref().filter(|_| entry.depth() > 0);
            entry.file_name() != ".git"
                && !left_out.is_some_and(|left_out| left_out.leaves_out(path, is_folder))
        });
    }
    let mut found = Vec::new();
    for entry in walk.build() {
        let entry = entry?;
        let path = entry.path();
        if entry.path_is_symlink() {
            stays_inside(path, &whole)?;
        }
        let Some(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            found.push(one(path, path.strip_prefix(root)?)?);
        } else if !kind.is_dir() {
            bail!(BadUsage(format!(
                "{} is neither file nor folder: remove it, or name it in .eraignore",
                path.display()
            )));
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
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
pub(crate) fn one(file: &Path, relative: &Path) -> anyhow::Result<Local> {
    let about = std::fs::metadata(file).with_context(|| file.display().to_string())?;
    let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
    let Some(parts) = parts else { bail!("{} is not UTF-8: rename it", file.display()) };
    Ok(Local {
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

    #[cfg(unix)]
    #[test]
    fn what_is_neither_file_nor_folder_is_bad_input() {
        let folder = tempfile::tempdir().unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("s")).unwrap();
        let refused = files(folder.path(), Kind::Data).unwrap_err();
        assert!(refused.downcast_ref::<BadUsage>().is_some(), "{refused}");
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
