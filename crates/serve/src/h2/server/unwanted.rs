//! An answer may come before the end of its request's body: 413, 401, a redirect. Many clients (curl 7.88, Node, httpx,
//! Java) lose it if the stream is reset then, or wait for window first. So the rest of the body is taken and dropped,
//! as in the lingering close of HTTP/1.1: until it ends, for 2 s of silence, or 10 s in all. Only then the stream is
//! reset.
//!
//! A PING follows the last byte. nginx and HAProxy give window back for each read, so that a client that waits for a
//! frame after its last byte gets one; here window is given back in large pieces, and nothing for the last.

use super::{Conn, Open};
use crate::h2::link::UnwantedBody;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_plan::fixed::{LINGER_NS as IN_ALL_NS, LINGER_SILENCE_NS as SILENCE_NS};

/// Drops the body in a task of its own; the connection is not idle meanwhile. Its streams are no more than it may
/// have anyway.
pub(super) fn linger(conn: &Rc<Conn>, mut unwanted: UnwantedBody) {
    let conn = conn.clone();
    conn.core.clone().runtime.spawn(async move {
        let _open = Open::new(&conn);
        let end_ns = conn.core.now().saturating_add(IN_ALL_NS);
        let silence = conn.session.deadline.another(Some(SILENCE_NS));
        poll_fn(|cx| match unwanted.poll(cx, || silence.set(Some(SILENCE_NS))) {
            Poll::Pending if !silence.ended(cx) && conn.core.now() < end_ns => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        drop(unwanted);
        conn.link.ping();
    });
}
