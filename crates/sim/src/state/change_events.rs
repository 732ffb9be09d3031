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

/// The order of what is due for processes: behind all ends of graces, by the number of the process, what it does by itself
/// before what follows from what is inside.
pub(crate) fn timer_order(code: &Code, timer: Timer) -> u64 {
    let views = code.changes.as_ref().map_or(0, |tables| tables.views.len() as u64);
    grace_order(code, views as u32) + u64::from(timer.number(code)) * (views + 1)
}

/// Something of processes that is due at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A process boots, or has booted.
    Boot(u32),
    /// A process may end.
    Look(u32),
    /// A replacement halts, if a batch still waits.
    Halt { change: u32, part: u32 },
}

impl Timer {
    /// Its number among all: first those of processes, then those of steps.
    fn number(self, code: &Code) -> u32 {
        let Some(tables) = code.changes.as_deref() else { return 0 };
        match self {
            Timer::Boot(process) => 2 * process,
            Timer::Look(process) => 2 * process + 1,
            Timer::Halt { change, part } => {
                let is_its = |step: &weir_plan::fleets::Step| (step.change, step.part) == (change, part);
                let step = tables.steps.iter().position(is_its).unwrap_or(0) as u32;
                2 * tables.processes.len() as u32 + step
            }
        }
    }

    fn from_number(code: &Code, number: u32) -> Option<Timer> {
        let tables = code.changes.as_deref()?;
        let Some(step) = number.checked_sub(2 * tables.processes.len() as u32) else {
            let of = if number.is_multiple_of(2) { Timer::Boot } else { Timer::Look };
            return Some(of(number / 2));
        };
        let of = tables.steps.get(step as usize)?;
        Some(Timer::Halt { change: of.change, part: of.part })
    }
}

/// An event of fleets, by the index under which it is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeEvent {
    /// A step of a change.
    Step(u32),
    /// A grace of a view ends.
    Grace(u32),
    /// Something of processes is due.
    Timer(Timer),
    /// A balancer sees what has changed.
    Sight(u32),
}

impl ChangeEvent {
    /// Whether something may follow from it for requests.
    pub fn is_news(self) -> bool {
        !matches!(self, ChangeEvent::Timer(Timer::Halt { .. }))
    }

    /// The index: steps, then the views, then timers, then sights, which become more.
    pub fn index(self, code: &Code) -> u32 {
        let (steps, views, timers) = ChangeEvent::counts(code);
        match self {
            ChangeEvent::Step(step) => step,
            ChangeEvent::Grace(view) => steps + view,
            ChangeEvent::Timer(timer) => steps + views + timer.number(code),
            ChangeEvent::Sight(sight) => steps + views + timers + sight,
        }
    }

    /// The event of an index.
    pub fn from_index(code: &Code, index: u32) -> ChangeEvent {
        let (steps, views, timers) = ChangeEvent::counts(code);
        let Some(behind) = index.checked_sub(steps) else { return ChangeEvent::Step(index) };
        let Some(number) = behind.checked_sub(views) else { return ChangeEvent::Grace(behind) };
        match Timer::from_number(code, number).filter(|_| number < timers) {
            Some(timer) => ChangeEvent::Timer(timer),
            None => ChangeEvent::Sight(number - timers),
        }
    }

    /// How many steps, views and timers there are.
    fn counts(code: &Code) -> (u32, u32, u32) {
        let Some(tables) = code.changes.as_deref() else { return (0, 0, 0) };
        let steps = tables.steps.len() as u32;
        let timers = 2 * tables.processes.len() as u32 + steps;
        (steps, tables.views.len() as u32, timers)
    }
}
