//! HAProxy's agent check: one line for each connection (configuration manual, `agent-check`). It makes a slope of the weight
//! where yes and no would be a step.

use crate::state::State;

/// The line. The question may begin the clock, as a check does.
pub(crate) fn line(state: &mut State) -> String {
    let now_ns = state.now_ns();
    state.gate.asked(now_ns);
    if state.is_ending {
        return "down #the gate ends\n".to_owned();
    }
    if let Some(why) = &state.unready {
        return format!("down #{why}\n");
    }
    if state.held_ns().is_some() {
        return "down #too few requests came in\n".to_owned();
    }
    let enabled = state.gate.enabled_percent(now_ns).floor().max(1.0);
    format!("up {enabled:.0}%\n")
}
