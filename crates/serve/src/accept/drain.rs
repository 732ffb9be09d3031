//! The drain of a removed listener, and the end that every drain has (`docs/spec/serving.md#drain`).

use crate::threads::event_loop::Loop;
use crate::transport::listener::Listener;
use crate::transport::session::{Ending, Session};
use std::path::Path;
use std::rc::Rc;

/// How often a draining loop checks whether a client is left, ns.
pub(crate) const LOOK_NS: u64 = 5_000_000;

/// The time that requests which are cut off have for the answer that says so, ns.
const LAST_WORD_NS: u64 = 200_000_000;

/// Drains listeners of this loop that a reload has removed.
pub(crate) fn begin(lp: &Rc<Loop>, removed: Vec<(usize, Rc<Listener>)>) {
    for (number, listener) in removed {
        lp.core.runtime.spawn(drain(lp.clone(), number, listener));
    }
}

async fn drain(lp: Rc<Loop>, number: usize, listener: Rc<Listener>) {
    let is_there = |session: &Session| session.listener.number() == Some(number);
    lp.end_clients(Ending::LastAnswer, is_there);
    if listener.http.drain_delay_ns > 0 {
        lp.core.timers.after(listener.http.drain_delay_ns).await;
    }
    if let Some(path) = listener.addr.strip_prefix("unix:") {
        lp.process.files.remove_at(Path::new(path));
    }
    lp.closing.send_modify(|closing| closing.gone.push(number));
    let end_ns = lp.core.now().saturating_add(listener.http.drain_timeout_ns);
    // Those on their way from another loop begin as connections that drain.
    lp.end_clients(Ending::Draining, is_there);
    lp.core.timers.after(LOOK_NS).await;
    while lp.has_client(is_there) && lp.core.now() < end_ns {
        lp.core.timers.after(LOOK_NS).await;
    }
    cut(&lp, is_there, &format!("listener {}: ", listener.name), listener.http.drain_timeout_ns).await;
    lp.forget_listener(number);
}

/// Ends the connections that are left when `drain_timeout` is over: idle ones in order, requests as if the connection
/// to the origin had been reset. `at`: the beginning of the message.
pub(crate) async fn cut(lp: &Loop, which: impl Fn(&Session) -> bool + Copy, at: &str, timeout_ns: u64) {
    if !lp.has_client(which) {
        return;
    }
    lp.end_clients(Ending::Now, |session| which(session) && session.idle_since_ns.get() != u64::MAX);
    let cut = lp.end_clients(Ending::Cut, which);
    if cut > 0 {
        let number = lp.number;
        lp.process.errors.urgent(|| {
            let (s, of) = (timeout_ns as f64 / 1e9, if cut == 1 { "" } else { "s" });
            format!("{at}drain_timeout ({s} s) is over: {cut} connection{of} of event loop {number} cut off")
        });
    }
    let end_ns = lp.core.now().saturating_add(LAST_WORD_NS);
    while lp.has_client(which) && lp.core.now() < end_ns {
        lp.core.timers.after(LOOK_NS).await;
    }
    lp.end_clients(Ending::Ended, which);
}
