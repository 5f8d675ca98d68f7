//! What a folder's `.dockerignore` leaves out of an image, as Docker reads it: patterns begin at
//! the folder itself, and the last that matches decides. The Dockerfile always goes along.

use std::path::Path;

use anyhow::Context;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// What is left out.
pub(super) struct DockerIgnore {
    patterns: Gitignore,
    /// The Dockerfile's path in the folder.
    dockerfile: String,
}

impl DockerIgnore {
    /// What a folder's file says; nothing where there is none.
    pub(super) fn of(root: &Path, dockerfile: &str) -> anyhow::Result<DockerIgnore> {
        let file = root.join(".dockerignore");
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| file.display().to_string())?,
        };
        let mut patterns = GitignoreBuilder::new(root);
        for line in text.lines() {
            if let Some(pattern) = anchored(line) {
                let added = patterns.add_line(None, &pattern);
                added.with_context(|| format!("{}: `{line}`", file.display()))?;
            }
        }
        let dockerfile = dockerfile.trim_start_matches("./").to_owned();
        Ok(DockerIgnore { patterns: patterns.build()?, dockerfile })
    }

    /// Whether a path in the folder is left out. Of a folder, this says whether all that is in it
    /// is.
    pub(super) fn leaves_out(&self, path: &Path, is_folder: bool) -> bool {
        if path == Path::new(".dockerignore") || Path::new(&self.dockerfile).starts_with(path) {
            return false;
        }
        // What is in a folder may be taken back in.
        let all = !is_folder || self.patterns.num_whitelists() == 0;
        all && self.patterns.matched_path_or_any_parents(path, is_folder).is_ignore()
    }
}

/// A line as `.gitignore` would have it; `None` if it says nothing.
fn anchored(line: &str) -> Option<String> {
    let line = line.trim();
    let (not, pattern) = match line.strip_prefix('!') {
        Some(rest) => ("!", rest.trim()),
        None => ("", line),
    };
    let pattern = pattern.trim_start_matches("./").trim_matches('/');
    let says = !line.starts_with('#') && !pattern.is_empty() && pattern != ".";
    says.then(|| format!("{not}/{pattern}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_begin_at_the_folder_the_last_decides_and_the_dockerfile_goes_along() {
        let folder = tempfile::tempdir().unwrap();
        let text = "# big\n*.log\n/data/\n**/*.pyc\ndocs\n!docs/README.md\nDockerfile\nenv\n";
        std::fs::write(folder.path().join(".dockerignore"), text).unwrap();
        let ignore = DockerIgnore::of(folder.path(), "./env/Dockerfile").unwrap();
        for (path, out) in [
            ("run.log", true),
            ("lib/run.log", false),
            ("data/x/y", true),
            ("lib/data/x", false),
            ("lib/deep/a.pyc", true),
            ("docs/a.md", true),
            ("docs/README.md", false),
            ("Dockerfile", true),
            ("env/Dockerfile", false),
            ("env/other", true),
            (".dockerignore", false),
            ("train.py", false),
        ] {
            assert_eq!(ignore.leaves_out(Path::new(path), false), out, "{path}");
        }
        assert!(!ignore.leaves_out(Path::new("docs"), true), "something of it is wanted");
        std::fs::write(folder.path().join(".dockerignore"), ".venv\n*\n!src\n").unwrap();
        let ignore = DockerIgnore::of(folder.path(), "Dockerfile").unwrap();
        assert!(!ignore.leaves_out(Path::new("src/a.py"), false));
        assert!(ignore.leaves_out(Path::new("lib/a.py"), false));
        std::fs::write(folder.path().join(".dockerignore"), ".venv\n").unwrap();
        let ignore = DockerIgnore::of(folder.path(), "Dockerfile").unwrap();
        assert!(ignore.leaves_out(Path::new(".venv"), true), "nobody looks into it");
    }
}
