//! Connections to servers: which one a request takes, when another is opened, and when each ends.
//!
//! Each event loop of an instance of a proxy has connections of its own to each server: a *row*. By HTTP/1.1 one carries a
//! request at a time, and the one that was given back last is taken first, so that few are kept; by HTTP/2 the oldest with a
//! free stream is taken, and while one is being opened, requests that find no stream wait for it. An idle connection ends after its
//! idle time-out (Zuul's article on connections, `docs/connections.md`).
//!
//! - In virtual time: the pools of both engines; what opening takes is theirs. In the proxy: the pools of `serve`, whose rules
//!   these are.
//! - Draws: nothing. The jitter of a connection's age is an argument.

mod meters;
mod pools;
#[cfg(test)]
mod tests;

pub use meters::{Count, Counts};
pub use pools::{Come, ConnId, Opener, Pools, RowId};

use serde::{Deserialize, Serialize};

/// How long connections to a server are kept, and what they carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// By HTTP/2: requests on one connection at once, at least 1; `None`: HTTP/1.1.
    pub streams: Option<u32>,
    /// How long one is kept without a request, ns; `None`: for ever.
    pub idle_ns: Option<u64>,
    /// How old one may be when a request begins, ns; `None`: any age.
    pub age_ns: Option<u64>,
    /// The requests that one carries, at least 1; `None`: any number.
    pub requests: Option<u64>,
}

/// Why a connection ended: the words of `docs/spec/operating.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A request on it was broken off, or its server's process ended.
    Exchange,
    /// The server closed it while it was idle.
    Origin,
    /// It was idle for too long.
    Idle,
    /// It was too old, or had carried all the requests that it may.
    Age,
    /// Its server or its proxy has left.
    Spare,
}

impl End {
    /// All, in the order of results.
    pub const ALL: [End; 5] = [End::Exchange, End::Origin, End::Idle, End::Age, End::Spare];

    /// Its word in results.
    pub fn word(self) -> &'static str {
        match self {
            End::Exchange => "exchange",
            End::Origin => "origin",
            End::Idle => "idle",
            End::Age => "age",
            End::Spare => "spare",
        }
    }
}

/// A server: how its connections are kept, and where they are counted.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its limits.
    pub limits: Limits,
    /// Whether its connections are by TLS: opening one is a handshake.
    pub tls: bool,
    /// The group in which its connections are counted.
    pub group: u32,
}

/// An instance of a proxy.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Its event loops, at least 1.
    pub loops: u32,
    /// The group in which its connections are counted; `None`: only among all.
    pub group: Option<u32>,
}

/// Where connections lead from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The instance, by number.
    pub instance: u32,
    /// Its event loop, from 0.
    pub on: u32,
    /// The server, by number.
    pub server: u32,
}
