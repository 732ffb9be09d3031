//! Open traffic: each request at its time, regardless of the answers.

use super::Generator;
use super::job::Arrival;
use super::sender::{Sender, scaled};
use std::rc::Rc;
use weir_stats::Ratio;
use weir_workload::{Load, Requests};

/// Requests that are begun in a row before answers are read.
const ROW: u32 = 32;

/// The rest of the traffic, and its next request.
pub(crate) struct Open {
    load: Load,
    requests: Requests,
    speed: Ratio,
    ordinal: u64,
    /// The scenario's time of the next arrival.
    arrives_ns: u64,
}

impl Open {
    /// The next arrival, and when it is due; `u64::MAX` if there is none.
    fn advance(&mut self) -> u64 {
        if self.ordinal == self.load.requests {
            return u64::MAX;
        }
        let Some(ns) = self.load.arrivals.next_ns() else { return u64::MAX };
        self.arrives_ns = ns;
        scaled(ns, self.speed)
    }

    /// The request that is due.
    fn take(&mut self, intended_ns: u64) -> Arrival {
        let (selected, _) = self.load.selects(self.arrives_ns, self.ordinal);
        let request = self.requests.open(self.ordinal);
        self.ordinal += 1;
        Arrival { request, intended_ns, selected, user: None }
    }
}

/// Sends all requests, to the last.
pub(crate) async fn send(sender: Sender) {
    let Sender { g, load, requests, speed } = sender;
    let mut open = Open { load, requests, speed, ordinal: 0, arrives_ns: 0 };
    g.due_ns.set(open.advance());
    *g.open.borrow_mut() = Some(open);
    while g.due_ns.get() < u64::MAX {
        let due_ns = g.due_ns.get();
        if due_ns > g.now() || g.has_not_begun() {
            g.core.timers.sleep_until(g.begun_ns.get() + due_ns).await;
        }
        if send_due(&g, g.now()) == ROW {
            g.core.runtime.next_turn().await;
        }
    }
}

/// Begins requests that are due; returns their number.
pub(crate) fn send_due(g: &Rc<Generator>, now_ns: u64) -> u32 {
    let mut begun = 0;
    while begun < ROW && g.due_ns.get() <= now_ns {
        let next = {
            let mut open = g.open.borrow_mut();
            let Some(open) = open.as_mut() else { break };
            let arrival = open.take(g.due_ns.get());
            g.due_ns.set(open.advance());
            arrival
        };
        g.begin(next);
        begun += 1;
    }
    begun
}
