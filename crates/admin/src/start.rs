//! Start and end: sockets first, so that a wrong address is reported before anything is served, then the thread.

use crate::access::{Access, Channel, read_token};
use crate::connections::Socket;
use crate::limits::{CONNECTIONS, CONTROL_CONNECTIONS, LAST_WORDS, QUESTIONS, RELOADS};
use crate::served::Service;
use crate::server::Server;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use weir_serve::{CannotListen, Inherited, SideListener, explain};

/// The addresses of the interface.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `127.0.0.1:9901`, `unix:/path`: to read, and with the token to change.
    pub admin: Option<String>,
    /// The path of a Unix socket for this user alone: to read and to change.
    pub control: Option<PathBuf>,
    /// Host names that requests may use, besides addresses and those of loopback.
    pub hosts: Vec<String>,
    /// The file of the token.
    pub token: Option<PathBuf>,
    /// Inherited sockets.
    pub inherited: Option<Arc<Inherited>>,
    /// Whether the control socket is another process's until [`Admin::takes_path`].
    pub replaces: bool,
}

/// Why there is no admin interface.
#[derive(Debug)]
pub enum CannotStart {
    /// An address is not available.
    Listen(CannotListen),
    /// The token cannot be used.
    Token(PathBuf, io::Error),
    /// The system refused something else.
    System(io::Error),
}

impl fmt::Display for CannotStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotStart::Listen(e) => e.fmt(f),
            CannotStart::Token(path, e) => {
                write!(f, "the token in {} cannot be used: {}", path.display(), explain(e))
            }
            CannotStart::System(e) => write!(f, "the admin interface cannot start: {}", explain(e)),
        }
    }
}

impl std::error::Error for CannotStart {}

/// Sockets that are open, before any request is answered.
pub struct Bound {
    sockets: Vec<(SideListener, Channel)>,
    /// The address of the first, as written.
    written: Option<String>,
    /// The final path of the control socket, while it is beside that.
    path: Option<PathBuf>,
    access: Access,
}

impl Options {
    /// Binds the requested sockets; `None`: there are none.
    ///
    /// # Errors
    /// The unavailable address, with the remedy.
    pub fn bind(self) -> Result<Option<Bound>, CannotStart> {
        if let Some(path) = &self.token {
            read_token(path).map_err(|e| CannotStart::Token(path.clone(), e))?;
        }
        let mut sockets = Vec::new();
        if let Some(addr) = &self.admin {
            let aside =
                SideListener::take_or_bind(addr, self.inherited.as_deref()).map_err(CannotStart::Listen)?;
            let via = if aside.unix.is_some() { Channel::Unix } else { Channel::Tcp };
            sockets.push((aside, via));
        }
        if let Some(path) = &self.control {
            let bound = match self.replaces {
                true => SideListener::bind_beside(path),
                false => SideListener::bind(&format!("unix:{}", path.display()), true),
            };
            sockets.push((bound.map_err(CannotStart::Listen)?, Channel::Control));
        }
        let path = self.control.clone().filter(|_| self.replaces);
        let access = Access { hosts: self.hosts, token: self.token };
        Ok((!sockets.is_empty()).then_some(Bound { sockets, written: self.admin, path, access }))
    }
}

/// The running admin interface.
pub struct Admin {
    /// The purpose and address of each socket.
    pub listening: Vec<(&'static str, String)>,
    asides: Arc<Vec<SideListener>>,
    /// The final path of the last of them.
    path: Option<PathBuf>,
    ending: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Bound {
    /// Starts answering.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(self, served: Arc<dyn Service>) -> Result<Admin, CannotStart> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(QUESTIONS + RELOADS)
            .thread_name("weir-admin-ask")
            .build()
            .map_err(CannotStart::System)?;
        let (ending, ends) = watch::channel(false);
        let (mut listening, mut asides, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
        let mut own = Vec::new();
        for (mut aside, via) in self.sockets {
            if let (Some(written), true) = (&self.written, via != Channel::Control) {
                let socket = aside.duplicate().map_err(CannotStart::System)?;
                own.extend(socket.map(|socket| (written.clone(), socket)));
            }
            let _in = runtime.enter();
            if let Some(socket) = Socket::from_listener(&mut aside).map_err(CannotStart::System)? {
                let most = if via == Channel::Control { CONTROL_CONNECTIONS } else { CONNECTIONS };
                sockets.push((socket, via, most));
            }
            let addr = match (&self.path, via) {
                (Some(path), Channel::Control) => format!("unix:{}", path.display()),
                _ => aside.addr.clone(),
            };
            listening.push((if via == Channel::Control { "control" } else { "admin" }, addr));
            asides.push(aside);
        }
        let asides = Arc::new(asides);
        let server = Server::new(served, self.access, ends, own, asides.clone());
        let thread = std::thread::Builder::new().name("weir-admin".to_owned());
        let thread = thread.spawn(move || serve(runtime, server, sockets)).map_err(CannotStart::System)?;
        Ok(Admin { listening, asides, path: self.path, ending, thread })
    }
}

fn serve(runtime: Runtime, server: Arc<Server>, sockets: Vec<(Socket, Channel, usize)>) {
    runtime.block_on(server.run(sockets));
    // No client waits for a question that is not answered.
    runtime.shutdown_timeout(LAST_WORDS);
}

impl Admin {
    /// Removes the files of its sockets, since the process is to end at once.
    pub fn abandon(&self) -> impl Fn() + Send + 'static + use<> {
        let asides = self.asides.clone();
        move || asides.iter().for_each(SideListener::remove_file)
    }

    /// Moves the control socket to its path, in place of another process's.
    ///
    /// # Errors
    /// The error of the system: it stays where it is.
    pub fn takes_path(&self) -> io::Result<()> {
        match (&self.path, self.asides.last()) {
            (Some(path), Some(control)) => control.takes_path(path),
            _ => Ok(()),
        }
    }

    /// Ends it: answers in progress are finished, within a second.
    pub fn finish(self) {
        self.asides.iter().for_each(SideListener::remove_file);
        self.ending.send_replace(true);
        // It has nothing to report.
        let _ = self.thread.join();
    }
}
