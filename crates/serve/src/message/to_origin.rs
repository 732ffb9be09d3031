//! The origin's side of an exchange: the request that is sent, how its answer can fail, and what its connection holds.

use crate::metrics::{Ending, OpenConnection};
use crate::sync::counter::CountGuard;
use crate::transport::inner::OwnConnection;
use std::any::Any;
use weir_http1::{Checked, Edits, Hop, Limits, Refusal, Request};
use weir_http2::{ErrorCode, Malformed};
use weir_net::transport::tls;
use weir_plan::fixed;

/// Limits of what is read from an origin.
pub(crate) static RESPONSE_LIMITS: Limits = Limits {
    max_head: fixed::MAX_RESPONSE_HEAD_BYTES,
    max_headers: fixed::MAX_RESPONSE_HEADERS,
    max_target: Limits::TARGET,
    max_method: Limits::METHOD,
    empty_host: false,
};

/// A request as it is sent to an origin.
pub(crate) struct OutgoingRequest<'a> {
    pub request: &'a Request,
    pub checked: &'a Checked,
    pub hop: &'a Hop<'a>,
    pub edits: &'a Edits,
}

/// Which head of an answer was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// That of an interim response.
    Interim,
    /// That of the final one.
    Final,
}

/// Why no head was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// It breaks a rule.
    Rule(Refusal),
    /// It does not fit a buffer.
    TooLong,
    /// The connection ended before the first byte of an answer.
    Silent,
    /// The connection ended within the head.
    Cut,
    /// The origin refused the request before it did any work (HTTP/2).
    Refused,
    /// The connection ended before the origin did any work (HTTP/2).
    Unprocessed,
    /// The origin has reset the stream (HTTP/2).
    Reset(ErrorCode),
    /// The answer breaks a rule of HTTP/2, for which the stream was reset.
    Malformed(Malformed),
    /// weir has ended the connection, since the origin floods it (HTTP/2).
    Flooded,
    /// weir has ended the connection, since the origin answered no PING (HTTP/2).
    Unanswered,
    /// Its connection never came to be one (HTTP/2).
    Opening(OpeningError),
    /// TLS was refused after the handshake, for example because a client certificate is missing.
    Tls(tls::TlsError),
}

/// What the opening of a connection has come to (HTTP/2).
pub(crate) type Opening = Result<(), OpeningError>;

/// Why a connection never came to be one (HTTP/2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpeningError {
    /// The origin ended it, or speaks another protocol.
    NoHttp2,
    /// TLS was refused after the handshake.
    Tls(tls::TlsError),
    /// The origin's settings did not come within this limit, ns.
    Late(Option<u64>),
}

/// Why an answer's body is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseBodyError {
    /// It breaks a rule.
    Rule(Refusal),
    /// The connection ended within it.
    Cut,
    /// The origin has reset the stream (HTTP/2).
    Reset(ErrorCode),
    /// It breaks a rule of HTTP/2, for which the stream was reset.
    Malformed(Malformed),
    /// weir has ended the connection, since the origin floods it (HTTP/2).
    Flooded,
    /// weir has ended the connection, since the origin answered no PING (HTTP/2).
    Unanswered,
}

/// What a connection to an origin holds in this process until it closes.
#[derive(Default)]
pub(crate) struct ConnectionHold {
    /// Present if it leads to one of this process's own listeners.
    pub own: Option<OwnConnection>,
    /// Its place among the connections that the server may have.
    pub _counted: Option<CountGuard>,
    /// Counts it as open.
    pub open: Option<OpenConnection>,
    /// What reports its end when it is dropped, in a run of a verification.
    pub _in_run: Option<Box<dyn Any>>,
}

impl ConnectionHold {
    /// Sets the reason that is counted if the connection ends from now on.
    pub fn set_ending(&self, ending: Ending) {
        if let Some(open) = &self.open {
            open.set_ending(ending);
        }
    }

    /// Counts it as a connection of HTTP/2.
    pub fn set_h2(&self) {
        if let Some(open) = &self.open {
            open.set_h2();
        }
    }

    /// Counts a request that takes a place on it.
    #[inline]
    pub fn stream_begins(&self) {
        if let Some(open) = &self.open {
            open.counts().streams.one();
        }
    }

    /// Counts one that has left its place.
    #[inline]
    pub fn stream_ends(&self) {
        if let Some(open) = &self.open {
            open.counts().streams.less();
        }
    }
}
