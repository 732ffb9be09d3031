//! A listening socket beside those of the topology, such as the admin interface's: bound as theirs are, with the same words where that
//! fails, and the file of a Unix socket goes as theirs do.

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
    /// Of TCP.
    pub tcp: Option<TcpListener>,
    /// A Unix socket.
    pub unix: Option<UnixListener>,
    /// Where it is: `127.0.0.1:9901`, `unix:/path`.
    pub addr: String,
    files: SocketFiles,
}

impl SideListener {
    /// Binds an address as listeners have it. `private`: only the user of this process may connect to a Unix socket (0600).
    ///
    /// # Errors
    /// Why it cannot be had, with the remedy.
    pub fn bind(addr: &str, private: bool) -> Result<SideListener, CannotListen> {
        let files = SocketFiles::default();
        let mode = private.then_some(0o600);
        let (tcp, unix, addr) = match bind::bind_as(addr, 1, mode, 0, &files)? {
            Bound::Tcp(mut sockets, address) => (sockets.pop(), None, address.to_string()),
            Bound::Unix(mut sockets) => (None, sockets.pop(), addr.to_owned()),
        };
        Ok(SideListener { tcp, unix, addr, files })
    }

    /// The socket of a predecessor that listens at an address, if one was given; else as [`SideListener::bind`].
    ///
    /// # Errors
    /// As there.
    pub fn take_or_bind(addr: &str, given: Option<&Inherited>) -> Result<SideListener, CannotListen> {
        let Some(socket) = given.map(|all| all.take(addr)).unwrap_or_default().pop() else {
            return SideListener::bind(addr, false);
        };
        let files = SocketFiles::default();
        let why = |e: io::Error| CannotListen { addr: addr.to_owned(), why: e.to_string() };
        match bind::given(addr, vec![socket], 0, &files).map_err(why)? {
            Bound::Tcp(mut sockets, address) => {
                Ok(SideListener { tcp: sockets.pop(), unix: None, addr: address.to_string(), files })
            }
            Bound::Unix(mut sockets) => {
                Ok(SideListener { tcp: None, unix: sockets.pop(), addr: addr.to_owned(), files })
            }
        }
    }

    /// A private Unix socket that another process listens at until [`SideListener::takes_path`]: under another name until then.
    ///
    /// # Errors
    /// As [`SideListener::bind`].
    pub fn bind_beside(path: &Path) -> Result<SideListener, CannotListen> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        SideListener::bind(&format!("unix:{}", beside.display()), true)
    }

    /// From now on it is at this path, in place of what was there.
    ///
    /// # Errors
    /// What the system says; it stays where it was.
    pub fn takes_path(&self, path: &Path) -> io::Result<()> {
        self.files.rename(path)
    }

    /// The same socket once more, for another process.
    ///
    /// # Errors
    /// What the system says.
    pub fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        match (&self.tcp, &self.unix) {
            (Some(socket), _) => socket.try_clone().map(|socket| Some(socket.into())),
            (None, Some(socket)) => socket.try_clone().map(|socket| Some(socket.into())),
            (None, None) => Ok(None),
        }
    }

    /// It is another process's from now on.
    pub fn forget_file(&self) {
        self.files.forget();
    }

    /// The file of a Unix socket goes, once; also when this is dropped.
    pub fn remove_file(&self) {
        self.files.remove(u32::MAX);
    }
}
