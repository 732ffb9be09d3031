//! One health check of a server: a connection of its own, never from a pool, and one request on it.
//!
//! A built-in server is asked over its socket with [`built_in::CHECK`] in the head, so that its models recognise the
//! check: it costs what the file specifies, and skips what checks skip.

use crate::exchange::{NodeId, RequestContext, built_in};
use crate::graph::Graph;
use crate::graph::ends::{Checked, Ends};
use crate::h1::client::probe;
use crate::h2;
use crate::metrics::CheckResult;
use crate::nodes::{Node, cable};
use crate::upstream::server::Server;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::system::{is_exhausted, words};
use weir_net::io::timers::has_ended;
use weir_plan::duration::show_ns;
use weir_plan::{HealthCheck, OriginProtocol, TlsClient};

/// Why a check has not passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckFailure {
    /// The target's machine refused the connection.
    Refused,
    /// There was no answer in time, ns.
    Timeout(u64),
    /// An answer with a status that does not pass.
    Status(u16),
    /// No connection for another reason, in the system's words.
    NoConnection(String),
    /// No TLS.
    NoTls,
    /// The connection ended without an answer, or with one that is no HTTP.
    NoAnswer,
    /// A queue before the target is full, or a modelled fault lies there.
    NotReached,
    /// This process has no descriptor or port left for a check: that says nothing about the target.
    NothingLeft,
}

impl CheckFailure {
    fn from_connect(e: &io::Error, timeout_ns: u64) -> CheckFailure {
        match e.kind() {
            _ if is_exhausted(e) => CheckFailure::NothingLeft,
            io::ErrorKind::ConnectionRefused => CheckFailure::Refused,
            io::ErrorKind::TimedOut => CheckFailure::Timeout(timeout_ns),
            _ => CheckFailure::NoConnection(words(e)),
        }
    }

    /// The value of the metric's label.
    pub fn result(&self) -> CheckResult {
        match self {
            CheckFailure::Refused => CheckResult::Refused,
            CheckFailure::Timeout(_) => CheckResult::Timeout,
            CheckFailure::Status(_) => CheckResult::Status,
            CheckFailure::NothingLeft => CheckResult::Skipped,
            _ => CheckResult::Failed,
        }
    }
}

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckFailure::Refused => f.write_str("connect refused"),
            CheckFailure::Timeout(ns) => write!(f, "no answer within {}", show_ns(i128::from(*ns))),
            CheckFailure::Status(status) => write!(f, "status {status}"),
            CheckFailure::NoConnection(why) => write!(f, "cannot connect: {why}"),
            CheckFailure::NoTls => f.write_str("no TLS"),
            CheckFailure::NoAnswer => f.write_str("the connection ended without an answer"),
            CheckFailure::NotReached => f.write_str("not reached: a queue or a fault before it"),
            CheckFailure::NothingLeft => f.write_str("skipped: weir has no descriptor left"),
        }
    }
}

/// The check of one target.
pub(crate) struct Question {
    /// The head of the request; `None`: a connection is enough.
    head: Option<Vec<u8>>,
    is_head: bool,
    /// The port to check, if it is not the target's.
    port: Option<u16>,
    /// The address of this host that it is sent from.
    source: Option<IpAddr>,
    /// Statuses that pass; empty: all below 500.
    expect: Vec<(u16, u16)>,
    timeout_ns: u64,
}

impl Question {
    /// To a server at this address; `None`: a built-in one, whose checks prove themselves by `token`.
    pub fn new(check: &HealthCheck, addr: Option<&str>, tls: Option<&TlsClient>, token: u64) -> Question {
        let http = check.http.as_ref();
        let (method, path) = http.map_or(("GET", "/"), |h| (h.method.as_str(), h.path.as_str()));
        let host = http.and_then(|h| h.host.as_deref()).unwrap_or_else(|| host(addr, tls));
        let head = (http.is_some() || addr.is_none()).then(|| {
            let marker = match addr {
                None => {
                    let value = built_in::check_value(check.cost_ns, token, http.is_none());
                    format!("{}: {value}\r\n", built_in::CHECK)
                }
                Some(_) => String::new(),
            };
            let fixed = "User-Agent: weir-health\r\nAccept: */*\r\nConnection: close";
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fixed}\r\n{marker}\r\n").into_bytes()
        });
        Question {
            head,
            is_head: method == "HEAD",
            port: check.port.filter(|_| addr.is_some()),
            source: check.source.filter(|_| addr.is_some()),
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

    /// Checks the end behind a target, within its time.
    pub async fn ask(&self, core: &Rc<Core>, graph: &Graph, ends: &Ends) -> Result<(), CheckFailure> {
        let mut limit = Some(core.timers.after(self.timeout_ns));
        let mut asking = std::pin::pin!(self.go(core, graph, ends));
        poll_fn(|cx| match asking.as_mut().poll(cx) {
            Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Err(self.late())),
            polled => polled,
        })
        .await
    }

