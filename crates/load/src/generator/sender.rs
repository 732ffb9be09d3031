//! Sends a scenario's requests: open traffic at its times, closed traffic for its users.

use super::{Generator, closed, open};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_workload::{Load, Requests};

/// Sends the requests of a run.
pub(crate) struct Sender {
    pub g: Rc<Generator>,
    pub load: Load,
    pub requests: Requests,
    pub speed: f64,
}

impl Sender {
    /// Sends all requests, and returns when the last has ended.
    pub async fn send(mut self) {
        let g = self.g.clone();
        match self.load.thinking.take() {
            Some(thinking) => closed::send(&self, thinking).await,
            None => open::send(self).await,
        }
        poll_fn(|cx| {
            *g.watcher.borrow_mut() = Some(cx.waker().clone());
            if g.in_flight.get() == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A time of the scenario, in a run that is faster by a factor.
pub(crate) fn scaled(ns: u64, speed: f64) -> u64 {
    if speed == 1.0 { ns } else { (ns as f64 / speed) as u64 }
}
