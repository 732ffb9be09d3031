//! How bad it is for users: of each listener and balancer the last 10 s and the last 5 min.

use super::rows::{count, ms, number, optional};
use std::fmt::Write as _;
use weir_report::escaped;
use weir_serve::{RecentView, View};

/// From this share of failures on it is shown as a warning, and as bad.
const WARN_SHARE: f64 = 0.001;
const BAD_SHARE: f64 = 0.01;

/// A share in percent: `0 %`, `0.3 %`, `12 %`.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// The class of a share of failures.
pub(super) fn class(recent: &RecentView) -> &'static str {
    class_of(recent.share_5xx)
}

/// The same of a share alone.
pub(super) fn class_of(share: Option<f64>) -> &'static str {
    match share {
        Some(share) if share >= BAD_SHARE => "bad",
        Some(share) if share >= WARN_SHARE => "warn",
        _ => "",
    }
}

/// The worst class of a view: of the last 10 s, over all listeners.
pub(super) fn worst(view: &View) -> &'static str {
    let now = view.listeners.iter().filter_map(|listener| listener.recent.first());
    let classes: Vec<&str> = now.map(class).collect();
    match classes {
        all if all.contains(&"bad") => "bad",
        all if all.contains(&"warn") => "warn",
        _ => "",
    }
}

/// Rate, share of 5xx, p50 and p99 as cells: the last 10 s large, the last 5 min below.
pub(super) fn cells(html: &mut String, recent: &[RecentView]) {
    let of = |value: fn(&RecentView) -> String| {
        let now = recent.first().map(value);
        let long = recent.get(1).map(value).map(|long| format!("<small>{long}</small>"));
        format!("{}{}", optional(now), long.unwrap_or_default())
    };
    let share = |recent: &RecentView| {
        let words = optional(recent.share_5xx.map(percent));
        match class(recent) {
            "" => words,
            class => format!("<span class=\"{class}\">{words}</span>"),
        }
    };
    let _ = write!(
        html,
        "<td class=\"n\" data-l=\"Rate\">{}</td><td class=\"n\" data-l=\"5xx\">{}</td>\
         <td class=\"n\" data-l=\"p50\">{}</td><td class=\"n\" data-l=\"p99\">{}</td>",
        of(|recent| format!("{}\u{a0}/s", number(recent.rate_per_s))),
        of(share),
        of(|recent| optional(recent.p50_ms.map(ms))),
        of(|recent| optional(recent.p99_ms.map(ms))),
    );
}

/// The rows of listeners.
pub(super) fn listeners(view: &View) -> String {
    let mut html = String::new();
    for listener in &view.listeners {
        let none = match listener.has_target {
            true => "",
            false => "<small class=\"bad\">✖\u{a0}no target: its requests fail</small>",
        };
        let _ = write!(
            html,
            "<tr><td class=\"target\">{}<small>{}</small>{none}</td>",
            escaped(&listener.name),
            escaped(&listener.addr),
        );
        cells(&mut html, &listener.recent);
        let _ = writeln!(
            html,
            "<td class=\"n\" data-l=\"Clients\">{}</td></tr>",
            count(listener.connections as u64)
        );
    }
    html
}

/// The rows of balancers; each leads to its targets below.
pub(super) fn pools(view: &View) -> String {
    let mut html = String::new();
    for (at, pool) in view.pools.iter().enumerate() {
        let (up, of) = (u64::from(pool.eligible), u64::from(pool.of));
        let class = super::pools::share_class(up, of);
        let up = match of {
            0 => "<span class=\"bad\">✖\u{a0}none</span>".to_owned(),
            _ => format!(
                "<span class=\"{class}\">{}\u{a0}{}\u{a0}of\u{a0}{}</span>",
                super::pools::sign_of(class),
                count(up),
                count(of)
            ),
        };
        let panic = if pool.panic { "<small class=\"bad\">health is ignored (panic)</small>" } else { "" };
        let waiting = pool.waiting.filter(|n| *n > 0);
        let waiting = waiting.map(|n| format!("<small class=\"warn\">{} waiting</small>", count(n)));
        let _ = write!(
            html,
            "<tr><td class=\"target\"><a href=\"#pool-{at}\">{}</a><small>{}</small></td>\
             <td data-l=\"Targets up\">{up}{panic}{}</td>",
            escaped(&pool.name),
            escaped(pool.policy),
            waiting.unwrap_or_default(),
        );
        cells(&mut html, &pool.recent);
        html.push_str("</tr>\n");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_short_and_coloured() {
        assert_eq!([0.0, 0.0005, 0.003, 0.125].map(percent), ["0 %", "< 0.1 %", "0.3 %", "12 %"]);
        let of = |share_5xx| RecentView { share_5xx, ..RecentView::default() };
        assert_eq!(
            [None, Some(0.0), Some(0.002), Some(0.5)].map(|share| class(&of(share))),
            ["", "", "warn", "bad"]
        );
    }
}
