//! Sends a scenario's requests: open traffic at its times, closed traffic for its users.

use super::{Generator, closed, open};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_stats::Ratio;
use weir_workload::{Load, Requests};

/// Sends the requests of a run.
pub(crate) struct Sender {
    pub g: Rc<Generator>,
    pub load: Load,
    pub requests: Requests,
    pub speed: Ratio,
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

/// A time of the scenario, in a run that is faster by a factor: exactly, also where it is Unix time.
pub(crate) fn scaled(ns: u64, speed: Ratio) -> u64 {
    speed.divide(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_divided_exactly() {
        let at_ns = 1_732_600_000_123_456_789;
        assert_eq!(scaled(at_ns, Ratio::near(1.0)), at_ns);
        assert_eq!(scaled(at_ns, Ratio::near(0.1)), 10 * at_ns);
        assert_eq!(scaled(at_ns, Ratio::near(3.0)), at_ns / 3);
        assert_eq!(scaled(at_ns, Ratio::near(1.25)), at_ns / 5 * 4 + 3);
    }
}
