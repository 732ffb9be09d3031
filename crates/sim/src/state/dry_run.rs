//! The changes of a replication without its requests: nothing is inside of a process, and all members may be picked.

use crate::code::Code;
use crate::state::change_events::{ChangeEvent, Timer};
use crate::state::changes::Changes;
use crate::state::processes::Effect;
use crate::state::rollouts::is_awaited;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_stats::Key;

/// The state of all fleets after the changes of the replication with that key.
pub(crate) fn dry_run(code: &Code, key: Key) -> Changes {
    let mut changes = Changes::new(code, key);
    let Some(tables) = code.changes.as_deref() else { return changes };
    let mut pending = BinaryHeap::new();
    let later = |changes: &Changes, event: ChangeEvent, at_ns: u64| {
        Reverse((at_ns, changes.order_of(code, event), event.index(code)))
    };
    for (step, of) in (0..).zip(&tables.steps).filter(|(step, _)| !is_awaited(tables, *step)) {
        pending.push(later(&changes, ChangeEvent::Step(step), of.at_ns));
    }
    while let Some(Reverse((now_ns, _, index))) = pending.pop() {
        match ChangeEvent::from_index(code, index) {
            ChangeEvent::Step(step) => changes.step(code, step, now_ns),
            ChangeEvent::Timer(Timer::Boot(process)) => changes.process_is_due(code, process, now_ns),
            ChangeEvent::Timer(Timer::Look(process)) => {
                changes.look_at_process(code, process, true, now_ns);
            }
            ChangeEvent::Timer(Timer::Halt { change, part }) => changes.halt(change, part),
            ChangeEvent::Grace(_) | ChangeEvent::Sight(_) => {}
        }
        changes.complete_batches(tables, now_ns, |_| Some(true));
        for effect in std::mem::take(&mut changes.effects) {
            match effect {
                Effect::Timer(timer, at_ns) => {
                    pending.push(later(&changes, ChangeEvent::Timer(timer), at_ns));
                }
                Effect::Step(step, at_ns) => pending.push(later(&changes, ChangeEvent::Step(step), at_ns)),
                _ => {}
            }
        }
    }
    changes
}
