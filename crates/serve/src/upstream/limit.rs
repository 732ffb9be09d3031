//! `max_connections` of balancers: how many connections there may be to a server, over all loops, idle ones included.
//!
//! A request that was let through to the server has a connection at most, and no more are let through than there may be
//! connections. So whoever finds no room for a new one finds idle ones on other loops: they are asked to close some, and in
//! a moment there is room. Cost where there is a limit: two atomic operations per connection; else nothing.

use crate::control::event_loop::Loop;
use crate::control::mailbox::ToLoop;
use crate::graph::ends::Ends;
use crate::io::timers::{Sleep, has_ended};
use crate::nodes::NodeId;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::Poll;
use weir_topology::plan::{Origin, Point, Spec, To};
use weir_topology::serving::Serving;

/// How soon somebody who was promised room looks for it again, at first and at last, ns.
const LOOK_NS: (u64, u64) = (500_000, 8_000_000);

/// How soon other loops are asked for room again, at first and at last, ns: who had some for this one may have given it to
/// another.
const ASK_NS: (u64, u64) = (4_000_000, 256_000_000);

const SECOND_NS: u64 = 1_000_000_000;

/// The limit of one server.
pub(crate) struct Limit {
    server: NodeId,
    most: u32,
    /// For how long room is waited for where `connect_timeout=None` sets no end, ns.
    wait_ns: u64,
    open: AtomicU32,
}

/// A connection that counts; dropped, it does not any more.
pub(crate) struct Counted(Arc<Limit>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, SeqCst);
    }
}

impl Limit {
    /// The servers of a plan that have one: the lowest of the balancers that lead there.
    pub fn of(point: &Point, serving: &Serving) -> BTreeMap<NodeId, Arc<Limit>> {
        let mut limits = BTreeMap::new();
        for node in &point.nodes {
            let (Spec::Lb(lb), To::List(list)) = (&point.specs[node.spec as usize], node.to) else {
                continue;
            };
            let Some(most) = lb.max_connections else { continue };
            for target in &point.lists[list as usize] {
                for server in Ends::behind(point, serving, false, *target).servers() {
                    let (least, wait_ns) = limits.entry(server).or_insert((most, lb.wait_timeout_ns));
                    *least = most.min(*least);
                    *wait_ns = lb.wait_timeout_ns.into_iter().chain(*wait_ns).min();
                }
            }
        }
        limits
            .into_iter()
            .map(|(server, (most, wait_ns))| (server, Limit::new(server, most, wait_ns)))
            .collect()
    }

    /// `wait_ns`: the balancers' `wait_timeout`; without one the default `connect_timeout` ends a wait that nothing else does.
    fn new(server: NodeId, most: u32, wait_ns: Option<u64>) -> Arc<Limit> {
        let wait_ns = wait_ns.or(Origin::default().connect_timeout_ns).unwrap_or(SECOND_NS);
        Arc::new(Limit { server, most, wait_ns, open: AtomicU32::new(0) })
    }

    fn take(self: &Arc<Self>) -> Option<Counted> {
        let more = |n: u32| (n < self.most).then_some(n + 1);
        self.open.fetch_update(SeqCst, SeqCst, more).ok().map(|_| Counted(self.clone()))
    }

    /// Room for a connection; `None`: there was none before the end, or where that is never, for the limit's own time.
    pub async fn room(self: &Arc<Self>, lp: &Rc<Loop>, end: &mut Option<Sleep>) -> Option<Counted> {
        if let Some(counted) = self.take() {
            return Some(counted);
        }
        let mut own = end.is_none().then(|| lp.timers.after(self.wait_ns));
        let end = if own.is_some() { &mut own } else { end };
        let (mut look_ns, mut ask_ns, mut ask_at) = (LOOK_NS.0, ASK_NS.0, 0);
        loop {
            let now_ns = lp.now();
            if now_ns >= ask_at {
                // Of this loop's own there may be one as well, if it was not to be reused.
                lp.close_idle(self.server);
                lp.tell_others(|| ToLoop::CloseIdle { server: self.server });
                ask_at = now_ns.saturating_add(ask_ns);
                ask_ns = (2 * ask_ns).min(ASK_NS.1);
            }
            let mut look = Some(lp.timers.after(look_ns));
            look_ns = (2 * look_ns).min(LOOK_NS.1);
            let ended = poll_fn(|cx| match (has_ended(end, cx), has_ended(&mut look, cx)) {
                (true, _) => Poll::Ready(true),
                (_, true) => Poll::Ready(false),
                _ => Poll::Pending,
            });
            if ended.await {
                return None;
            }
            if let Some(counted) = self.take() {
                return Some(counted);
            }
        }
    }
}
