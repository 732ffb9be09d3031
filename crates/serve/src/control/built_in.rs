//! The thread of the built-in servers: it owns them all, with their models on real timers.
//!
//! Loops reach them by the ordinary HTTP/1.1 path, over one end of a socket pair; the other end is handed over here and
//! served like a client's connection whose requests enter at the root of that server's nodes.

use super::connection;
use super::event_loop::Loop;
use crate::exchange::NodeId;
use crate::transport::listener::{Entry, Listener};
use crate::transport::listening::Accepted;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use tokio::sync::mpsc::UnboundedReceiver;
use weir_http1::{Limits, Networks};
use weir_net::transport::socket::Raw;
use weir_topology::plan::{Http, HttpVersion};

/// Connections to built-in servers, by their roots.
pub(super) type Arrivals = UnboundedReceiver<(NodeId, UnixStream)>;

/// Serves connections for as long as any loop is there.
pub(super) async fn run(lp: Rc<Loop>, mut arrivals: Arrivals) {
    let mut listeners: HashMap<NodeId, Rc<Listener>> = HashMap::new();
    while let Some((root, stream)) = arrivals.recv().await {
        let token = lp.process.token;
        let listener = listeners.entry(root).or_insert_with(|| Rc::new(inside(root, token))).clone();
        let accepted = Accepted { socket: Raw::Unix(stream), peer: None };
        connection::begin(&lp, &listener, accepted, Box::new(()), None);
    }
}

/// No limits but those of memory: both ends are ours.
fn inside(root: NodeId, token: u64) -> Listener {
    let http = Http {
        versions: vec![HttpVersion::H1],
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
        proxy_from: Networks::default(),
        raw_paths: true,
        port: None,
        tls: None,
        log: None,
        errors: None,
        level: 0,
        inner: None,
        built_in: Some(token),
    }
}
