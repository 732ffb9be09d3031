//! One health check of a server: a connection of its own, never from a pool, and one request on it.
//!
//! A built-in server is asked over its socket with [`built_in::CHECK`] in the head, so that its models take the check for
//! one: it costs what the file says, and skips what checks skip.

use crate::control::built_in;
use crate::control::event_loop::Loop;
use crate::graph::ends::{Checked, Ends};
use crate::io::timers::has_ended;
use crate::nodes::{Node, Way, cable};
use crate::transport::wire::Wire;
use crate::upstream::server::{Server, is_exhausted};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Asked, Limits, Response, Seek};
use weir_topology::plan::{HealthCheck, fixed};

/// This process has no descriptor or port left to ask with: that says nothing of the target.
pub(crate) struct NothingLeft;

/// What is asked of one target.
pub(crate) struct Question {
    /// The head of the request; `None`: a connection is enough.
    head: Option<Vec<u8>>,
    is_head: bool,
    /// Another port than the target's.
    port: Option<u16>,
    /// Statuses that pass; empty: all below 500.
    expect: Vec<(u16, u16)>,
    timeout_ns: u64,
}

impl Question {
    /// To a server at this address; `None`: a built-in one, whose checks prove themselves by `token`.
    pub fn new(check: &HealthCheck, addr: Option<&str>, token: u64) -> Question {
        let http = check.http.as_ref();
        let (method, path) = http.map_or(("GET", "/"), |h| (h.method.as_str(), h.path.as_str()));
        let host = http.and_then(|h| h.host.as_deref()).unwrap_or_else(|| host(addr));
        let head = (http.is_some() || addr.is_none()).then(|| {
            let marker = match addr {
                None => format!("{}: {}\r\n", built_in::CHECK, built_in::check_value(check.cost_ns, token)),
                Some(_) => String::new(),
            };
            let fixed = "User-Agent: weir-health\r\nAccept: */*\r\nConnection: close";
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fixed}\r\n{marker}\r\n").into_bytes()
        });
        Question {
            head,
            is_head: method == "HEAD",
            port: check.port.filter(|_| addr.is_some()),
            expect: http.map(|h| h.expect.clone()).unwrap_or_default(),
            timeout_ns: check.timeout_ns,
        }
    }

    /// Whether an answer with this status passes.
    pub fn fits(&self, status: u16) -> bool {
        match self.expect.is_empty() {
            true => status < 500,
            false => self.expect.iter().any(|(low, high)| (*low..=*high).contains(&status)),
        }
    }

    /// Whether what is behind a target passes, within the time that it has.
    pub async fn ask(&self, lp: &Rc<Loop>, ends: &Ends) -> Result<bool, NothingLeft> {
        let mut limit = Some(lp.timers.after(self.timeout_ns));
        let mut asking = std::pin::pin!(self.go(lp, ends));
        poll_fn(|cx| match asking.as_mut().poll(cx) {
            Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Ok(false)),
            polled => polled,
        })
        .await
    }

    /// There and back: through cables, queues and faults, as a request.
    async fn go(&self, lp: &Rc<Loop>, ends: &Ends) -> Result<bool, NothingLeft> {
        let graph = lp.graph();
        let (mut way, mut slots, mut cables) = (Way::new(lp.draw()), Vec::new(), Vec::new());
        for node in ends.way.iter().map(|id| graph.node(*id)) {
            match node {
                Node::Queue(queue) => match queue.enter(lp).await {
                    Ok(slot) => slots.push(slot),
                    Err(_) => return Ok(false),
                },
                Node::Cable(cable) => {
                    let (out, back) = cable.crossings(&mut way);
                    cable::cross(lp, out).await;
                    cables.push(back);
                }
                Node::Faulty(faulty) => match faulty.check(lp, &mut way).await {
                    Ok(true) => {}
                    lies => return Ok(lies.is_ok()),
                },
                _ => {}
            }
        }
        let passed = match ends.checked {
            Checked::Alive => true,
            Checked::Status(status) => status < 500 && self.fits(status),
            Checked::Server(id) => match graph.node(id) {
                Node::Server(server) => self.connect_and_ask(lp, server).await?,
                _ => true,
            },
        };
        for back in cables.into_iter().rev() {
            cable::cross(lp, back).await;
        }
        Ok(passed)
    }

    async fn connect_and_ask(&self, lp: &Rc<Loop>, server: &Server) -> Result<bool, NothingLeft> {
        let socket = match server.target.connect_to(lp, self.port).await {
            Ok(socket) => socket,
            Err(e) if is_exhausted(&e) => return Err(NothingLeft),
            Err(_) => return Ok(false),
        };
        let Some(head) = &self.head else { return Ok(true) };
        let mut wire = Wire::new(socket, lp.buffers.clone());
        wire.queue(head);
        let mut seek = Seek::default();
        let passed = poll_fn(|cx| self.poll_answer(cx, &mut wire, &mut seek)).await;
        lp.runtime.spawn(drain(lp.clone(), wire));
        Ok(passed)
    }

    fn poll_answer(&self, cx: &mut Context<'_>, wire: &mut Wire, seek: &mut Seek) -> Poll<bool> {
        // A server may answer before it has read all; whether it takes the rest shows when it is read.
        let _ = wire.poll_flush(cx);
        let limits = Limits {
            max_head: fixed::MAX_CHECK_HEAD_BYTES,
            max_headers: fixed::MAX_RESPONSE_HEADERS,
            ..Limits::default()
        };
        loop {
            match seek.response(wire.input(), &limits) {
                Ok(Some(length)) => {
                    let mut response = Response::default();
                    let asked = Asked { head: self.is_head, connect: false, upgrade: false };
                    if response.parse(&wire.input()[..length], asked, &limits).is_err() {
                        return Poll::Ready(false);
                    }
                    wire.consume(length);
                    seek.reset();
                    if !response.is_interim() {
                        let failed = response.field(built_in::KIND).is_some();
                        return Poll::Ready(!failed && self.fits(response.status()));
                    }
                    continue;
                }
                Ok(None) => {}
                Err(_) => return Poll::Ready(false),
            }
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(n)) if n > 0 && n != usize::MAX => {}
                Poll::Ready(_) => return Poll::Ready(false),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// The Host of a check: the address, without HTTP's own port.
fn host(addr: Option<&str>) -> &str {
    match addr {
        None => "localhost",
        Some(addr) if addr.starts_with("unix:") => "localhost",
        Some(addr) => addr.strip_suffix(":80").unwrap_or(addr),
    }
}

/// Reads what still comes, for a while, so that the end is no reset to the server.
async fn drain(lp: Rc<Loop>, mut wire: Wire) {
    let mut limit = Some(lp.timers.after(fixed::CHECK_DRAIN_NS));
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
