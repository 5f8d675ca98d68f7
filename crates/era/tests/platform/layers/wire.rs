//! A wire between a layer and what it asks that can be cut and healed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Everything goes through.
const WHOLE: u8 = 0;
/// Nothing goes through, and nobody is told: what is on its way arrives when it is healed.
const HELD: u8 = 1;
/// Every connection is ended, and none is taken.
const CUT: u8 = 2;

/// How long what is at the other end may take to take a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A wire to an address.
pub(crate) struct Wire {
    /// What it connects, for whoever reads what happened.
    pub(crate) name: String,
    /// Where it is taken hold of.
    pub(crate) address: SocketAddr,
    state: Arc<AtomicU8>,
}

impl Wire {
    /// From this address, at a port of its own, to that one.
    pub(crate) fn new(name: &str, from: &str, to: &str) -> Wire {
        let listener = TcpListener::bind((from, 0)).unwrap();
        let wire = Wire {
            name: name.to_owned(),
            address: listener.local_addr().unwrap(),
            state: Arc::new(AtomicU8::new(WHOLE)),
        };
        let (state, to): (_, SocketAddr) = (wire.state.clone(), to.parse().unwrap());
        // It ends with the process: a test has few of them.
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let state = state.clone();
                // The other end may be cut off, which takes its time to be found out.
                std::thread::spawn(move || {
                    let far = TcpStream::connect_timeout(&to, CONNECT_MAX);
                    if let (Ok(far), WHOLE | HELD) = (far, state.load(Ordering::Relaxed)) {
                        carry(&near, &far, &state);
                        carry(&far, &near, &state);
                    }
                });
            }
        });
        wire
    }

    pub(crate) fn cut(&self) {
        self.state.store(CUT, Ordering::Relaxed);
    }

    pub(crate) fn hold(&self) {
        self.state.store(HELD, Ordering::Relaxed);
    }

    pub(crate) fn heal(&self) {
        self.state.store(WHOLE, Ordering::Relaxed);
    }
}

fn carry(from: &TcpStream, to: &TcpStream, state: &Arc<AtomicU8>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let state = state.clone();
    let _ = from.set_nodelay(true);
    from.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 64 * 1024];
        loop {
            match state.load(Ordering::Relaxed) {
                WHOLE => {}
                HELD => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                _ => break,
            }
            let count = match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    continue;
                }
                Err(_) => break,
            };
            while state.load(Ordering::Relaxed) == HELD {
                std::thread::sleep(Duration::from_millis(10));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}
