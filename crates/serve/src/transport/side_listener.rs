//! A listening socket beside those of the topology, such as that of the admin interface: it is bound as theirs are,
//! with the same error messages, and the file of a Unix socket is removed as theirs are.

use super::bind::{self, Bound, CannotListen};
use super::inherit::Inherited;
use super::socket_file::SocketFiles;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// The socket.
pub struct SideListener {
    /// A TCP socket.
    pub tcp: Option<TcpListener>,
    /// A Unix socket.
    pub unix: Option<UnixListener>,
    /// Its address: `127.0.0.1:9901`, `unix:/path`.
    pub addr: String,
    files: SocketFiles,
}

impl SideListener {
    /// Binds an address as listeners have it. `private`: only the user of this process may connect to a Unix socket
    /// (0600).
    ///
    /// # Errors
    /// Why it cannot be bound, with the remedy.
    pub fn bind(addr: &str, private: bool) -> Result<SideListener, CannotListen> {
        let files = SocketFiles::default();
        let mode = private.then_some(0o600);
        let (tcp, unix, addr) = match bind::bind_as(addr, 1, mode, 0, &files)? {
            Bound::Tcp(mut sockets, address) => (sockets.pop(), None, address.to_string()),
            Bound::Unix(mut sockets) => (None, sockets.pop(), addr.to_owned()),
        };
        Ok(SideListener { tcp, unix, addr, files })
    }

    /// Takes the socket of a predecessor at this address, if one was given; otherwise as [`SideListener::bind`].
    ///
    /// # Errors
    /// Those of [`SideListener::bind`].
    pub fn take_or_bind(addr: &str, given: Option<&Inherited>) -> Result<SideListener, CannotListen> {
        let why = |e: io::Error| CannotListen::new(addr, e.to_string());
        let given = given.map(|all| all.take(addr)).transpose().map_err(why)?.unwrap_or_default();
        if given.sockets.is_empty() {
            return SideListener::bind(addr, false);
        }
        let files = SocketFiles::default();
        match bind::given(addr, given, 0, &files).map_err(why)? {
            Bound::Tcp(mut sockets, address) => {
                Ok(SideListener { tcp: sockets.pop(), unix: None, addr: address.to_string(), files })
            }
            Bound::Unix(mut sockets) => {
                Ok(SideListener { tcp: None, unix: sockets.pop(), addr: addr.to_owned(), files })
            }
        }
    }

    /// Binds a private Unix socket at a path that another process listens on, under another name until
    /// [`SideListener::takes_path`].
    ///
    /// # Errors
    /// Those of [`SideListener::bind`].
    pub fn bind_beside(path: &Path) -> Result<SideListener, CannotListen> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        SideListener::bind(&format!("unix:{}", beside.display()), true)
    }

    /// Moves it to this path, in place of what was there.
    ///
    /// # Errors
    /// The error of the system; the socket stays where it was.
    pub fn takes_path(&self, path: &Path) -> io::Result<()> {
        self.files.rename(path)
    }

    /// Duplicates the socket, for another process.
    ///
    /// # Errors
    /// The error of the system.
    pub fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        match (&self.tcp, &self.unix) {
            (Some(socket), _) => socket.try_clone().map(|socket| Some(socket.into())),
            (None, Some(socket)) => socket.try_clone().map(|socket| Some(socket.into())),
            (None, None) => Ok(None),
        }
    }

    /// Leaves the socket's file to another process.
    pub fn forget_file(&self) {
        self.files.forget();
    }

    /// Removes the file of a Unix socket, once; dropping this does the same.
    pub fn remove_file(&self) {
        self.files.remove(u32::MAX);
    }
}
