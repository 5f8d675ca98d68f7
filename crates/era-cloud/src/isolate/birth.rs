//! How a task is born: its process, from the keeper's to its own program.
//!
//! The standard library forks where anything is to be done before the program starts. A fork copies
//! the keeper's page tables, and both sides then fault on every page that they touch: an eighth of
//! what a small task costs. So here the child runs in the keeper's memory, which waits until the
//! child has its program (`vfork`, as the standard library itself does where nothing is to be
//! done). Everything that the child needs is laid out before; it makes system calls and nothing
//! else: no allocation, no lock, no panic.
//!
//! With `own_mounts` this is all that the compiler cannot vouch for in this crate (decision 0014).
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use rustix::process::Pid;

use super::Birth;

/// What the child runs on until it has its program.
const STACK_BYTES: usize = 16 << 10;
/// Where programs are looked for if the environment does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The same as the kernel reads it, and what became of it.
struct Ready {
    /// The files that may be the program, the likeliest first.
    programs: Vec<CString>,
    arguments: Vec<*const c_char>,
    env: Vec<*const c_char>,
    folder: CString,
    uid: Option<u32>,
    terminal: bool,
    /// What becomes its files 0, 1 and 2. None of them is one of these here.
    files: [c_int; 3],
    /// Why it has no program, and of which file that is said.
    error: AtomicI32,
    of: AtomicUsize,
}

impl Birth<'_> {
    /// Starts it: in a group of its own, as its user, and so that it dies with the calling thread,
    /// which is the last line of defence if a keeper is killed before it can end what it keeps.
    pub(crate) fn start(&self) -> io::Result<Pid> {
        match self.try_start(self.command) {
            Err((error, file)) if error.raw_os_error() == Some(libc::ENOEXEC) => {
                // A script that does not say who reads it is read by the shell.
                let rest = self.command.iter().skip(1).cloned();
                let file = file.to_string_lossy().into_owned();
                let script: Vec<String> =
                    ["/bin/sh".to_owned(), file].into_iter().chain(rest).collect();
                self.try_start(&script).map_err(|(error, _)| error)
            }
            started => started.map_err(|(error, _)| error),
        }
    }

    fn try_start(&self, command: &[String]) -> Result<Pid, (io::Error, CString)> {
        let nowhere = |error: io::Error| (error, CString::default());
        let text = |text: &[u8]| CString::new(text).map_err(|error| nowhere(error.into()));
        let arguments = command.iter().map(|word| text(word.as_bytes()));
        let arguments: Vec<CString> = arguments.collect::<Result<_, _>>()?;
        let env = self.env.iter().map(|(name, value)| text(format!("{name}={value}").as_bytes()));
        let env: Vec<CString> = env.collect::<Result<_, _>>()?;
        let ready = Ready {
            programs: self.programs(command, text)?,
            arguments: pointers(&arguments),
            env: pointers(&env),
            folder: text(self.folder.as_os_str().as_bytes())?,
            uid: self.uid,
            terminal: self.terminal,
            files: [self.input, self.output, self.error].map(|file| file.as_raw_fd()),
            error: AtomicI32::new(0),
            of: AtomicUsize::new(0),
        };
        let mut stack = vec![0u8; STACK_BYTES];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: `born` gets a stack of its own, of which nothing else has a part, aligned below;
        // it grows downwards on every processor that we build for. `ready` and what it points to
        // outlive the call, and the child uses them only until it has a program or has ended, for
        // which the kernel makes us wait.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(STACK_BYTES);
            let top = top.sub(top as usize % 16);
            libc::clone(born, top.cast(), flags, ptr::from_ref(&ready).cast_mut().cast())
        };
        if pid < 0 {
            return Err(nowhere(io::Error::last_os_error()));
        }
        let pid = Pid::from_raw(pid).ok_or_else(|| nowhere(io::Error::other("no such pid")))?;
        match ready.error.load(Ordering::Relaxed) {
            0 => Ok(pid),
            error => {
                // It has ended without a program; nobody else is to find it.
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                let file = ready.programs.get(ready.of.load(Ordering::Relaxed));
                Err((io::Error::from_raw_os_error(error), file.cloned().unwrap_or_default()))
            }
        }
    }

    /// Which files may be the program: the one that is named, or all of its name on the path.
    fn programs<E>(
        &self,
        command: &[String],
        text: impl Fn(&[u8]) -> Result<CString, E>,
    ) -> Result<Vec<CString>, E> {
        let name = command.first().map_or("", String::as_str);
        if name.contains('/') {
            return Ok(vec![text(name.as_bytes())?]);
        }
        let path = self.env.get("PATH").map_or(PATH, String::as_str);
        let file = |folder: &str| {
            let folder = if folder.is_empty() { "." } else { folder };
            text(format!("{folder}/{name}").as_bytes())
        };
        path.split(':').filter(|_| !name.is_empty()).map(file).collect()
    }
}

