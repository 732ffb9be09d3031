//! The events of fleets: steps of changes, what balancers see of them, and ends of graces; their order at one instant and
//! the indices under which they are scheduled.

use crate::code::Code;

/// The order of a step among all that happens to fleets at one instant.
pub(crate) fn step_order(code: &Code, step: u32) -> u64 {
    let views = code.changes.as_ref().map_or(0, |tables| tables.views.len() as u64);
    u64::from(step) * (views + 1)
}

/// The order of the end of a grace at a balancer: behind all steps and what is seen of them.
pub(crate) fn grace_order(code: &Code, view: u32) -> u64 {
    step_order(code, code.changes.as_ref().map_or(0, |tables| tables.steps.len() as u32)) + u64::from(view)
}

/// An event of fleets, by the index under which it is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeEvent {
    /// A step of a change.
    Step(u32),
    /// A grace of a view ends.
    Grace(u32),
    /// A balancer sees what has changed.
    Sight(u32),
}

impl ChangeEvent {
    /// The index: steps, then the views, then sights, which become more.
    pub fn index(self, code: &Code) -> u32 {
        let (steps, views) = ChangeEvent::counts(code);
        match self {
            ChangeEvent::Step(step) => step,
            ChangeEvent::Grace(view) => steps + view,
            ChangeEvent::Sight(sight) => steps + views + sight,
        }
    }

    /// The event of an index.
    pub fn from_index(code: &Code, index: u32) -> ChangeEvent {
        let (steps, views) = ChangeEvent::counts(code);
        match index.checked_sub(steps) {
            None => ChangeEvent::Step(index),
            Some(view) if view < views => ChangeEvent::Grace(view),
            Some(sight) => ChangeEvent::Sight(sight - views),
        }
    }

    fn counts(code: &Code) -> (u32, u32) {
        let tables = code.changes.as_ref();
        tables.map_or((0, 0), |tables| (tables.steps.len() as u32, tables.views.len() as u32))
    }
}
