//! How a request failed: the kind that policies count, what the client sees, and what the operator reads.

use super::NodeId;
use crate::message::ResponseBodyError;
use crate::metrics::{LabelValue as _, RequestLimit};
use crate::sync::panics;
use std::fmt;
use std::io;
use std::time::Duration;
use weir_http1::Refusal;
use weir_http2::{ErrorCode, Malformed};
use weir_net::transport::tls;
use weir_policy::Kind;

/// The failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The kind that policies count.
    pub kind: Kind,
    /// The status that the client sees.
    pub status: u16,
    /// Seconds after which the client may retry, if known.
    pub retry_after_s: Option<u32>,
    /// What happened.
    pub cause: FailureCause,
    /// The server at which it happened, if any.
    pub server: Option<NodeId>,
    /// Whether a balancer has relayed it: then the target of any balancer in front was reached, even if something
    /// behind that target was not.
    pub relayed: bool,
}

/// What happened, in more detail than the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// Nothing more than the kind is known.
    Kind(Kind),
    /// The target was removed, and `drain_timeout` has passed.
    Aborted,
    /// The system refused a connection, with this error number.
    Connect(i32),
    /// There is no address to connect to.
    Nowhere,
    /// The connection was made, but TLS on it failed.
    Tls(tls::TlsError),
    /// No connection was made in time.
    ConnectLimit(Option<u64>),
    /// The thread of process-wide balancers does not answer.
    OwnerSilent,
    /// All connections that the limit allows stayed busy.
    NoRoom,
    /// The origin allowed no streams on its connection for this time.
    NoStreams(Option<u64>),
    /// This process has run out of a resource for connections, with this error number.
    Exhausted(i32),
    /// The connection ended before the first byte of an answer.
    Silent,
    /// The origin refused the request before any work: REFUSED_STREAM, or a GOAWAY below the stream.
    Refused,
    /// The origin has reset the stream before its answer.
    StreamReset(ErrorCode),
    /// It has reset the stream in the body of its answer.
    BodyReset(ErrorCode),
    /// The answer breaks a rule of HTTP/2, for which the stream was reset.
    Malformed(Malformed),
    /// The origin sent too many frames without progress.
    Flooded,
    /// The origin was silent on a connection on which another request had ended by a time limit.
    Unanswered,
    /// A limit of the client's side.
    Client(RequestLimit),
    /// The origin does not speak HTTP/2.
    NoHttp2,
    /// An upgrade by HTTP/2 needs extended CONNECT, which the origin does not allow.
    NoExtendedConnect,
    /// An upgrade needs HTTP/1.1, and the origin does not speak it.
    UpgradeUnspoken,
    /// The answer to an extended CONNECT agrees to no tunnel, and its 2xx would say that it does.
    UpgradeIgnored,
    /// A 101 to WebSocket does not prove that the origin has understood.
    UnprovenSwitch,
    /// The connection ended in the answer's head.
    HeadCut,
    /// The answer's head does not fit a buffer.
    HeadTooLong,
    /// Too many interim responses.
    Interims,
    /// The answer breaks a rule of HTTP.
    Rule(Refusal),
    /// The client has left, and the origin was silent for too long.
    Unwanted,
    /// No head of an answer arrived in time.
    ResponseLimit(Option<u64>),
    /// No byte of the request was taken in time.
    UploadLimit(Option<u64>),
    /// No byte of the answer's body arrived in time.
    BodyLimit(Option<u64>),
    /// The connection ended in the answer's body.
    BodyCut,
    /// The wait for a place in a queue ended.
    QueueLimit,
    /// A `timeout` ended.
    Timeout(u64),
    /// A hold ended the answer: a `timeout`, or a crash of a `faulty` process.
    Held(Kind),
    /// A model ended in this kind.
    Model(Kind),
    /// A defect of weir.
    Panic,
}

impl Failure {
    /// A failure of this kind, with the status of the table in `docs/spec/language.md#kinds`.
    pub fn new(kind: Kind) -> Failure {
        let status = kind.status();
        let retry_after_s = (kind == Kind::Overloaded).then_some(1);
        Failure { kind, status, retry_after_s, cause: FailureCause::Kind(kind), server: None, relayed: false }
    }

    /// The client is at fault: its message is malformed or too large, or it stalls.
    pub fn client(status: u16) -> Failure {
        Failure { status, ..Failure::new(Kind::BadRequest) }
    }

    /// An upgrade that the origin cannot take: not a fault of the target, and no other attempt would help.
    pub fn no_upgrade(why: FailureCause) -> Failure {
        Failure::client(501).with_cause(why)
    }

