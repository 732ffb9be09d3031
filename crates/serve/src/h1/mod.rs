//! HTTP/1.1 behind the two ends of an exchange: [`server`] faces clients, [`client`] faces origins. Knows no node, no
//! policy, no graph; what a message must look like is `weir_http1`'s.

pub(crate) mod client;
pub(crate) mod heads;
pub(crate) mod server;

use crate::metrics::{LabelValue as _, RequestLimit};
use weir_http1::{Client, Version};

/// What a look for more of a body found; of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many bytes of data stand first in the input; to be used up.
    Data(usize),
    /// That was all.
    End,
}

/// A whole answer of weir's own to who has asked nothing that could be read; the connection ends with it.
pub(crate) fn render_alone(status: u16, text: &str, date: &[u8], out: &mut Vec<u8>) {
    let to =
        Client { version: Version::H11, head: false, te_trailers: false, close: true, keep_alive_10: false };
    weir_http1::render_answer(status, &[], text.as_bytes(), to, Some(date), out);
}

/// The body of an error: its status in words and the limit that ended the request, nothing else about weir or what is behind it.
pub(crate) fn page(status: u16, limit: Option<RequestLimit>) -> String {
    let reason = weir_http1::reason(status);
    match limit {
        Some(limit) => format!("{status} {reason} ({})\n", limit.name()),
        None => format!("{status} {reason}\n"),
    }
}
