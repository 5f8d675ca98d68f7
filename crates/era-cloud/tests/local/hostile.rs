//! Tasks that try to stay, to hide or to drown the others.

use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::time::Duration;

use era_cloud::{Ending, Executor, Order};

use super::bed::{Bed, count, long, now, wait_until};
use era_core::units::{Time, UserId};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

/// Forks, forks again, leaves session, group and environment, and lives on. Whoever does all of
/// that at once is found by Linux only.
fn escape(seconds: &str) -> String {
    let clear = if super::PORTABLE { "" } else { "env -i" };
    format!("({clear} setsid sh -c 'setsid sleep {seconds} & sleep {seconds}' &) & sleep 0.3")
}

async fn leaves_no_orphan(mut bed: Bed) {
    let seconds = long();
    let task = bed.launch(bed.sh(1, &format!("{}; exit 0", escape(&seconds))));
    bed.started(task).await;
    wait_until(|| count(&seconds) >= 2);
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
    assert_eq!(count(&seconds), 0, "whoever is told to have ended is gone");
}

#[tokio::test]
async fn a_task_that_forks_and_escapes_leaves_no_orphan() {
    leaves_no_orphan(Bed::new().await).await;
}

#[tokio::test]
async fn without_control_groups_there_is_no_orphan_either() {
    leaves_no_orphan(Bed::with(|settings| settings.cgroups = false).await).await;
}

#[tokio::test]
async fn a_stop_reaches_those_who_left_the_group() {
    let mut bed = Bed::new().await;
    let seconds = long();
    let script = format!("{}; sleep {seconds}", escape(&seconds));
    let task = bed.launch(bed.sh(1, &script));
    bed.started(task).await;
    wait_until(|| count(&seconds) >= 3);
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 20_000) });
    assert_eq!(bed.ended(task).await.1, Ending::Stopped);
    assert_eq!(count(&seconds), 0);
}

#[tokio::test]
async fn a_gigabyte_without_a_newline_keeps_to_its_limit_and_harms_nobody() {
    let mut bed = Bed::new().await;
    let mut launch = bed.sh(1, "head -c 1G /dev/zero; exit 4");
    Arc::make_mut(&mut launch.spec).limits.log_bytes = 2 << 20;
    let loud = bed.launch(launch);
    bed.started(loud).await;
    let quiet = bed.launch(bed.sh(2, "echo here"));
    let (mut codes, mut left) = (Vec::new(), 2);
    while left > 0 {
        if let era_cloud::ExecutorReport::Exited { task, code, .. } = bed.next().await {
            codes.push((task, code));
            left -= 1;
        }
    }
    assert!(codes.contains(&(loud, 4)) && codes.contains(&(quiet, 0)), "{codes:?}");
    let folder = bed.job(1).join("logs");
    let size: u64 = std::fs::read_dir(folder)
        .expect("logs")
        .flatten()
        .map(|entry| entry.metadata().expect("a file").len())
        .sum();
    assert!(size <= 3 << 20, "{size}");
}

#[tokio::test]
async fn a_fork_bomb_stays_within_its_limit_and_is_ended() {
    let mut bed = Bed::new().await;
    // It ends by itself at about a thousand: a test must not take the machine along if it fails.
    let seconds = long();
    let more = "b $(($1-1)) & b $(($1-1)) & wait";
    let bomb = format!("b() {{ [ $1 -gt 0 ] || return; sleep {seconds} & {more}; }}");
    let mut launch = bed.sh(1, &format!("{bomb}; b 9; sleep {seconds}"));
    Arc::make_mut(&mut launch.spec).limits.processes = 100;
    let task = bed.launch(launch);
    bed.started(task).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(count(&seconds) <= 101, "{}", count(&seconds));
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 300) });
    bed.ended(task).await;
    assert_eq!(count(&seconds), 0);
    let log = bed.output(bed.sh(2, "echo alive")).await;
    assert!(log.contains("alive"));
}

#[tokio::test]
async fn a_task_that_makes_its_output_non_blocking_does_not_harm_the_next() {
    let mut bed = Bed::with(|settings| settings.spare_keepers = 0).await;
    let python = "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)";
    bed.output(bed.run(1, &["/usr/bin/python3", "-c", python])).await;
    let check = "import fcntl, os; print(bool(fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK))";
    let log = bed.output(bed.run(2, &["/usr/bin/python3", "-c", check])).await;
    assert!(log.contains("False"), "{log}");
}

/// The file that a task hands to whoever listens there.
fn file_handed_over(to: &UnixListener) -> OwnedFd {
    let (from, _) = to.accept().expect("a task");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let into = &mut [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(&from, into, &mut with, RecvFlags::CMSG_CLOEXEC).expect("a message");
    let files = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    files.last().expect("a file")
}

#[tokio::test]
async fn a_task_that_gave_its_output_away_has_no_voice_in_the_log_of_the_next() {
    let mut bed = Bed::with(|settings| settings.spare_keepers = 0).await;
    let name = format!("era-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("listens");
    let python = format!(
        "import os, socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); \
         socket.send_fds(s, [b'x'], [1]); print(os.getppid())"
    );
    let log = bed.output(bed.run(1, &["/usr/bin/python3", "-c", &python])).await;
    let mut output = std::fs::File::from(file_handed_over(&listener));
    let mut next = bed.sh(2, "echo $PPID; sleep 0.5");
    Arc::make_mut(&mut next.spec).user = UserId(2);
    let task = bed.launch(next);
    bed.started(task).await;
    // Whether it can be written or not, it is nobody's word.
    let _ = output.write_all(b"era: checkpoint done=7\nforged\n");
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
    assert_eq!(bed.log(2), log, "the same keeper, and nothing else");
}

#[tokio::test]
async fn who_holds_the_output_of_a_task_that_is_gone_holds_nobody_up() {
    let mut bed = Bed::new().await;
    let name = format!("era-test-flood-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("listens");
    let flood = std::thread::spawn(move || {
        let mut output = std::fs::File::from(file_handed_over(&listener));
        while output.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let python = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); \
         socket.send_fds(s, [b'x'], [1])"
    );
    let task = bed.launch(bed.run(1, &["/usr/bin/python3", "-c", &python]));
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
    flood.join().expect("it ended");
}
