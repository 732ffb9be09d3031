//! Starting and ending: sockets first, so that what is wrong with an address is said before anything is served, then the thread.

use crate::access::{Access, Via, read_token};
use crate::limits::{CONNECTIONS, CONTROL_CONNECTIONS, LAST_WORDS, QUESTIONS, RELOADS};
use crate::served::Served;
use crate::server::{Server, Socket};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use weir_serve::{CannotListen, Inherited, SideListener, explain};

/// Where it is.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `127.0.0.1:9901`, `unix:/path`: to read, and to change what is served for who has the token.
    pub admin: Option<String>,
    /// The path of a Unix socket for this user alone: to read and to change.
    pub control: Option<PathBuf>,
    /// Names by which requests may ask for it, besides addresses and those of loopback.
    pub hosts: Vec<String>,
    /// The file of the token.
    pub token: Option<PathBuf>,
    /// Sockets that were given.
    pub inherited: Option<Arc<Inherited>>,
    /// Whether the control socket is another process's until [`Admin::takes_path`].
    pub replaces: bool,
}

/// Why there is no admin interface.
#[derive(Debug)]
pub enum CannotStart {
    /// An address cannot be had.
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

/// Sockets that are open, before anybody is answered.
pub struct Bound {
    sockets: Vec<(SideListener, Via)>,
    /// The address of the first as written.
    written: Option<String>,
    /// Where the control socket is to be, while it is beside that.
    path: Option<PathBuf>,
    access: Access,
}

impl Options {
    /// Binds what is asked for; `None`: nothing is.
    ///
    /// # Errors
    /// What cannot be had, with the remedy.
    pub fn bind(self) -> Result<Option<Bound>, CannotStart> {
        if let Some(path) = &self.token {
            read_token(path).map_err(|e| CannotStart::Token(path.clone(), e))?;
        }
        let mut sockets = Vec::new();
        if let Some(addr) = &self.admin {
            let aside =
                SideListener::take_or_bind(addr, self.inherited.as_deref()).map_err(CannotStart::Listen)?;
            let via = if aside.unix.is_some() { Via::Unix } else { Via::Tcp };
            sockets.push((aside, via));
        }
        if let Some(path) = &self.control {
            let bound = match self.replaces {
                true => SideListener::bind_beside(path),
                false => SideListener::bind(&format!("unix:{}", path.display()), true),
            };
            sockets.push((bound.map_err(CannotStart::Listen)?, Via::Control));
        }
        let path = self.control.clone().filter(|_| self.replaces);
        let access = Access { hosts: self.hosts, token: self.token };
        Ok((!sockets.is_empty()).then_some(Bound { sockets, written: self.admin, path, access }))
    }
}

/// The admin interface, which answers.
pub struct Admin {
    /// What each socket is for, and where it is.
    pub listening: Vec<(&'static str, String)>,
    asides: Arc<Vec<SideListener>>,
    /// Where the last of them is to be.
    path: Option<PathBuf>,
    ending: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Bound {
    /// Begins to answer.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(self, served: Arc<dyn Served>) -> Result<Admin, CannotStart> {
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
            if let (Some(written), true) = (&self.written, via != Via::Control) {
                let socket = aside.duplicate().map_err(CannotStart::System)?;
                own.extend(socket.map(|socket| (written.clone(), socket)));
            }
            let _in = runtime.enter();
            if let Some(socket) = Socket::of(&mut aside).map_err(CannotStart::System)? {
                let most = if via == Via::Control { CONTROL_CONNECTIONS } else { CONNECTIONS };
                sockets.push((socket, via, most));
            }
            let addr = match (&self.path, via) {
                (Some(path), Via::Control) => format!("unix:{}", path.display()),
                _ => aside.addr.clone(),
            };
            listening.push((if via == Via::Control { "control" } else { "admin" }, addr));
            asides.push(aside);
        }
        let asides = Arc::new(asides);
        let server = Server::new(served, self.access, ends, (own, asides.clone()));
        let thread = std::thread::Builder::new().name("weir-admin".to_owned());
        let thread = thread.spawn(move || serve(runtime, server, sockets)).map_err(CannotStart::System)?;
        Ok(Admin { listening, asides, path: self.path, ending, thread })
    }
}

fn serve(runtime: Runtime, server: Arc<Server>, sockets: Vec<(Socket, Via, usize)>) {
    runtime.block_on(server.run(sockets));
    // A question that is not answered is waited for by nobody.
    runtime.shutdown_timeout(LAST_WORDS);
}

impl Admin {
    /// Removes the files of its sockets, since the process is to end at once.
    pub fn abandon(&self) -> impl Fn() + Send + 'static + use<> {
        let asides = self.asides.clone();
        move || asides.iter().for_each(SideListener::remove_file)
    }

    /// The control socket is at its path from now on, in place of another process's.
    ///
    /// # Errors
    /// What the system says: it stays where it is.
    pub fn takes_path(&self) -> io::Result<()> {
        match (&self.path, self.asides.last()) {
            (Some(path), Some(control)) => control.takes_path(path),
            _ => Ok(()),
        }
    }

    /// Ends it: what is being said is said to its end, within a second.
    pub fn finish(self) {
        self.asides.iter().for_each(SideListener::remove_file);
        self.ending.send_replace(true);
        // It has nothing to say.
        let _ = self.thread.join();
    }
}
