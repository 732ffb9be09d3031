//! What a crash does to the connections of a built-in server in a run of a verification: those that are open end, and
//! while its process is down none is made, as in the simulation (`docs/spec/language.md#connections`).

use crate::accept::connection;
use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::nodes::Node;
use crate::sync::timeline::LocalTimeLine;
use crate::threads::event_loop::Loop;
use crate::transport::listener::Listener;
use crate::transport::listening::ListeningSocket;
use crate::transport::session::{Ending, Session};
use rustix::net::{Shutdown, listen, shutdown};
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::timers::has_ended;
use weir_plan::{Edge, Mode};

/// The pause after a failed accept, ns.
const PAUSE_NS: u64 = 10_000_000;

/// As many connections may wait to be accepted as in the kernel's default.
const BACKLOG: i32 = 4096;

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
    pub socket: ListeningSocket,
    /// The same socket, by which it stops listening and begins again at the same port.
    pub own: TcpListener,
    pub lines: Vec<Rc<LocalTimeLine>>,
}

impl CrashingServer {
    /// Serves its connections, and ends them at each crash.
    pub async fn serve(self, lp: Rc<Loop>) {
        let mut listens = true;
        loop {
            let (is_up, flips_ns) = self.state(&lp).await;
            if is_up != listens && self.listen(is_up).is_err() {
                return;
            }
            listens = is_up;
            if !is_up {
                let is_own = |session: &Session| Rc::ptr_eq(&session.listener, &self.listener);
                lp.end_clients(Ending::Now, is_own);
            }
            let mut flips = (flips_ns < u64::MAX).then(|| lp.core.timers.sleep_until(flips_ns));
            let accepts = poll_fn(|cx| {
                if has_ended(&mut flips, cx) {
                    return Poll::Ready(true);
                }
                while let (true, Poll::Ready(accepted)) = (is_up, self.socket.poll_accept(cx)) {
                    let Ok(accepted) = accepted else { return Poll::Ready(false) };
                    connection::begin(&lp, &self.listener, accepted, Box::new(()), None);
                }
                Poll::Pending
            });
            if !accepts.await {
                lp.core.timers.after(PAUSE_NS).await;
            }
        }
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

    /// Whether the port takes connections; those that wait there are reset when it does not.
    fn listen(&self, takes: bool) -> io::Result<()> {
        match takes {
            true => Ok(listen(&self.own, BACKLOG)?),
            false => Ok(shutdown(&self.own, Shutdown::Read)?),
        }
    }
}