    fn late(&self) -> CheckFailure {
        CheckFailure::Timeout(self.timeout_ns)
    }

    /// The result of an answer with this status.
    fn judge(&self, status: u16) -> Result<(), CheckFailure> {
        if self.fits(status) { Ok(()) } else { Err(CheckFailure::Status(status)) }
    }

    /// There and back: through links, queues and faults, as a request.
    async fn go(&self, core: &Rc<Core>, graph: &Graph, ends: &Ends) -> Result<(), CheckFailure> {
        let (mut ctx, mut permits) = (RequestContext::new(core.draw()), Vec::new());
        // What it crosses again on the way back.
        let mut crossed = Vec::new();
        for node in ends.way.iter().map(|id: &NodeId| graph.node(*id)) {
            match node {
                Node::Queue(queue) => match queue.enter(core, |_| {}).await {
                    Ok(permit) => permits.push(permit),
                    Err(_) => return Err(CheckFailure::NotReached),
                },
                Node::Cable(cable) => {
                    cable::cross(core, cable.out(&mut ctx)).await;
                    crossed.push(node);
                }
                Node::Faulty(faulty) => match faulty.check(core, &mut ctx).await {
                    Ok(true) => crossed.push(node),
                    Ok(false) => return Ok(()),
                    Err(_) => return Err(CheckFailure::NotReached),
                },
                _ => {}
            }
        }
        let result = match ends.checked {
            Checked::Alive => Ok(()),
            Checked::Status(status) if status >= 500 => Err(CheckFailure::Status(status)),
            Checked::Status(status) => self.judge(status),
            Checked::Server(id) => match graph.node(id) {
                Node::Server(server) => self.connect_and_ask(core, server).await,
                _ => Ok(()),
            },
        };
        if result == Err(CheckFailure::NothingLeft) {
            return result;
        }
        for node in crossed.into_iter().rev() {
            match node {
                Node::Cable(cable) => cable::cross(core, cable.back(&mut ctx)).await,
                Node::Faulty(faulty) => faulty.go_on(core).await,
                _ => {}
            }
        }
        result
    }

    async fn connect_and_ask(&self, core: &Rc<Core>, server: &Server) -> Result<(), CheckFailure> {
        let connected = server.connect_to_check(core, self.source, self.port).await;
        let socket = connected.map_err(|e| CheckFailure::from_connect(&e, self.timeout_ns))?;
        // A service on another port may speak another version; a built-in server speaks both.
        let by_h2 =
            server.origin.protocol == OriginProtocol::H2 && self.port.is_none() && !server.is_built_in();
        let offers = if by_h2 { ["h2"] } else { ["http/1.1"] };
        let socket = match &server.tls {
            Some(tls) => {
                let shaken = tls.handshake(core, socket, &offers, Some(self.timeout_ns)).await;
                shaken.map_err(|_| CheckFailure::NoTls)?
            }
            None => socket,
        };
        let Some(head) = &self.head else { return Ok(()) };
        if by_h2 {
            let status = h2::client::probe::ask(core, socket, head).await;
            return self.judge(status.ok_or(CheckFailure::NoAnswer)?);
        }
        let answer = probe::ask(core, socket, head, self.is_head).await.ok_or(CheckFailure::NoAnswer)?;
        if answer.field(built_in::KIND).is_some() {
            return Err(CheckFailure::Status(answer.status()));
        }
        self.judge(answer.status())
    }
}

/// The Host of a check: the name that TLS asks for, or the address, without the protocol's own port.
fn host<'a>(addr: Option<&'a str>, tls: Option<&'a TlsClient>) -> &'a str {
    if let Some(name) = tls.and_then(|tls| tls.name.as_deref()) {
        return name;
    }
    let own_port = if tls.is_some() { ":443" } else { ":80" };
    match addr {
        None => "localhost",
        Some(addr) if addr.starts_with("unix:") => "localhost",
        Some(addr) => addr.strip_suffix(own_port).unwrap_or(addr),
    }
}
