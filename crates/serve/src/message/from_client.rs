//! The client's side of an exchange: how its body can fail, the head of its answer, and how its connection continues.

use weir_http1::{Edits, Response};

/// Why a client's body is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestBodyError {
    /// It is malformed; the status to answer with.
    Refused(u16),
    /// The client ended its stream within it.
    Cut,
    /// No byte of it arrived within `body_timeout`.
    Late,
    /// The client has gone.
    Gone,
}

/// The head of a final response on its way to the client.
pub(crate) struct ResponseHead<'a> {
    pub response: &'a Response,
    /// The changes that `rewrite` makes.
    pub edits: &'a Edits,
    /// Fields that weir adds to those of the origin.
    pub add: &'a [(&'static str, Vec<u8>)],
    /// Whether the connection ends with it.
    pub close: bool,
    pub date: [u8; 29],
}

/// What happens to a client's connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It carries the next request.
    Next,
    /// It closes; nothing is unread.
    Close,
    /// It closes, but bytes may be unread: a reset must not destroy the answer that was sent.
    Linger,
    /// It has ended already, or breaks off in a body whose length the client knows.
    Abort,
    /// It breaks off in a body that would end with the connection.
    Reset,
}
