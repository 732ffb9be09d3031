//! How a topology is served, and why it cannot be.

use super::reloader::Source;
use crate::fleets::HandedFleet;
use crate::transport::bind::CannotListen;
use crate::transport::inherit::Inherited;
use crate::verify_run::VerifyRun;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_discovery::Readers;
use weir_net::io::system::{explain, remedy};
use weir_net::transport::tls::CannotUse;
use weir_plan::diagnostic::Diagnostic;

/// How a topology is served.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Event loops, if the file has none; `None`: one per core.
    pub loops: Option<usize>,
    /// The name server, instead of the system's.
    pub nameserver: Option<SocketAddr>,
    /// Do not report targets that go up and down, or names, on standard error.
    pub quiet: bool,
    /// The run of a verification that this process serves.
    pub paired: Option<Arc<VerifyRun>>,
    /// The limit of buffered HTTP/2 bytes in this process; `None`: a part of the memory. The first value holds.
    pub buffered: Option<usize>,
    /// The hash of the plan that is served first.
    pub plan: String,
    /// The source of the file for reloads; `None`: there are none.
    pub source: Option<Arc<dyn Source>>,
    /// Inherited listening sockets.
    pub inherited: Option<Arc<Inherited>>,
    /// The number of the first generation: 0, or the one after a predecessor's.
    pub generation: u32,
    /// The members of a predecessor's fleets.
    pub fleets: Vec<HandedFleet>,
    /// Whether models act before real servers too.
    pub inject: bool,
    /// The threads of this process that read files of lists.
    pub readers: Readers,
}

impl Options {
    /// The event loops of a listener for which the file has no number.
    pub(crate) fn default_loops(&self) -> usize {
        self.loops.unwrap_or_else(cores)
    }
}

/// The cores that this process may use. The system answers from files: changes of members do not ask it.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A listener that accepts.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Its name.
    pub name: String,
    /// Its address: `127.0.0.1:8080`, `unix:/path`.
    pub addr: String,
    /// The number of listeners before it.
    pub level: u32,
}

/// Why a topology cannot be served.
#[derive(Debug)]
pub enum Error {
    /// An address is not available.
    Listen(CannotListen),
    /// An access log cannot be opened.
    Log(String, io::Error),
    /// The file of a cookie's key cannot be used.
    StickyKey(Vec<Diagnostic>),
    /// Certificates or keys cannot be used.
    Tls(Vec<CannotUse>),
    /// Checks are to be sent from an address that this host does not have.
    Source(IpAddr, io::Error),
    /// The members that a fleet has cannot be served, in words.
    Members(String),
    /// Everything is open, and no descriptor is left for clients.
    Full(io::Error),
    /// The system refused something else.
    System(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Listen(e) => e.fmt(f),
            Error::Log(to, e) => {
                let remedy = remedy(e).unwrap_or("check its folder and permissions");
                write!(f, "cannot open the access log {to}: {e}; {remedy}")
            }
            Error::StickyKey(wrong) => {
                let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                f.write_str(&wrong.join("\n\n"))
            }
            Error::Tls(wrong) => {
                let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                f.write_str(&wrong.join("\n"))
            }
            Error::Source(source, e) => {
                let why = explain(e);
                write!(
                    f,
                    "health checks cannot be sent from {source}: {why}; write an address of this host as `source`"
                )
            }
            Error::Members(why) => f.write_str(why),
            Error::Full(e) => write!(f, "no client could be accepted: {}", explain(e)),
            Error::System(e) => write!(f, "cannot start: {}", explain(e)),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        Error::System(e)
    }
}
