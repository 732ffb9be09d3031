//! Since when: the last changes of targets.

use super::times::clock;
use crate::age::ago;
use std::fmt::Write as _;
use weir_report::escaped;
use weir_serve::EventView;

/// Changes that are shown at once, and in all.
const FIRST: usize = 5;
const SHOWN: usize = 20;
/// Targets of a change that are named.
const NAMED: usize = 3;

/// The newest changes.
pub(super) fn first(events: &[EventView], now_unix_ms: u64) -> String {
    if events.is_empty() {
        return "<tr><td class=\"quiet\" colspan=\"2\">no target has changed since the start</td></tr>\n"
            .to_owned();
    }
    rows(events.iter().take(FIRST), now_unix_ms)
}

/// The changes before them.
pub(super) fn more(events: &[EventView], now_unix_ms: u64) -> String {
    rows(events.iter().take(SHOWN).skip(FIRST), now_unix_ms)
}

/// That there are changes before the newest, and how many.
pub(super) fn label(events: &[EventView]) -> String {
    match events.len().min(SHOWN).saturating_sub(FIRST) {
        0 => String::new(),
        n if events.len() > SHOWN => format!("{n} earlier changes; the last 100 are in /topology"),
        1 => "1 earlier change".to_owned(),
        n => format!("{n} earlier changes"),
    }
}

fn rows<'a>(events: impl Iterator<Item = &'a EventView>, now_unix_ms: u64) -> String {
    let mut html = String::new();
    for event in events {
        let (class, sign) = match event.state {
            "up" => ("good", '●'),
            _ => ("bad", '✖'),
        };
        let named: Vec<String> =
            event.targets.iter().take(NAMED).map(|name| escaped(name).to_string()).collect();
        let others = (event.count as usize).saturating_sub(named.len());
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        let check = event.check.as_deref().map(|check| format!(": {}", escaped(check))).unwrap_or_default();
        let reason = event.reason.replace('_', " ");
        let _ = writeln!(
            html,
            "<tr><td class=\"when\">{}<small>{}</small></td><td><span class=\"{class}\">{sign}\u{a0}{}</span> \
             {}{others} of {}<small>{reason}{check}</small></td></tr>",
            clock(now_unix_ms, event.at_unix_ms),
            ago(now_unix_ms, event.at_unix_ms),
            event.state,
            named.join(", "),
            escaped(&event.pool),
        );
    }
    html
}
