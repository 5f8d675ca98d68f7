//! An address that is taken and not listened on yet: whoever connects is refused, and a proxy asks
//! the next server, whatever was to be sent. An answer, even one that says so, would not do: a
//! proxy passes on no request of which somebody may have taken a part.

use std::net::{SocketAddr, TcpListener};

use tokio::net::TcpSocket;

use super::BootError;

/// How many connections wait to be accepted; the system may allow fewer.
const WAITING_MAX: u32 = 4096;

/// An address of this server's own.
pub(super) struct Reserved {
    socket: TcpSocket,
    pub(super) address: SocketAddr,
}

impl Reserved {
    /// Takes it, so that one in use is found out at once.
    pub(super) fn take(asked: SocketAddr) -> Result<Reserved, BootError> {
        let taken = || {
            let socket = match asked {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // What is left of connections of the process before this one is no hindrance.
            socket.set_reuseaddr(true)?;
            socket.bind(asked)?;
            // Else Linux gives it to whoever allows as much, as long as nobody listens.
            socket.set_reuseaddr(false)?;
            Ok(Reserved { address: socket.local_addr()?, socket })
        };
        taken().map_err(|source| BootError::Listen { address: asked, source })
    }

    /// Takes connections from now on.
    pub(super) fn listen(self) -> Result<TcpListener, BootError> {
        let Reserved { socket, address } = self;
        let listening = || {
            // Connections inherit it.
            socket.set_reuseaddr(true)?;
            socket.listen(WAITING_MAX)?.into_std()
        };
        listening().map_err(|source| BootError::Listen { address, source })
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn an_address_is_one_servers_and_refuses_until_it_is_listened_on() {
        let reserved = Reserved::take("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = reserved.address;
        let refused = |address| Reserved::take(address).err().unwrap().to_string();
        assert!(refused(address).contains("give another address"));
        let nobody = TcpStream::connect(address).unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::ConnectionRefused);
        let listener = reserved.listen().unwrap();
        let client = TcpStream::connect(address).unwrap();
        assert!(refused(address).contains("give another address"));
        // After a restart it is there again, with connections of before not yet forgotten.
        listener.set_nonblocking(false).unwrap();
        drop(listener.accept().unwrap());
        drop((listener, client));
        Reserved::take(address).unwrap().listen().unwrap();
    }
}
