//! A request begins: in a task of its own, or, if its head is malformed, with an answer at once.

use super::stream::client_traits;
use super::{Conn, Open, Stream, unwanted};
use crate::h2::link::{OpenStream, UnwantedBody};
use crate::message::{Disposition, error_page, keep_request};
use crate::metrics::HeadAnswer;
use std::future::Future;
use std::rc::Rc;
use weir_http1::{Request, Version};
use weir_http2::{Head, Malformed, Pseudo, Rendered};
use weir_net::io::reuse::Memory;

/// Begins the request whose head was just read.
pub(super) fn request<F: Future<Output = Disposition> + 'static>(
    conn: &Rc<Conn>,
    memory: &mut Option<Rc<Memory<F>>>,
    stream: u32,
    head: &Head,
    is_end: bool,
    exchange: impl FnOnce(Open, Stream, Box<Request>) -> F,
) {
    let core = &conn.core;
    let (mut request, mut scratch) = (core.spares.take::<Request>(), core.buffers.small());
    let stream = conn.link.accept(stream);
    if is_end {
        conn.link.end_body(stream.id());
    }
    match head.request(!is_end, &conn.session.listener.limits, &mut request, &mut scratch) {
        Ok(()) => {
            let stream = Stream::new(conn.clone(), &request, stream);
            let memory = memory.get_or_insert_with(|| core.reuse.memory());
            core.runtime.spawn_reusing(memory, exchange(Open::new(conn), stream, request));
        }
        Err(refusal) => {
            answer(conn, &stream, &scratch, refusal.status(), refusal.0.name);
            if let Some(unwanted) = UnwantedBody::new(&stream) {
                unwanted::linger(conn, unwanted);
            }
            keep_request(core, request);
        }
    }
    core.buffers.keep_small(scratch);
}

/// Refuses a request whose head breaks a rule of HTTP/2; what still comes of it the codec drops.
#[cold]
pub(super) fn refuse(conn: &Rc<Conn>, stream: u32, head: &Head, why: Malformed) {
    let stream = conn.link.accept(stream);
    let part = |pseudo| head.pseudo_field(pseudo).unwrap_or(b"-");
    let line = [part(Pseudo::Method), b" ", part(Pseudo::Path), b" HTTP/2"].concat();
    answer(conn, &stream, &line, why.status(), why.name());
}

/// Answers a malformed request, and notes it. `head`: what there is of it.
fn answer(conn: &Conn, stream: &OpenStream, head: &[u8], status: u16, rule: &'static str) {
    let text = error_page(status, None);
    let answer = HeadAnswer { status, limit: None, sent: text.len() };
    let counts = &conn.session.listener.counts;
    counts.broke(rule);
    counts.refused(None, Version::H2, &answer, conn.core.recent());
    if let Some(log) = &conn.session.listener.log {
        log.unreadable(conn.session.client(), head, &answer);
    }
    let (mut rendered, date) = (Vec::new(), conn.core.date());
    weir_http1::render_answer(status, &[], text.as_bytes(), client_traits(false), Some(&date), &mut rendered);
    let rendered = Rendered::new(&rendered);
    stream.answer(status, &rendered, false);
    stream.queue(rendered.body);
    stream.finish(None);
}
