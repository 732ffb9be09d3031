//! What limits, and which certificates end when.

use super::rows::count;
use super::times::date;
use crate::age::stretch;
use std::fmt::Write as _;
use weir_report::escaped;
use weir_serve::{LimitView, View};

/// The share of a limit from which on it is near, and from which on it is as good as reached.
const NEAR: f64 = 0.8;
const REACHED: f64 = 0.95;
/// The most budgets and limits of listeners that are shown.
const MOST: usize = 50;
const DAY_MS: u64 = 86_400_000;

/// The class of a limit by what is used of it; of a budget by what is left.
pub(super) fn class(limit: &LimitView) -> &'static str {
    if limit.limit == "budget" {
        return if limit.now < 1.0 { "warn" } else { "" };
    }
    match limit.now / limit.most.max(1.0) {
        used if used >= REACHED => "bad",
        used if used >= NEAR => "warn",
        _ => "",
    }
}

/// A limit in words, for an alarm.
pub(super) fn words(limit: &LimitView) -> String {
    let (now, most) = (count(limit.now as u64), count(limit.most as u64));
    match limit.limit {
        "budget" => format!("{}: its budget allows no further attempt now", limit.of),
        "clients" if limit.of.is_empty() => format!("{now} of {most} clients are connected"),
        "clients" => format!("listener {}: {now} of {most} clients are connected", limit.of),
        what => format!("{now} of {most} {what} are in use"),
    }
}

/// The rows of limits: those that are near first.
pub(super) fn rows(view: &View) -> String {
    let mut all: Vec<&LimitView> = view.limits.iter().collect();
    all.sort_by_key(|limit| match class(limit) {
        "bad" => 0,
        "warn" => 1,
        _ => 2,
    });
    let mut html = String::new();
    for limit in all.iter().take(MOST) {
        let name = match (limit.limit, limit.of.as_str()) {
            ("clients", "") => "clients<small>of listeners without max_clients</small>".to_owned(),
            ("clients", of) => format!("clients<small>of listener {}</small>", escaped(of)),
            ("budget", of) => format!("further attempts<small>left in the budget of {}</small>", escaped(of)),
            ("descriptors", _) => "descriptors<small>of ulimit -n</small>".to_owned(),
            (other, of) => format!("{}<small>{}</small>", escaped(other), escaped(of)),
        };
        let used = (limit.now / limit.most.max(1.0)).clamp(0.0, 1.0) * 100.0;
        let bar = match limit.limit {
            "budget" => String::new(),
            _ => format!("<span class=\"bar\"><i style=\"width:{used:.0}%\"></i></span>"),
        };
        let of = if limit.limit == "budget" { "· reserve\u{a0}" } else { "of\u{a0}" };
        let _ = writeln!(
            html,
            "<tr><td class=\"target\">{name}</td><td class=\"n {}\">{} {of}{}{bar}</td></tr>",
            class(limit),
            count(limit.now as u64),
            count(limit.most as u64),
        );
    }
    if all.len() > MOST {
        let _ = writeln!(
            html,
            "<tr><td colspan=\"2\">and {} more, in /topology</td></tr>",
            count((all.len() - MOST) as u64)
        );
    }
    html
}

/// The rows of certificates: the first to end first.
pub(super) fn certificates(view: &View, now_unix_ms: u64) -> String {
    let mut html = String::new();
    for one in view.certificates.iter().take(MOST) {
        let ends_ms = one.not_after_s.saturating_mul(1000);
        let (class, words) = match ends_ms.checked_sub(now_unix_ms) {
            None => ("bad", format!("ended {} ago", stretch(now_unix_ms - ends_ms))),
            Some(left) if left < 3 * DAY_MS => ("bad", format!("in {}", stretch(left))),
            Some(left) if left < 14 * DAY_MS => ("warn", format!("in {}", stretch(left))),
            Some(left) => ("", format!("in {}", stretch(left))),
        };
        let _ = writeln!(
            html,
            "<tr><td class=\"target\">{}<small>{}</small></td><td class=\"n\"><span class=\"{class}\">{words}</span><small>{}</small></td></tr>",
            escaped(&one.listener),
            escaped(&one.file),
            date(ends_ms),
        );
    }
    let more = view.certificates.len().saturating_sub(MOST);
    if more > 0 {
        let _ = writeln!(
            html,
            "<tr><td colspan=\"2\">and {} more, which end later</td></tr>",
            count(more as u64)
        );
    }
    html
}
