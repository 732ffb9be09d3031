//! One request on a connection of its own, whose status is all that matters: health checks.

use super::{Conn, ConnLimits};
use crate::message::{ConnectionHold, HeadKind};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_http1::RequestInfo;
use weir_http2::Rendered;
use weir_net::io::Core;
use weir_net::transport::socket::Socket;

/// Sends a request without body, given by its head in HTTP/1.1 syntax; returns the status of its answer, if there is
/// one. The rest is cancelled.
pub(crate) async fn ask(core: &Rc<Core>, socket: Socket, head: &[u8]) -> Option<u16> {
    let limits = ConnLimits { old_ns: u64::MAX, most_requests: None, most_streams: 1, opening_ns: None };
    let handle = Conn::open(core, socket, limits, ConnectionHold::default(), None, |_| {});
    let rendered = Rendered::new(head);
    let line = rendered.request_line(handle.conn.https);
    let asked = RequestInfo { head: line.method == b"HEAD", ..RequestInfo::default() };
    let stream = handle.conn.link.request(&line, &rendered, asked, true)?;
    poll_fn(|cx| {
        while let Some(head) = stream.take_head() {
            match (head.kind, head.read) {
                (_, Err(_)) => return Poll::Ready(None),
                (HeadKind::Final, Ok(response)) => return Poll::Ready(Some(response.status())),
                (HeadKind::Interim, Ok(_)) => {}
            }
        }
        if stream.fate().is_some() {
            return Poll::Ready(None);
        }
        stream.await_input(cx);
        Poll::Pending
    })
    .await
}
