//! `max_connections` of balancers: the limit of connections to a target, over all loops, idle ones included.
//!
//! A request that was admitted to the target uses at most one connection, and no more requests are admitted than
//! connections allowed. So if there is no room for a new connection, other loops have idle ones: they are asked to
//! close some, and room is there in a moment. Cost with a limit: two atomic operations per connection; without:
//! nothing.

use crate::sync::counter::{Counted, Counter};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::timers::{Sleep, has_ended};
use weir_plan::Origin;

/// How soon a connection that was promised room looks for it again, at first and at last, ns.
const LOOK_NS: (u64, u64) = (500_000, 8_000_000);

/// How soon other loops are asked for room again, at first and at last, ns: a place that one of them freed may have
/// been taken by another request.
const ASK_NS: (u64, u64) = (4_000_000, 256_000_000);

const SECOND_NS: u64 = 1_000_000_000;

/// The limit of one target.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimit {
    most: u32,
    /// How long to wait for room if `connect_timeout=None` sets no end, ns.
    wait_ns: u64,
    open: Arc<Counter>,
}

impl ConnectionLimit {
    /// At most `most` of the connections that `open` counts. `wait_ns`: the balancers' `wait_timeout`; without one
    /// the default `connect_timeout` ends a wait that would otherwise not end.
    pub fn new(open: Arc<Counter>, most: u32, wait_ns: Option<u64>) -> ConnectionLimit {
        let wait_ns = wait_ns.or(Origin::default().connect_timeout_ns).unwrap_or(SECOND_NS);
        ConnectionLimit { most, wait_ns, open }
    }

    /// Waits for room for a connection; `None`: there was none before the end, or without an end within the limit's
    /// own time. `ask`: has idle connections closed, here and on other loops.
    pub async fn room(&self, core: &Core, end: &mut Option<Sleep>, ask: impl Fn()) -> Option<Counted> {
        if let Some(counted) = self.open.take(self.most) {
            return Some(counted);
        }
        let mut own = end.is_none().then(|| core.timers.after(self.wait_ns));
        let end = if own.is_some() { &mut own } else { end };
        let (mut look_ns, mut ask_ns, mut ask_at) = (LOOK_NS.0, ASK_NS.0, 0);
        loop {
            let now_ns = core.now();
            if now_ns >= ask_at {
                ask();
                ask_at = now_ns.saturating_add(ask_ns);
                ask_ns = (2 * ask_ns).min(ASK_NS.1);
            }
            let mut look = Some(core.timers.after(look_ns));
            look_ns = (2 * look_ns).min(LOOK_NS.1);
            let ended = poll_fn(|cx| match (has_ended(end, cx), has_ended(&mut look, cx)) {
                (true, _) => Poll::Ready(true),
                (_, true) => Poll::Ready(false),
                _ => Poll::Pending,
            });
            if ended.await {
                return None;
            }
            if let Some(counted) = self.open.take(self.most) {
                return Some(counted);
            }
        }
    }
}
