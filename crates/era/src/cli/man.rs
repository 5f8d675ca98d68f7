//! `era man`: a manual page for each command.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::look::say;

/// Write manual pages into a folder: `era man ~/.local/share/man/man1`
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Man {
    /// Writes the pages of the `whole` command line.
    pub(crate) fn run(self, whole: clap::Command) -> anyhow::Result<()> {
        let pages = write(whole, &self.folder)?;
        say(&format!("{pages} pages in {}", self.folder.display()))
    }
}

fn write(mut command: clap::Command, folder: &Path) -> anyhow::Result<usize> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    command.build();
    let mut pages = 0;
    let mut open = vec![(command, "era".to_owned())];
    while let Some((command, name)) = open.pop() {
        for inner in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            if inner.get_name() != "help" {
                open.push((inner.clone(), format!("{name}-{}", inner.get_name())));
            }
        }
        let mut text = Vec::new();
        // The page is named as it is looked up: `man era-submit`.
        clap_mangen::Man::new(command).title(name.clone()).render(&mut text)?;
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        pages += 1;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_command_has_its_page() {
        let folder = tempfile::tempdir().unwrap();
        let pages = super::write(crate::command::whole(), folder.path()).unwrap();
        assert!(pages > 30, "{pages}");
        let page = std::fs::read_to_string(folder.path().join("era-submit.1")).unwrap();
        assert!(page.contains("gpu"), "{page}");
        assert!(folder.path().join("era-admin-user-add.1").exists());
    }
}
