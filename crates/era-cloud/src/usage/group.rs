//! What control groups say of a task, version 1 and 2.

use std::path::PathBuf;

use super::UsageReading;

/// Reads a task's groups. Each number stands in whichever folder has its file.
pub(super) fn look(folders: &[PathBuf]) -> UsageReading {
    let read = |name: &str| {
        folders.iter().find_map(|folder| std::fs::read_to_string(folder.join(name)).ok())
    };
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    if folders.is_empty() {
        return UsageReading::default();
    }
    let cpu_us = read("cpu.stat")
        .and_then(|text| field(&text, "usage_usec"))
        .or_else(|| Some(number("cpuacct.usage")? / 1000));
    let cache = read("memory.stat")
        .and_then(|text| {
            field(&text, "total_inactive_file").or_else(|| field(&text, "inactive_file"))
        })
        .unwrap_or(0);
    // Pages of files that nobody touched lately are given back before anything is killed.
    let memory = number("memory.current")
        .or_else(|| number("memory.usage_in_bytes"))
        .map(|bytes| bytes.saturating_sub(cache));
    let io = read("io.stat").map(|text| io_stat(&text)).or_else(|| {
        let text = read("blkio.throttle.io_service_bytes_recursive")
            .or_else(|| read("blkio.throttle.io_service_bytes"))?;
        Some(blkio(&text))
    });
    UsageReading {
        cpu_us,
        memory_bytes: memory,
        // The highest mark counts pages of files too, so it is no peak of what is told above.
        memory_peak_bytes: None,
        disk_read_bytes: io.map(|(read, _)| read),
        disk_written_bytes: io.map(|(_, written)| written),
    }
}

/// `usage_usec 12345`, one a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// `8:0 rbytes=1 wbytes=2 rios=3 …`, one line for each disk.
fn io_stat(text: &str) -> (u64, u64) {
    let sum = |key: &str| {
        let values = text.split_ascii_whitespace().filter_map(|word| word.strip_prefix(key));
        values.filter_map(|n| n.parse::<u64>().ok()).fold(0, u64::saturating_add)
    };
    (sum("rbytes="), sum("wbytes="))
}

/// `8:0 Read 1`, `8:0 Write 2`, …, one of each for each disk.
fn blkio(text: &str) -> (u64, u64) {
    let sum = |kind: &str| {
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            (words.next()? == kind).then(|| words.next()?.parse::<u64>().ok()).flatten()
        });
        lines.fold(0, u64::saturating_add)
    };
    (sum("Read"), sum("Write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, UsageReading) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let seen = look(&[folder.path().join("not-there"), folder.path().to_owned()]);
        (folder, seen)
    }

    #[test]
    fn version_2_is_read() {
        let (_folder, seen) = group(&[
            ("cpu.stat", "usage_usec 2500000\nuser_usec 2000000\n"),
            ("memory.current", "1000000\n"),
            ("memory.stat", "anon 1\ninactive_file 400000\n"),
            ("io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2\n253:0 \n"),
        ]);
        let expected = UsageReading {
            cpu_us: Some(2_500_000),
            memory_bytes: Some(600_000),
            memory_peak_bytes: None,
            disk_read_bytes: Some(11),
            disk_written_bytes: Some(22),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn version_1_is_read() {
        let (_folder, seen) = group(&[
            ("cpuacct.usage", "2500000000\n"),
            ("memory.usage_in_bytes", "1000000\n"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 400000\n"),
            (
                "blkio.throttle.io_service_bytes",
                "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\nTotal 30\n",
            ),
        ]);
        let expected = UsageReading {
            cpu_us: Some(2_500_000),
            memory_bytes: Some(600_000),
            memory_peak_bytes: None,
            disk_read_bytes: Some(10),
            disk_written_bytes: Some(20),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        assert_eq!(
            group(&[("cpu.stat", "nonsense\n"), ("memory.current", "max\n")]).1,
            UsageReading::default()
        );
    }
}
