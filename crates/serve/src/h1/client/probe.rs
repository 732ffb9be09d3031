//! One request on a connection of its own, whose answer's head is all that matters: health checks.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Limits, RequestInfo, Response, Seek};
use weir_net::io::Core;
use weir_net::io::timers::has_ended;
use weir_net::transport::socket::Socket;
use weir_net::transport::wire::Wire;
use weir_plan::fixed;

static LIMITS: Limits = Limits {
    max_head: fixed::MAX_CHECK_HEAD_BYTES,
    max_headers: fixed::MAX_RESPONSE_HEADERS,
    max_target: Limits::TARGET,
    max_method: Limits::METHOD,
    empty_host: false,
};

/// Sends a request's head and reads the head of the final answer; `None`: there was no valid answer. The rest is read
/// for a while, so that the server does not see a reset.
pub(crate) async fn ask(core: &Rc<Core>, socket: Socket, head: &[u8], is_head: bool) -> Option<Response> {
    let mut wire = Wire::new(socket, core.buffers.clone());
    wire.queue(head);
    let mut seek = Seek::default();
    let answer = poll_fn(|cx| poll_answer(cx, &mut wire, &mut seek, is_head)).await;
    core.runtime.spawn(drain(core.clone(), wire));
    answer
}

fn poll_answer(
    cx: &mut Context<'_>,
    wire: &mut Wire,
    seek: &mut Seek,
    is_head: bool,
) -> Poll<Option<Response>> {
    // A server may answer before it has read everything; whether it takes the rest is noticed when it is read.
    let _ = wire.poll_flush(cx);
    loop {
        match seek.response(wire.input(), &LIMITS) {
            Ok(Some(length)) => {
                let mut response = Response::default();
                let asked = RequestInfo { head: is_head, connect: false, upgrade: false };
                if response.parse(&wire.input()[..length], asked, &LIMITS).is_err() {
                    return Poll::Ready(None);
                }
                wire.consume(length);
                seek.reset();
                if !response.is_interim() {
                    return Poll::Ready(Some(response));
                }
                continue;
            }
            Ok(None) => {}
            Err(_) => return Poll::Ready(None),
        }
        match wire.poll_fill(cx) {
            Poll::Ready(Ok(n)) if n > 0 && n != usize::MAX => {}
            Poll::Ready(_) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// Reads the rest.
async fn drain(core: Rc<Core>, mut wire: Wire) {
    let mut limit = Some(core.timers.after(fixed::CHECK_DRAIN_NS));
    let mut read = 0;
    poll_fn(|cx| {
        loop {
            let n = wire.input().len();
            wire.consume(n);
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(n)) => read += n,
                Poll::Pending if has_ended(&mut limit, cx) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
            if read > fixed::MAX_CHECK_DRAIN_BYTES {
                return Poll::Ready(());
            }
        }
    })
    .await;
}
