//! The key of a site's secrets: a file that only the server's user can read, and what is sealed
//! with it (ChaCha20-Poly1305, a random nonce for each seal).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// What the file is called in the server's folder.
pub(crate) const KEY_FILE: &str = "secrets.key";
/// The form of what is sealed.
const VERSION: u8 = 1;
/// So much of a key's hash says which key sealed something.
const MARK_LEN: usize = 4;
const HEAD_LEN: usize = 1 + MARK_LEN + NONCE_LEN;

/// Why something sealed cannot be opened, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unopened {
    #[error("the server's key is gone")]
    NoKey,
    #[error("the server has another key than when it was set")]
    OtherKey,
    #[error("it is damaged")]
    Damaged,
}

pub(super) struct Key {
    key: LessSafeKey,
    mark: [u8; MARK_LEN],
}

impl Key {
    fn of(bytes: &[u8; 32]) -> io::Result<Key> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, bytes).map_err(|_| refused())?;
        let hash = blake3::derive_key("era 2026-11 mark of the key of secrets", bytes);
        let mut mark = [0; MARK_LEN];
        mark.copy_from_slice(&hash[..MARK_LEN]);
        Ok(Key { key: LessSafeKey::new(key), mark })
    }

    /// The key of a file, if there is one.
    pub(super) fn read(path: &Path) -> io::Result<Option<Key>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let no_key = |_| io::Error::new(io::ErrorKind::InvalidData, "there is no key in it");
        let bytes = blake3::Hash::from_hex(text.trim()).map_err(no_key)?;
        Key::of(bytes.as_bytes()).map(Some)
    }

    /// The same; where there is none, one is made. Of several servers that do so at once one
    /// succeeds, and all have its key.
    pub(super) fn read_or_make(path: &Path) -> io::Result<Key> {
        if let Some(key) = Key::read(path)? {
            return Ok(key);
        }
        let (mut bytes, mut number) = ([0; 32], [0; 8]);
        random(&mut bytes)?;
        random(&mut number)?;
        let draft = path.with_extension(format!("{:016x}", u64::from_le_bytes(number)));
        let text = format!("{}\n", blake3::Hash::from_bytes(bytes).to_hex());
        let linked = write_private(&draft, text.as_bytes()).and_then(|()| {
            // Linked with the key in it, so that nobody ever reads half of one.
            match fs::hard_link(&draft, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        });
        let removed = fs::remove_file(&draft);
        linked.and(removed)?;
        Key::read(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn seal(&self, user: u32, name: &str, value: &str) -> io::Result<String> {
        let mut nonce = [0; NONCE_LEN];
        random(&mut nonce)?;
        let mut sealed = value.as_bytes().to_vec();
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(nonce_used, about(user, name), &mut sealed)
            .map_err(|_| refused())?;
        let mut all = Vec::with_capacity(HEAD_LEN + sealed.len());
        all.push(VERSION);
        all.extend(self.mark);
        all.extend(nonce);
        all.extend(sealed);
        Ok(BASE64.encode(all))
    }

    pub(super) fn open(&self, user: u32, name: &str, sealed: &str) -> Result<String, Unopened> {
        let all = BASE64.decode(sealed).map_err(|_| Unopened::Damaged)?;
        let (head, text) = all.split_at_checked(HEAD_LEN).ok_or(Unopened::Damaged)?;
        if head[0] != VERSION {
            return Err(Unopened::Damaged);
        }
        if head[1..=MARK_LEN] != self.mark {
            return Err(Unopened::OtherKey);
        }
        let nonce = Nonce::try_assume_unique_for_key(&head[1 + MARK_LEN..]);
        let (nonce, mut text) = (nonce.map_err(|_| Unopened::Damaged)?, text.to_vec());
        let value = self.key.open_in_place(nonce, about(user, name), &mut text);
        let value = value.map_err(|_| Unopened::Damaged)?.to_vec();
        String::from_utf8(value).map_err(|_| Unopened::Damaged)
    }
}

fn random(bytes: &mut [u8]) -> io::Result<()> {
    let none = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(bytes).map_err(none)
}

fn refused() -> io::Error {
    io::Error::other("the cipher refuses it")
}

/// What a seal is for: a row that is given to another user, or another name, does not open.
fn about(user: u32, name: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{user} {name}").into_bytes())
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
