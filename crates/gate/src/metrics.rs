//! The gate's metrics in Prometheus' text format (`GET /gate/metrics`).

use crate::state::State;
use std::fmt::Write;

/// The page.
pub(crate) fn page(state: &State) -> String {
    let mut page = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, f64)]| {
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(page, "{name}{labels} {value}");
        }
    };
    let count = |n: u64| n as f64;
    let ready = f64::from(u8::from(state.unready.is_none()));
    family("weir_gate_ready", "gauge", "Whether the application is healthy.", &[("", ready)]);
    let enabled = f64::from(state.gate.enabled_percent(state.now_ns())) / 100.0;
    family("weir_gate_enabled_ratio", "gauge", "How much of the ramp is over.", &[("", enabled)]);
    let answers = [
        ("{result=\"healthy\"}", count(state.answers.healthy)),
        ("{result=\"ramp\"}", count(state.answers.ramp)),
        ("{result=\"unready\"}", count(state.answers.unready)),
        ("{result=\"idle\"}", count(state.answers.idle)),
    ];
    family("weir_gate_answers_total", "counter", "Checks that were answered.", &answers);
    family("weir_gate_askers", "gauge", "Askers that are known.", &[("", state.askers.len() as f64)]);
    if let Some(requests) = state.requests() {
        let help = "Requests that have come in since the application began.";
        family("weir_gate_requests", "gauge", help, &[("", count(requests))]);
    }
    page
}
