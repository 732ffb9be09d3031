//! HAProxy's agent check: one line to whoever connects (configuration manual, `agent-check`). It makes a slope of the weight
//! where yes and no would be a step.

use crate::state::State;

/// The line.
pub(crate) fn line(state: &State) -> String {
    let now_ns = state.now_ns();
    if state.is_ending {
        return "down #the gate ends\n".to_owned();
    }
    if let Some(why) = &state.unready {
        return format!("down #{why}\n");
    }
    if state.gate.held_ns(now_ns).is_some() {
        return "down #too few requests came in\n".to_owned();
    }
    let enabled = state.gate.enabled_percent(now_ns).floor().max(1.0);
    format!("up {enabled:.0}%\n")
}
