//! Tasks with a terminal: what they see of it, and who is attached to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use era_cloud::{Attached, Ending, Executor, Launch, NoTerminal, Order, Shown, Typed};
use era_core::job::TaskId;
use era_core::units::Time;

use super::bed::{Bed, count, long, now, wait_until};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn with_terminal(mut launch: Launch) -> Launch {
    Arc::make_mut(&mut launch.spec).terminal = true;
    launch
}

/// A shell at a terminal, started and attached to.
async fn shell(bed: &mut Bed, job: u64) -> (TaskId, Attached) {
    run(bed, job, "/bin/sh").await
}

async fn run(bed: &mut Bed, job: u64, program: &str) -> (TaskId, Attached) {
    let task = bed.launch(with_terminal(bed.run(job, &[program])));
    bed.started(task).await;
    (task, bed.server().attach(task).await.expect("attached"))
}

async fn type_in(to: &Attached, text: &str) {
    to.typed.send(Typed::Bytes(text.into())).await.expect("typed");
}

/// Waits until something is shown, and returns all that was until then.
async fn until(attached: &mut Attached, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        match tokio::time::timeout(PATIENCE, attached.shown.recv()).await {
            Ok(Some(Shown::Bytes(bytes))) => seen += &String::from_utf8_lossy(&bytes),
            other => panic!("{other:?} instead of {wanted:?} after {}", &seen[tail(&seen)..]),
        }
    }
    seen
}

