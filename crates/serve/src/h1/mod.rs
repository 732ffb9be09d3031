//! HTTP/1.1 behind the two ends of an exchange: [`server`] faces clients, [`client`] faces origins. Knows no node, no
//! policy, no graph; what a message must look like is `weir_http1`'s.

pub(crate) mod client;
pub(crate) mod server;

use weir_http1::{Client, Version};

/// Renders a complete answer to an unreadable request; the connection ends with it.
pub(crate) fn render_alone(status: u16, text: &str, date: &[u8], out: &mut Vec<u8>) {
    let to =
        Client { version: Version::H11, head: false, te_trailers: false, close: true, keep_alive_10: false };
    weir_http1::render_answer(status, &[], text.as_bytes(), to, Some(date), out);
}