/// As the kernel reads a list: addresses, the last of them null.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// What the child does, in the keeper's memory.
extern "C" fn born(ready: *mut c_void) -> c_int {
    // SAFETY: this is the address of a `Ready` that its owner, who waits for us, does not touch.
    let ready = unsafe { &*ready.cast::<Ready>() };
    let (error, of) = become_task(ready);
    ready.of.store(of, Ordering::Relaxed);
    ready.error.store(error, Ordering::Relaxed);
    // SAFETY: ends this process only, without anything that is to be done at an exit.
    unsafe { libc::_exit(127) }
}

/// Returns only if there is no program: why, and of which file that is said.
fn become_task(ready: &Ready) -> (c_int, usize) {
    // SAFETY: each is a system call on numbers and on texts that end with a zero. The calls that
    // change the user are made without the C library, which would tell other threads: of those
    // there are none in this process. No memory but the stack's and `errno` is written to.
    unsafe {
        let none = ptr::null::<c_void>();
        let mut signals = std::mem::zeroed();
        let done = libc::sigemptyset(&raw mut signals) == 0
            && libc::sigprocmask(libc::SIG_SETMASK, &raw const signals, ptr::null_mut()) == 0
            && libc::signal(libc::SIGPIPE, libc::SIG_DFL) != libc::SIG_ERR
            && lead(ready)
            && ready.uid.is_none_or(|uid| {
                libc::syscall(libc::SYS_setgroups, 0, none) == 0
                    && libc::syscall(libc::SYS_setresgid, uid, uid, uid) == 0
                    && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
            })
            // The kernel forgets it on a change of user.
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            && (0..).zip(ready.files).all(|(to, file)| libc::dup2(file, to) == to)
            && libc::chdir(ready.folder.as_ptr()) == 0;
        if !done {
            return (errno(), 0);
        }
        let (mut worst, mut of) = (libc::ENOENT, 0);
        for (index, program) in ready.programs.iter().enumerate() {
            libc::execve(program.as_ptr(), ready.arguments.as_ptr(), ready.env.as_ptr());
            match errno() {
                libc::ENOENT | libc::ENOTDIR => {}
                // There may be one further on that we may execute.
                libc::EACCES => (worst, of) = (libc::EACCES, index),
                other => return (other, index),
            }
        }
        (worst, of)
    }
}

/// Makes the child the leader of a group of its own; with a terminal also of a session, which that
/// terminal is then in control of.
///
/// # Safety
/// Each is a system call on numbers.
unsafe fn lead(ready: &Ready) -> bool {
    // SAFETY: as above.
    unsafe {
        if ready.terminal {
            libc::setsid() != -1 && libc::ioctl(ready.files[0], libc::TIOCSCTTY, 0) == 0
        } else {
            libc::setpgid(0, 0) == 0
        }
    }
}