/// Where the last of a long text begins.
fn tail(text: &str) -> usize {
    (text.len().saturating_sub(2000)..).find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What is told last.
async fn last(attached: &mut Attached) -> Option<Shown> {
    loop {
        match tokio::time::timeout(PATIENCE, attached.shown.recv()).await.expect("in time") {
            Some(Shown::Bytes(_)) => {}
            last => return last,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_has_a_terminal_of_its_own_with_the_windows_size() {
    let mut bed = Bed::new().await;
    let (task, mut attached) = shell(&mut bed, 1).await;
    type_in(&attached, "tty; stty size; echo $TERM; echo $((6*7)) >&2\n").await;
    let seen = until(&mut attached, "42").await;
    assert!(seen.contains("/dev/pts/") && seen.contains("24 80"), "{seen}");
    assert!(seen.contains("xterm-256color"), "{seen}");
    attached.typed.send(Typed::Size { rows: 50, cols: 133 }).await.expect("sized");
    type_in(&attached, "stty size\n").await;
    until(&mut attached, "50 133").await;
    // It is the session's: what opens it by that name is heard too, and nobody else may.
    type_in(&attached, "echo o$((1))n > /dev/tty; stat -c %a $(tty)\n").await;
    let seen = until(&mut attached, "600").await;
    assert!(seen.contains("o1n"), "{seen}");
    type_in(&attached, "exit 3\n").await;
    assert_eq!(last(&mut attached).await, Some(Shown::Exited(3)));
    assert_eq!(bed.ended(task).await, (3, Ending::Itself));
    let log = bed.log(1);
    assert!(log.contains("50 133\n") && log.contains("42\n"), "lines without returns: {log:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_interrupt_and_stop_what_runs_and_not_the_shell() {
    let mut bed = Bed::new().await;
    let (task, mut attached) = shell(&mut bed, 1).await;
    let seconds = long();
    type_in(&attached, &format!("echo o$((1))n; sleep {seconds}\n")).await;
    until(&mut attached, "o1n").await;
    wait_until(|| count(&seconds) == 1);
    type_in(&attached, "\x03").await;
    wait_until(|| count(&seconds) == 0);
    type_in(&attached, "echo still $((2*2)) here\n").await;
    until(&mut attached, "still 4 here").await;
    type_in(&attached, "\x04").await;
    // The code of the last command.
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_see_and_type_and_one_who_comes_later_sees_what_was_shown() {
    let mut bed = Bed::new().await;
    let (task, mut first) = shell(&mut bed, 1).await;
    type_in(&first, "echo fi$((1))st\n").await;
    until(&mut first, "fi1st").await;
    let mut second = bed.server().attach(task).await.expect("attached");
    until(&mut second, "fi1st").await;
    type_in(&second, "echo se$((1))ond\n").await;
    until(&mut first, "se1ond").await;
    until(&mut second, "se1ond").await;
    // Who leaves changes nothing, and nobody need be there.
    drop((first, second));
    let mut third = bed.server().attach(task).await.expect("attached");
    type_in(&third, "echo alone > $ERA_OUTPUTS/x; sleep 0.2; echo wh$((1))le away\n").await;
    until(&mut third, "\n").await;
    drop(third);
    wait_until(|| bed.log(1).contains("wh1le away"));
    let mut fourth = bed.server().attach(task).await.expect("attached");
    until(&mut fourth, "wh1le away").await;
    type_in(&fourth, "exit\n").await;
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_read_holds_up_nobody_and_sees_the_end_at_last() {
    let mut bed = Bed::new().await;
    let (task, mut lazy) = shell(&mut bed, 1).await;
    let mut busy = bed.server().attach(task).await.expect("attached");
    type_in(&busy, "i=0; while [ $i -lt 30 ]; do head -c 300000 /dev/zero | tr '\\0' x; ").await;
    type_in(&busy, "i=$((i+1)); done; echo d$((1))ne\n").await;
    until(&mut busy, "d1ne").await;
    let seen = until(&mut lazy, "d1ne").await;
    assert!(seen.contains("too much to be shown"), "{} bytes", seen.len());
    assert!(seen.len() < 3_000_000, "{} bytes", seen.len());
    // And what nobody reads is not typed for ever: whoever types waits, not the supervisor.
    let seconds = long();
    type_in(&busy, &format!("stty raw -echo; exec sleep {seconds}\n")).await;
    wait_until(|| count(&seconds) == 1);
    let many = Typed::Bytes(vec![b'x'; 64 << 10]);
    let flood = async { while busy.typed.send(many.clone()).await.is_ok() {} };
    assert!(tokio::time::timeout(Duration::from_millis(500), flood).await.is_err());
    let other = bed.launch(bed.sh(2, "echo others run"));
    assert_eq!(bed.ended(other).await, (0, Ending::Itself));
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 20_000) });
    assert_eq!(bed.ended(task).await.1, Ending::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_a_shell_that_ignores_it_once_its_work_was_saved() {
    let mut bed = Bed::new().await;
    let (task, mut attached) = shell(&mut bed, 1).await;
    // A shell at a terminal ignores SIGTERM; what it runs may need a moment to save.
    let work = "trap 'sleep 0.3; echo saved > $ERA_OUTPUTS/x; exit' TERM; echo r$((1))ady; \
                while :; do sleep 0.05; done";
    let (seconds, work) = (long(), work.replace('$', "\\$"));
    type_in(&attached, &format!("sleep {seconds} & sh -c \"{work}\"\n")).await;
    until(&mut attached, "r1ady").await;
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 20_000) });
    assert_eq!(bed.ended(task).await.1, Ending::Stopped);
    assert!(bed.job(1).join("outputs/x").exists(), "{}", bed.log(1));
    assert_eq!(count(&seconds), 0, "none is left");
    assert!(matches!(last(&mut attached).await, Some(Shown::Exited(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_stopped_by_a_key_ends_with_its_shell() {
    let mut bed = Bed::new().await;
    // Not every shell is like another.
    let program = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
    let (task, mut attached) = run(&mut bed, 1, program).await;
    let seconds = long();
    type_in(&attached, &format!("sleep {seconds}\n")).await;
    wait_until(|| count(&seconds) == 1);
    type_in(&attached, "\x1a").await;
    type_in(&attached, "echo b$((1))ck\n").await;
    until(&mut attached, "b1ck").await;
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 20_000) });
    assert_eq!(bed.ended(task).await.1, Ending::Stopped);
    assert_eq!(count(&seconds), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_without_a_terminal_says_so() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.run(1, &["sleep", "7305"]));
    bed.started(task).await;
    let why = bed.server().attach(task).await.expect_err("it has none");
    assert!(matches!(&why, NoTerminal::Refused(why) if why.contains("--pty")), "{why}");
    let unknown = TaskId { attempt: 9, ..task };
    assert!(matches!(bed.server().attach(unknown).await, Err(NoTerminal::Refused(_))));
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 20_000) });
    bed.ended(task).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_outlives_the_server() {
    let mut bed = Bed::new().await;
    let (task, mut attached) = shell(&mut bed, 1).await;
    type_in(&attached, "word=kept; echo r$((1))ady\n").await;
    until(&mut attached, "r1ady").await;
    drop(attached);
    bed.stop_server().await;
    bed.start_server().await;
    bed.started(task).await;
    let mut again = bed.server().attach(task).await.expect("attached");
    type_in(&again, "echo $word-on\n").await;
    until(&mut again, "kept-on").await;
    type_in(&again, "exit\n").await;
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
}

/// A supervisor that knows no terminals refuses the line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_supervisor_is_told_apart() {
    use std::io::{BufRead, Write};
    let mut bed = Bed::new().await;
    let (task, attached) = shell(&mut bed, 1).await;
    drop(attached);
    let socket = bed.folder.path().join("shim/socket");
    std::fs::rename(&socket, socket.with_extension("own")).expect("moved");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    let old = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut line = String::new();
        std::io::BufReader::new(&stream).read_line(&mut line).expect("a line");
        assert!(line.starts_with(r#"{"attach":"#), "{line}");
        let refused = r#"{"refused":"a line was not understood: unknown variant `attach`"}"#;
        writeln!(stream, "{refused}").expect("answered");
    });
    let why = bed.server().attach(task).await.expect_err("too old");
    old.join().expect("asked");
    assert!(why.to_string().contains("an older version"), "{why}");
}
