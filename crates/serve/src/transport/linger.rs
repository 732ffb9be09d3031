//! The lingering close: an answer must not be destroyed by the reset that unread bytes would cause (RFC 9112, 9.6).

use super::session::Session;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{LINGER_NS as IN_ALL_NS, LINGER_SILENCE_NS as SILENCE_NS, MAX_LINGERING as MOST};

/// The place of a client that lingers on this loop; dropping it frees it.
struct Lingering<'a>(&'a Cell<u32>);

impl<'a> Lingering<'a> {
    /// Takes a place, unless the limit is reached.
    fn new(count: &'a Cell<u32>) -> Option<Lingering<'a>> {
        (count.get() < MOST).then(|| {
            count.set(count.get() + 1);
            Lingering(count)
        })
    }
}

impl Drop for Lingering<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Ends a connection after its last answer: nothing more is written, and what arrives is discarded. The client counts
/// as connected until then; where its place is needed the loop cuts this short (`accept/room.rs`).
pub(crate) async fn linger(core: &Core, session: &Session, wire: &RefCell<Wire>) {
    let Some(_lingering) = Lingering::new(&core.lingering) else { return };
    let now_ns = core.now();
    session.begin_lingering(now_ns);
    let end_ns = now_ns.saturating_add(IN_ALL_NS);
    let deadline = &session.deadline;
    deadline.set(Some(SILENCE_NS));
    let shut = poll_fn(|cx| match wire.borrow_mut().socket.poll_shutdown(cx) {
        Poll::Ready(done) => Poll::Ready(done.is_ok()),
        Poll::Pending if deadline.ended(cx) || session.is_cut_short() => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    });
    if !shut.await {
        return;
    }
    deadline.set(Some(SILENCE_NS));
    poll_fn(|cx| {
        let mut wire = wire.borrow_mut();
        loop {
            let n = wire.input().len();
            wire.consume(n);
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(n)) if n > 0 => deadline.set(Some(SILENCE_NS)),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        let over = deadline.ended(cx) || session.is_cut_short() || core.now() >= end_ns;
        if over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
