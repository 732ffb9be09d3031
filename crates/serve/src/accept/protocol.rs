//! The protocol of a client: the one that TLS agreed on (ALPN); in cleartext HTTP/2 is recognised by its preface (RFC
//! 9113 §3.3), anything else is HTTP/1.1, as soon as a byte differs.

use crate::h2::PREFACE;
use crate::transport::session::Session;
use std::future::poll_fn;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::transport::wire::Wire;
use weir_plan::HttpVersion;
use weir_plan::fixed::DRAIN_IDLE_NS;

/// The protocol that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    H1,
    H2,
    /// None: the client left, or was silent for too long.
    None,
}

/// Waits until it is clear. The bytes read stay in the wire.
pub(crate) async fn choose(core: &Core, session: &Session, wire: &mut Wire) -> Protocol {
    if let Some(agreed) = session.tls_parameters() {
        return if agreed.is_h2 { Protocol::H2 } else { Protocol::H1 };
    }
    match session.listener.http.versions[..] {
        [HttpVersion::H1] => return Protocol::H1,
        [HttpVersion::H2] => return Protocol::H2,
        _ => {}
    }
    let new_until_ns = core.now().saturating_add(DRAIN_IDLE_NS);
    session.deadline.set(session.listener.http.head_timeout_ns);
    poll_fn(|cx| {
        loop {
            if let Some(protocol) = known(wire.input()) {
                return Poll::Ready(protocol);
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) if wire.input().is_empty() => return Poll::Ready(Protocol::None),
                // Part of a preface is part of a request line as well.
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Protocol::H1),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => break,
            }
        }
        wire.rest();
        // A request that has just arrived is still answered.
        if session.is_draining() && wire.input().is_empty() && !wire.socket.has_input() {
            match new_until_ns.saturating_sub(core.now()) {
                0 => return Poll::Ready(Protocol::None),
                left_ns => session.deadline.set(Some(left_ns)),
            }
        }
        if session.deadline.ended(cx) { Poll::Ready(Protocol::None) } else { Poll::Pending }
    })
    .await
}

/// The protocol of these first bytes, once that is clear.
fn known(input: &[u8]) -> Option<Protocol> {
    match input.iter().zip(PREFACE).all(|(a, b)| a == b) {
        false => Some(Protocol::H1),
        true if input.len() >= PREFACE.len() => Some(Protocol::H2),
        true => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_differs_is_http_1() {
        for (input, expected) in [
            (&b""[..], None),
            (b"P", None),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", None),
            (PREFACE, Some(Protocol::H2)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", Some(Protocol::H2)),
            (b"POST", Some(Protocol::H1)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\nX", Some(Protocol::H1)),
            (b"\r\nGET", Some(Protocol::H1)),
        ] {
            assert_eq!(known(input), expected, "{input:?}");
        }
    }
}