    /// The client has gone.
    pub fn gone() -> Failure {
        Failure::new(Kind::Cancelled)
    }

    /// The target was removed, and `drain_timeout` has passed; no target is at fault.
    pub fn aborted() -> Failure {
        Failure::gone().with_cause(FailureCause::Aborted)
    }

    /// weir has a defect, which ended the request by a panic.
    pub fn panicked() -> Failure {
        Failure::new(Kind::Status5xx).with_cause(FailureCause::Panic)
    }

    /// The same failure with this cause.
    pub fn with_cause(self, cause: FailureCause) -> Failure {
        Failure { cause, ..self }
    }

    /// The same failure, at this server.
    pub fn with_server(self, server: NodeId) -> Failure {
        Failure { server: Some(server), ..self }
    }

    /// Whether the client caused it: then no target is charged.
    pub fn is_clients(&self) -> bool {
        matches!(self.kind, Kind::BadRequest | Kind::Cancelled)
    }

    /// The limit of weir that caused it, if one did.
    pub fn limit(&self) -> Option<RequestLimit> {
        self.cause.limit()
    }

    /// Whether it says nothing about other open attempts of its request.
    pub fn is_aborted(&self) -> bool {
        self.cause == FailureCause::Aborted
    }
}

impl FailureCause {
    /// The limit of weir that this is about, if any.
    pub fn limit(self) -> Option<RequestLimit> {
        match self {
            FailureCause::ConnectLimit(_)
            | FailureCause::NoRoom
            | FailureCause::NoStreams(_)
            | FailureCause::Tls(tls::TlsError::Late) => Some(RequestLimit::ConnectTimeout),
            FailureCause::ResponseLimit(_) => Some(RequestLimit::ResponseTimeout),
            FailureCause::UploadLimit(_) | FailureCause::BodyLimit(_) => Some(RequestLimit::BodyTimeout),
            FailureCause::Timeout(_) | FailureCause::Held(Kind::Timeout) => Some(RequestLimit::Timeout),
            FailureCause::QueueLimit => Some(RequestLimit::QueueTimeout),
            FailureCause::Aborted => Some(RequestLimit::DrainTimeout),
            FailureCause::Flooded => Some(RequestLimit::Flood),
            FailureCause::Client(limit) => Some(limit),
            _ => None,
        }
    }

    /// The kind and the cause of an answer's body that broke off.
    pub fn from_body_error(broken: ResponseBodyError) -> (Kind, FailureCause) {
        match broken {
            ResponseBodyError::Rule(refusal) => (Kind::BadResponse, FailureCause::Rule(refusal)),
            ResponseBodyError::Malformed(why) => (Kind::BadResponse, FailureCause::Malformed(why)),
            ResponseBodyError::Cut => (Kind::Reset, FailureCause::BodyCut),
            ResponseBodyError::Reset(reason) => (Kind::Reset, FailureCause::BodyReset(reason)),
            ResponseBodyError::Flooded => (Kind::Reset, FailureCause::Flooded),
            ResponseBodyError::Unanswered => (Kind::Reset, FailureCause::Unanswered),
        }
    }

