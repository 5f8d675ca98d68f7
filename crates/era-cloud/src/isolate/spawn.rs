//! How a task is born on any Unix: by the standard library, which forks. On Linux `birth` does it
//! for less, and lets a task die with its keeper; what else is promised is the same.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;

use super::Birth;

impl Birth<'_> {
    /// Starts it: in a group of its own, as its user. A program without a path is looked for on
    /// the task's own.
    pub(crate) fn spawn(&self) -> io::Result<Pid> {
        let [program, arguments @ ..] = self.command else {
            return Err(io::ErrorKind::NotFound.into());
        };
        match self.try_spawn(Command::new(program).args(arguments)) {
            Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
                // A script that does not say who reads it is read by the shell.
                let script = self.file_of(program);
                self.try_spawn(Command::new("/bin/sh").arg(script).args(arguments))
            }
            spawned => spawned,
        }
    }

    /// The file that a program's name means, as the task would say it.
    fn file_of(&self, program: &str) -> PathBuf {
        if program.contains('/') {
            return program.into();
        }
        let path = self.env.get("PATH").map_or("", String::as_str);
        let mut files = path.split(':').map(|folder| Path::new(folder).join(program));
        let runs = |file: &PathBuf| {
            let about = std::fs::metadata(self.folder.join(file));
            about.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        };
        files.find(runs).unwrap_or_else(|| program.into())
    }

    fn try_spawn(&self, command: &mut Command) -> io::Result<Pid> {
        command
            .env_clear()
            .envs(self.env)
            .current_dir(self.folder)
            .stdin(Stdio::from(self.input.try_clone_to_owned()?))
            .stdout(Stdio::from(self.output.try_clone_to_owned()?))
            .stderr(Stdio::from(self.error.try_clone_to_owned()?));
        if let Some(uid) = self.uid {
            // The groups of root go with its user id.
            command.uid(uid).gid(uid);
        }
        if self.terminal {
            own_terminal(command);
        } else {
            command.process_group(0);
        }
        // Whoever asked reaps it.
        Ok(Pid::from_child(&command.spawn()?))
    }
}

/// Makes a program the leader of a session, which the terminal that is its standard input is in
/// control of.
#[allow(unsafe_code)]
fn own_terminal(command: &mut Command) {
    // SAFETY: two system calls, on a number that is open; nothing is allocated and no lock taken.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(rustix::process::ioctl_tiocsctty(BorrowedFd::borrow_raw(0))?)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use rustix::process::{WaitOptions, waitpid};

    use super::*;

    struct Bed {
        folder: tempfile::TempDir,
        env: BTreeMap<String, String>,
        null: File,
    }

    impl Bed {
        fn new() -> Bed {
            let env = [("PATH", "/no/such:./closed:./bin:/usr/bin:/bin"), ("WORD", "a b")];
            Bed {
                folder: tempfile::tempdir().expect("a folder"),
                env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                null: File::options().read(true).write(true).open("/dev/null").expect("opened"),
            }
        }

        fn spawn(&self, command: &[&str], uid: Option<u32>) -> io::Result<Pid> {
            let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
            let (env, folder, input) = (&self.env, self.folder.path(), self.null.as_fd());
            let (command, output, error) = (&command, input, input);
            let terminal = false;
            Birth { command, env, folder, uid, terminal, input, output, error }.spawn()
        }

        fn code(&self, command: &[&str]) -> i32 {
            let pid = self.spawn(command, None).expect("started");
            let ended = waitpid(Some(pid), WaitOptions::empty()).expect("waited for");
            ended.and_then(|(_, status)| status.exit_status()).expect("a code")
        }

        fn script(&self, name: &str, text: &str, mode: u32) {
            let path = self.folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("set");
        }
    }

    #[test]
    fn a_program_has_its_arguments_its_environment_its_folder_and_a_group_of_its_own() {
        let bed = Bed::new();
        let look = r#"[ "$1" = "x  y" ] && [ "$WORD" = "a b" ] && [ -z "$HOME" ] && ! read line"#;
        let script = format!("{look} && ps -o pgid= -p $$ > group && pwd > here && echo $$ > pid");
        assert_eq!(bed.code(&["sh", "-c", &script, "sh", "x  y"]), 0);
        let told = |name: &str| std::fs::read_to_string(bed.folder.path().join(name)).expect(name);
        let folder = bed.folder.path().canonicalize().expect("a folder");
        assert_eq!(std::path::Path::new(told("here").trim_end()), folder);
        assert_eq!(told("group").trim(), told("pid").trim());
    }

    #[test]
    fn the_path_is_the_tasks_own_and_a_plain_script_is_read_by_the_shell() {
        let bed = Bed::new();
        std::fs::create_dir(bed.folder.path().join("bin")).expect("made");
        bed.script("bin/first", "exit $#", 0o755);
        // One that may not be executed is passed over.
        std::fs::create_dir(bed.folder.path().join("closed")).expect("made");
        bed.script("closed/first", "exit 9", 0o644);
        assert_eq!(bed.code(&["first", "a", "b"]), 2);
        assert_eq!(bed.code(&["./bin/first", "a"]), 1);
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let bed = Bed::new();
        let kind = |command: &[&str]| bed.spawn(command, None).expect_err("not started").kind();
        assert_eq!(kind(&["no-such-program"]), io::ErrorKind::NotFound);
        assert_eq!(kind(&["/no/such/program"]), io::ErrorKind::NotFound);
        assert_eq!(kind(&[""]), io::ErrorKind::NotFound);
        assert_eq!(kind(&[]), io::ErrorKind::NotFound);
        assert_eq!(kind(&["a\0b"]), io::ErrorKind::InvalidInput);
        bed.script("shut", "exit 0", 0o644);
        assert_eq!(kind(&["./shut"]), io::ErrorKind::PermissionDenied);
    }
}
