//! Built-in servers: one thread owns them all, with their models on real timers.
//!
//! Loops reach them by the ordinary HTTP/1.1 path, over one end of a socket pair; the other end is handed over here and
//! served like a client's connection whose requests enter at the root of that server's nodes.

use crate::control::clients::Clients;
use crate::control::event_loop::Loop;
use crate::exchange::failure::{Failure, Why};
use crate::h1::server;
use crate::nodes::{NodeId, Way};
use crate::transport::listener::Listener;
use crate::transport::socket::Raw;
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use weir_http1::{Edits, Limits, Networks, Request, Response};
use weir_policy::Kind;
use weir_stats::Key;
use weir_topology::plan::Http;

/// The field in which a built-in server tells the kind of a failure to the loop that asked; it goes no further.
pub(crate) const KIND: &str = "x-weir-kind";

/// The field in which a loop tells a built-in server what the request's choices and its work are drawn by, and how many
/// times longer its work takes: 16 hexadecimal digits each.
const DRAW: &str = "x-weir-draw";

/// The changes of a request to a built-in server, with what it draws by.
pub(crate) fn with_draw(edits: &Edits, way: &Way) -> Edits {
    let mut edits = edits.clone();
    let draw = format!("{:016x}{:016x}{:016x}", way.draw.bits(), way.work.bits(), way.factor.to_bits());
    edits.set.retain(|(name, _)| name != DRAW.as_bytes());
    edits.set.push((DRAW.as_bytes().to_vec(), draw.into_bytes()));
    edits
}

/// Takes over what a loop has said.
pub(crate) fn read_draw(request: &Request, way: &mut Way) {
    let Some(text) = request.field(DRAW).and_then(|v| std::str::from_utf8(v).ok()) else { return };
    let number = |at: usize| text.get(at..at + 16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    if let (Some(draw), Some(work), Some(factor)) = (number(0), number(16), number(32)) {
        (way.draw, way.work) = (Key::from_bits(draw), Key::from_bits(work));
        way.factor = f64::from_bits(factor);
    }
}

/// The failure that a built-in server's response stands for.
pub(crate) fn failure(response: &Response) -> Failure {
    let text = |name| response.field(name).and_then(|v| std::str::from_utf8(v).ok());
    let kind = text(KIND).and_then(Kind::from_name).unwrap_or(Kind::BadResponse);
    let retry_after_s = text("retry-after").and_then(|v| v.parse().ok());
    Failure { status: response.status(), retry_after_s, ..Failure::new(kind).by(Why::Model(kind)) }
}

/// The field by which a built-in server knows a health check: what it costs, ns, and the process's token, so that no client
/// can make one up.
pub(crate) const CHECK: &str = "x-weir-check";

/// The value of [`CHECK`].
pub(crate) fn check_value(cost_ns: u64, token: u64) -> String {
    format!("{cost_ns} {token:016x}")
}

/// What a request costs a server's model in place of its work, ns, if it is a health check of this process.
pub(crate) fn check_cost(request: &Request, token: u64) -> Option<u64> {
    let value = std::str::from_utf8(request.field(CHECK)?).ok()?;
    let (cost, proof) = value.split_once(' ')?;
    if proof == format!("{token:016x}") { cost.parse().ok() } else { None }
}

/// Connections to built-in servers, by their roots.
pub(crate) type Arrivals = UnboundedReceiver<(NodeId, UnixStream)>;

/// The way to the built-in servers.
pub(crate) struct BuiltIn {
    connections: UnboundedSender<(NodeId, UnixStream)>,
}

impl BuiltIn {
    /// The way, and its end.
    pub fn new() -> (BuiltIn, Arrivals) {
        let (connections, arrivals) = tokio::sync::mpsc::unbounded_channel();
        (BuiltIn { connections }, arrivals)
    }

    /// A new connection to the built-in server with this root.
    pub fn hand_over(&self, root: NodeId, stream: UnixStream) -> io::Result<()> {
        self.connections.send((root, stream)).map_err(|_| io::ErrorKind::ConnectionRefused.into())
    }
}

/// Serves connections for as long as any loop is there.
pub(crate) async fn run(lp: Rc<Loop>, mut arrivals: Arrivals) {
    let mut listeners: std::collections::HashMap<NodeId, Rc<Listener>> = std::collections::HashMap::new();
    while let Some((root, stream)) = arrivals.recv().await {
        let Ok(socket) = Raw::Unix(stream).watch(&lp.runtime) else { continue };
        let listener = listeners.entry(root).or_insert_with(|| Rc::new(inside(root))).clone();
        if let Some(counted) = listener.clients.take_place().and_then(|place| place.on(None, 0)) {
            lp.runtime.spawn(server::serve(lp.clone(), listener, socket, None, counted));
        }
    }
}

/// No limits but those of memory: both ends are ours.
fn inside(root: NodeId) -> Listener {
    let http = Http {
        head_timeout_ns: None,
        body_timeout_ns: None,
        write_timeout_ns: None,
        idle_timeout_ns: None,
        max_requests: None,
        max_age_ns: None,
        ..Http::default()
    };
    Listener {
        number: 0,
        name: String::new(),
        node: root,
        http,
        // What weir adds to a head comes on top of what it lets in.
        limits: Limits {
            max_head: 1 << 20,
            max_headers: 11_000,
            max_target: 1 << 16,
            // Of an HTTP/1.0 request without one.
            empty_host: true,
            ..Limits::default()
        },
        trusted: Networks::default(),
        raw_paths: true,
        port: None,
        clients: Clients::new(usize::MAX, None, 1),
        common: None,
        log: None,
        built_in: true,
    }
}
