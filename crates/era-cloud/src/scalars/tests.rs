//! Scalars are read as they are written, whoever wrote the file.

#![allow(clippy::print_stderr)] // a skipped test says so

use std::fs;
use std::io::Write;
use std::process::Command;

use super::frame::masked_crc;
use super::*;
use crate::skipped::skipped;

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut bytes = length.to_vec();
    bytes.extend(masked_crc(&length).to_le_bytes());
    bytes.extend(data);
    bytes.extend(masked_crc(data).to_le_bytes());
    bytes
}

/// An event with one plain scalar, of a tag and a step that fit in a byte each.
fn event(tag: &str, step: u8, value: f32) -> Vec<u8> {
    let tag_bytes = tag.len() as u8;
    let mut bytes = [&[0x09][..], &1_793_347_200.5_f64.to_le_bytes(), &[0x10, step]].concat();
    bytes.extend([0x2a, tag_bytes + 9, 0x0a, tag_bytes + 7, 0x0a, tag_bytes]);
    bytes.extend(tag.as_bytes());
    bytes.push(0x15);
    bytes.extend(value.to_le_bytes());
    record(&bytes)
}

fn told(samples: &[Sample]) -> Vec<(&str, u64, f64)> {
    samples.iter().map(|s| (s.name.as_str(), s.step, s.value)).collect()
}

#[test]
fn a_file_that_grows_is_followed_record_by_record() {
    let outputs = tempfile::tempdir().unwrap();
    let run = outputs.path().join("runs/a");
    fs::create_dir_all(&run).unwrap();
    let mut scalars = Scalars::new(outputs.path());
    assert!(scalars.look(Time(0)).is_empty());
    let mut file = fs::File::create(run.join("events.out.tfevents.1.host")).unwrap();
    file.write_all(&event("loss", 1, 0.5)).unwrap();
    let (first, second) = (scalars.look(Time(0)), event("loss", 2, 0.25));
    assert_eq!(told(&first), [("runs/a/loss", 1, 0.5)]);
    assert_eq!(first[0].at, Time(1_793_347_200_500));
    // Half a record is not there yet.
    file.write_all(&second[..20]).unwrap();
    assert!(scalars.look(Time(0)).is_empty());
    file.write_all(&second[20..]).unwrap();
    assert_eq!(told(&scalars.look(Time(0))), [("runs/a/loss", 2, 0.25)]);
    assert!(scalars.look(Time(0)).is_empty());
}

#[test]
fn damage_is_passed_over_and_never_followed() {
    let outputs = tempfile::tempdir().unwrap();
    let path = |name: &str| outputs.path().join(format!("{name}.tfevents"));
    // A wrong checksum of data, a long record that is stepped over, and a good one behind.
    let mut damaged = event("bad", 1, 1.0);
    damaged[14] ^= 1;
    damaged.extend(record(&vec![0; 3 << 20]));
    damaged.extend(event("good", 2, 2.0));
    fs::write(path("a"), damaged).unwrap();
    // No event file at all, one that announces more than there could be, a link, a pipe.
    fs::write(path("b"), vec![7; 1000]).unwrap();
    let length = u64::MAX.to_le_bytes();
    let mut endless = [&length[..], &masked_crc(&length).to_le_bytes()].concat();
    endless.extend([0; 100]);
    fs::write(path("c"), endless).unwrap();
    fs::write(outputs.path().join("secret"), event("secret", 1, 1.0)).unwrap();
    std::os::unix::fs::symlink(outputs.path().join("secret"), path("d")).unwrap();
    std::os::unix::fs::symlink("/", outputs.path().join("root")).unwrap();
    assert!(Command::new("mkfifo").arg(path("e")).status().unwrap().success());
    let mut scalars = Scalars::new(outputs.path());
    assert_eq!(told(&scalars.look(Time(0))), [("good", 2, 2.0)]);
    assert!(scalars.look(Time(0)).is_empty());
}

#[test]
fn what_is_not_finite_or_not_a_name_is_made_harmless() {
    let scalar = |value| Scalar { tag: "x".into(), step: -5, wall_time_s: f64::NAN, value };
    assert_eq!(sample("", scalar(f64::NAN), Time(3)), None);
    let fine = sample("", scalar(1.0), Time(3)).unwrap();
    assert_eq!((fine.step, fine.at), (0, Time(3)));
    assert_eq!(metric_name("runs/ü", "a b").unwrap(), "runs/_/a_b");
    assert_eq!(metric_name("", "usage/cpu").unwrap(), "usage_cpu");
    assert_eq!(metric_name("", ""), None);
    let long = metric_name(&"d/".repeat(100), "loss").unwrap();
    assert!(long.len() == METRIC_NAME_MAX && long.ends_with("/loss"));
}

#[test]
fn a_look_takes_a_bounded_number_and_the_next_one_goes_on() {
    let outputs = tempfile::tempdir().unwrap();
    let many = event("a", 1, 1.0).repeat(VALUES_PER_LOOK_MAX + 10);
    fs::write(outputs.path().join("x.tfevents"), many).unwrap();
    let mut scalars = Scalars::new(outputs.path());
    assert_eq!(scalars.look(Time(0)).len(), VALUES_PER_LOOK_MAX);
    assert_eq!(scalars.look(Time(0)).len(), 10);
}

/// Runs where the Python packages `tensorboard` and `tensorboardX` can be imported, by the Python
/// that `ERA_TEST_PYTHON` names or by `python3`; elsewhere it says that it was skipped.
#[test]
fn what_the_real_writer_writes_is_read() {
    let python = std::env::var("ERA_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let outputs = tempfile::tempdir().unwrap();
    let script = r"
import sys
try:
    from tensorboardX import SummaryWriter
    from tensorboard.summary import Writer
except ImportError:
    sys.exit(77)
t = Writer(sys.argv[1] + '/tensors')
for step in range(3):
    t.add_scalar('acc', step + 0.5, step)
t.close()
w = SummaryWriter(sys.argv[1] + '/deep/run')
for step in range(50):
    w.add_scalar('train/loss', 1.0 / (step + 1), step)
w.add_histogram('h', [1.0, 2.0, 3.0], 1)
w.add_text('t', 'text', 1)
w.close()
";
    let ran = Command::new(&python).args(["-c", script]).arg(outputs.path()).status();
    if !ran.as_ref().is_ok_and(|status| status.success()) {
        let code = ran.ok().and_then(|status| status.code());
        assert!(matches!(code, None | Some(77)), "the writer failed: {code:?}");
        return skipped("the Python here cannot import tensorboardX and tensorboard");
    }
    let samples = Scalars::new(outputs.path()).look(Time(0));
    let acc = samples.iter().filter(|s| s.name == "tensors/acc").map(|s| (s.step, s.value));
    assert_eq!(acc.collect::<Vec<_>>(), [(0, 0.5), (1, 1.5), (2, 2.5)]);
    let loss: Vec<_> = samples.iter().filter(|s| s.name == "deep/run/train/loss").collect();
    assert_eq!(loss.len(), 50);
    for (step, sample) in (0..).zip(loss) {
        assert_eq!((sample.step, sample.value), (step, f64::from(1.0 / (step as f32 + 1.0))));
        assert!(sample.at > Time::from_s(1_600_000_000));
    }
}
