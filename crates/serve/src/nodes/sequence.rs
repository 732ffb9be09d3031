//! `sequence(nodes)`: one after another, to the first error. In built-in servers only. Draws: nothing of its own.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::reply::{Answer, Own, Reply};
use crate::nodes::{NodeId, Way, start};
use std::rc::Rc;

/// The node.
pub(crate) struct Sequence {
    /// What is behind it, in order.
    pub nodes: Vec<NodeId>,
    /// What it answers where nothing is behind it.
    pub empty: Rc<Own>,
}

impl Sequence {
    /// Runs them; the last one's answer is the answer.
    pub async fn run(&self, lp: Rc<Loop>, ex: Rc<Exchange>, way: Way) -> Answer {
        let mut last = Reply::own(self.empty.clone());
        for (number, node) in (0..).zip(&self.nodes) {
            last.discard(&lp, &ex);
            // Each stands elsewhere on the way, so that what is drawn twice at one place differs.
            let inner = if number == 0 { way.clone() } else { way.branch(number) };
            last = start(lp.clone(), ex.clone(), inner, *node).await?;
            if last.outcome().is_some() {
                break;
            }
        }
        Ok(last)
    }
}
