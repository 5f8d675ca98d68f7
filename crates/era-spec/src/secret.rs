//! Which variables of a job look as if they were secret.

/// Ends of names of variables that hold credentials. One too many does no harm.
const ENDS: [&str; 14] = [
    "TOKEN",
    "TOKENS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "SECRETS",
    "CREDENTIAL",
    "CREDENTIALS",
    "KEY",
    "_PASS",
    "_PAT",
    "_PWD",
    "_AUTH",
];

/// Whether a variable looks as if it held what nobody but the task should see: by its name, or
/// because it is an address with a password in it.
pub fn looks_like_one(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ENDS.iter().any(|end| name.ends_with(end)) || has_password(value)
}

/// Whether a value has `://user:password@` in it.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let place = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let login = place.rsplit_once('@').map(|(login, _)| login);
        login.and_then(|login| login.split_once(':')).is_some_and(|(_, word)| !word.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_known_by_its_name_or_by_a_password_in_an_address() {
        for name in
            ["OPENAI_KEY", "GITHUB_PAT", "AWS_CREDENTIALS", "DB_PASS", "ssh_key", "MYSQL_PWD"]
        {
            assert!(looks_like_one(name, "x"), "{name}");
        }
        for (name, value) in [
            ("MODE", "fast"),
            ("KEYBOARD", "us"),
            ("PWD", "/run/era"),
            ("PATH", "/opt/path:/bin"),
            ("BASE_URL", "https://example.org:8080/x@y:z"),
            ("REMOTE", "ssh://git@example.org/x"),
        ] {
            assert!(!looks_like_one(name, value), "{name}={value}");
        }
        assert!(looks_like_one("DATABASE_URL", "postgres://ada:s3cret@db:5432/era?x=1"));
    }
}
