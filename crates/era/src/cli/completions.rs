//! `era completions`: what a shell needs to complete commands.

use std::io::Write;

use clap_complete::Shell;

/// Print completions for a shell: `era completions bash > ~/.local/share/bash-completion/completions/era`
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Writes what completes the `whole` command line.
    pub(crate) fn run(self, mut whole: clap::Command) -> anyhow::Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut whole, "era", &mut text);
        std::io::stdout().write_all(&text)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut crate::command::whole(), "era", &mut text);
            let text = String::from_utf8(text).unwrap();
            for command in crate::command::whole().get_subcommands().filter(|c| !c.is_hide_set()) {
                assert!(text.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