fn errno() -> c_int {
    // SAFETY: the address of this thread's own number, which is always there.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{WaitOptions, waitpid};

    use super::*;

    struct Bed {
        folder: tempfile::TempDir,
        env: BTreeMap<String, String>,
        null: File,
    }

    impl Bed {
        fn new() -> Bed {
            let env = [("PATH", "/usr/bin:/bin"), ("WORD", "a b")];
            Bed {
                folder: tempfile::tempdir().expect("a folder"),
                env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
                null: File::options().read(true).write(true).open("/dev/null").expect("opened"),
            }
        }

        fn start(&self, command: &[&str]) -> io::Result<Pid> {
            let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
            let (env, folder, input) = (&self.env, self.folder.path(), self.null.as_fd());
            let (command, uid, terminal) = (&command, None, false);
            let (output, error) = (input, input);
            Birth { command, env, folder, uid, terminal, input, output, error }.start()
        }

        fn code(&self, command: &[&str]) -> i32 {
            let pid = self.start(command).expect("started");
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
    fn a_program_has_its_arguments_its_environment_its_folder_and_no_input() {
        let bed = Bed::new();
        let look = r#"[ "$1" = "x  y" ] && [ "$WORD" = "a b" ] && [ -z "$HOME" ] && ! read line"#;
        let script = format!("{look} && pwd > here && exit 7");
        assert_eq!(bed.code(&["sh", "-c", &script, "sh", "x  y"]), 7);
        let here = std::fs::read_to_string(bed.folder.path().join("here")).expect("written");
        let folder = bed.folder.path().canonicalize().expect("a folder");
        assert_eq!(std::path::Path::new(here.trim_end()), folder);
    }

    #[test]
    fn it_leads_a_group_of_its_own_and_a_closed_pipe_ends_it() {
        let bed = Bed::new();
        let group = r#"[ "$(cut -d' ' -f5 /proc/$$/stat)" = $$ ]"#;
        assert_eq!(bed.code(&["sh", "-c", group]), 0);
        // Where the signal is ignored, `yes` would tell of an error.
        assert_eq!(bed.code(&["sh", "-c", "{ yes; echo $? > told; } | head -1 > first"]), 0);
        let told = std::fs::read_to_string(bed.folder.path().join("told")).expect("told");
        assert_eq!(told, "141\n");
    }

    #[test]
    fn signals_that_the_keeper_does_not_hear_are_heard_by_the_task() {
        let bed = Bed::new();
        // SAFETY: blocks one signal in this thread.
        unsafe {
            let mut signals = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, libc::SIGUSR1);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut());
        }
        let blocked = "grep SigBlk /proc/self/status > blocked";
        assert_eq!(bed.code(&["sh", "-c", blocked]), 0);
        let blocked = std::fs::read_to_string(bed.folder.path().join("blocked")).expect("written");
        assert_eq!(blocked.split_whitespace().last(), Some("0000000000000000"));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let bed = Bed::new();
        let kind = |command: &[&str]| bed.start(command).expect_err("not started").kind();
        assert_eq!(kind(&["no-such-program"]), io::ErrorKind::NotFound);
        assert_eq!(kind(&["/no/such/program"]), io::ErrorKind::NotFound);
        assert_eq!(kind(&[""]), io::ErrorKind::NotFound);
        assert_eq!(kind(&[]), io::ErrorKind::NotFound);
        assert_eq!(kind(&["a\0b"]), io::ErrorKind::InvalidInput);
        bed.script("closed", "exit 0", 0o644);
        assert_eq!(kind(&["./closed"]), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn the_path_is_the_environments_and_a_plain_script_is_read_by_the_shell() {
        let mut bed = Bed::new();
        bed.script("first", "exit 0", 0o644);
        std::fs::create_dir(bed.folder.path().join("bin")).expect("made");
        bed.script("bin/first", "exit $#", 0o755);
        // One that may not be executed is passed over.
        bed.env.insert("PATH".into(), "/no/such:.:./bin".into());
        assert_eq!(bed.code(&["first", "a", "b"]), 2);
    }

    #[test]
    fn many_are_born_one_after_another() {
        let bed = Bed::new();
        for code in 0..100 {
            assert_eq!(bed.code(&["sh", "-c", &format!("exit {code}")]), code);
        }
    }
}
