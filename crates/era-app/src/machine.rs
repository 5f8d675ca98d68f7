//! This machine, told from others: by what its system was given when it was installed, since two
//! machines may be called the same.

use std::sync::OnceLock;

/// Where systems keep it.
const FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// What it is called.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Its id, of twelve letters and digits. One that was given none has its name's: a container is
/// called after its own id.
pub fn id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let given = FILES.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        let given = given.map(|text| text.trim().to_owned());
        let given = given.chain(era_cloud::discover::hardware_id()).find(|text| !text.is_empty());
        // Whoever knows it could ask the system in its name: only a hash of it leaves the machine.
        let hash = blake3::hash(given.unwrap_or_else(name).as_bytes());
        hash.to_hex().chars().take(12).collect()
    })
}

/// Its name as a part of a file's.
pub fn file_name() -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    name().chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_id_and_a_name_that_a_file_can_have() {
        assert_eq!(id(), id());
        assert!(id().len() == 12 && id().chars().all(|c| c.is_ascii_hexdigit()), "{}", id());
        assert!(!file_name().is_empty() && !file_name().contains('/'), "{}", file_name());
    }
}
