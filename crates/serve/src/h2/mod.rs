//! HTTP/2 behind the two ends of an exchange: [`server`] faces clients, [`client`] faces origins. Knows no node, no
//! policy, no graph. Frames, HPACK, streams and windows are `weir_http2`'s towards clients, and still the `h2` crate's
//! towards origins; what a message must look like is `weir_http1`'s, as for HTTP/1.1.

pub(crate) mod client;
#[allow(dead_code, reason = "clients go by the codec, origins still by the crate")]
pub(crate) mod fields;
#[allow(dead_code, reason = "clients go by the codec, origins still by the crate")]
pub(crate) mod frames;
mod io;
#[allow(dead_code, reason = "clients go by the codec, origins still by the crate")]
mod link;
#[allow(dead_code, reason = "clients go by the codec, origins still by the crate")]
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod server;
mod stall;

pub(crate) use h2::Reason;
pub(crate) use io::{Io, Shared};

/// Whether this is an error by which the `h2` crate itself reports a flood.
fn is_own_flood(e: &h2::Error) -> bool {
    e.is_library() && e.is_go_away() && e.reason() == Some(Reason::ENHANCE_YOUR_CALM)
}

/// The limit of unread small DATA frames of a connection, by the `h2` crate's account: 256 bytes a frame, less its
/// content. As much as a turn of a busy loop may bring, and far more than its default, which ends gRPC's connections:
/// small messages of a hundred streams.
const SMALL_DATA_BUDGET: usize = 4 * 1024 * 1024;

/// The first bytes of a client that uses HTTP/2 with prior knowledge (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
