//! A listening socket beside those of the topology, such as the admin interface's: bound as theirs are, with the same words where that
//! fails, and the file of a Unix socket goes as theirs do.

use super::bind::{self, Bound, CannotListen};
use super::socket_file::SocketFiles;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

/// The socket.
pub struct Aside {
    /// Of TCP.
    pub tcp: Option<TcpListener>,
    /// A Unix socket.
    pub unix: Option<UnixListener>,
    /// Where it is: `127.0.0.1:9901`, `unix:/path`.
    pub addr: String,
    files: SocketFiles,
}

impl Aside {
    /// Binds an address as listeners have it. `private`: only the user of this process may connect to a Unix socket (0600).
    ///
    /// # Errors
    /// Why it cannot be had, with the remedy.
    pub fn bind(addr: &str, private: bool) -> Result<Aside, CannotListen> {
        let files = SocketFiles::default();
        let mode = private.then_some(0o600);
        let (tcp, unix, addr) = match bind::bind_as(addr, 1, mode, (0, &files))? {
            Bound::Tcp(mut sockets, address) => (sockets.pop(), None, address.to_string()),
            Bound::Unix(mut sockets) => (None, sockets.pop(), addr.to_owned()),
        };
        Ok(Aside { tcp, unix, addr, files })
    }

    /// The file of a Unix socket goes, once; also when this is dropped.
    pub fn remove_file(&self) {
        self.files.remove(u32::MAX);
    }
}
