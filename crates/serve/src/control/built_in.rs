//! The thread of the built-in servers: it owns them all, with their models on real timers.
//!
//! Loops reach them as they reach origins, by HTTP/1.1 or by HTTP/2 (prior knowledge), over one end of a socket pair; the other end is sent here and
//! served like a client's connection whose requests enter at the root of that server's nodes.

use super::crashes::{CrashingServer, crashing};
use crate::accept::connection;
use crate::exchange::NodeId;
use crate::threads::event_loop::Loop;
use crate::threads::process::Process;
use crate::transport::bind::{self, Bound, CannotListen};
use crate::transport::listener::{Entry, Listener};
use crate::transport::listening::{Accepted, ListeningSocket, LoopSocket};
use crate::transport::socket_file::SocketFiles;
use crate::verify_run::{RunEvent, VerifyRun};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use weir_http1::{Limits, Networks};
use weir_net::transport::socket::Raw;
use weir_plan::ranges::MOST_STREAMS;
use weir_plan::{Http, HttpVersion};

/// How connections come to built-in servers, by their roots.
pub(super) struct Arrivals {
    /// From loops of this process, by the identities of roots.
    pub handed: UnboundedReceiver<(u32, UnixStream)>,
    /// From other processes.
    pub listening: Vec<(NodeId, LoopSocket)>,
}

/// A socket on loopback for each of these, where other processes reach it.
pub(super) fn bind(roots: &[NodeId]) -> Result<Vec<(NodeId, SocketAddr, LoopSocket)>, CannotListen> {
    let mut bound = Vec::with_capacity(roots.len());
    for root in roots {
        if let Bound::Tcp(sockets, address) = bind::bind("127.0.0.1:0", 1, 0, &SocketFiles::default())? {
            bound.extend(sockets.into_iter().map(|socket| (*root, address, LoopSocket::Tcp(socket))));
        }
    }
    Ok(bound)
}

/// Serves the connections of a socket.
async fn accept(lp: Rc<Loop>, listener: Rc<Listener>, socket: ListeningSocket) {
    loop {
        // A connection that broke before it was accepted is skipped; without descriptors the next one waits.
        match poll_fn(|cx| socket.poll_accept(cx)).await {
            Ok(accepted) => connection::begin(&lp, &listener, accepted, Box::new(()), None),
            Err(_) => lp.core.timers.after(PAUSE_NS).await,
        }
    }
}

/// Reports how late timers fire, periodically.
async fn measure_timers(lp: Rc<Loop>, run: Arc<VerifyRun>) {
    loop {
        let at_ns = lp.core.now() + BETWEEN_TIMERS_NS;
        lp.core.timers.sleep_until(at_ns).await;
        run.report(RunEvent::TimerLate(lp.core.now().saturating_sub(at_ns)));
    }
}

/// How often the lateness of timers is measured, ns: at odd times.
const BETWEEN_TIMERS_NS: u64 = 7_130_000;

/// Interiors of servers that are kept though they may not be used any more.
const MOST_UNUSED: usize = 10_000;

/// The pause after a failed accept, ns.
const PAUSE_NS: u64 = 10_000_000;

/// Serves connections for as long as any loop is there.
pub(super) async fn run(lp: Rc<Loop>, arrivals: Arrivals) {
    let Arrivals { handed: mut arrivals, listening } = arrivals;
    for (root, socket) in listening {
        let Some(key) = lp.graph().map(|graph| graph.blueprint.keys.nodes[root as usize]) else { continue };
        let listener = Rc::new(inside(key, Some(root), &lp.process));
        let lines = lp.graph().map_or_else(Vec::new, |graph| crashing(&graph, root));
        let address = match &socket {
            LoopSocket::Tcp(socket) if !lines.is_empty() => socket.local_addr().ok(),
            _ => None,
        };
        let Ok(socket) = socket.watch(&lp.core.runtime) else { continue };
        if let Some(address) = address {
            let server = CrashingServer { listener, socket: Some(socket), address, lines, _port: None };
            lp.core.runtime.spawn(server.serve(lp.clone()));
        } else {
            lp.core.runtime.spawn(accept(lp.clone(), listener, socket));
        }
    }
    let mut listeners: HashMap<u32, Rc<Listener>> = HashMap::new();
    if let Some(run) = lp.process.run.clone() {
        lp.core.runtime.spawn(measure_timers(lp.clone(), run));
    }
    while let Some((root, stream)) = arrivals.recv().await {
        if listeners.len() > MOST_UNUSED {
            listeners.retain(|_, listener| Rc::strong_count(listener) > 1);
        }
        let new =
            || Rc::new(inside(root, lp.graph().and_then(|g| g.entry(Entry::BuiltIn(root))), &lp.process));
        let listener = listeners.entry(root).or_insert_with(new).clone();
        let accepted = Accepted { socket: Raw::Unix(stream), peer: None };
        connection::begin(&lp, &listener, accepted, Box::new(()), None);
    }
}

/// No limits but those of memory: both ends are weir's.
fn inside(root: u32, server: Option<NodeId>, process: &Process) -> Listener {
    let http = Http {
        versions: vec![HttpVersion::H1, HttpVersion::H2],
        max_streams: MOST_STREAMS,
        head_timeout_ns: None,
        body_timeout_ns: None,
        write_timeout_ns: None,
        idle_timeout_ns: None,
        max_requests: None,
        max_age_ns: None,
        ..Http::default()
    };
    Listener {
        entry: Entry::BuiltIn(root),
        name: String::new(),
        addr: String::new(),
        http,
        // The fields that weir adds to a head come on top of what it accepts.
        limits: Limits {
            max_head: 1 << 20,
            max_headers: 11_000,
            max_target: 1 << 16,
            // For an HTTP/1.0 request without one.
            empty_host: true,
            ..Limits::default()
        },
        trusted: Networks::default(),
        proxy_from: Networks::default(),
        raw_paths: true,
        port: None,
        tls: None,
        log: None,
        traces: None,
        counts: Rc::default(),
        errors: None,
        believes: Some(process.token),
        run: process.run.clone(),
        built_in: server,
        level: 0,
        inner: None,
    }
}
