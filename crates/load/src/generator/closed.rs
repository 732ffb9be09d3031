//! Closed traffic: users that think, send a request, wait for its answer and think again.

use super::job::Arrival;
use super::sender::{Sender, scaled};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::task::Poll;
use weir_model::traffic::Thinking;
use weir_net::io::timers::has_ended;

/// The users of a run.
struct Users {
    thinking: Thinking,
    /// The number of requests that each has sent.
    sent: Vec<u64>,
    /// Users that think: until when, ns after the run's start.
    until_ns: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Users {
    fn think(&mut self, sender: &Sender, user: u32, now_ns: u64) {
        let thought_ns = scaled(self.thinking.think_ns(user, self.sent[user as usize]), sender.speed);
        self.until_ns.push(Reverse((now_ns.saturating_add(thought_ns), user)));
    }
}

/// Sends the requests of all users, to the last.
pub(crate) async fn send(sender: &Sender, thinking: Thinking) {
    let sent = vec![0; thinking.users() as usize];
    let mut users = Users { thinking, sent, until_ns: BinaryHeap::new() };
    for user in 0..users.thinking.users() {
        users.think(sender, user, 0);
    }
    let last_ns = scaled(sender.load.until_ns, sender.speed);
    let mut ordinal = 0;
    while ordinal < sender.load.requests {
        for user in sender.g.answered.take() {
            let now_ns = sender.g.now();
            users.think(sender, user, now_ns);
        }
        let next = users.until_ns.peek().map(|next| next.0).filter(|(at_ns, _)| *at_ns <= last_ns);
        match next {
            None if sender.g.in_flight.get() == 0 => return,
            None => answer(sender, None).await,
            Some((at_ns, _)) if at_ns > sender.g.now() => answer(sender, Some(at_ns)).await,
            Some((at_ns, user)) => {
                users.until_ns.pop();
                let k = users.sent[user as usize];
                users.sent[user as usize] += 1;
                let (selected, _) = sender.load.selects(sender.speed.times(at_ns), ordinal);
                let request = sender.requests.of_user(ordinal, user, k);
                sender.g.begin(Arrival { request, intended_ns: at_ns, selected, user: Some(user) });
                ordinal += 1;
            }
        }
    }
}

/// Waits until a user has an answer, or until the given time.
async fn answer(sender: &Sender, until_ns: Option<u64>) {
    let g = &sender.g;
    let mut sleep = until_ns.map(|at_ns| g.core.timers.sleep_until(g.begun_ns.get() + at_ns));
    poll_fn(|cx| {
        *g.watcher.borrow_mut() = Some(cx.waker().clone());
        let answered = !g.answered.borrow().is_empty();
        if answered || has_ended(&mut sleep, cx) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
