//! `timeout(time, node)`: the whole response comes within this time, or what is behind is cancelled.
//!
//! Before the response's head: the failure `timeout` (504). After it: the body breaks off; the limit travels with the reply
//! as a hold and the relay asks it. The clock stands still while weir waits for the client (`serving.md` §2).

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::{Failure, Why};
use crate::exchange::hold::Hold;
use crate::exchange::reply::{Answer, From};
use crate::io::timers::Sleep;
use crate::nodes::{NodeId, Way, start};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_policy::Kind;

/// The node.
#[derive(Clone, Copy)]
pub(crate) struct Timeout {
    /// The limit, ns.
    pub time_ns: u64,
    /// What is behind it.
    pub node: NodeId,
}

impl Timeout {
    /// Runs what is behind, for so long.
    pub async fn run(self, lp: Rc<Loop>, ex: Rc<Exchange>, way: Way) -> Answer {
        let mut limit = Limit::new(&lp, &ex, self.time_ns);
        let mut behind = start(lp.clone(), ex.clone(), way, self.node);
        let answer = poll_fn(|cx| match behind.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if limit.has_ended(cx, &lp, Some(&ex)) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match answer {
            Some(Ok(mut reply)) => {
                if matches!(reply.from, From::Origin(_)) {
                    reply.holds.push(Hold::Timeout(limit));
                }
                Ok(reply)
            }
            Some(failed) => failed,
            None => Err(Failure::new(Kind::Timeout).by(Why::Timeout(self.time_ns))),
        }
    }
}

/// A limit of time whose clock stands still while weir waits for the client.
pub(crate) struct Limit {
    sleep: Sleep,
    /// How long weir had waited for the client when the limit was last set.
    waited_ns: u64,
}

impl Limit {
    fn new(lp: &Loop, ex: &Exchange, time_ns: u64) -> Limit {
        Limit { sleep: lp.timers.after(time_ns), waited_ns: ex.waited_for_client_ns(lp) }
    }

    /// Whether it has ended; else the task is woken when it does.
    pub fn has_ended(&mut self, cx: &mut Context<'_>, lp: &Loop, ex: Option<&Exchange>) -> bool {
        while self.sleep.poll_ended(cx).is_ready() {
            let waited_ns = ex.map_or(self.waited_ns, |ex| ex.waited_for_client_ns(lp));
            if waited_ns == self.waited_ns {
                return true;
            }
            self.sleep = lp.timers.after(waited_ns - self.waited_ns);
            self.waited_ns = waited_ns;
        }
        false
    }
}