    /// The cause of a connection that the system refused.
    pub fn from_io(e: &io::Error) -> FailureCause {
        e.raw_os_error().map_or(FailureCause::Nowhere, FailureCause::Connect)
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |no: i32| io::Error::from_raw_os_error(no);
        let ns = |ns: Option<u64>| Duration::from_nanos(ns.unwrap_or(u64::MAX));
        match *self {
            FailureCause::Kind(kind) => f.write_str(of_kind(kind)),
            FailureCause::Aborted => f.write_str("it was removed, and drain_timeout is over"),
            FailureCause::Connect(no) => write!(f, "cannot connect: {}", system(no)),
            FailureCause::Nowhere => f.write_str("cannot connect: it has no address"),
            FailureCause::Tls(why) => write!(f, "no TLS: {why}"),
            FailureCause::ConnectLimit(limit) => {
                write!(f, "no connection within connect_timeout ({:?})", ns(limit))
            }
            FailureCause::OwnerSilent => {
                f.write_str("the thread of balancers with scope=\"process\" does not answer")
            }
            FailureCause::NoRoom => f.write_str("no connection was free within connect_timeout"),
            FailureCause::NoStreams(limit) => write_no_streams(f, ns(limit)),
            FailureCause::Exhausted(no) => {
                write!(f, "cannot connect: this process is out of resources: {}", system(no))
            }
            FailureCause::Silent => f.write_str("the connection ended before any byte of an answer"),
            FailureCause::Refused => f.write_str("the origin refused the stream (HTTP/2) before any work"),
            FailureCause::NoHttp2 => f.write_str("cannot connect: it does not speak HTTP/2"),
            FailureCause::StreamReset(reason) => {
                write!(f, "the origin reset the stream (HTTP/2, {reason:?}) before its answer")
            }
            FailureCause::BodyReset(reason) => {
                write!(f, "the origin reset the stream (HTTP/2, {reason:?}) in the body of its answer")
            }
            FailureCause::Malformed(why) => write!(f, "malformed answer (HTTP/2): {why}"),
            FailureCause::Flooded => {
                f.write_str("weir ended the connection: too many frames without progress (HTTP/2)")
            }
            FailureCause::Unanswered => f.write_str(UNANSWERED),
            FailureCause::Client(limit) => write!(f, "{} ended it", limit.name()),
            FailureCause::NoExtendedConnect => f.write_str(NO_EXTENDED_CONNECT),
            FailureCause::UpgradeIgnored => f.write_str(UPGRADE_IGNORED),
            FailureCause::UnprovenSwitch => f.write_str(UNPROVEN_SWITCH),
            FailureCause::UpgradeUnspoken => f.write_str(UPGRADE_UNSPOKEN),
            FailureCause::HeadCut => f.write_str("the connection ended in the head of the answer"),
            FailureCause::HeadTooLong => f.write_str("malformed answer: its head is longer than a buffer"),
            FailureCause::Interims => f.write_str("malformed answer: too many interim responses"),
            FailureCause::Rule(rule) => write!(f, "malformed answer: {rule}"),
            FailureCause::Unwanted => f.write_str("silent for too long, after the client had left"),
            FailureCause::ResponseLimit(limit) => {
                write!(f, "no answer within response_timeout ({:?})", ns(limit))
            }
            FailureCause::UploadLimit(limit) => {
                write!(f, "no byte of the request taken within body_timeout ({:?})", ns(limit))
            }
            FailureCause::BodyLimit(limit) => {
                write!(f, "no byte of the answer's body within body_timeout ({:?})", ns(limit))
            }
            FailureCause::BodyCut => f.write_str("the connection ended in the body of the answer"),
            FailureCause::QueueLimit => f.write_str("the wait in a queue timed out"),
            FailureCause::Timeout(limit) => write!(f, "a timeout expired ({:?})", ns(Some(limit))),
            FailureCause::Held(Kind::Timeout) => f.write_str("a timeout expired"),
            FailureCause::Held(_) => f.write_str("a process crashed"),
            FailureCause::Model(kind) => write!(f, "a model ends in {}", kind.name()),
            FailureCause::Panic => write!(f, "a defect of weir, please report it: {}", panics::last()),
        }
    }
}

/// The text of an upgrade that would go by HTTP/2.
const NO_EXTENDED_CONNECT: &str = "an upgrade by HTTP/2 needs SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441), which the \
     origin does not send; with protocol=\"auto\" it goes by HTTP/1.1 where the origin speaks that";

/// The text of an upgrade that would go by HTTP/1.1.
const UPGRADE_UNSPOKEN: &str = "an upgrade needs HTTP/1.1, which the origin does not speak (ALPN)";

/// The text of a 101 that is not for this request.
const UNPROVEN_SWITCH: &str =
    "malformed answer: Sec-WebSocket-Accept of its 101 is missing or not that of the key";

/// The text of an answer that would look like a tunnel.
const UPGRADE_IGNORED: &str =
    "a 2xx in place of 101 ignores the upgrade: to its client, of HTTP/2, it would open a tunnel";

/// The text of a connection that was closed after a PING.
const UNANSWERED: &str =
    "weir ended the connection: after a time-out on it the origin was silent for 1s, despite a PING (HTTP/2)";

/// The text of a wait for streams, which names both settings.
fn write_no_streams(f: &mut fmt::Formatter<'_>, limit: Duration) -> fmt::Result {
    let setting = "HTTP/2, SETTINGS_MAX_CONCURRENT_STREAMS is 0";
    write!(f, "the origin allowed no streams ({setting}) within connect_timeout ({limit:?})")
}

/// The text of a kind about which nothing more is known.
fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Overloaded => "a queue or limit is full",
        Kind::NoTarget => "no target is left",
        Kind::Reset => "the connection broke",
        Kind::BadResponse => "malformed answer",
        other => other.name(),
    }
}
