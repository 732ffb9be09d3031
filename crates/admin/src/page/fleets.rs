//! Fleets on the page: how many members each has, and since when and why its source gives no list.

use super::pools::sign_of;
use super::rows::count;
use super::times::clock;
use crate::age::stretch;
use std::fmt::Write as _;
use weir_report::escaped;
use weir_serve::{FleetView, View};

/// The most fleets that are shown.
const MOST: usize = 50;

/// For how long there has been no list, ms; `None`: there is one.
fn stale_ms(fleet: &FleetView) -> Option<u64> {
    fleet.stale_s.map(|stale_s| (stale_s * 1e3) as u64)
}

/// An alarm for each fleet whose source gives no list.
pub(super) fn alarms(view: &View) -> impl Iterator<Item = (&'static str, String)> {
    view.fleets.iter().filter_map(|fleet| {
        let lasts = stretch(stale_ms(fleet)?);
        let list = match &fleet.error {
            Some(why) => format!("no list for {lasts}: {why}"),
            None => format!("no list yet, for {lasts}"),
        };
        Some(("warn", format!("fleet {}: {list}", fleet.fleet)))
    })
}

/// A row for each fleet, those without a list first.
pub(super) fn rows(view: &View, now_unix_ms: u64) -> String {
    let mut all: Vec<&FleetView> = view.fleets.iter().collect();
    all.sort_by_key(|fleet| fleet.stale_s.is_none());
    let mut html = String::new();
    for fleet in all.iter().take(MOST) {
        let _ = writeln!(
            html,
            "<tr><td class=\"target\">{}<small>{}</small></td><td class=\"n\">{}</td>\
             <td class=\"target\">{}</td></tr>",
            escaped(&fleet.fleet),
            escaped(&fleet.source),
            members(fleet),
            list(fleet, now_unix_ms),
        );
    }
    if all.len() > MOST {
        let more = count((all.len() - MOST) as u64);
        let _ = writeln!(html, "<tr><td colspan=\"3\">and {more} more, in /topology</td></tr>");
    }
    html
}

/// The number of its members, and of those that are not picked as others are.
fn members(fleet: &FleetView) -> String {
    let others = [(fleet.draining, "draining"), (fleet.withdrawn, "withdrawn")];
    let others = others.iter().filter(|(n, _)| *n > 0);
    let others: String =
        others.map(|(n, state)| format!("<small>{} {state}</small>", count(*n as u64))).collect();
    format!("{}{others}", count(fleet.members as u64))
}

/// Whether there is a list, and whether it is believed; if there is none, since when and why.
fn list(fleet: &FleetView, now_unix_ms: u64) -> String {
    let Some(stale_ms) = stale_ms(fleet) else {
        return if fleet.withdrawn > 0 { "doubted" } else { "there" }.to_owned();
    };
    let since = clock(now_unix_ms, now_unix_ms.saturating_sub(stale_ms));
    let why = fleet.error.as_ref().map(|why| format!("<small>{}</small>", escaped(why)));
    let none = if why.is_some() { "none" } else { "none\u{a0}yet" };
    format!(
        "<span class=\"warn\">{}\u{a0}{none}</span><small>since {since} ({})</small>{}",
        sign_of("warn"),
        stretch(stale_ms).replace(' ', "\u{a0}"),
        why.unwrap_or_default()
    )
}
