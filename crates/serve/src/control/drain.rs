//! The end of a loop that drains (`docs/spec/serving.md#drain`).

use crate::accept::drain::{LOOK_NS, cut};
use crate::threads::event_loop::Loop;
use crate::threads::process::Process;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The time after which a drain is reported, ns: a short one needs no message.
const DRAIN_WORD_NS: u64 = 1_500_000_000;

/// Ends a loop (`docs/spec/serving.md#drain`).
pub(super) async fn drain(process: &Process, lp: &Rc<Loop>) {
    lp.announce_drain();
    let replaced = process.replaced.load(Ordering::Relaxed);
    let delay_ns = if replaced { 0 } else { lp.longest_ns(|http| http.drain_delay_ns) };
    if delay_ns > 0 {
        lp.core.timers.after(delay_ns).await;
    }
    process.transits.close();
    let end_ns = lp.core.now().saturating_add(lp.drain_timeout_ns());
    let word_ns = lp.core.now().saturating_add(DRAIN_WORD_NS);
    // Requests in flight may still come to listeners behind those that they came in by.
    let levels = lp.levels() as usize;
    for (level, drained) in (0..).zip(process.drained.iter().take(levels)) {
        // Before the queues are read for the last time: no new client finds the way in then.
        process.files.remove(level);
        lp.closing.send_modify(|closing| closing.levels = level + 1);
        let closing: Vec<_> = lp.accepting.borrow_mut().extract_if(.., |(at, _)| *at <= level).collect();
        for (_, task) in closing {
            task.await;
        }
        lp.drain(level);
        // The loop does not know the clients that were let in last yet.
        lp.core.timers.after(LOOK_NS).await;
        let are_coming = || process.transits.coming(lp.number as usize) > 0;
        while (lp.is_busy(level) || are_coming()) && lp.core.now() < end_ns {
            lp.core.timers.after(LOOK_NS).await;
            report(process, lp, word_ns, end_ns);
        }
        drained.fetch_add(1, Ordering::Relaxed);
        // Other loops may still send requests on to the next level here.
        let others = || drained.load(Ordering::Relaxed) < process.serving.load(Ordering::Relaxed);
        while !lp.accepting.borrow().is_empty() && others() && lp.core.now() < end_ns {
            lp.core.timers.after(LOOK_NS).await;
            report(process, lp, word_ns, end_ns);
        }
    }
    cut(lp, |_| true, "", lp.drain_timeout_ns()).await;
}

/// Reports once, after a while, that a drain is in progress.
fn report(process: &Process, lp: &Loop, word_ns: u64, end_ns: u64) {
    if lp.core.now() >= word_ns && !process.drain_said.swap(true, Ordering::Relaxed) {
        process.errors.note(|| {
            let left_s = end_ns.saturating_sub(lp.core.now()) as f64 / 1e9;
            format!("draining: {left_s:.1} s more at most for what is open; a second signal ends at once")
        });
    }
}
