//! The lingering close: an answer must not be destroyed by the reset that unread bytes would cause (RFC 9112, 9.6).

use crate::control::event_loop::Loop;
use crate::h1::server::Conn;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_topology::plan::fixed::{
    LINGER_NS as IN_ALL_NS, LINGER_SILENCE_NS as SILENCE_NS, MAX_LINGERING as MOST,
};

/// Ends a connection on which the last answer was written: nothing more is written, what comes is thrown away.
pub(crate) async fn linger(lp: &Rc<Loop>, conn: &Rc<Conn>) {
    if lp.lingering.get() >= MOST {
        return;
    }
    lp.lingering.set(lp.lingering.get() + 1);
    let end_ns = lp.now().saturating_add(IN_ALL_NS);
    let shut = poll_fn(|cx| conn.wire.borrow_mut().socket.poll_shutdown(cx)).await;
    if shut.is_ok() {
        conn.deadline.set(Some(SILENCE_NS));
        poll_fn(|cx| {
            let mut wire = conn.wire.borrow_mut();
            loop {
                let n = wire.input().len();
                wire.consume(n);
                match wire.poll_fill(cx) {
                    Poll::Ready(Ok(n)) if n > 0 => conn.deadline.set(Some(SILENCE_NS)),
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            if conn.deadline.ended(cx) || lp.now() >= end_ns { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
    lp.lingering.set(lp.lingering.get() - 1);
}
