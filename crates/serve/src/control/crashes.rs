//! What a crash does to the connections of a built-in server in a run of a verification: those that are open end, and
//! while its process is down none is made, as in the simulation (`docs/spec/language.md#connections`).

use crate::accept::connection;
use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::nodes::Node;
use crate::sync::timeline::LocalTimeLine;
use crate::threads::event_loop::Loop;
use crate::transport::listener::Listener;
use crate::transport::listening::{ListeningSocket, LoopSocket};
use crate::transport::session::{Ending, Session};
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::timers::has_ended;
use weir_plan::{Edge, Mode};

/// The time in which answers leave of requests that are inside at a crash, ns.
const LAST_WORD_NS: u64 = 2_000_000;

/// The pause after a failed accept, ns.
const PAUSE_NS: u64 = 10_000_000;

/// The timelines of processes that crash, on the only way from a server's root inwards.
pub(super) fn crashing(graph: &Graph, root: NodeId) -> Vec<Rc<LocalTimeLine>> {
    let nodes = &graph.blueprint.point.nodes;
    let next = |id: &NodeId| match nodes.get(*id as usize)?.to {
        Edge::Node(next) => Some(next),
        Edge::None | Edge::List(_) => None,
    };
    let crashes = |id: NodeId| match graph.node(id) {
        Node::Faulty(faulty) if faulty.mode == Mode::Crash => Some(faulty.timeline.clone()),
        _ => None,
    };
    std::iter::successors(Some(root), next).filter_map(crashes).collect()
}

/// The socket of a server whose process crashes.
pub(super) struct CrashingServer {
    pub listener: Rc<Listener>,
    /// `None` while the process is down.
    pub socket: Option<ListeningSocket>,
    pub address: SocketAddr,
    pub lines: Vec<Rc<LocalTimeLine>>,
    /// Keeps its port while the process is down.
    pub _port: Option<OwnedFd>,
}

impl CrashingServer {
    /// Serves its connections, and ends them at each crash.
    pub async fn serve(mut self, lp: Rc<Loop>) {
        loop {
            let (is_up, flips_ns) = self.state(&lp).await;
            if is_up && self.socket.is_none() {
                let socket = TcpListener::bind(self.address);
                self.socket = socket.and_then(|socket| LoopSocket::Tcp(socket).watch(&lp.core.runtime)).ok();
                self._port = None;
            } else if !is_up && self.socket.take().is_some() {
                self._port = hold(self.address).ok();
                self.end_connections(&lp).await;
            }
            // Without a socket though it is up, it tries again soon.
            let again_ns = if is_up && self.socket.is_none() { PAUSE_NS } else { u64::MAX };
            let until_ns = flips_ns.min(lp.core.now().saturating_add(again_ns));
            if !self.accept_until(&lp, until_ns).await {
                lp.core.timers.after(PAUSE_NS).await;
            }
        }
    }

    /// Accepts connections until then; false: that has failed.
    async fn accept_until(&self, lp: &Rc<Loop>, until_ns: u64) -> bool {
        let mut ends = (until_ns < u64::MAX).then(|| lp.core.timers.sleep_until(until_ns));
        poll_fn(|cx| {
            if has_ended(&mut ends, cx) {
                return Poll::Ready(true);
            }
            let Some(socket) = &self.socket else { return Poll::Pending };
            while let Poll::Ready(accepted) = socket.poll_accept(cx) {
                let Ok(accepted) = accepted else { return Poll::Ready(false) };
                connection::begin(lp, &self.listener, accepted, Box::new(()), None);
            }
            Poll::Pending
        })
        .await
    }

    /// Requests inside are answered as ones that the crash has cut off.
    async fn end_connections(&self, lp: &Loop) {
        let is_own = |session: &Session| Rc::ptr_eq(&session.listener, &self.listener);
        lp.end_clients(Ending::Now, is_own);
        lp.core.timers.after(LAST_WORD_NS).await;
        lp.end_clients(Ending::Ended, is_own);
    }

    /// Whether all processes are up, and when the first of them flips. A lazy timeline is not known before it is looked at by a
    /// request: connections know nothing of it.
    async fn state(&self, lp: &Loop) -> (bool, u64) {
        let (mut is_up, mut flips_ns) = (true, u64::MAX);
        for line in &self.lines {
            let seen = line.shared.look(lp.core.clock).await;
            if let Some(next_ns) = seen.next_ns {
                (is_up, flips_ns) = (is_up && seen.up, flips_ns.min(next_ns));
            }
        }
        (is_up, flips_ns)
    }
}

/// Keeps a port at which no socket listens: connections are refused, and no other process gets it.
fn hold(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket)
}
