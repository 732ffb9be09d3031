//! What the bytes of a peer mean.

use crate::error::{ConnectionError, ErrorCode};
use crate::malformed::Malformed;
use std::ops::Range;

/// One event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client asks: its head lies in the sink.
    Request {
        /// The stream.
        stream: u32,
        /// There is no body, and nothing follows.
        is_end: bool,
    },
    /// An origin sends an interim answer: its head lies in the sink.
    Interim {
        /// The stream.
        stream: u32,
        /// 100 to 199, but not 101.
        status: u16,
    },
    /// An origin answers: the head of its final answer lies in the sink.
    Answer {
        /// The stream.
        stream: u32,
        /// The status.
        status: u16,
        /// There is no body, and nothing follows.
        is_end: bool,
    },
    /// Bytes of a body. They are to be given back by [`crate::Connection::release`] once they were passed on.
    Data {
        /// The stream.
        stream: u32,
        /// Where they lie in the bytes that were received.
        range: Range<usize>,
        /// Nothing follows.
        is_end: bool,
    },
    /// The stream ends with trailers, which lie in the sink.
    Trailers {
        /// The stream.
        stream: u32,
    },
    /// The stream ends by the peer's fault, and no other does.
    Malformed {
        /// The stream.
        stream: u32,
        /// What is wrong.
        why: Malformed,
        /// A request's head was wrong, which may be answered by [`Malformed::status`]; otherwise the stream was reset.
        may_answer: bool,
    },
    /// The peer has reset the stream.
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// The origin has not processed the request, which may be repeated elsewhere (RFC 9113 §8.7).
    Unprocessed {
        /// The stream.
        stream: u32,
    },
    /// The peer's settings have come.
    SettingsChanged,
    /// The peer has acknowledged this side's settings.
    SettingsAcknowledged,
    /// The peer has answered [`crate::Connection::ping`].
    Pong,
    /// The peer takes no new streams, and has processed none above the last.
    GoAway {
        /// The last stream that it may have processed.
        last: u32,
        /// Why.
        code: ErrorCode,
        /// The beginning of what else was said, as it came.
        text: Box<[u8]>,
    },
    /// The connection ends by the peer's fault. GOAWAY says so; nothing more is read.
    Failed(ConnectionError),
}

/// What was made of received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes that were read. Without an event, all of them.
    pub used: usize,
    /// The event that they end with.
    pub event: Option<Event>,
}
