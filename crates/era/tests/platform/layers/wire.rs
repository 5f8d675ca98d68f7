//! A wire between a layer and its database that can be cut and healed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Everything goes through.
const WHOLE: u8 = 0;
/// Nothing goes through, and nobody is told: what is on its way arrives when it is healed.
const HELD: u8 = 1;
/// Every connection is ended, and none is taken.
const CUT: u8 = 2;

/// A wire to an address.
pub(crate) struct Wire {
    pub(crate) port: u16,
    state: Arc<AtomicU8>,
}

impl Wire {
    pub(crate) fn to(port: u16) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Wire {
            port: listener.local_addr().unwrap().port(),
            state: Arc::new(AtomicU8::new(WHOLE)),
        };
        let state = wire.state.clone();
        // It ends with the process: a test has few of them.
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = TcpStream::connect(("127.0.0.1", port));
                if let (Ok(far), WHOLE | HELD) = (far, state.load(Ordering::Relaxed)) {
                    carry(&near, &far, &state);
                    carry(&far, &near, &state);
                }
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
